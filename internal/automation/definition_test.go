package automation_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/automation"
)

func TestProblemsNameTextAndPath(t *testing.T) {
	for nodes, want := range map[string]string{
		`- {type: output, set: {a: "{{inputs.emial}}"}}`:         `nodes[0].set.a: there is no input "emial" in input_schema: expected email, score, vip, data or note`,
		`- {type: output, set: {a: "{{vars.x}}"}}`:               `nodes[0].set.a: no set node sets vars.x`,
		`- {type: output, set: {a: "{{nope.id}}"}}`:              `nodes[0].set.a: unknown name "nope": expected inputs, vars, event or the id of a node before this one`,
		`- {type: output, set: {c: 1}}`:                          `nodes[0].set.c: there is no output "c" in outputs: expected a or b`,
		`- {type: output, set: {a: "{{x.id}}"}}` + "\n" + create: `nodes[0].set.a: the node x comes later, at nodes[1]`,
		`- {id: x, type: output, set: {a: "{{x}}"}}`:             `nodes[0].set.a: the node x comes later, at nodes[0]`,
		create + "\n" + create:                                   `nodes[1].id: the id x is used twice, first at nodes[0]`,
		`- {type: each, in: inputs.data, as: l, do: [{type: output, set: {a: "{{l}}"}}]}` + "\n" + `- {type: output, set: {a: "{{l.sku}}"}}`: `nodes[1].set.a: "l" exists only inside its each`,
		`- {type: each, in: inputs.data, as: l, do: [{type: each, in: l, as: l, do: [{type: fail, message: x}]}]}`:                           `nodes[0].do[0].as: l is the name of an each around this one`,
		create + "\n" + `- {type: each, in: inputs.data, as: x, do: [{type: fail, message: x}]}`:                                             `nodes[1].as: x is the id of the node at nodes[0]`,
		`- {type: each, in: "a {{inputs.data}}", as: x, do: []}`:                                                                             `nodes[0].do: expected at least one node`,
		`- {type: if, when: inputs.vip, then: [{type: if, when: vips, then: [{type: fail, message: x}]}]}`:                                   `nodes[0].then[0].when: unknown name "vips": expected inputs, vars, event or the id of a node before this one`,
		`- {id: inputs, type: fail, message: x}`:                                                                                             `nodes[0].id: inputs is a reserved name`,
		`- {id: in, type: fail, message: x}`:                                                                                                 `nodes[0].id: in is a reserved name`,
		`- {id: "a b", type: fail, message: x}`:                                                                                              `nodes[0].id: expected at most 64 letters, digits, _ and -, a letter or _ first, found "a b"`,
		`- {type: record.create, entity: contacts, fields: {nope: 1}}`:                                                                       `nodes[0].entity: there is no entity type "contacts"`,
		`- {type: record.create, entity: contact, fields: {nope: 1}}`:                                                                        `nodes[0].fields.nope: contact has no field "nope" that can be set`,
		`- {type: record.list, entity: contact, where: {name: 1}}`:                                                                           `nodes[0].where.name: contact has no indexed or unique field "name"`,
		`- {type: record.list, entity: contact, limit: 0}`:                                                                                   `nodes[0].limit: expected a whole number of 1 to 1000000, found 0`,
		`- {type: record.get, entity: contact, id: x}`:                                                                                       `nodes[0].record_id: record.get needs record_id: expected the id of a record, like {{inputs.id}}`,
		`- {type: component, component: nope}`:                                                                                               `nodes[0].component: there is no logic component "nope"`,
		`- {type: component, component: total, outputs: {total: c}}`:                                                                         `nodes[0].outputs.total: there is no output "c" in outputs: expected a or b`,
		`- {type: component, component: total, outputs: {total: 1}}`:                                                                         `nodes[0].outputs.total: expected the name of a declared output, found a number`,
		`- {type: fail, message: x, status: 200}`:                                                                                            `nodes[0].status: expected a whole number of 400 to 599, found 200`,
		`- {type: fail, message: x, code: "no good"}`:                                                                                        `nodes[0].code: expected a code like OUT_OF_STOCK, found "no good"`,
		`- {type: fail, mesage: x}`:                                                                                                          "nodes[0].mesage: unknown member of fail: expected id, type, on_skip, message, code or status\nnodes[0].message: fail needs message: expected text",
		`- {type: sent, message: x}`:                                                                                                         `nodes[0].type: unknown type "sent": expected record.create, record.get, record.list, record.update, record.upsert, record.delete, record.share, record.unshare, component, set, output, if, each or fail`,
		`- {type: if, when: 5, then: []}`:                                                                                                    "nodes[0].when: expected an expression like inputs.score > 50, found a number\nnodes[0].then: expected at least one node",
		`- text`:                                                                                                                             `nodes[0]: expected a node as an object, found text`,
		`- {type: set, values: {in: 1}}`:                                                                                                     `nodes[0].values.in: in is a reserved name`,
		`- {type: set, values: {x: 2026-01-31}}`:                                                                                             `nodes[0].values.x: expected text, a number, true or false, null, a list or an object, found time.Time: a date must be in quotes`,
		`- {type: output, set: {a: {deep: ["{{inputs.x}}", "{{"]}}}`:                                                                         "nodes[0].set.a.deep[0]: there is no input \"x\" in input_schema: expected email, score, vip, data or note\nnodes[0].set.a.deep[1]: {{ without }} in \"{{\"",
		`- {id: s, type: set, values: {x: 1}}` + "\n" + `- {type: output, set: {a: "{{s.x}}"}}`:                                              `nodes[1].set.a: the node s has no result to read: only record.* and component have`,
		`- {type: output, set: {a: "{{inputs.email | upper}}"}}`:                                                                             `nodes[0].set.a: expected an expression like inputs.score > 50: unexpected token EOF (at character 20)`,
		`- {type: output, set: {a: "{{}}"}}`:                                                                                                 `nodes[0].set.a: expected a path like inputs.email, found nothing`,
		`- {type: output, set: {a: "{{inputs..x}}"}}`:                                                                                        `nodes[0].set.a: expected a path like inputs.email, found "inputs..x"`,
		`- {type: output, set: {a: "{{event.name}}"}}`:                                                                                       `nodes[0].set.a: expected event.id or event.kind, found "event.name"`,
		`- {type: output, set: {a: "{{inputs.data` + strings.Repeat(".x", 10_000) + `}}"}}`:                                                  `nodes[0].set.a: the path has 10002 steps: expected at most 64`,
		`- {type: component, component: total, outputs: {total: "a` + strings.Repeat(".x", 10_000) + `"}}`:                                   `nodes[0].outputs.total: the path has 10001 steps: expected at most 64`,
	} {
		_, found := problems(t, nodes)
		if found.Error() != want {
			t.Errorf("%.200s\n\tgot  %.400s\n\twant %.400s", nodes, found, want)
		}
	}
}

const create = `- {id: x, type: record.create, entity: contact, fields: {}}`

func TestMembersOfADefinition(t *testing.T) {
	for text, want := range map[string]string{
		`[]`:                                `: expected an object with name, input_schema, outputs and nodes, found a list`,
		`{`:                                 `: expected JSON in UTF-8 without duplicate names`,
		`{"name":1,"name":2}`:               `: expected JSON in UTF-8 without duplicate names`,
		`{"name":"x","nodes":[],"steps":1}`: "steps: unknown member of an automation: expected name, input_schema, outputs, on_skip or nodes\nnodes: expected at least one node",
		`{"nodes":{}}`:                      "name: an automation needs name: expected text\nnodes: expected a list of nodes, found an object",
		`{"name":"x","input_schema":[{"name":"a.b","type":"text"},{"name":"b","type":"string"}],"outputs":[{"name":"b","kind":1}],"nodes":[{"type":"fail","message":"x"}]}`: "input_schema[0].name: expected 1 to 64 letters, digits, _ or -, found \"a.b\"\ninput_schema[1].type: expected text, number, boolean or json, found \"string\"\noutputs[0].kind: unknown member of a declaration: expected name, type, required or pattern\noutputs[0].type: a declaration needs type: expected text",
	} {
		_, found := automation.Decode(jsontext.Value(text))
		if found.Error() != want {
			t.Errorf("%s\n\tgot  %s\n\twant %s", text, found, want)
		}
	}
}

func TestDefinitionsAreBounded(t *testing.T) {
	nest := func(n int) string {
		return strings.Repeat(`{"type":"if","when":true,"then":[`, n) + `{"type":"fail","message":"x"}` + strings.Repeat(`]}`, n)
	}
	decode := func(nodes string) (*automation.Flow, automation.Problems) {
		def, found := automation.Decode([]byte(`{"name":"x","nodes":[` + nodes + `]}`))
		if len(found) > 0 {
			return nil, found
		}
		return automation.Compile(def, automation.Names{})
	}
	if _, found := decode(nest(15)); len(found) > 0 {
		t.Errorf("16 levels: %v", found)
	}
	if _, found := decode(nest(16)); len(found) != 1 || !strings.Contains(found.Error(), "nodes are nested too deeply: expected at most 16 levels") {
		t.Errorf("17 levels: %v", found)
	}
	if _, found := decode(nest(5000)); len(found) == 0 {
		t.Error("5000 levels are accepted")
	}
	many := strings.Repeat(`{"type":"fail","message":"x"},`, 500)
	if _, found := decode(many + `{"type":"fail","message":"x"}`); len(found) != 1 || found[0].Path != "nodes[500]" {
		t.Errorf("501 nodes: %v", found)
	}
	if _, found := decode(strings.Repeat(`{"type":"x"},`, 400) + `1`); len(found) != 100 {
		t.Errorf("%d problems are reported", len(found))
	}
	long := fmt.Sprintf(`{"type":"fail","message":"{{inputs}}%s"}`, strings.Repeat("x", automation.MaxTemplate))
	if _, found := decode(long); len(found) != 1 || !strings.Contains(found.Error(), "the text is too long") {
		t.Errorf("a long template: %v", found)
	}
}

func TestJSONKeepsTheOrderOfMembers(t *testing.T) {
	const text = `{"nodes":[{"type":"output","set":{"z":1.50,"a":null}}],"outputs":[{"name":"z","type":"number"},{"name":"a","type":"json"}],"name":"x"}`
	def, found := automation.Decode(jsontext.Value(text))
	if len(found) > 0 || string(def.JSON()) != text {
		t.Errorf("got %s, %v", def.JSON(), found)
	}
}

// TestOverlappingPlaces: one node must not set an output and a part of it, because the
// result would depend on the order. Stored definitions are exempt.
func TestOverlappingPlaces(t *testing.T) {
	for nodes, want := range map[string]string{
		`{"type":"output","set":{"a":1,"a.b":2}}`:                                            `nodes[0].set.a.b: "a" and "a.b" overlap: expected places of which none lies in another`,
		`{"type":"output","set":{"a.b.0":1,"a":2}}`:                                          `nodes[0].set.a: "a.b.0" and "a" overlap: expected places of which none lies in another`,
		`{"type":"component","component":"c","inputs":{},"outputs":{"x":"a.b","y":"a.b.c"}}`: `nodes[0].outputs.y: "a.b" and "a.b.c" overlap: expected places of which none lies in another`,
		`{"type":"output","set":{"a.b":1,"a.bb":2,"b.b":3}}`:                                 "",
		`{"type":"component","component":"c","inputs":{},"outputs":{"x":"a","y":"a"}}`:       "",
		`{"type":"output","set":{"a":{}}},{"type":"output","set":{"a.b":2}}`:                 "",
	} {
		def, found := automation.Decode([]byte(`{"name":"x","outputs":[{"name":"a","type":"json"},{"name":"b","type":"json"}],"nodes":[` + nodes + `]}`))
		if len(found) > 0 {
			t.Fatal(found)
		}
		if _, found = automation.Compile(def, automation.Names{}); found.Error() != want && (want != "" || len(found) > 0) {
			t.Errorf("%s\n\tgot  %v\n\twant %s", nodes, found, want)
		}
		if _, found = automation.Restore(def); len(found) > 0 {
			t.Errorf("%s is no longer taken: %v", nodes, found)
		}
	}
}
