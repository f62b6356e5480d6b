package automation_test

import (
	"testing"

	"gatehouse/internal/fault"
)

// record.create takes its fields as an object, a list, or a template of either (contract F2).
func TestRecordsOfAList(t *testing.T) {
	s := flow(t, `
- {id: made, type: record.create, entity: contact, fields: [{email: "{{inputs.email}}"}, {email: b, score: 2}]}
- {type: record.create, entity: contact, fields: "{{inputs.data}}"}
- {type: output, set: {a: "{{made.0.id}}"}}`)
	s.gives(`{"email":"a","data":[{"email":"c"},{}]}`, `{"a":"new-1","b":null}`, 3)
	s.called(`create contact  {} {} 0 [{"email":"a"},{"email":"b","score":2}]`, `create contact  {} {} 0 [{"email":"c"},{}]`)
	s = flow(t, `
- {type: record.create, entity: contact, fields: "{{inputs.data}}"}`)
	s.gives(`{"data":{"email":"c"}}`, `{"a":null,"b":null}`, 1)
	s.called(`create contact  {} {} 0 {"email":"c"}`)
	s.fails(`{}`, 422, fault.ExecutionError, "nodes[0]: fields: expected an object or a list of objects, found null")
}

func TestUpsertNodes(t *testing.T) {
	s := flow(t, `
- {id: kept, type: record.upsert, entity: contact, by: email, fields: {email: "{{inputs.email}}", score: 1}}
- {type: output, set: {a: "{{kept.id}}"}}`)
	s.gives(`{"email":"a"}`, `{"a":"new-1","b":null}`, 2)
	s.called(`upsert contact  {"email":"a","score":1} {} 0 email`)
}

func TestNodesOfManyRecordsAreChecked(t *testing.T) {
	for nodes, want := range map[string]string{
		`- {type: record.upsert, entity: contact, fields: {email: a}}`:                      "nodes[0].by: record.upsert needs by: expected text",
		`- {type: record.upsert, entity: contact, by: email}`:                               "nodes[0].fields: record.upsert needs fields: expected an object of fields",
		`- {type: record.upsert, entity: contact, by: email, fields: {score: 1}}`:           `nodes[0].fields: expected a value of "email", by which the record is found`,
		`- {type: record.create, entity: contact, fields: some}`:                            "nodes[0].fields: expected an object of fields, or a list of such objects, found text",
		`- {type: record.create, entity: contact, fields: [{email: a}, 7]}`:                 "nodes[0].fields[1]: expected an object of fields, found a number",
		`- {type: record.create, entity: contact, fields: [{nothing: a}]}`:                  `nodes[0].fields[0].nothing: contact has no field "nothing" that can be set`,
		`- {type: record.update, entity: contact, record_id: "7", fields: [{email: a}]}`:    "nodes[0].fields: expected an object of fields, found a list",
		`- {type: record.upsert, entity: contact, by: score, fields: {score: 1}}`:           `nodes[0].by: contact has no unique field "score"`,
		`- {type: record.upsert, entity: contact, by: nothing, fields: {nothing: a}}`:       "",
		`- {type: record.create, entity: contact, fields: [{email: "{{inputs.nothing}}"}]}`: `nodes[0].fields[0].email: there is no input "nothing" in input_schema: expected email, score, vip, data or note`,
	} {
		_, found := problems(t, nodes)
		if want == "" {
			if len(found) != 2 {
				t.Errorf("%s\n%v", nodes, found)
			}
			continue
		}
		if found.Error() != want {
			t.Errorf("%s\n%v\nwant %s", nodes, found, want)
		}
	}
}
