//go:build !race

package endpoint_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/internal/gatetest"
)

// TestLimitOfReceivedRecords: a list in a run ends at 2 MiB, or at what the run may
// still receive; after that the run fails with an error that names the limit.
func TestLimitOfReceivedRecords(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		olivia := withLarge(w, 12)
		var page struct {
			N    int
			More bool
		}
		if olivia.Post(customPath+"page", `{}`).Want(200, "").Data(&page); page.N != 2 || !page.More {
			t.Errorf("a component's page has %d records, more: %t", page.N, page.More)
		}
		var flow struct {
			More          bool
			Second, Third *string
		}
		if olivia.Post(customPath+"page-flow", `{}`).Want(200, "").Data(&flow); !flow.More || flow.Second == nil || flow.Third != nil {
			t.Errorf("a flow's page: more %t, second %v, third %v", flow.More, flow.Second, flow.Third)
		}
		for slug, node := range map[string]string{"uncaught": "", "lists-flow": "five"} {
			a := olivia.Post(customPath+slug, `{}`).Want(422, "EXECUTION_ERROR")
			if !strings.Contains(string(a.Body), "8 MiB of records") || !strings.Contains(string(a.Body), node) {
				t.Errorf("%s: %s", slug, a.Body)
			}
		}
		var all struct {
			Pages  []int
			Failed struct{ Code, Message string }
			One    string
			Small  bool
		}
		olivia.Post(customPath+"all", `{}`).Want(200, "").Data(&all)
		if fmt.Sprint(all.Pages) != "[2 2 2 2]" || all.Failed.Code != "EXECUTION_ERROR" || all.One != "EXECUTION_ERROR" || !all.Small {
			t.Errorf("%+v", all)
		}
		// The refused calls had no effect, those after them had.
		if n := count(t, w, "records"); n != 13 {
			t.Errorf("%d records", n)
		}
	})
}

// TestMemoryOfConcurrentRuns: eight runs at once list 40 records of 1 MB.
func TestMemoryOfConcurrentRuns(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		olivia := withLarge(w, 40)
		for _, slug := range []string{"page", "three-flow"} {
			olivia.Post(customPath+slug, `{}`).Want(200, "")
			grown := growth(func() {
				var wait sync.WaitGroup
				for range 8 {
					wait.Go(func() {
						for range 3 {
							if a := olivia.Post(customPath+slug, `{}`); a.Status != 200 && a.Code() != "OVERLOADED" && a.Code() != "EXECUTION_TIMEOUT" { // beside other tests a flow's 5 s may end
								t.Errorf("%s: %d %.200s", slug, a.Status, a.Body)
							}
						}
					})
				}
				wait.Wait()
			})
			t.Logf("%s: %d MiB more", slug, grown)
			if grown > 160 {
				t.Errorf("%s: 8 runs took %d MiB", slug, grown)
			}
		}
	})
}

// growth returns by how many MiB the heap grows at most while do runs.
func growth(do func()) int64 {
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	done := make(chan struct{})
	most := make(chan uint64)
	go func() {
		var highest uint64
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			highest = max(highest, m.HeapAlloc)
			select {
			case <-done:
				most <- highest
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	do()
	close(done)
	return (int64(<-most) - int64(before.HeapAlloc)) >> 20
}

// TestMemoryOfShownDeliveries: 24 at once read a failed delivery of 9 MiB, of which some
// hundred bytes are stored.
func TestMemoryOfShownDeliveries(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(orders + endpoints("{slug: hook, target: {component: act}, auth: token, max_body_bytes: 10485760}"))
		w.Apply(builders)
		m := w.Staff(mark)
		w.Webhook("hook").Post(custom+"hook", `{"do": "crash", "text": "`+strings.Repeat("a", 9<<20)+`"}`).Want(422, "EXECUTION_ERROR")
		id := failedEvent(t, m)
		grown := growth(func() {
			var wait sync.WaitGroup
			for range 24 {
				wait.Go(func() { m.Get(events+"/"+id).Want(200, "") })
			}
			wait.Wait()
		})
		t.Logf("%d MiB more", grown)
		if grown > 200 {
			t.Errorf("24 at once took %d MiB", grown)
		}
	})
}

// TestLimitsOfChanges: a flow with 99 × 99 creates fails at its 1,001st change, one that
// writes large records at 8 MiB; nothing is committed. (It once created 9,801 records
// in one transaction.)
func TestLimitsOfChanges(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(changing("{slug: nested, target: {automation: nested}}", "{slug: updates, target: {automation: updates}}",
			"{slug: large, target: {automation: large}}"))
		sam := w.Key("sam@acme.example")
		refused := func(slug, body, limit string) {
			t.Helper()
			before := kept(t, w)
			if a := sam.Post(custom+slug, body).Want(422, "EXECUTION_ERROR"); !strings.Contains(string(a.Body), limit) {
				t.Errorf("%s: %s", slug, a.Body)
			}
			if n := kept(t, w); n != before {
				t.Errorf("%s: %s, %s before", slug, n, before)
			}
		}
		refused("nested", `{"list": `+numbers(99)+`}`, "a run may change at most 1000 records")
		id := sam.Post("/public/v1/data/counter", `{"n": 0}`).Want(201, "").ID()
		refused("updates", `{"id": "`+id+`", "list": `+numbers(99)+`}`, "a run may change at most 1000 records")
		if n := sam.Get("/public/v1/data/counter/" + id).Record()["n"]; n != 0. {
			t.Errorf("the counter is %v", n)
		}
		text := strings.Repeat("x", 900<<10)
		refused("large", `{"text": "`+text+`", "list": `+numbers(10)+`}`, "at most 8 MiB")
		sam.Post(custom+"nested", `{"list": `+numbers(31)+`}`).Want(200, "")
		sam.Post(custom+"large", `{"text": "`+text+`", "list": `+numbers(4)+`}`).Want(200, "")
		if n := kept(t, w); n != "966 records, 0 events, 0 keys" {
			t.Error(n)
		}
	})
}

// TestBodies: an object, as JSON, within the endpoint's cap.
func TestBodies(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(orders + endpoints(
			"{slug: key-d, target: {component: act}}", "{slug: key-s, target: {component: act}, max_body_bytes: 1000}",
			"{slug: key-l, target: {component: act}, max_body_bytes: 2000000}", "{slug: token-d, target: {component: act}, auth: token}",
			"{slug: token-s, target: {component: act}, auth: token, max_body_bytes: 1000}",
			signed("signed-d", "component: act", ""), signed("signed-s", "component: act", ", max_body_bytes: 1000")))
		sam := w.Key("sam@acme.example")
		hook := map[string]*gatetest.Actor{"token-d": w.Webhook("token-d"), "token-s": w.Webhook("token-s")}
		for _, body := range []string{"", "x", "[]", `"x"`, "null", "1", `{`, `{} {}`, `{"do": "null", "do": "null"}`, `{"do": "\ud800"}`, "{\"do\": \"\xff\"}"} {
			sam.With("Content-Type", "application/json").Post(custom+"key-d", body).Want(400, "VALIDATION")
			hook["token-d"].With("Content-Type", "application/json").Post(custom+"token-d", body).Want(400, "VALIDATION")
		}
		for _, kind := range []string{"text/plain", "application/json; charset=latin1", "application/xml", "multipart/mixed; boundary=x", "x"} {
			sam.With("Content-Type", kind).Post(custom+"key-d", `{"do": "null"}`).Want(415, "UNSUPPORTED_MEDIA_TYPE")
			hook["token-d"].With("Content-Type", kind).Post(custom+"token-d", `{"do": "null"}`).Want(415, "UNSUPPORTED_MEDIA_TYPE")
		}
		of := func(size int) string {
			const frame = `{"do": "null", "x": ""}`
			return frame[:len(frame)-2] + strings.Repeat("x", size-len(frame)) + `"}`
		}
		post := func(slug, body string, chunked bool) *gatetest.Answer {
			a := sam
			switch {
			case hook[slug] != nil:
				a = hook[slug]
			case strings.HasPrefix(slug, "signed"):
				body = strings.Replace(body, `{"do": "null", "x": "xxxxxxxxxxx`, `{"do": "null", "id": "1", "x": "`, 1)
				a = w.Anyone().With("X-Signature", hmacHex(shopSecret, body))
			}
			if chunked {
				return inChunks(t, a, custom+slug, body)
			}
			return a.Post(custom+slug, body)
		}
		for slug, limit := range map[string]int{
			"key-d": 1 << 20, "key-s": 1000, "key-l": 2_000_000, "token-d": 1 << 20, "token-s": 1000, "signed-d": 1 << 20, "signed-s": 1000,
		} {
			for _, chunked := range []bool{false, true} {
				a := post(slug, of(limit), chunked)
				want := 200
				if strings.HasPrefix(slug, "signed") && !chunked { // it would be a duplicate
					want = 202
				}
				if a.Status != want {
					t.Errorf("%s: %d bytes, chunked %v: %d, want %d: %.200s", slug, limit, chunked, a.Status, want, a.Body)
				}
				post(slug, of(limit+1), chunked).Want(413, "PAYLOAD_TOO_LARGE")
			}
		}
	})
}

// TestManyDeliveriesAreProcessedOnce is TestDeliveriesAreProcessedOnce with more keys.
func TestManyDeliveriesAreProcessedOnce(t *testing.T) { processedOnce(t, 50) }
