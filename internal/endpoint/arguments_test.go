package endpoint_test

import (
	"encoding/json"
	"testing"

	"gatehouse/internal/gatetest"
)

// mistaken are calls of records with an argument or an option that is none, and the
// message of the VALIDATION that they are. Each would do too much, or nothing, if it were
// ignored.
var mistaken = [][2]string{
	{`records.list("lead", {were: {email: "zzz"}})`, "records.list: were is not known: expected where, sort, search, fields, limit and cursor"},
	{`records.list("lead", {lmit: 5})`, "records.list: lmit is not known: expected where, sort, search, fields, limit and cursor"},
	{`records.list("lead", {count: true})`, "records.list: count is not known: expected where, sort, search, fields, limit and cursor"},
	{`records.list("lead", {[Symbol("where")]: {}})`, "records.list: Symbol(where) is not known: expected where, sort, search, fields, limit and cursor"},
	{`records.list("lead", 5)`, "records.list: expected an object of where, sort, search, fields, limit and cursor"},
	{`records.list("lead", null)`, "records.list: expected an object of where, sort, search, fields, limit and cursor"},
	{`records.list("lead", [{email: "zzz"}])`, "records.list: expected an object of where, sort, search, fields, limit and cursor"},
	{`records.list("lead", (r) => r.email === "zzz")`, "records.list: expected an object of where, sort, search, fields, limit and cursor"},
	{`records.list("lead", new Map([["limit", 1]]))`, "records.list: expected an object of where, sort, search, fields, limit and cursor"},
	{`records.list("lead", {}, {limit: 1})`, "records.list: expected one object of where, sort, search, fields, limit and cursor"},
	{`records.list("lead", {where: () => true})`, "records.list: where: expected a value as JSON has it, found a function"},
	{`records.list("lead", {where: new Map([["email", "zzz"]])})`, "records.list: where: expected a value as JSON has it, found [object Map]"},
	{`records.list("lead", {where: {email: inputs.emial}})`, "records.list: email: expected a value as JSON has it, found undefined"},
	{`records.list("lead", {where: {n: {gte: undefined, lt: 5}}})`, "records.list: gte: expected a value as JSON has it, found undefined"},
	{`records.list("lead", {where: {or: [{email: "a"}, {n: Symbol("b")}]}})`, "records.list: n: expected a value as JSON has it, found a symbol"},
	{`records.list("lead", {limit: Number("five")})`, "records.list: limit: expected a value as JSON has it, found NaN"},
	{`records.list("lead", {limit: "5"})`, "records.list: limit: expected an integer from 1 to 200"},
	{`records.list("lead", {where: "email = 'a'"})`, "records.list: expected where as an object"},
	{`records.get("lead", id, {fields: ["n"]})`, "records.get: expected at most 2 arguments"},
	{`records.get("lead", {id})`, "records: id: expected a text"},
	{`records.create("lead", {email: "b"}, {dry: true})`, "records.create: expected at most 2 arguments"},
	{`records.create("lead", new Map([["email", "b"]]))`, "records.create: expected the fields as an object, found [object Map]"},
	{`records.update("lead", id, Promise.resolve({n: 2}))`, "records.update: expected the fields as an object, found [object Promise]"},
	{`records.update("lead", id, {n: 2}, {ifMatch: "1"})`, "records.update: expected at most 3 arguments"},
	{`records.update("lead", id, [{n: 2}])`, "records.update: expected the fields as an object"},
	{`records.upsert("lead", "email", new Set())`, "records.upsert: expected the fields as an object, found [object Set]"},
	{`records.upsert("lead", "email", {email: "a"}, {n: 2})`, "records.upsert: expected at most 3 arguments"},
	{`records.createMany("lead", [{email: "b"}, Promise.resolve({email: "c"})])`, "records.createMany: [1]: expected the fields as an object, found [object Promise]"},
	{`records.createMany("lead", [{email: "b"}], {partial: true})`, "records.createMany: expected at most 2 arguments"},
	{`records.updateMany("lead", [{id, fields: new Map([["n", 2]])}])`, "records.updateMany: [0]: expected the fields as an object, found [object Map]"},
	{`records.updateMany("lead", [{id, n: 2}])`, "records.updateMany: [0]: expected {id, fields}"},
	{`records.updateMany("lead", [{id, fields: {n: 2}, by: "email"}])`, "records.updateMany: [0]: expected {id, fields}"},
	{`records.delete("lead", id, {soft: true})`, "records.delete: expected at most 2 arguments"},
	{`records.share("lead", id, {user: "sam@acme.example", acces: "read"})`, `{"acces":"unknown field","access":"expected read or edit"}`},
	{`records.share("lead", id, {user: "sam@acme.example", access: "read"}, "edit")`, "records.share: expected at most 3 arguments"},
	{`records.share("lead", id, "sam@acme.example")`, "records.share: expected {user} or {role}"},
	{`records.unshare("lead", id, {user: "sam@acme.example", access: "read"})`, `{"access":"unknown field"}`},
	{`records.unshare("lead", id, {user: "sam@acme.example"}, {})`, "records.unshare: expected at most 3 arguments"},
}

// right are calls whose arguments are right, also those that are undefined.
const right = `
	records.list("lead"); records.list("lead", undefined); records.list("lead", {}, undefined);
	records.list("lead", {where: undefined, sort: undefined, search: undefined, fields: undefined, limit: undefined, cursor: undefined});
	records.list("lead", {where: null, cursor: null, limit: null}); records.list("lead", Object.assign(Object.create(null), {limit: 1}));
	records.list("lead", {where: {made: {gte: new Date(0)}}}); records.get("lead", id, undefined);
	class Lead { constructor() { this.n = 3 } }; records.update("lead", id, new Lead());
	records.create("lead", {email: "c", n: undefined});`

// TestMistakenArgumentsOfRecords shows that an argument that the functions of records do
// not take is VALIDATION, and that nothing was done (contract J4).
func TestMistakenArgumentsOfRecords(t *testing.T) {
	source := "export default (inputs) => {\n const id = inputs.id, told = [];\n const tell = (f) => { try { f(); told.push(null) } catch (e) { told.push(" +
		"[e.code, e.status, e.details.fields ? JSON.stringify(e.details.fields, Object.keys(e.details.fields).sort()) : e.message]) } };\n"
	for _, call := range mistaken {
		source += " tell(() => " + call[0] + ");\n"
	}
	source += " const left = records.list('lead').records.length;\n " + right + "\n return {told, left, n: records.get('lead', id).n}\n}"
	text, err := json.Marshal(source)
	if err != nil {
		t.Fatal(err)
	}
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(`
tenant: acme
hosts: [acme.localhost]
public_api: {enabled: true}
entities: [{name: lead, fields: [{name: email, type: text, unique: true}, {name: n, type: number, indexed: true}, {name: made, type: datetime, indexed: true}]}]
users: [{email: olivia@acme.example, name: O, owner: true}, {email: sam@acme.example, name: S}]
logic_components: [{name: mistakes, source: ` + string(text) + `}]
custom_endpoints: [{slug: mistakes, target: {component: mistakes}}]
`)
		olivia := w.Key("olivia@acme.example")
		id := olivia.Post("/public/v1/data/lead", `{"email": "a", "n": 1}`).Want(201, "").ID()
		var got struct {
			Told [][]any
			Left int
			N    int
		}
		olivia.Post("/public/v1/custom/mistakes", `{"id": "`+id+`"}`).Want(200, "").Data(&got)
		if got.Left != 1 || got.N != 3 || len(got.Told) != len(mistaken) {
			t.Fatalf("%+v", got)
		}
		for i, call := range mistaken {
			if told := got.Told[i]; len(told) != 3 || told[0] != "VALIDATION" || told[1] != 400.0 || told[2] != call[1] {
				t.Errorf("%s: %v, want %s", call[0], told, call[1])
			}
		}
	})
}
