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

// large has records of a megabyte, and targets that list them.
const large = `
tenant: acme
hosts: [acme.localhost]
public_api: {enabled: true}
entities:
  - name: big
    fields: [{name: extra, type: json}]
users: [{email: olivia@acme.example, name: Olivia, owner: true}]
logic_components:
  - name: page
    source: |
      export default () => { const p = records.list("big", {limit: 200}); return {n: p.records.length, more: p.nextCursor !== null} }
  - name: all
    source: |
      export default () => {
        const pages = []
        let cursor = null, failed
        try {
          do { const p = records.list("big", {limit: 200, cursor}); pages.push(p.records.length); cursor = p.nextCursor } while (cursor)
        } catch (e) { failed = {code: e.code, message: e.message} }
        let one
        try { one = records.create("big", {extra: {pad: "p".repeat(200000)}}).id } catch (e) { one = e.code }
        return {pages, failed, one, small: records.create("big", {}).id !== undefined}
      }
  - name: uncaught
    source: |
      export default () => { let cursor = null; do { cursor = records.list("big", {cursor}).nextCursor } while (cursor) }
automations:
  - name: page_flow
    trigger: http.request
    outputs: [{name: more, type: boolean}, {name: second, type: text}, {name: third, type: text}]
    nodes:
      - {id: l, type: record.list, entity: big, limit: 200}
      - {id: out, type: output, set: {more: "{{l.hasMore}}", second: "{{l.records.1.id}}"}}
      - {id: none, type: output, set: {third: "{{l.records.2.id}}"}}
  - name: lists_flow
    trigger: http.request
    nodes:
      - {id: one, type: record.list, entity: big, limit: 200}
      - {id: two, type: record.list, entity: big, limit: 200}
      - {id: three, type: record.list, entity: big, limit: 200}
      - {id: four, type: record.list, entity: big, limit: 200}
      - {id: five, type: record.list, entity: big, limit: 200}
  - name: three_flow
    trigger: http.request
    outputs: [{name: more, type: boolean}]
    nodes:
      - {id: one, type: record.list, entity: big, limit: 200}
      - {id: two, type: record.list, entity: big, limit: 200}
      - {id: three, type: record.list, entity: big, limit: 200}
      - {id: look, type: if, when: "len(one.records) + len(two.records) + len(three.records) > 0", then: [{id: out, type: output, set: {more: "{{three.hasMore}}"}}]}
custom_endpoints:
  - {slug: page, target: {component: page}}
  - {slug: all, target: {component: all}}
  - {slug: uncaught, target: {component: uncaught}}
  - {slug: page-flow, target: {automation: page_flow}}
  - {slug: lists-flow, target: {automation: lists_flow}}
  - {slug: three-flow, target: {automation: three_flow}}
`

const customPath = "/public/v1/custom/"

// withLarge is the owner of n records of a megabyte.
func withLarge(w *gatetest.World, n int) *gatetest.Actor {
	w.Apply(large)
	olivia := w.Key("olivia@acme.example", gatetest.RateLimit(1_000_000))
	for range n {
		olivia.Post("/public/v1/data/big", `{"extra": {"pad": "`+strings.Repeat("p", 1_000_000)+`"}}`).Want(201, "")
	}
	return olivia
}

// TestARunIsHandedNoMoreThanItMayBe: a list of a run ends at 2 MiB, and where
// what the run may still be handed ends; then the run fails and says why.
func TestARunIsHandedNoMoreThanItMayBe(t *testing.T) {
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
		// What was refused to the script has not happened, what came after has.
		if n := count(t, w, "records"); n != 13 {
			t.Errorf("%d records", n)
		}
	})
}

// TestRunsTogetherAreBounded: eight runs at once that list 40 records of 1 MB.
func TestRunsTogetherAreBounded(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		olivia := withLarge(w, 40)
		for _, slug := range []string{"page", "three-flow"} {
			olivia.Post(customPath+slug, `{}`).Want(200, "")
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
			var wait sync.WaitGroup
			for range 8 {
				wait.Go(func() {
					for range 3 {
						if a := olivia.Post(customPath+slug, `{}`); a.Status != 200 && a.Code() != "OVERLOADED" {
							t.Errorf("%s: %d %.200s", slug, a.Status, a.Body)
						}
					}
				})
			}
			wait.Wait()
			close(done)
			grown := (int64(<-most) - int64(before.HeapAlloc)) >> 20
			t.Logf("%s: %d MiB more", slug, grown)
			if grown > 160 {
				t.Errorf("%s: 8 runs took %d MiB", slug, grown)
			}
		}
	})
}
