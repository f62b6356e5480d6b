package endpoint_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"gatehouse/internal/db"
	"gatehouse/internal/gatetest"
)

// builders adds to orders users who may manage endpoints: Mark without the records of
// others, Ada with all of them.
const builders = `
tenant: acme
permission_sets:
  - {name: builder, system: [manage_endpoints], entities: {order: {create: true, read: true}, counter: {create: true, read: true}}}
  - {name: everything, all_entity_access: true}
users:
  - {email: mark@acme.example, name: Mark, permission_sets: [builder]}
  - {email: ada@acme.example, name: Ada, permission_sets: [builder, everything]}
`

const (
	runs, events = "/admin/v1/runs", "/admin/v1/events"
	mark, olivia = "mark@acme.example", "olivia@acme.example"
)

// tryOf is the body of a try of a component's source.
func tryOf(t *testing.T, source, context, input string) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{
		"target": map[string]string{"kind": "component", "name": "draft"}, "input": json.RawMessage(input),
		"draft": map[string]any{"source": source, "execution_context": json.RawMessage(context)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// storedTry is the body of a try of what is stored.
func storedTry(kind, name, input string) string {
	return fmt.Sprintf(`{"target": {"kind": %q, "name": %q}, "input": %s}`, kind, name, input)
}

func handler(body string) string {
	return "export default function handler(inputs, ctx) {\n" + body + "\n}"
}

// eventually calls fn until it returns true: runs are written after their answer.
func eventually(t *testing.T, what string, fn func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !fn(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within 30 s", what)
		}
	}
}

// TestATryShowsAllAndKeepsNothing: a draft, a stored component and a flow (contract X9).
func TestATryShowsAllAndKeepsNothing(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(orders)
		w.Apply(builders)
		m := w.Staff(mark)
		a := m.Post(runs, tryOf(t, handler(`const o = records.create("order", {number: inputs.n}); console.log("made", o.number); return {id: o.id, as: ctx.user.email}`),
			`"caller"`, `{"n": "A-1"}`)).Want(200, "").Record()
		if a["status"] != "succeeded" || a["result"].(map[string]any)["as"] != mark || a["user"].(map[string]any)["email"] != mark {
			t.Errorf("a draft: %v", a)
		}
		if console := a["console"].([]any); len(console) != 1 || console[0].(map[string]any)["text"] != "made A-1" {
			t.Errorf("its console: %v", console)
		}
		used := map[string]float64{}
		for _, one := range a["used"].([]any) {
			m := one.(map[string]any)
			used[m["what"].(string)] = m["used"].(float64)
			if m["used"].(float64) > m["limit"].(float64) {
				t.Errorf("more than its limit: %v", m)
			}
		}
		if used["records_calls"] != 1 || used["changes"] != 1 || used["memory_bytes"] == 0 || used["changed_bytes"] == 0 {
			t.Errorf("what it used: %v", used)
		}
		flow := m.Post(runs, storedTry("automation", "place_flow", `{"number": "A-2", "score": 3}`)).Want(200, "").Record()
		trace := flow["trace"].([]any)
		if flow["status"] != "succeeded" || len(trace) != 2 || trace[0].(map[string]any)["node"] != "made" {
			t.Errorf("a flow: %v", flow)
		}
		if n := len(w.Key(olivia).Get("/public/v1/data/order").Want(200, "").Records()); n != 0 {
			t.Errorf("%d orders were kept", n)
		}
		if n := len(w.Staff(olivia).Get(runs).Want(200, "").Records()); n != 0 {
			t.Errorf("%d runs were kept", n)
		}
	})
}

// TestWhatADraftHasWrong is told with its place: in the source, in the flow, and where
// a run failed.
func TestWhatADraftHasWrong(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(orders)
		w.Apply(builders)
		m := w.Staff(mark)
		failed := m.Post(runs, tryOf(t, handler("const a = 1\n  return acount.tier"), `"caller"`, `{}`)).Want(200, "").Record()
		e := failed["error"].(map[string]any)
		if failed["status"] != "failed" || e["code"] != "EXECUTION_ERROR" || e["component"] != "draft" || e["line"] != 3.0 || e["column"].(float64) < 1 ||
			!strings.Contains(e["message"].(string), "acount") || strings.Contains(e["message"].(string), "draft:") || e["status"] != 422.0 {
			t.Errorf("a failure: %v", failed)
		}
		wrong := m.Post(runs, tryOf(t, "export default function handler( {", `"caller"`, `{}`)).Want(200, "").Record()
		if p := wrong["problems"].([]any)[0].(map[string]any); wrong["status"] != "invalid" || p["path"] != "source" || p["line"] != 1.0 {
			t.Errorf("a source that does not compile: %v", wrong)
		}
		flow := m.Post("/admin/v1/drafts/check", `{"target": {"kind": "automation", "name": "f"}, "draft": {"input_schema": [{"name": "a", "type": "texts"}], "nodes": [
			{"id": "x", "type": "if", "when": "inputs.a", "then": [{"id": "y", "type": "record.create", "entity": "nothing"}]}]}}`).Want(200, "").Record()
		got := fmt.Sprint(flow["problems"])
		if !strings.Contains(got, "input_schema[0].type") {
			t.Errorf("a declaration: %s", got)
		}
		flow = m.Post("/admin/v1/drafts/check", `{"target": {"kind": "automation", "name": "f"}, "draft": {"input_schema": [{"name": "a", "type": "text"}], "nodes": [
			{"id": "x", "type": "if", "when": "inputs.a", "then": [{"id": "y", "type": "record.create", "entity": "nothing"}]}]}}`).Want(200, "").Record()
		if p := flow["problems"].([]any)[0].(map[string]any); p["node"] != "nodes[0].then[0]" || p["nodeId"] != "y" || p["path"] != "nodes[0].then[0].entity" {
			t.Errorf("a node: %v", flow)
		}
		ok := m.Post("/admin/v1/drafts/check", `{"target": {"kind": "automation", "name": "f"}, "draft": {"nodes": [{"type": "component", "component": "act", "inputs": {"do": "null"}}]}}`).Want(200, "").Record()
		if len(ok["problems"].([]any)) != 0 {
			t.Errorf("a draft without mistakes: %v", ok)
		}
		for body, fields := range map[string]string{
			`{"target": {"kind": "verifier", "name": "a"}}`:                                       "target.kind",
			`{"target": {"kind": "component", "name": "A"}}`:                                      "target.name",
			`{"target": {"kind": "component", "name": "a"}, "draft": {"sources": ""}}`:            "draft.sources",
			`{"target": {"kind": "component", "name": "a"}, "draft": {"source": 1}}`:              "draft.source",
			`{"target": {"kind": "component", "name": "act"}, "input": {"do": "null"}, "ass": 1}`: "ass",
		} {
			if a := m.Post(runs, body).Want(400, "VALIDATION"); strings.Join(a.Fields(), " ") != fields {
				t.Errorf("%s: %s", body, a.Body)
			}
		}
		m.Post(runs, storedTry("component", "nothing", `{}`)).Want(404, "NOT_FOUND")
		m.Post(runs, storedTry("component", "place", `{}`)).Want(422, "EXECUTION_ERROR") // number is required
	})
}

// TestATryLendsNoRights (contract A13): nobody but the owner runs as another user, and
// only who may grant the context system tries it, in a draft, in what is stored, and in
// a component that a flow calls.
func TestATryLendsNoRights(t *testing.T) {
	all := "\n  - name: all\n    execution_context: system\n    source: |\n      export default () => records.list(\"order\", {}).records.length\n" +
		"  - name: hers\n    execution_context: {specific_user: rita@acme.example}\n    source: |\n      export default (inputs, ctx) => ctx.user.email\n"
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(also(all))
		w.Apply(builders)
		m, ada, owner := w.Staff(mark), w.Staff("ada@acme.example"), w.Staff(olivia)
		system := tryOf(t, handler("return 1"), `"system"`, `{}`)
		hers := tryOf(t, handler("return ctx.user.email"), `{"specific_user": "rita@acme.example"}`, `{}`)
		calls := func(name string) string {
			return `{"target": {"kind": "automation", "name": "f"}, "input": {}, "draft": {"nodes": [{"type": "component", "component": "` + name + `"}]}}`
		}
		as := strings.TrimSuffix(storedTry("component", "act", `{"do": "null"}`), "}") + `, "as": "rita@acme.example"}`
		for _, c := range []struct {
			what, body             string
			mark, ada, owner       int
			markRan, adaRan, owned string
		}{
			{"a draft with system", system, 403, 200, 200, "", "succeeded", "succeeded"},
			{"a draft as another user", hers, 403, 403, 200, "", "", "succeeded"},
			{"a stored one with system", storedTry("component", "all", `{}`), 403, 200, 200, "", "succeeded", "succeeded"},
			{"a stored one as another user", storedTry("component", "hers", `{}`), 403, 403, 200, "", "", "succeeded"},
			{"a flow that calls one with system", calls("all"), 200, 200, 200, "failed", "succeeded", "succeeded"},
			{"a flow that calls one as another user", calls("hers"), 200, 200, 200, "failed", "failed", "succeeded"},
			{"as another user", as, 403, 403, 200, "", "", "succeeded"},
		} {
			for _, of := range []struct {
				who    *gatetest.Actor
				want   int
				status string
			}{{m, c.mark, c.markRan}, {ada, c.ada, c.adaRan}, {owner, c.owner, c.owned}} {
				a := of.who.Post(runs, c.body)
				if got := ""; a.Status != of.want {
					t.Errorf("%s: %d %s, want %d", c.what, a.Status, a.Body, of.want)
				} else if of.want == 200 {
					if got, _ = a.Record()["status"].(string); got != of.status {
						t.Errorf("%s: %s, want %s", c.what, a.Body, of.status)
					}
				}
			}
		}
		owner.Post(runs, strings.Replace(as, "rita@", "nobody@", 1)).Want(404, "NOT_FOUND")
		for _, email := range []string{"sam@acme.example", "rita@acme.example"} { // no manage_endpoints
			s := w.Staff(email)
			s.Get(runs).Want(403, "FORBIDDEN")
			s.Post(runs, system).Want(403, "FORBIDDEN")
		}
	})
}

// TestTriesAreBounded: by the minute for each user.
func TestTriesAreBounded(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(orders)
		w.Apply(builders)
		w.Clock.Stop()
		m := w.Staff(mark)
		for range 60 {
			m.Post(runs, storedTry("component", "nothing", `{}`)).Want(404, "NOT_FOUND")
		}
		if a := m.Post(runs, storedTry("component", "nothing", `{}`)).Want(429, "RATE_LIMITED"); a.Header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		w.Staff(olivia).Post(runs, storedTry("component", "nothing", `{}`)).Want(404, "NOT_FOUND")
	})
}

// TestRunsAndEventsAreListed, filtered and paged; a failed delivery is retried.
func TestRunsAndEventsAreListed(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(orders + endpoints(three("act", "component: act")...))
		w.Apply(builders)
		m, hook := w.Staff(mark), w.Webhook("token-act")
		for i := range 5 {
			hook.With("Idempotency-Key", fmt.Sprintf("k%d", i)).Post(custom+"token-act", `{"do": "null"}`).Want(200, "")
		}
		hook.With("Idempotency-Key", "k3").Post(custom+"token-act", `{"do": "null"}`)
		body := `{"do": "crash", "id": "evt_1"}`
		w.Anyone().With("X-Signature", hmacHex(shopSecret, body)).Post(custom+"signed-act", body).Want(422, "EXECUTION_ERROR")
		w.Key("sam@acme.example").Post(custom+"key-act", `{"do": "null"}`).Want(200, "")
		eventually(t, "the runs", func() bool { return len(m.Get(runs).Want(200, "").Records()) == 7 })
		eventually(t, "the repeat", func() bool {
			list := m.Get(events+"?key=k3").Want(200, "").Records()
			return len(list) == 1 && list[0]["repeats"] == 1.0
		})
		for query, want := range map[string]int{
			"?endpoint=token-act": 5, "?endpoint=token-act&status=failed": 0, "?status=failed": 1, "?kind=component&target=act": 7,
			"?kind=automation&target=act": 0, "?since=2100-01-01T00:00:00Z": 0, "?until=2100-01-01T00:00:00Z": 7, "?status=succeeded&endpoint=key-act": 1,
		} {
			if got := len(m.Get(runs+query).Want(200, "").Records()); got != want {
				t.Errorf("runs%s: %d, want %d", query, got, want)
			}
		}
		for query, want := range map[string]int{
			"": 6, "?status=processed": 5, "?status=failed": 1, "?endpoint=signed-act": 1, "?kind=order": 1, "?kind=orders": 0, "?key=evt_1": 0,
		} {
			if got := len(m.Get(events+query).Want(200, "").Records()); got != want {
				t.Errorf("events%s: %d, want %d", query, got, want)
			}
		}
		for _, list := range []string{runs, events} {
			seen, cursor, all := map[any]bool{}, "", len(m.Get(list).Records())
			for page := 0; page < 10; page++ {
				a := m.Get(list+"?limit=2"+cursor).Want(200, "")
				for _, r := range a.Records() {
					seen[r["id"]] = true
				}
				if !a.Meta().HasMore {
					break
				}
				cursor = "&cursor=" + *a.Meta().NextCursor
			}
			if len(seen) != all || all == 0 {
				t.Errorf("%s: %d of %d by pages", list, len(seen), all)
			}
			if cursor != "" {
				m.Get(list+"?endpoint=x"+cursor).Want(400, "VALIDATION") // of another filter
			}
			m.Get(list+"?cursor=AAAA").Want(400, "VALIDATION")
			m.Get(list+"?status=x").Want(400, "VALIDATION")
			m.Get(list+"?since=today").Want(400, "VALIDATION")
			m.Get(list+"?nothing=x").Want(400, "VALIDATION")
		}
	})
}

// failedEvent waits for the only failed event and returns its id.
func failedEvent(t *testing.T, who *gatetest.Actor) (id string) {
	t.Helper()
	eventually(t, "the failed event", func() bool {
		list := who.Get(events+"?status=failed").Want(200, "").Records()
		if len(list) == 1 {
			id = list[0]["id"].(string)
		}
		return id != ""
	})
	return id
}

// TestAFailedDeliveryIsRetried, once it can be processed, and shows what it was.
func TestAFailedDeliveryIsRetried(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(orders + endpoints(three("act", "component: act")...))
		w.Apply(builders)
		m := w.Staff(mark)
		body := `{"do": "crash", "id": "evt_1"}`
		w.Anyone().With("X-Signature", hmacHex(shopSecret, body)).Post(custom+"signed-act", body).Want(422, "EXECUTION_ERROR")
		id := failedEvent(t, m)
		d := m.Get(events+"/"+id).Want(200, "").Record()
		delivery := d["delivery"].(map[string]any)
		if d["retriable"] != true || d["kind"] != "order" || delivery["providerId"] != "evt_1" || delivery["inputs"].(map[string]any)["do"] != "crash" {
			t.Errorf("the event: %v", d)
		}
		run := d["run"].(map[string]any)
		detail := m.Get(runs+"/"+run["id"].(string)).Want(200, "").Record()
		if e := detail["error"].(map[string]any); e["component"] != "act" || e["line"].(float64) < 1 || len(detail["used"].([]any)) == 0 {
			t.Errorf("its run: %v", detail)
		}
		if a := m.Post(events+"/"+id+"/retry", "").Want(200, "").Record(); a["status"] != "failed" || a["error"] == nil {
			t.Errorf("a retry that fails again: %v", a)
		}
		w.Apply("tenant: acme\nlogic_components:\n  - {name: act, source: \"export default () => 1\"}\n")
		if a := m.Post(events+"/"+id+"/retry", "").Want(200, "").Record(); a["status"] != "processed" {
			t.Errorf("a retry: %v", a)
		}
		m.Post(events+"/"+id+"/retry", "").Want(409, "CONFLICT")
		if d := m.Get(events+"/"+id).Want(200, "").Record(); d["status"] != "processed" || d["retriable"] != false {
			t.Errorf("the event afterwards: %v", d)
		}
		m.Get(events+"/x").Want(404, "NOT_FOUND")
		m.Get(runs+"/x").Want(404, "NOT_FOUND")
	})
}

// TestALargeFailedDeliveryIsKept, compressed, and runs again as it came. One that is still
// large then is not kept, and its run says so.
func TestALargeFailedDeliveryIsKept(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(orders)
		w.Apply("tenant: acme\nlogic_components:\n  - {name: size, source: \"export default () => { throw new Error('no') }\"}\n" +
			endpoints("{slug: large, target: {component: size}, auth: token, max_body_bytes: 10485760}"))
		w.Apply(builders)
		m, hook := w.Staff(mark), w.Webhook("large")
		random := make([]byte, 3<<20)
		_, _ = rand.NewChaCha8([32]byte{}).Read(random) // never fails
		for _, c := range []struct {
			key, doc string
			kept     bool
		}{
			{"plain", strings.Repeat(`a \\ ü`, 1<<20), true}, {"html", strings.Repeat("<p>&", 1<<20), true}, {"random", base64.StdEncoding.EncodeToString(random), false},
		} {
			hook.With("Idempotency-Key", c.key).Post(custom+"large", `{"doc": "`+c.doc+`"}`).Want(422, "EXECUTION_ERROR")
			id := failedEvent(t, m)
			d := m.Get(events+"/"+id).Want(200, "").Record()
			detail := m.Get(runs+"/"+d["run"].(map[string]any)["id"].(string)).Want(200, "").Record()
			if says := strings.Contains(fmt.Sprint(detail["error"]), "too large to be kept"); d["retriable"] != c.kept || says == c.kept {
				t.Errorf("%s: %v %v", c.key, d, detail["error"])
			}
			if !c.kept {
				m.Post(events+"/"+id+"/retry", "").Want(409, "CONFLICT")
				continue
			}
			length := strconv.Itoa(len(utf16.Encode([]rune(strings.ReplaceAll(c.doc, `\\`, `\`)))))
			w.Apply("tenant: acme\nlogic_components:\n  - {name: size, source: \"export default (i) => { if (i.doc.length != " + length + ") throw new Error('not as it came') }\"}\n")
			if a := m.Post(events+"/"+id+"/retry", "").Want(200, "").Record(); a["status"] != "processed" {
				t.Errorf("%s again: %v", c.key, a)
			}
			w.Apply("tenant: acme\nlogic_components:\n  - {name: size, source: \"export default () => { throw new Error('no') }\"}\n")
		}
	})
}

// TestWhatFailedDeliveriesBroughtIsApart from their runs, which lists read, and where earlier
// versions look for it in a form that they can read. What these have stored runs again; nothing
// is kept longer than its run.
func TestWhatFailedDeliveriesBroughtIsApart(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(orders + endpoints("{slug: hook, target: {component: act}, auth: token}"))
		w.Apply(builders)
		m := w.Staff(mark)
		w.Webhook("hook").Post(custom+"hook", `{"do": "crash", "text": "`+strings.Repeat("a", 8<<10)+`"}`).Want(422, "EXECUTION_ERROR")
		id := failedEvent(t, m)
		again := func(when string) {
			t.Helper()
			if d := m.Get(events+"/"+id).Want(200, "").Record(); d["retriable"] != true {
				t.Errorf("%s: %v", when, d)
			}
			m.Post(events+"/"+id+"/retry", "").Want(200, "")
		}
		again("stored now")
		eventually(t, "both runs", func() bool { return count(t, w, "runs") == 2 && count(t, w, "failed_deliveries") == 2 })
		err := w.DB().For("acme").Write(t.Context(), func(tx db.Tx) error {
			if n, err := tx.Exec(t.Context(), `UPDATE runs SET payload = (SELECT sealed FROM failed_deliveries f WHERE f.tenant_id = $1 AND f.run_id = runs.run_id)
				WHERE tenant_id = $1 AND payload = ''`); err != nil || n != 2 {
				return fmt.Errorf("%d runs without a payload, %w", n, err)
			}
			_, err := tx.Exec(t.Context(), `DELETE FROM failed_deliveries WHERE tenant_id = $1`)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		again("stored by an earlier version")
		eventually(t, "the third run", func() bool { return count(t, w, "runs") == 3 && count(t, w, "failed_deliveries") == 1 })
		w.HousekeepingIsDue()
		w.Nodes[0].Stop()
		w.Clock.Advance(31 * 24 * time.Hour)
		w.AddNode()
		eventually(t, "nothing", func() bool { return count(t, w, "runs") == 0 && count(t, w, "failed_deliveries") == 0 })
	})
}

// TestAnEndpointsFactsAndToken: the old token stops at once, and only who may define
// what the endpoint runs may make one.
func TestAnEndpointsFactsAndToken(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(orders + endpoints(append(three("act", "component: act"), "{slug: token-mark, target: {component: act}, auth: token, run_as: rita@acme.example}")...))
		w.Apply(builders)
		owner, m := w.Staff(olivia), w.Staff(mark)
		const at = "/admin/v1/endpoints/token-act"
		if f := owner.Get(at).Want(200, "").Record(); f["ready"] != false || f["tokenPrefix"] != nil || f["mayIssueToken"] != true || f["runsAs"] != "user" ||
			f["url"] != "http://acme.localhost/public/v1/custom/token-act" {
			t.Errorf("before there is a token: %v", f)
		}
		made := owner.Post(at+"/token", "").Want(200, "").Record()
		first := w.Anyone()
		first.Token = made["token"].(string)
		first.Post(custom+"token-act", `{"do": "null"}`).Want(200, "")
		if sample := made["sample"].(string); !strings.Contains(sample, first.Token) || !strings.Contains(sample, `{"do": "text"}`) || !strings.Contains(sample, made["url"].(string)) {
			t.Errorf("the sample: %s", sample)
		}
		second := w.Anyone()
		second.Token = owner.Post(at+"/token", "").Want(200, "").Record()["token"].(string)
		first.Post(custom+"token-act", `{"do": "null"}`).Want(401, "UNAUTHORIZED")
		second.Post(custom+"token-act", `{"do": "null"}`).Want(200, "")
		eventually(t, "the figures", func() bool {
			f := owner.Get(at).Want(200, "").Record()["figures"].(map[string]any)
			return f["runs"] == 2.0 && f["succeeded"] == 2.0 && len(f["hours"].([]any)) == 24
		})
		m.Post(at+"/token", "").Want(403, "FORBIDDEN") // it runs as the owner
		m.Post("/admin/v1/endpoints/token-mark/token", "").Want(403, "FORBIDDEN")
		if f := m.Get(at).Want(200, "").Record(); f["mayIssueToken"] != false || f["tokenPrefix"] == nil {
			t.Errorf("the facts for Mark: %v", f)
		}
		owner.Post("/admin/v1/endpoints/key-act/token", "").Want(400, "VALIDATION")
		owner.Get("/admin/v1/endpoints/nothing").Want(404, "NOT_FOUND")
		if n := len(owner.Get("/admin/v1/endpoints").Want(200, "").Records()); n != 4 {
			t.Errorf("%d endpoints", n)
		}
		for _, text := range []string{string(owner.Get("/admin/v1/endpoints").Body), string(owner.Get("/admin/v1/endpoints/signed-act").Body)} {
			if strings.Contains(text, shopSecret) || strings.Contains(text, second.Token) {
				t.Errorf("a secret in %s", text)
			}
		}
	})
}
