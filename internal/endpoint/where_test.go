package endpoint_test

import (
	"fmt"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/gatetest"
)

const asking = `
tenant: acme
hosts: [acme.localhost]
public_api: {enabled: true}
entities: [{name: reading, fields: [{name: n, type: number, indexed: true}, {name: kind, type: text, searchable: true}, {name: open, type: boolean}]}]
users: [{email: olivia@acme.example, name: O, owner: true}]
logic_components:
  - name: find
    source: |
      export default ({query}) => {
        try { return records.list("reading", query).records.map((r) => r.n ?? Object.keys(r)) } catch (e) { return [e.code, e.details.fields ?? e.message] }
      }
    inputs: [{name: query, type: json}]
automations:
  - name: between
    trigger: http.request
    input_schema: [{name: from, type: number}]
    outputs: [{name: some, type: number}, {name: one, type: number}]
    nodes:
      - {id: some, type: record.list, entity: reading, where: {n: {gte: "{{inputs.from}}", lt: 4}}, sort: "n,-kind"}
      - {id: one, type: record.list, entity: reading, where: {n: "{{inputs.from}}"}}
      - {id: out, type: output, set: {some: "{{some.records.1.n}}", one: "{{one.records.0.n}}"}}
  - name: named
    trigger: http.request
    input_schema: [{name: word, type: text}]
    outputs: [{name: n, type: json}]
    nodes:
      - {id: some, type: record.list, entity: reading, search: "{{inputs.word}}", sort: n, limit: 2}
      - {id: out, type: output, set: {n: "{{some.records.1.n}}"}}
custom_endpoints:
  - {slug: named, target: {automation: named}}
  - {slug: find, target: {component: find}}
  - {slug: between, target: {automation: between}}
`

// where takes operators, lists and groups in components, and operators in flows, as
// the parameters of a list do; sort takes one order or two.
func TestWhereTakesOperators(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(asking)
		olivia := w.Key("olivia@acme.example", gatetest.RateLimit(1_000))
		for n := range 6 {
			olivia.Post("/public/v1/data/reading", fmt.Sprintf(`{"n": %d, "kind": "k%d", "open": %v}`, n, n%2, n > 2)).Want(201, "")
		}
		for query, want := range map[string]string{
			`{"where": {"n": {"gte": 2, "lt": 4}}}`:                          `[3,2]`,
			`{"where": {"n": {"in": [1, 5]}}}`:                               `[5,1]`,
			`{"where": {"n": {"gt": 1}, "kind": "k1", "open": true}}`:        `[5,3]`,
			`{"where": {"kind": {"contains": "1"}, "n": {"nin": [1]}}}`:      `[5,3]`,
			`{"where": {"or": [{"n": 0}, {"n": {"gte": 4}, "kind": "k0"}]}}`: `[4,0]`,
			`{"where": {"n": {"is_null": true}}}`:                            `[]`,
			`{"sort": ["kind", "-n"]}`:                                       `[4,2,0,5,3,1]`,
			`{"sort": ["n"], "limit": 2}`:                                    `[0,1]`,
			`{"search": "K1"}`:                                               `[5,3,1]`, `{"search": "k0", "where": {"n": {"gt": 0}}, "sort": ["n"]}`: `[2,4]`, `{"search": "nothing"}`: `[]`,
			`{"search": ""}`: `["VALIDATION","records.list: search: expected words"]`, `{"search": 1}`: `["VALIDATION","records: search: expected a text"]`,
			`{"search": "k*"}`:                        `["VALIDATION",{"search":"expected at least 2 letters or digits before *"}]`,
			`{"sort": ["m"]}`:                         `["VALIDATION",{"sort":"unknown field \"m\""}]`,
			`{"sort": ["-"]}`:                         `["VALIDATION","sort: expected names of fields, each with \"-\" before it to begin with the greatest"]`,
			`{"sort": "n"}`:                           `["VALIDATION","records: sort: expected a list of texts"]`,
			`{"where": {"n": 2}, "fields": ["kind"]}`: `[["id","kind"]]`,
			`{"where": {"n": 2}, "fields": ["n"]}`:    `[2]`,
			`{"where": {"kind": "k1"}}`:               `["VALIDATION",{"kind":"is neither indexed nor unique: filter by a field that is as well (n, created_at)"}]`,
			`{"where": {"n": {"like": 1}}}`:           `["VALIDATION",{"n":"\"like\" is no operator for a field of type number: expected eq, ne, in, nin, lt, lte, gt, gte or is_null"}]`,
			`{"where": {"n": {"in": 1}}}`:             `["VALIDATION","where: n: in: expected a list of values"]`,
			`{"where": {"n": {"gt": null}}}`:          `["VALIDATION","where: n: gt: expected a text, number or boolean"]`,
			`{"where": {"n": {"in": [[1]]}}}`:         `["VALIDATION","where: n: in: expected a text, number or boolean"]`,
			`{"where": {"n": [1]}}`:                   `["VALIDATION","where: n: expected a text, number or boolean, or an object of operators like {gte: 1, lt: 10}"]`,
			`{"where": {"n": {}}}`:                    `["VALIDATION","where: n: expected a text, number or boolean, or an object of operators like {gte: 1, lt: 10}"]`,
			`{"where": {"n": {"in": []}}}`:            `["VALIDATION",{"n":"expected 1 to 100 values"}]`,
			`{"where": {"or": []}}`:                   `["VALIDATION","where: or: expected a list of objects, each with conditions"]`,
			`{"where": {"or": [{}]}}`:                 `["VALIDATION","expected at least one condition in each group"]`,
			`{"where": {"or": [{"n": 1}, {}]}}`:       `["VALIDATION","expected at least one condition in each group"]`,
			`{"where": {"or": [1]}}`:                  `["VALIDATION","where: or: expected a list of objects, each with conditions"]`,
			`{"where": {"n": 1}, "fields": "n"}`:      `["VALIDATION","records: fields: expected a list of texts"]`,
			`{"where": {"n": 1}, "fields": ["m"]}`:    `["VALIDATION",{"m":"unknown field"}]`,
		} {
			var got jsontext.Value
			olivia.Post("/public/v1/custom/find", `{"query": `+query+`}`).Want(200, "").Data(&got)
			if string(got) != want {
				t.Errorf("%s: %s, want %s", query, got, want)
			}
		}
		var got jsontext.Value
		if olivia.Post("/public/v1/custom/between", `{"from": 2}`).Want(200, "").Data(&got); string(got) != `{"some":3,"one":2}` {
			t.Errorf("%s", got)
		}
		olivia.Post("/public/v1/custom/between", `{}`).Want(422, "EXECUTION_ERROR")
		if olivia.Post("/public/v1/custom/named", `{"word": "k1"}`).Want(200, "").Data(&got); string(got) != `{"n":3}` {
			t.Errorf("%s", got)
		}
		olivia.Post("/public/v1/custom/named", `{}`).Want(422, "EXECUTION_ERROR") // not all records
	})
}
