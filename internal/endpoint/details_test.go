package endpoint_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/endpoint"
	"gatehouse/internal/gatetest"
)

const mistakes = `
tenant: acme
hosts: [acme.localhost]
public_api: {enabled: true}
entities: [{name: lead, fields: [{name: email, type: text, required: true}, {name: n, type: number}]}]
users: [{email: olivia@acme.example, name: O, owner: true}]
logic_components:
  - name: made
    inputs: [{name: email, type: json}]
    source: export default ({email}) => records.create("lead", {email})
  - {name: right, source: export default () => 1}
  - name: many
    source: "export default () => records.createMany('lead', Array(200).fill({n: 'x'.repeat(200)}))"
  - name: told
    secrets: {KEY: 0123456789abcdef}
    source: "export default () => fail('no', {details: {key: secrets.KEY, pad: 'x'.repeat(8170), last: secrets.KEY + 'y'.repeat(100)}})"
automations:
  - name: flow
    trigger: http.request
    input_schema: [{name: email, type: json}]
    nodes:
      - {type: if, when: "true", then: [{id: made, type: record.create, entity: lead, fields: {email: "{{inputs.email}}"}}]}
custom_endpoints:
  - {slug: made, target: {component: made}}
  - {slug: right, target: {component: right}}
  - {slug: many, target: {component: many}}
  - {slug: told, target: {component: told}}
  - {slug: flow, target: {automation: flow}}
`

// TestAFailedRunKeepsItsDetails shows that what was wrong is told by the run as it was
// told the caller (contract X8), in its trace too, and in at most 8 KiB.
func TestAFailedRunKeepsItsDetails(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(mistakes)
		olivia, staff := w.Key("olivia@acme.example"), w.Staff("olivia@acme.example")
		fails := func(slug, body string) (answered map[string]any, r *endpoint.Run, admin endpoint.AdminRunDetail) {
			t.Helper()
			a := olivia.Post("/public/v1/custom/"+slug, body).Want(422, "EXECUTION_ERROR")
			var answer struct {
				Error struct{ Details map[string]any }
			}
			if err := json.Unmarshal(a.Body, &answer); err != nil {
				t.Fatal(err)
			}
			r = keptRun(t, w, slug, 1)
			staff.Get("/admin/v1/runs/"+r.ID).Want(200, "").Data(&admin)
			return answer.Error.Details, r, admin
		}
		for slug, want := range map[string]string{
			"made": `{"code":"VALIDATION","fields":{"email":"expected text"}}`,
			"flow": `{"code":"VALIDATION","fields":{"email":"expected text"},"node":"made"}`,
		} {
			answered, r, admin := fails(slug, `{"email": [5]}`)
			told, _ := json.Marshal(answered)
			shown, _ := json.Marshal(admin.Error.Details)
			if kept := string(r.ErrorDetails()); kept != want || string(told) != want || string(shown) != want {
				t.Errorf("%s: kept %s, told %s, shown %s; want %s", slug, kept, told, shown, want)
			}
			if slug == "flow" && (!strings.Contains(r.Trace, `"details":`+want+`}`) || len(admin.Trace) != 2 || string(admin.Trace[1].Details) != want || admin.Trace[0].Details != nil) {
				t.Errorf("the trace is %s, %+v", r.Trace, admin.Trace)
			}
		}
		for _, slug := range []string{"many", "told"} {
			_, r, admin := fails(slug, `{}`)
			var kept struct {
				Truncated bool
				Beginning string
			}
			if err := json.Unmarshal(r.ErrorDetails(), &kept); err != nil {
				t.Fatal(err)
			}
			if slug == "many" && !kept.Truncated || len(r.Used) > 20<<10 || admin.Error.Details["truncated"] != true || strings.Contains(r.Used, "01234567") {
				t.Errorf("%s: %+v", slug, kept)
			}
			if slug == "told" && !strings.HasPrefix(kept.Beginning, `{"key":"[redacted]","last":"[redacted]`) {
				t.Errorf("%+v", kept)
			}
		}
		olivia.Post("/public/v1/custom/right", `{}`).Want(200, "")
		if r := keptRun(t, w, "right", 1); r.Status != endpoint.Succeeded || r.ErrorDetails() != nil {
			t.Errorf("a run that succeeded: %s %s", r.Status, r.ErrorDetails())
		}
	})
}

// keptRun waits until an endpoint has n runs, and returns the last of them.
func keptRun(t *testing.T, w *gatetest.World, slug string, n int) *endpoint.Run {
	t.Helper()
	for began := time.Now(); time.Since(began) < 10*time.Second; time.Sleep(20 * time.Millisecond) {
		var runs []*endpoint.Run
		err := endpoint.Runs(t.Context(), w.DB(), "acme", endpoint.RunFilter{Slug: slug}, func(r *endpoint.Run) error { runs = append(runs, r); return nil })
		if err != nil {
			t.Fatal(err)
		}
		if len(runs) == n {
			return runs[0]
		}
	}
	t.Fatalf("%s: the run is not kept", slug)
	return nil
}
