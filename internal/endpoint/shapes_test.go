package endpoint_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"gatehouse/internal/gatetest"
	"gatehouse/internal/manifest"
)

const shapes = `
tenant: acme
hosts: [acme.localhost]
public_api: {enabled: true}
entities: [{name: order, fields: [{name: number, type: text, unique: true}, {name: state, type: select, options: [a]}]}]
user_fields: [{name: size, type: number}]
users: [{email: olivia@acme.example, name: O, owner: true}]
roles: [{name: sales}]
automations:
  - name: flow
    trigger: http.request
    outputs: [{name: out, type: json}, {name: wrong, type: json}]
    nodes:
      - {id: created, type: record.create, entity: order, fields: {number: "1"}}
      - {id: several, type: record.create, entity: order, fields: [{number: "2"}]}
      - {id: got, type: record.get, entity: order, record_id: "{{created.id}}"}
      - {id: changed, type: record.update, entity: order, record_id: "{{created.id}}", fields: {state: a}}
      - {id: put, type: record.upsert, entity: order, by: number, fields: {number: "1"}}
      - {id: shared, type: record.share, entity: order, record_id: "{{created.id}}", role: sales, access: read}
      - {id: unshared, type: record.unshare, entity: order, record_id: "{{created.id}}", role: sales}
      - {id: users, type: record.list, entity: user}
      - {id: listed, type: record.list, entity: order}
      - {id: deleted, type: record.delete, entity: order, record_id: "{{created.id}}"}
      - type: output
        set:
          out.created: "{{created}}"
          out.several: "{{several.0}}"
          out.got: "{{got}}"
          out.changed: "{{changed}}"
          out.put: "{{put}}"
          out.shared: "{{shared}}"
          out.unshared: "{{unshared}}"
          out.users: "{{users}}"
          out.listed: "{{listed}}"
          out.deleted: "{{deleted}}"
custom_endpoints: [{slug: flow, target: {automation: flow}}]
`

// TestAFlowMayReadWhatResultsHave: the members that apply lets a flow read of a result are
// those that the result of a run has, no more and no fewer (contract F7).
func TestAFlowMayReadWhatResultsHave(t *testing.T) {
	w := gatetest.New(t, "sqlite")
	w.Apply(shapes)
	var results struct {
		Out map[string]map[string]any `json:"out"`
	}
	w.Key("olivia@acme.example").Post(custom+"flow", `{}`).Want(200, "").Data(&results)
	if len(results.Out) != 10 {
		t.Fatalf("%d results", len(results.Out))
	}
	results.Out["users.records.0"] = results.Out["users"]["records"].([]any)[0].(map[string]any)
	results.Out["several.0"] = results.Out["several"]
	delete(results.Out, "several")
	for path, has := range results.Out {
		_, err := w.TryApply(strings.Replace(shapes, "        set:\n", "        set:\n          wrong: \"{{"+path+".nothing}}\"\n", 1), manifest.Options{DryRun: true})
		if err == nil {
			t.Errorf("%s.nothing is accepted", path)
			continue
		}
		_, list, _ := strings.Cut(err.Error(), `has no member "nothing": expected `)
		known := strings.Split(strings.ReplaceAll(list, " or ", ", "), ", ")
		slices.Sort(known)
		if is := slices.Sorted(maps.Keys(has)); !slices.Equal(is, known) {
			t.Errorf("%s has %v, and apply knows %v", path, is, known)
		}
	}
}
