package typings_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"gatehouse/internal/custom"
	"gatehouse/internal/gatetest"
	"gatehouse/internal/typings"
)

// returning calls each function of records; its results are compared with what is
// declared. Each call is one that tsc and the server take.
const returning = `/** @param {string} id @param {string} other @param {Context} ctx */
export const results = (id, other, ctx) => ({
  got: records.get("lead", id), none: records.get("lead", "none"), me: records.get("user", ctx.user.id),
  list: records.list("lead", {where: {n: {gte: 1, lt: 9, in: [1, 2]}, stage: "new", email: {ne: "z"}, or: [{n: 1}, {tags: {contains: "a"}}, {due: {is_null: true}}]}, sort: ["-n", "email"], limit: 5, cursor: null}),
  some: records.list("lead", {fields: ["n", "tags"], where: {email: {in: ["a", "b"]}}}),
  named: records.list("lead", {search: "a", where: {email: {prefix: "a", contains: "a"}, stage: {nin: ["won"]}, open: {eq: true}}, sort: ["due"]}),
  users: records.list("user", {where: {email: "olivia@acme.example"}}),
  made: records.create("lead", {email: "c", tags: [], extra: {any: [1]}, due: null}),
  changed: records.update("lead", id, {n: 2, stage: "won"}), self: records.update("user", ctx.user.id, {name: "Olivia"}),
  many: records.createMany("lead", [{email: "d"}, {email: "e", owner_id: ctx.user.id}]),
  manyChanged: records.updateMany("lead", [{id, fields: {n: 3}}, {id: other, fields: {}}]),
  upserted: records.upsert("lead", "email", {email: "a", n: 1}),
  shared: records.share("lead", id, {user: "sam@acme.example", access: "read"}), byRole: records.share("lead", id, {role: "sales", access: "edit"}),
  unshared: records.unshare("lead", id, {user: "sam@acme.example", role: null}), unsharedRole: records.unshare("lead", id, {role: "sales"}),
  deleted: records.delete("lead", other),
})
/** @param {{id: string, other: string}} inputs @param {Context} ctx */
export default ({id, other}, ctx) => ({results: results(id, other, ctx), ctx})
`

// refused are calls that neither tsc nor the server takes.
var refused = []string{
	`records.list("lead", {were: {n: 1}})`, `records.list("lead", {lmit: 5})`, `records.list("lead", {count: true})`, `records.list("lead", 5)`,
	`records.list("lead", {where: {n: [1, 2]}})`, `records.list("lead", {where: {n: null}})`, `records.list("lead", {where: {n: {like: 1}}})`,
	`records.list("lead", {where: {n: {in: 1}}})`, `records.list("lead", {where: {tags: "a"}})`, `records.list("lead", {where: {or: [{or: [{n: 1}]}]}})`,
	`records.list("lead", {where: {n: 1, stage: {prefix: "n"}}})`, `records.list("lead", {where: {n: 1, open: {gt: false}}})`,
	`records.list("lead", {sort: ["tags"]})`, `records.list("lead", {sort: ["id"]})`, `records.list("lead", {sort: "n"})`, `records.list("user", {sort: ["created_at"]})`,
	`records.list("lead", {fields: "n"})`, `records.list("lead", {fields: ["m"]})`, `records.get("lead", id, {fields: ["n"]})`, `records.get("leads", id)`,
	`records.create("user", {name: "x"})`, `records.create("lead", {n: 1})`, `records.create("lead", {email: null})`, `records.update("lead", id, {stage: "old"})`,
	`records.updateMany("lead", [{id, n: 1}])`, `records.upsert("lead", "n", {email: "a", n: 1})`, `records.delete("lead", id, true)`,
	`records.share("lead", id, {user: "sam@acme.example"})`, `records.share("lead", id, {user: "sam@acme.example", access: "write"})`,
	`records.share("lead", id, {user: "sam@acme.example", role: "sales", access: "read"})`, `records.unshare("lead", id, {user: "sam@acme.example", access: "read"})`,
	`fail("x", 404)`, `fail("x", {stats: 404})`, `respond({extra: 1})`, `crypto.getRandomValues(new Float64Array(1))`,
}

// TestDeclarationsAreWhatTheServerTakesAndReturns compares the declarations with calls
// that are made and with what they return.
func TestDeclarationsAreWhatTheServerTakesAndReturns(t *testing.T) {
	source := "/** @param {{id: string}} inputs */\nexport default ({id}) => {\n  /** @type {number[]} */ const taken = [];\n  /** @param {() => unknown} f @param {number} i */ const tell = (f, i) => { try { f(); taken.push(i) } catch {} };\n"
	for i, call := range refused {
		source += fmt.Sprintf("  // @ts-expect-error %d\n  tell(() => %s, %[1]d);\n", i, call)
	}
	source += "  return {taken}\n}\n"
	quoted := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(`
tenant: acme
hosts: [acme.localhost]
public_api: {enabled: true}
entities:
  - name: lead
    fields: [{name: email, type: text, required: true, unique: true, searchable: true}, {name: n, type: number, indexed: true}, {name: stage, type: select, options: [new, won]},
      {name: tags, type: multiselect, options: [a, b]}, {name: due, type: date}, {name: by, type: reference, entity: user}, {name: open, type: boolean}, {name: extra, type: json}]
roles: [{name: sales}]
users: [{email: olivia@acme.example, name: O, owner: true}, {email: sam@acme.example, name: S}]
logic_components:
  - {name: returning, source: ` + quoted(returning) + `}
  - {name: refused, source: ` + quoted(source) + `}
custom_endpoints: [{slug: returning, target: {component: returning}}, {slug: refused, target: {component: refused}}]
`)
		olivia := w.Key("olivia@acme.example")
		post := func(body string) string { return olivia.Post("/public/v1/data/lead", body).Want(201, "").ID() }
		id, other := post(`{"email": "a", "n": 1, "stage": "new", "tags": ["a"], "open": true}`), post(`{"email": "b"}`)
		var got struct{ Results, Ctx json.RawMessage }
		olivia.Post("/public/v1/custom/returning", `{"id": "`+id+`", "other": "`+other+`"}`).Want(200, "").Data(&got)
		var ran struct{ Taken []int }
		olivia.Post("/public/v1/custom/refused", `{"id": "`+id+`"}`).Want(200, "").Data(&ran)
		for _, i := range ran.Taken {
			t.Errorf("the server takes %s", refused[i])
		}
		out := checked(t, map[string]string{
			"gatehouse.d.ts": string(typings.Declarations(w.Config("acme").Schema, &custom.Definitions{})),
			"returning.js":   returning,
			"refused.js":     source,
			"values.ts":      "import { results } from './returning.js';\nexport const returned: ReturnType<typeof results> = " + string(got.Results) + ";\nexport const ctx: Context = " + string(got.Ctx) + ";\n",
		})
		if out != "" {
			t.Errorf("%s%s", out, got.Results)
		}
	})
}
