package endpoint_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/internal/db"
	"gatehouse/internal/endpoint"
	"gatehouse/internal/gatetest"
	"gatehouse/internal/tenant"
)

// changing is the tenant of orders with flows that change as much as they can.
func changing(lines ...string) string {
	const flows = `
  - name: nested
    trigger: http.request
    input_schema: [{name: list, type: json, required: true}]
    nodes:
      - {id: outer, type: each, in: "{{inputs.list}}", as: a, do: [{id: inner, type: each, in: "{{inputs.list}}", as: b, do: [{id: made, type: record.create, entity: counter, fields: {n: 1}}]}]}
  - name: updates
    trigger: http.request
    input_schema: [{name: list, type: json, required: true}, {name: id, type: text, required: true}]
    nodes:
      - {id: outer, type: each, in: "{{inputs.list}}", as: a, do: [{id: inner, type: each, in: "{{inputs.list}}", as: b, do: [{id: made, type: record.update, entity: counter, record_id: "{{inputs.id}}", fields: {n: 7}}]}]}
  - name: large
    trigger: http.request
    input_schema: [{name: list, type: json, required: true}, {name: text, type: text, required: true}]
    nodes:
      - {id: outer, type: each, in: "{{inputs.list}}", as: a, do: [{id: made, type: record.create, entity: order, fields: {number: "N{{a}}", note: "{{inputs.text}}"}}]}
custom_endpoints:
`
	src := strings.Replace(orders, "      - {name: total, type: number}\n", "      - {name: total, type: number}\n      - {name: note, type: text}\n", 1)
	return src + strings.Replace(flows, "custom_endpoints:\n", endpoints(lines...), 1)[1:]
}

func numbers(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprint(i)
	}
	return "[" + strings.Join(list, ",") + "]"
}

// occupied blocks all writes until release is called: on SQLite it holds the writer,
// on PostgreSQL it locks the tenant's row.
func occupied(t *testing.T, w *gatetest.World) (release func()) {
	t.Helper()
	begun, end, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- w.DB().For("acme").Write(t.Context(), func(tx db.Tx) error {
			if _, err := tenant.Tick(t.Context(), tx, 0); err != nil {
				return err
			}
			close(begun)
			<-end
			return nil
		})
	}()
	<-begun
	return sync.OnceFunc(func() {
		close(end)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestTimeLimitIncludesCommit: a run whose commit waits longer than the run may take
// is 504 at that time, and nothing is committed. (It was 200, however late.)
func TestTimeLimitIncludesCommit(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		var lines []string
		for _, line := range append(three("c", "component: act"), three("a", "automation: place_flow")...) {
			lines = append(lines, strings.TrimSuffix(line, "}")+", log_requests: false}")
		}
		w.Apply(orders + endpoints(lines...))
		w.Apply(quiet) // an audit log that cannot write would make answers wait
		call := callers(w, "sam@acme.example")
		done := func() {
			t.Helper()
			for _, mode := range modes {
				if a := call[mode](mode+"-c", ok); a.Status >= 300 {
					t.Errorf("%s: %s", mode, got(a))
				}
			}
		}
		done()
		before := kept(t, w)
		over := func(slug, body string, limit time.Duration) {
			mode, _, _ := strings.Cut(slug, "-")
			release := occupied(t, w)
			timer := time.AfterFunc(time.Minute, release) // a run that waits for its commit ends here, with a success
			begun := time.Now()
			a := call[mode](slug, body)
			took, waits := time.Since(begun), timer.Stop()
			release()
			if got(a) != "504 EXECUTION_TIMEOUT" || took < limit || !waits {
				t.Errorf("%s: %s after %v, expected 504 after %v, before it could commit: %v", slug, got(a), took, limit, waits)
			}
			if n := kept(t, w); n != before {
				t.Errorf("%s: %s, %s before", slug, n, before)
			}
		}
		w.Apply(actWithin(300))
		for _, mode := range modes {
			over(mode+"-c", ok, 290*time.Millisecond)
		}
		w.Apply(actWithin(20_000))
		if !testing.Short() {
			over("key-a", `{"number": "late"}`, 5*time.Second)
		}
		done()
	})
}

// TestPlacesForFlows: when a tenant's places are taken, a flow waits and is then
// OVERLOADED, while another tenant's runs. A component in a flow also needs a place of
// the engine.
func TestPlacesForFlows(t *testing.T) {
	w := gatetest.New(t, "sqlite")
	w.Apply(also(busy) + `  - name: slow_flow
    trigger: http.request
    nodes: [{id: c, type: component, component: busy, inputs: {}}]
` + endpoints("{slug: slow, target: {automation: slow_flow}}", "{slug: place, target: {automation: place_flow}}", "{slug: act, target: {component: act}}"))
	w.Apply(strings.NewReplacer("tenant: acme", "tenant: other", "acme.localhost", "other.localhost").Replace(orders) +
		endpoints("{slug: place, target: {automation: place_flow}}"))
	sam, sue := w.Key("sam@acme.example"), w.KeyOf("other", "other.localhost", "sam@acme.example")
	small, componentClock := nodeWith(t, w, 2, 1) // a tenant has one place
	sam.At(small).Post(custom+"act", ok).Want(200, "")
	var holder sync.WaitGroup
	holder.Go(func() { sam.At(small).Post(custom+"slow", `{}`).Want(200, "") })
	small.AwaitStats(t, func(s endpoint.Stats) bool { return s.FlowsRunning == 1 })
	a := sam.At(small).Post(custom+"place", `{"number": "1"}`).Want(503, "OVERLOADED")
	if a.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	sue.At(small).Post(custom+"place", `{"number": "1"}`).Want(200, "")
	componentClock.Set(released)
	holder.Wait()
	sam.At(small).Post(custom+"place", `{"number": "1"}`).Want(200, "")
}
