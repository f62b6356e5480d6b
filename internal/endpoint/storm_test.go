package endpoint_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/internal/db"
	"gatehouse/internal/endpoint"
	"gatehouse/internal/gatetest"
)

// quiet switches the audit log off.
const quiet = "tenant: acme\npublic_api: {enabled: true, log_standard_requests: false}\n"

// storm sends every delivery of a list n times at once, to the nodes in turn.
func storm(t *testing.T, deliveries int, n int, send func(delivery, copy int) *gatetest.Answer) (answers []map[string]int) {
	t.Helper()
	answers = make([]map[string]int, deliveries)
	for d := range deliveries {
		var mu sync.Mutex
		var wg sync.WaitGroup
		answers[d] = map[string]int{}
		start := make(chan struct{})
		for c := range n {
			wg.Go(func() {
				<-start
				a := send(d, c)
				text := got(a)
				if string(a.Body) == `{"duplicate":true}` {
					text = "duplicate of " + a.Header.Get("X-Event-Id")
				} else if a.Status < 300 {
					text += " " + a.Header.Get("X-Event-Id")
				} else if a.Header.Get("Retry-After") == "" {
					text += " " + string(a.Body)
				}
				mu.Lock()
				defer mu.Unlock()
				answers[d][text]++
			})
		}
		close(start)
		wg.Wait()
	}
	return answers
}

// TestDeliveriesAreProcessedOnce: 200 at once of each of a few keys, on two nodes of
// PostgreSQL and one of SQLite. One is processed; every other is answered as its
// duplicate, or OVERLOADED when too many wait.
func TestDeliveriesAreProcessedOnce(t *testing.T) { processedOnce(t, 5) }

// processedOnce tries it with so many keys.
//
// place creates an order with a unique number, so that a second run conflicts; bump
// counts its runs. A service without the keyed mutex and without unique keys fails
// here: some counters end at 2 to 6, with 53 events on SQLite and 75 on PostgreSQL
// instead of 50.
func processedOnce(t *testing.T, keys int) {
	const copies = 200
	for _, engine := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(string(engine), func(t *testing.T) {
			w := gatetest.New(t, engine)
			w.Apply(orders + endpoints("{slug: bump, target: {component: bump}, auth: token, rate_limit_per_minute: 1000000, log_requests: false}",
				"{slug: place, target: {component: place}, auth: token, reply: receipt, rate_limit_per_minute: 1000000, log_requests: false}"))
			w.Apply(quiet)
			if engine == db.Postgres {
				w.AddNode()
			}
			olivia := w.Key("olivia@acme.example")
			hooks := map[string]*gatetest.Actor{"bump": w.Webhook("bump"), "place": w.Webhook("place")}
			body := make([]string, keys)
			ids := make([]string, keys)
			for i := range keys {
				body[i] = fmt.Sprintf(`{"number": "N%d"}`, i)
				if i%2 == 0 {
					ids[i] = olivia.Post("/public/v1/data/counter", `{"n": 0}`).Want(201, "").ID()
					body[i] = `{"id": "` + ids[i] + `"}`
				}
			}
			slug := func(d int) string { return [...]string{"bump", "place"}[d%2] }
			answers := storm(t, keys, copies, func(d, c int) *gatetest.Answer {
				hook := hooks[slug(d)].With("Idempotency-Key", fmt.Sprint("key ", d))
				return hook.At(w.Nodes[c%len(w.Nodes)]).Post(custom+slug(d), body[d])
			})
			for d, list := range answers {
				onceAndDuplicates(t, fmt.Sprintf("%s, key %d", slug(d), d), list)
				if ids[d] == "" {
					continue
				}
				if n := olivia.Get("/public/v1/data/counter/"+ids[d]).Want(200, "").Record()["n"]; n != 1. {
					t.Errorf("key %d: its counter is %v", d, n)
				}
			}
			if n, want := kept(t, w), fmt.Sprintf("%d records, %d events, %d keys", keys, keys, keys); n != want {
				t.Errorf("%s, want %s", n, want)
			}
			for begun := time.Now(); count(t, w, "runs") < keys && time.Since(begun) < 5*time.Second; time.Sleep(10 * time.Millisecond) {
			}
			if n := failedRuns(t, w); n != 0 {
				t.Errorf("%d runs of deliveries that were duplicates are recorded as failed", n)
			}
		})
	}
}

// onceAndDuplicates fails the test unless one answer is that to a new event, and every
// other that to a duplicate, or OVERLOADED.
func onceAndDuplicates(t *testing.T, what string, answers map[string]int) {
	t.Helper()
	processed, event := 0, ""
	for text, n := range answers {
		if status, id, _ := strings.Cut(text, " "); status == "200" || status == "202" {
			processed, event = processed+n, id
		}
	}
	if processed != 1 {
		t.Errorf("%s was processed %d times: %v", what, processed, answers)
	}
	for text, n := range answers {
		if text != "200 "+event && text != "202 "+event && text != "duplicate of "+event && text != "503 OVERLOADED" {
			t.Errorf("%s: %d times %s", what, n, text)
		}
	}
}

// failedRuns counts the runs that are recorded as failed.
func failedRuns(t *testing.T, w *gatetest.World) (n int) {
	t.Helper()
	err := endpoint.Runs(t.Context(), w.DB(), "acme", endpoint.RunFilter{Errors: true}, func(*endpoint.Run) error { n++; return nil })
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestLostRacesAreRunAgain: 64 calls at once read a counter by id and write it back. It
// ends at the number of those that were answered 200; the others are 409 CONFLICT,
// and changed nothing. With one node there are none: the last try locks the counter.
func TestLostRacesAreRunAgain(t *testing.T) {
	for _, engine := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(string(engine), func(t *testing.T) {
			w := gatetest.New(t, engine)
			w.Apply(orders + endpoints("{slug: bump, target: {component: bump}, log_requests: false}"))
			w.Apply(quiet)
			if engine == db.Postgres {
				w.AddNode()
			}
			id := w.Key("sam@acme.example").Post("/public/v1/data/counter", `{"n": 0}`).Want(201, "").ID()
			callers := make([]*gatetest.Actor, 64)
			for i := range callers {
				callers[i] = w.Key("sam@acme.example")
			}
			done := 0
			for text, n := range storm(t, 1, len(callers), func(_, c int) *gatetest.Answer {
				return callers[c].At(w.Nodes[c%len(w.Nodes)]).Post(custom+"bump", `{"id": "`+id+`"}`)
			})[0] {
				t.Log(n, text)
				switch {
				case strings.HasPrefix(text, "200"):
					done += n
				case !strings.HasPrefix(text, "409 CONFLICT"):
					t.Errorf("%d times %s", n, text)
				}
			}
			if n := callers[0].Get("/public/v1/data/counter/" + id).Record()["n"]; n != float64(done) || done == 0 {
				t.Errorf("the counter is %v after %d successes", n, done)
			}
			if len(w.Nodes) == 1 && done != len(callers) {
				t.Errorf("%d of %d calls were done", done, len(callers))
			}
		})
	}
}

// slowBump is the tenant of orders with a component that changes a counter, in as many
// milliseconds as its input says.
func slowBump(timeout int) string {
	return also(fmt.Sprintf(`
  - name: slow_bump
    timeout_ms: %d
    source: |
      export default function handler(inputs) {
        const was = records.get("counter", inputs.id).n
        const until = Date.now() + inputs.ms
        while (Date.now() < until);
        records.update("counter", inputs.id, {n: was + 1})
      }
`, timeout)) + endpoints("{slug: bump, target: {component: slow_bump}, log_requests: false}")
}

// contend lets n callers change one record at once, in 600 ms each, and returns
// how many were answered 200; others that have a status of others are fine.
func contend(t *testing.T, sam *gatetest.Actor, id string, n int, others ...int) (done int) {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			a := sam.Post(custom+"bump", `{"id": "`+id+`", "ms": 600}`)
			mu.Lock()
			defer mu.Unlock()
			if a.Status == 200 {
				done++
			} else if !slices.Contains(others, a.Status) {
				t.Errorf("%d %s", a.Status, a.Body)
			}
		})
	}
	wg.Wait()
	if n := sam.Get("/public/v1/data/counter/" + id).Record()["n"]; n != float64(done) {
		t.Errorf("the counter is %v after %d successes", n, done)
	}
	return done
}

// TestOnlyRunsOfOneRecordWait: while calls that change one record wait for each other,
// a call of the same endpoint with another record does not. (It waited for the whole
// run of each of them.)
func TestOnlyRunsOfOneRecordWait(t *testing.T) {
	w := gatetest.New(t, db.SQLite)
	w.Apply(slowBump(20000))
	w.Apply(quiet)
	sam := w.Key("sam@acme.example")
	contended := sam.Post("/public/v1/data/counter", `{"n": 0}`).Want(201, "").ID()
	innocent := sam.Post("/public/v1/data/counter", `{"n": 0}`).Want(201, "").ID()
	var calls, slow int
	var most time.Duration
	over := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
			}
			begun := time.Now()
			sam.Post(custom+"bump", `{"id": "`+innocent+`", "ms": 0}`).Want(200, "")
			took := time.Since(begun)
			calls, most = calls+1, max(most, took)
			if took > 400*time.Millisecond {
				slow++
			}
		}
	})
	done := contend(t, sam, contended, 8, 0)
	close(over)
	wg.Wait()
	t.Logf("%d calls, %d of them slow, the slowest %v", calls, slow, most)
	if done != 8 {
		t.Errorf("%d of 8 were done", done)
	}
	if slow > 2 {
		t.Errorf("%d calls with another record waited, the longest %v", slow, most)
	}
}

// TestAChangeOfTheConfigurationIsNoLostRace: a run begins anew when the configuration
// changes, whose rights it had, but that is no race for records: six changes leave it
// its three tries.
func TestAChangeOfTheConfigurationIsNoLostRace(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(slowBump(20000))
		sam := w.Key("sam@acme.example")
		id := sam.Post("/public/v1/data/counter", `{"n": 0}`).Want(201, "").ID()
		var call sync.WaitGroup
		call.Go(func() { sam.Post(custom+"bump", `{"id": "`+id+`", "ms": 300}`).Want(200, "") })
		for range 6 {
			time.Sleep(200 * time.Millisecond)
			w.Key("sam@acme.example") // a new key is a change of the configuration
		}
		call.Wait()
		if n := sam.Get("/public/v1/data/counter/" + id).Record()["n"]; n != 1.0 {
			t.Errorf("the counter is %v after one call", n)
		}
	})
}

// TestTimeLimitIncludesLocks: a last try that waits too long for its records is 504, or
// 503 where the machine had no time for it, has changed nothing, and does not block
// others.
func TestTimeLimitIncludesLocks(t *testing.T) {
	w := gatetest.New(t, db.SQLite)
	w.Apply(slowBump(1000))
	w.Apply(quiet)
	sam := w.Key("sam@acme.example")
	id := sam.Post("/public/v1/data/counter", `{"n": 0}`).Want(201, "").ID()
	if done := contend(t, sam, id, 8, 504, 503); done < 2 || done > 6 {
		t.Errorf("%d of 8 were done", done)
	}
	sam.Post(custom+"bump", `{"id": "`+id+`", "ms": 0}`).Want(200, "")
}
