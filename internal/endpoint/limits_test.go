package endpoint_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/internal/clock"
	"gatehouse/internal/component"
	"gatehouse/internal/endpoint"
	"gatehouse/internal/gatetest"
	"gatehouse/internal/gatetest/enginecache"
	"gatehouse/internal/secret"
	"gatehouse/internal/server"
)

// TestTimeLimit: a target that exceeds its time is 504; nothing is committed.
func TestTimeLimit(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(orders + endpoints(append(three("c", "component: act"), three("a", "automation: act_flow")...)...))
		w.Apply(actWithin(300))
		call := callers(w, "sam@acme.example")
		for _, slug := range []string{"key-c", "token-a", "signed-c", "signed-a"} {
			mode, _, _ := strings.Cut(slug, "-")
			begun := time.Now()
			a := call[mode](slug, `{"do": "loop"}`).Want(504, "EXECUTION_TIMEOUT")
			if took := time.Since(begun); took < 300*time.Millisecond || took > 20*time.Second {
				t.Errorf("%s: 300 ms took %v", slug, took)
			}
			if n := len(a.Header["Retry-After"]); n != 0 {
				t.Errorf("%s: %d Retry-After", slug, n)
			}
		}
		if n := kept(t, w); n != "0 records, 0 events, 0 keys" {
			t.Error(n)
		}
	})
}

// TestMemoryLimit: a target that exceeds its memory is 422; nothing is committed.
func TestMemoryLimit(t *testing.T) {
	w := gatetest.New(t, "sqlite")
	w.Apply(orders + endpoints(three("c", "component: act")...))
	call := callers(w, "sam@acme.example")
	for _, mode := range modes {
		a := call[mode](mode+"-c", `{"do": "memory"}`).Want(422, "EXECUTION_ERROR")
		if !strings.Contains(string(a.Body), "32 MiB") {
			t.Errorf("%s", a.Body)
		}
	}
	if n := kept(t, w); n != "0 records, 0 events, 0 keys" {
		t.Error(n)
	}
}

// TestNestedLoopsOfAFlow: a loop over 1000 in a loop over 1000 ends at a limit.
func TestNestedLoopsOfAFlow(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(orders + endpoints(three("a", "automation: squares")...))
		call := callers(w, "sam@acme.example")
		list := func(n int) string { return `{"list": [1` + strings.Repeat(`,1`, n-1) + `]}` }
		for _, mode := range modes {
			begun := time.Now()
			call[mode](mode+"-a", list(1000)).Want(422, "EXECUTION_ERROR")
			call[mode](mode+"-a", list(1001)).Want(422, "EXECUTION_ERROR")
			if took := time.Since(begun); took > 20*time.Second {
				t.Errorf("%s: %v", mode, took)
			}
		}
		if n := kept(t, w); n != "0 records, 0 events, 0 keys" {
			t.Error(n)
		}
		a := call["key"]("key-a", list(90)).Want(200, "")
		if !strings.Contains(string(a.Body), `"nodesExecuted":8193`) { // 90 × (90 + 1) + outer, kept and out
			t.Errorf("%s", a.Body)
		}
	})
}

// TestVerifierLimits: a verifier that loops is stopped after 250 ms of CPU time. It has
// not rejected the signature, so the answer is not 401. It counts against the address,
// which else could use the verifier's time for ever (contract W12).
func TestVerifierLimits(t *testing.T) {
	w := gatetest.New(t, "sqlite")
	w.Apply(also(`
  - {name: looping, timeout_ms: 30000, source: "export default function handler() { for (;;); }"}`) + fewAttempts +
		endpoints("{slug: shop, target: {component: act}, auth: signed, verifier: looping, webhook_secret: "+shopSecret+"}"))
	w.Clock.Stop()
	for left := 3; left >= 0; left-- { // the address may try four times
		begun := time.Now()
		a := w.Anyone().Post(custom+"shop", `{}`).Want(503, "OVERLOADED")
		if header(t, a, "Retry-After") == "" || header(t, a, "X-RateLimit-Remaining") != fmt.Sprint(left) {
			t.Errorf("%d left: %v", left, a.Header)
		}
		if took := time.Since(begun); took < 240*time.Millisecond || took > 20*time.Second {
			t.Errorf("it took %v", took)
		}
	}
	w.Anyone().Post(custom+"shop", `{}`).Want(429, "RATE_LIMITED")
}

// TestVerifiersOnBusyCores: while other work uses the cores, valid deliveries are
// accepted or OVERLOADED; none is rejected. (250 ms by the clock pass before the
// verifier has run at all.)
func TestVerifiersOnBusyCores(t *testing.T) {
	w := gatetest.New(t, "sqlite")
	w.Apply(echoes)
	send := func(n, size int) *gatetest.Answer {
		body := with(ok, fmt.Sprintf(`"id": "e%d-%d", "note": %q`, n, size, strings.Repeat("x", size)))
		return w.Anyone().With("X-Signature", hmacHex(shopSecret, body)).Post(custom+"signed-act", body)
	}
	send(0, 1).Want(202, "")
	stop := make(chan struct{})
	var hogs, senders sync.WaitGroup
	for range 8 * runtime.GOMAXPROCS(0) {
		hogs.Go(func() {
			for n := 0; ; n++ {
				if n%1_000_000 == 0 { // as often as runs yield
					runtime.Gosched()
					select {
					case <-stop:
						return
					default:
					}
				}
			}
		})
	}
	for n := range 3 {
		senders.Go(func() {
			for _, size := range []int{1 << 10, 200 << 10, 900 << 10} {
				if a := send(n+1, size); a.Status != 202 && a.Status != 503 && a.Status != 504 { // 504 is the target's
					t.Errorf("%d KB: %d %.200s", size>>10, a.Status, a.Body)
				}
			}
		})
	}
	senders.Wait()
	close(stop)
	hogs.Wait()
	send(10, 900<<10).Want(202, "")
}

// TestStrangersLeaveRoomForTheBodiesOfATenant: unfinished bodies at an endpoint in
// signature mode take as much memory as there is for them, and the tenant's own large
// requests still have room.
func TestStrangersLeaveRoomForTheBodiesOfATenant(t *testing.T) {
	w := gatetest.New(t, "sqlite")
	w.Apply(orders + endpoints(signed("shop", "component: act", ", max_body_bytes: 10485760"), "{slug: act, target: {component: act}, auth: token, max_body_bytes: 10485760}"))
	unfinished := strings.Repeat("x", 9_000_000)
	refused := false
	for range 8 {
		c, err := net.Dial("tcp", strings.TrimPrefix(w.Nodes[0].URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		head := "POST " + custom + "shop HTTP/1.1\r\nHost: " + gatetest.Host + "\r\nContent-Type: application/json\r\nContent-Length: 9000001\r\n\r\n"
		if err := c.SetWriteDeadline(time.Now().Add(30 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, head+unfinished); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("a body was neither received, but for its last byte, nor refused")
		}
		if err := c.SetReadDeadline(time.Now().Add(300 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, 64)
		if n, err := c.Read(answer); err == nil {
			if !strings.HasPrefix(string(answer[:n]), "HTTP/1.1 503 ") {
				t.Fatalf("%s", answer[:n])
			}
			refused = true
		} else if !errors.Is(err, os.ErrDeadlineExceeded) {
			refused = true // reset while it was being sent
		}
	}
	if !refused {
		t.Error("there was room for eight bodies of 9 MB")
	}
	w.Webhook("act").Post(custom+"act", with(ok, `"note": "`+strings.Repeat("y", 9_000_000)+`"`)).Want(200, "")
}

// TestRejectedDeliveriesDoNotCountAgainstTheEndpoint: whether they come from one
// address or from many, the endpoint's limit is for verified deliveries.
func TestRejectedDeliveriesDoNotCountAgainstTheEndpoint(t *testing.T) {
	w := gatetest.New(t, "sqlite")
	w.Apply(orders + fewAttempts + endpoints(signed("shop", "component: act", ", rate_limit_per_minute: 5")))
	send := func(ip, secret string) *gatetest.Answer {
		body := with(ok, `"id": "`+names.next("e")+`"`)
		return w.Anyone().With("X-Forwarded-For", ip).With("X-Signature", hmacHex(secret, body)).Post(custom+"shop", body)
	}
	for n := range 20 {
		want := 401
		if n >= 4 {
			want = 429
		}
		if a := send("198.51.100.1", "wrong"); a.Status != want {
			t.Fatalf("%d: %d %s", n, a.Status, a.Body)
		}
	}
	var noise sync.WaitGroup
	for n := range 40 {
		noise.Go(func() {
			if a := send(fmt.Sprintf("203.0.113.%d", n+1), "wrong"); a.Status != 401 && a.Status != 429 { // 429 once the deliveries below have used it up
				t.Errorf("%d %s", a.Status, a.Body)
			}
		})
	}
	for n := range 5 {
		a := send("198.51.100.2", shopSecret).Want(202, "")
		if left := header(t, a, "X-RateLimit-Remaining"); left != fmt.Sprint(4-n) {
			t.Errorf("%s left after %d", left, n+1)
		}
	}
	noise.Wait()
	send("198.51.100.2", shopSecret).Want(429, "RATE_LIMITED")
}

// busy is a component that computes until the clock of the node's components shows released.
const busy = `  - {name: busy, timeout_ms: 30000, source: "export default function handler() { while (Date.now() < Date.UTC(2100, 0)); return true }"}`

var released = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)

// TestFullEngine: a component that gets no place is 503 with Retry-After in all modes,
// also in a flow; nothing is committed, and the next try runs.
func TestFullEngine(t *testing.T) {
	w := gatetest.New(t, "sqlite")
	w.Apply(also(busy) + endpoints(append(append(three("c", "component: act"), three("a", "automation: act_flow")...),
		"{slug: busy, target: {component: busy}}")...))
	call := callers(w, "sam@acme.example")
	sam, hook := w.Key("sam@acme.example"), map[string]*gatetest.Actor{"token-c": w.Webhook("token-c"), "token-a": w.Webhook("token-a")}
	call["key"]("key-c", ok).Want(200, "")
	before := kept(t, w)
	few := w.Key("sam@acme.example", gatetest.RateLimit(3))
	small, componentClock := nodeWith(t, w, 1, 1)
	sam.At(small).Post(custom+"key-c", ok).Want(200, "") // which starts the engine and compiles
	before = strings.Replace(before, "1 records", "2 records", 1)

	var holder sync.WaitGroup
	holder.Go(func() { sam.At(small).Post(custom+"busy", `{}`).Want(200, "") })
	small.AwaitStats(t, func(s endpoint.Stats) bool { return s.ComponentsRunning == 1 })
	body := with(ok, `"id": "o"`)
	for slug, a := range map[string]*gatetest.Actor{
		"key-c": sam, "key-a": sam, "token-c": hook["token-c"], "token-a": hook["token-a"],
		"signed-c": w.Anyone().With("X-Signature", hmacHex(shopSecret, body)), "signed-a": w.Anyone().With("X-Signature", hmacHex(shopSecret, body)),
	} {
		answer := a.At(small).With("Idempotency-Key", "o").Post(custom+slug, body)
		if got(answer) != "503 OVERLOADED" || answer.Header.Get("Retry-After") == "" {
			t.Errorf("%s: %d %s %v", slug, answer.Status, answer.Body, answer.Header)
		}
	}
	for range 5 { // OVERLOADED counts against no limit
		if a := few.At(small).Post(custom+"key-c", ok).Want(503, "OVERLOADED"); header(t, a, "X-RateLimit-Remaining") != "3" {
			t.Errorf("shed, with %s left of 3", header(t, a, "X-RateLimit-Remaining"))
		}
	}
	if n := kept(t, w); n != before {
		t.Errorf("%s, %s before", n, before)
	}
	componentClock.Set(released)
	holder.Wait()
	if a := few.At(small).Post(custom+"key-c", ok).Want(200, ""); header(t, a, "X-RateLimit-Remaining") != "2" {
		t.Errorf("the first that was not shed leaves %s of 3", header(t, a, "X-RateLimit-Remaining"))
	}
	if a := hook["token-c"].At(small).With("Idempotency-Key", "o").Post(custom+"token-c", ok); a.Status != 200 || strings.Contains(string(a.Body), "duplicate") {
		t.Errorf("afterwards: %d %s", a.Status, a.Body)
	}
}

// nodeWith adds a node to the World, with so many places and a wait of 50 ms, and returns the clock that its components
// see, which stands still.
func nodeWith(t *testing.T, w *gatetest.World, instances, perTenant int) (*gatetest.Node, *clock.Fake) {
	t.Helper()
	componentClock := clock.NewFake(w.Clock.Now())
	engine, err := component.NewEngine(t.Context(), component.Options{
		CacheDir: enginecache.Dir(), Instances: instances, PerTenant: perTenant, MaxWait: 50 * time.Millisecond, Now: componentClock.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	keyring, err := secret.NewKeyring(bytes.Repeat([]byte{7}, 32)) // gatetest's
	if err != nil {
		t.Fatal(err)
	}
	n := &gatetest.Node{DB: w.DB(), Log: &gatetest.Buffer{}}
	n.Server = server.New(server.Options{DB: n.DB, Keyring: keyring, Clock: w.Clock, Log: n.Log, Engine: engine, Mail: w.Mails})
	front := httptest.NewServer(n.Server)
	n.URL = front.URL
	t.Cleanup(func() {
		front.Close()
		ctx := context.WithoutCancel(t.Context())
		if err := errors.Join(n.Server.Close(ctx), engine.Close(ctx)); err != nil {
			t.Error(err)
		}
	})
	return n, componentClock
}

// TestTooManyWaiters: of one key at most 100 deliveries wait; the next is
// OVERLOADED, and those that wait hold no database connection.
func TestTooManyWaiters(t *testing.T) {
	w := gatetest.New(t, "sqlite")
	w.Apply(also(busy) + endpoints("{slug: busy, target: {component: busy}, auth: token}", "{slug: act, target: {component: act}}"))
	hook, sam := w.Webhook("busy").With("Idempotency-Key", "k"), w.Key("sam@acme.example")
	node, componentClock := nodeWith(t, w, 4, 4)
	var wg sync.WaitGroup
	var mu sync.Mutex
	answers := map[string]int{}
	for range 151 {
		wg.Go(func() {
			a := hook.At(node).Post(custom+"busy", `{}`)
			text := got(a)
			if strings.Contains(string(a.Body), "duplicate") {
				text = "duplicate"
			} else if a.Status == 503 && a.Header.Get("Retry-After") == "" {
				text += " without Retry-After"
			}
			mu.Lock()
			defer mu.Unlock()
			answers[text]++
		})
	}
	refused := func() int {
		mu.Lock()
		defer mu.Unlock()
		return answers["503 OVERLOADED"]
	}
	for begun := time.Now(); refused() < 50 && time.Since(begun) < time.Minute; time.Sleep(time.Millisecond) {
	}
	sam.At(node).Get("/public/v1/data/order").Want(200, "") // other requests are served in the meantime
	sam.At(node).Post(custom+"act", ok).Want(200, "")
	componentClock.Set(released)
	wg.Wait()
	if want := map[string]int{"200": 1, "duplicate": 100, "503 OVERLOADED": 50}; fmt.Sprint(answers) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", answers, want)
	}
}
