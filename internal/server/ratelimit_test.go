package server_test

import (
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/internal/db"
	"gatehouse/internal/gatetest"
)

// unlogged keeps audit entries, which do not matter here, out of the database.
const unlogged = "tenant: acme\npublic_api: {enabled: true, log_standard_requests: false}\n"

// storm sends n requests from each of 64 goroutines at once. It returns how
// often each Remaining came with a success, and how many requests were refused.
func storm(t *testing.T, n int, call func() *gatetest.Answer) (remaining map[string]int, refused int) {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	remaining = map[string]int{}
	for range 64 {
		wg.Go(func() {
			for range n {
				a := call()
				mu.Lock()
				if a.Status == 429 {
					refused++
				} else {
					remaining[a.Header.Get("X-RateLimit-Remaining")]++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return remaining, refused
}

// exact fails the test unless limit requests were accepted, with a Remaining of
// limit-1 down to 0, each once.
func exact(t *testing.T, what string, remaining map[string]int, limit int) {
	t.Helper()
	for i := range limit {
		if n := remaining[strconv.Itoa(i)]; n != 1 {
			t.Errorf("%s: Remaining %d came %d times", what, i, n)
		}
	}
	if len(remaining) != limit {
		t.Errorf("%s: %d different Remaining, want %d", what, len(remaining), limit)
	}
}

func TestAKeyHasExactlyItsRequestsInAWindow(t *testing.T) {
	w := gatetest.New(t, db.SQLite)
	w.Apply(acme)
	w.Apply(unlogged)
	w.Clock.Stop()  // otherwise a window could end during the test on a slow machine
	const calls = 5 // by each of the storm's clients
	for _, limit := range []int{1, 5, 60} {
		key := w.Key("sam@acme.example", gatetest.RateLimit(limit))
		for window := range 2 {
			what := "limit " + strconv.Itoa(limit) + ", window " + strconv.Itoa(window)
			remaining, refused := storm(t, calls, func() *gatetest.Answer { return key.Get(me) })
			exact(t, what, remaining, limit)
			if want := 64*calls - limit; refused != want {
				t.Errorf("%s: %d refused, want %d", what, refused, want)
			}
			a := whole(t, key.Get(me)).Want(429, "RATE_LIMITED")
			if got := a.Header.Get("X-RateLimit-Limit"); got != strconv.Itoa(limit) {
				t.Errorf("%s: X-RateLimit-Limit %s", what, got)
			}
			w.Clock.Advance(time.Minute)
		}
	}
}

// TestRetryAfterIsTrue: a request after that time is accepted, and one shortly
// before is refused.
func TestRetryAfterIsTrue(t *testing.T) {
	w := gatetest.New(t, db.SQLite)
	w.Apply(acme)
	w.Clock.Stop()
	key := w.Key("sam@acme.example", gatetest.RateLimit(2))
	wait := func(a *gatetest.Answer) time.Duration {
		t.Helper()
		n, err := strconv.Atoi(a.Header.Get("Retry-After"))
		if err != nil {
			t.Fatal(err)
		}
		return time.Duration(n) * time.Second
	}
	for range 3 {
		key.Get(me).Want(200, "")
		w.Clock.Advance(17 * time.Second)
		key.Get(me).Want(200, "")
		left := wait(whole(t, key.Get(me)).Want(429, "RATE_LIMITED"))
		const shortly = time.Second
		if left != 43*time.Second {
			t.Errorf("17 s into the window, Retry-After is %v", left)
		}
		w.Clock.Advance(left - shortly)
		if now := wait(key.Get(me).Want(429, "RATE_LIMITED")); now != shortly {
			t.Errorf("shortly before its end, Retry-After is %v", now)
		}
		w.Clock.Advance(shortly)
	}
	if a := key.Get(me).Want(200, ""); a.Header.Get("X-RateLimit-Remaining") != "1" || a.Header.Get("X-RateLimit-Reset") != "60" {
		t.Errorf("a new window begins with %v", a.Header)
	}
}

func TestEveryKeyHasABudgetOfItsOwn(t *testing.T) {
	w := gatetest.New(t, db.SQLite)
	w.Apply(acme)
	one, two := w.Key("sam@acme.example", gatetest.RateLimit(1)), w.Key("sam@acme.example", gatetest.RateLimit(1))
	one.Get(me).Want(200, "")
	one.Get(me).Want(429, "RATE_LIMITED")
	from(one, "198.51.100.1").Get(me).Want(429, "RATE_LIMITED") // from any address
	two.Get(me).Want(200, "")
	// Requests that passed the earlier checks count, whatever their answer.
	three := w.Key("sam@acme.example", gatetest.RateLimit(3), origins(app), allowlist("127.0.0.1"))
	three.With("Origin", evil).Get(me).Want(403, "CORS_DENIED")
	from(three, "198.51.100.1").Get(me).Want(403, "IP_DENIED")
	three.Get(nobody).Want(404, "NOT_FOUND")
	three.Post(contact, `{`).Want(400, "VALIDATION")
	if got := three.Get(me).Want(200, "").Header.Get("X-RateLimit-Remaining"); got != "0" {
		t.Errorf("three requests of three left %s", got)
	}
	// A key where it may not be used counts against the address, whose budget
	// the headers describe.
	w.Apply("tenant: acme\nunauthenticated_per_ip_per_minute: 5\n")
	for left := 3; left >= 0; left -= 2 { // one was counted above
		a := three.With("Origin", evil).Get(me).Want(403, "CORS_DENIED")
		if got := a.Header.Get("X-RateLimit-Remaining"); got != strconv.Itoa(left) {
			t.Errorf("a refused origin leaves %s, want %d", got, left)
		}
		if left > 0 {
			three.With("X-Forwarded-For", "127.0.0.1").With("Origin", evil).Get(me).Want(403, "CORS_DENIED")
		}
	}
	three.With("Origin", evil).Get(me).Want(429, "RATE_LIMITED")
	for n := range 4 { // one was counted above
		if got := from(three, "198.51.100.1").Get(me).Want(403, "IP_DENIED").Header.Get("X-RateLimit-Remaining"); got != strconv.Itoa(3-n) {
			t.Errorf("a refused address has %s left after %d", got, n+2)
		}
	}
	from(three, "198.51.100.1").Get(me).Want(429, "RATE_LIMITED")
	w.Clock.Advance(time.Minute)
	three.Get(me).Want(200, "")
	// The budget of a deleted key is no longer used; the headers describe
	// the address's budget.
	w.Apply("tenant: acme\nunauthenticated_per_ip_per_minute: 77\n")
	if err := w.Nodes[0].Server.Keys().Delete(t.Context(), "test", "acme", two.KeyID); err != nil {
		t.Fatal(err)
	}
	if got := two.Get(me).Want(401, "UNAUTHORIZED").Header.Get("X-RateLimit-Limit"); got != "77" {
		t.Errorf("a deleted key is told of a limit of %s", got)
	}
}

// TestRequestsWithoutACredentialShareABudgetPerAddress: 401, 404, 405 and
// preflights together, at each tenant.
func TestRequestsWithoutACredentialShareABudgetPerAddress(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		w.Apply(unlogged)
		w.Apply("tenant: other\nhosts: [other.localhost]\npublic_api: {enabled: true}\nunauthenticated_per_ip_per_minute: 2\n")
		const limit = 24
		w.Apply("tenant: acme\nunauthenticated_per_ip_per_minute: " + strconv.Itoa(limit) + "\n")
		sam := w.Key("sam@acme.example", origins(app))
		wrong := w.Anyone()
		wrong.Token = "svc_api_" + strings.Repeat("0", 64)
		kinds := func(address string) []func() *gatetest.Answer {
			anyone := from(w.Anyone(), address)
			return []func() *gatetest.Answer{
				func() *gatetest.Answer { return anyone.Get(me) },
				func() *gatetest.Answer { return from(wrong, address).Get(me) },
				func() *gatetest.Answer { return anyone.Get("/nowhere") },
				func() *gatetest.Answer { return anyone.Do("PUT", me, "") },
				func() *gatetest.Answer { return ask(anyone, app, contact) },
				func() *gatetest.Answer { return ask(anyone, evil, contact) },
			}
		}
		all := kinds("198.51.100.1")
		left := limit
		for _, status := range []int{401, 401, 404, 405, 204, 403} {
			a := whole(t, all[limit-left]())
			left--
			if got := a.Header.Get("X-RateLimit-Remaining"); a.Status != status || got != strconv.Itoa(left) || a.Header.Get("X-RateLimit-Limit") != strconv.Itoa(limit) {
				t.Errorf("%s: %d, want %d; remaining %s, want %d", a.Call, a.Status, status, got, left)
			}
		}
		// The rest from everywhere at once: no kind gets one request more.
		var turn sync.Mutex
		i := 0
		remaining, _ := storm(t, 3, func() *gatetest.Answer {
			turn.Lock()
			call := all[i%len(all)]
			i++
			turn.Unlock()
			return call()
		})
		exact(t, "all kinds", remaining, left)
		for _, call := range all {
			whole(t, call()).Want(429, "RATE_LIMITED")
		}
		// A valid key has its own budget; so has another address, and an
		// address at another tenant.
		from(sam, "198.51.100.1").Get(me).Want(200, "")
		from(w.Anyone(), "198.51.100.2").Get(me).Want(401, "UNAUTHORIZED")
		other := from(w.Anyone(), "198.51.100.1")
		other.Host = "other.localhost"
		other.Get(me).Want(401, "UNAUTHORIZED")
		other.Get("/nowhere").Want(404, "NOT_FOUND")
		other.Get(me).Want(429, "RATE_LIMITED")
		// An IPv6 client is its /64.
		for i := range limit {
			from(w.Anyone(), "2001:db8::"+strconv.Itoa(i+1)).Get(me).Want(401, "UNAUTHORIZED")
		}
		from(w.Anyone(), "2001:db8::ffff").Get(me).Want(429, "RATE_LIMITED")
		from(w.Anyone(), "2001:db8:0:1::1").Get(me).Want(401, "UNAUTHORIZED")

		w.Clock.Advance(time.Minute)
		for _, call := range all {
			if a := call(); a.Status == 429 {
				t.Errorf("%s in a new window: 429", a.Call)
			}
		}
	})
}
