package manifest_test

import (
	"strings"
	"testing"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/manifest"
)

// shop has a field of each kind that flows are checked against.
const shop = `tenant: acme
entities:
  - name: lead
    fields:
      - {name: email, type: text, required: true, unique: true}
      - {name: source, type: select, options: [web, fair], indexed: true}
      - {name: score, type: number, indexed: true}
      - {name: born, type: date}
      - {name: tags, type: multiselect, options: [a, b]}
      - {name: more, type: json}
      - {name: note, type: text, searchable: true}
  - name: plain
    fields: [{name: title, type: text, indexed: true}]
user_fields: [{name: size, type: number}]
logic_components:
  - {name: rate, inputs: [{name: id, type: text, required: true}, {name: points, type: number}, {name: rows, type: json}], source: "export default () => 1"}
`

// lead has the members of a record of lead, for a message.
const lead = "id, owner_id, created_at, updated_at, email, source, score, born, tags, more or note"

// flowOf returns a manifest with a flow of nodes, one a line.
func flowOf(nodes string) string {
	return shop + "automations:\n  - name: f\n    trigger: http.request\n    input_schema: [{name: q, type: text}, {name: data, type: json}]\n" +
		"    outputs: [{name: out, type: json}]\n    nodes:\n      - " + strings.ReplaceAll(nodes, "\n", "\n      - ") + "\n"
}

// eachFlow applies flows without keeping them. The messages must be those of the map,
// without their line and the flow's name; "" is none.
func eachFlow(t *testing.T, flows map[string]string) {
	t.Helper()
	p := newPlace(t, dbtest.Open(t, db.SQLite))
	for nodes, want := range flows {
		_, err := p.try(flowOf(nodes), manifest.Options{DryRun: true})
		var told []string
		if err != nil {
			for line := range strings.Lines(err.Error()) {
				_, message, _ := strings.Cut(strings.TrimSpace(line), ": automation f: ")
				told = append(told, message)
			}
		}
		if got := strings.Join(told, "\n"); got != want {
			t.Errorf("%s\ntold:\n%s\nwant:\n%s", nodes, got, want)
		}
	}
}

// TestFlowsThatCannotList: what every run would be refused is refused by apply (contract F7).
func TestFlowsThatCannotList(t *testing.T) {
	eachFlow(t, map[string]string{
		`{type: record.list, entity: lead, sort: nope}`:           `nodes[0].sort: unknown field "nope": expected email, source, score, born, note, created_at or updated_at`,
		`{type: record.list, entity: lead, sort: "-tags"}`:        `nodes[0].sort: tags has no order: a field of type multiselect is not sorted by: expected email, source, score, born, note, created_at or updated_at`,
		`{type: record.list, entity: lead, sort: "score,-"}`:      `nodes[0].sort: expected names of fields, each with "-" before it to begin with the greatest`,
		`{type: record.list, entity: lead, sort: "a,b,c"}`:        `nodes[0].sort: expected at most 2 keys`,
		`{type: record.list, entity: user, sort: name}`:           `nodes[0].sort: expected none for user`,
		`{type: record.list, entity: lead, sort: "-born,email"}`:  ``,
		`{type: record.list, entity: lead, sort: "-created_at"}`:  ``,
		`{type: record.list, entity: lead, sort: "{{inputs.q}}"}`: ``,

		`{type: record.list, entity: plain, search: pump}`:            `nodes[0].search: expected none: plain has no searchable fields`,
		`{type: record.list, entity: plain, search: "{{inputs.q}}"}`:  `nodes[0].search: expected none: plain has no searchable fields`,
		`{type: record.list, entity: user, search: "{{inputs.q}}"}`:   `nodes[0].search: expected none for user`,
		`{type: record.list, entity: lead, search: "p*"}`:             `nodes[0].search: expected at least 2 letters or digits before *`,
		`{type: record.list, entity: lead, search: "{{inputs.q}} *"}`: ``,
		`{type: record.list, entity: lead, search: "acme pum*"}`:      ``,

		`{type: record.list, entity: lead, where: {source: {lk: x}}}`:                                                                                            `nodes[0].where.source.lk: "lk" is no operator for a field of type select: expected eq, ne, in, nin or is_null`,
		`{type: record.list, entity: lead, where: {source: {gte: "{{inputs.q}}"}}}`:                                                                              `nodes[0].where.source.gte: "gte" is no operator for a field of type select: expected eq, ne, in, nin or is_null`,
		`{type: record.list, entity: lead, where: {source: shop}}`:                                                                                               `nodes[0].where.source: expected one of web, fair, found "shop"`,
		`{type: record.list, entity: lead, where: {source: {in: [web, shop]}}}`:                                                                                  `nodes[0].where.source.in: expected one of web, fair, found ["web","shop"]`,
		`{type: record.list, entity: lead, where: {source: {in: web}}}`:                                                                                          `nodes[0].where.source.in: expected a list of values, found text`,
		`{type: record.list, entity: lead, where: {source: {in: []}}}`:                                                                                           `nodes[0].where.source.in: expected 1 to 100 values, found []`,
		`{type: record.list, entity: lead, where: {source: [web]}}`:                                                                                              `nodes[0].where.source: expected text, a number, true or false, or an object of operators like {in: [a, b]}, found a list`,
		`{type: record.list, entity: lead, where: {score: {}}}`:                                                                                                  `nodes[0].where.score: expected text, a number, true or false, or an object of operators like {gte: 1, lt: 10}, found an empty object`,
		`{type: record.list, entity: lead, where: {score: {gte: abc, lt: "{{event}}"}}}`:                                                                         `nodes[0].where.score.gte: expected a number, found "abc"`,
		`{type: record.list, entity: lead, where: {score: {gte: null}}}`:                                                                                         `nodes[0].where.score.gte: expected text, a number, true or false, found null`,
		`{type: record.list, entity: lead, where: {score: {gte: [1]}}}`:                                                                                          `nodes[0].where.score.gte: expected text, a number, true or false, found a list`,
		`{type: record.list, entity: user, where: {email: {prefix: a}}}`:                                                                                         `nodes[0].where.email.prefix: user can be filtered by email alone, for equality`,
		`{type: record.list, entity: lead, where: {source: {in: [web, "{{inputs.q}}"]}, score: {gte: 1, lt: "{{inputs.q}}"}, email: {prefix: "a{{inputs.q}}"}}}`: ``,
		`{type: record.list, entity: lead, where: {score: "7", source: {in: "{{inputs.data}}"}, email: {is_null: false}}}`:                                       ``,
		`{type: record.list, entity: lead, where: {email: null}}`:                                                                                                ``,
		`{type: record.list, entity: user, where: {email: {eq: x}}}`:                                                                                             ``,
	})
}

// TestFlowsThatCannotWrite (contract F7).
func TestFlowsThatCannotWrite(t *testing.T) {
	eachFlow(t, map[string]string{
		`{type: record.create, entity: lead, fields: {score: 1}}`:                                `nodes[0].fields: expected a value of "email", which lead requires`,
		`{type: record.create, entity: lead}`:                                                    `nodes[0]: expected a value of "email", which lead requires`,
		`{type: record.create, entity: lead, fields: [{email: a}, {score: 1}]}`:                  `nodes[0].fields[1]: expected a value of "email", which lead requires`,
		`{type: record.create, entity: lead, fields: {email: null}}`:                             `nodes[0].fields.email: required, found null`,
		`{type: record.update, entity: lead, record_id: x, fields: {email: null}}`:               `nodes[0].fields.email: required, found null`,
		`{type: record.create, entity: lead, fields: {email: a, score: abc}}`:                    `nodes[0].fields.score: expected a number, found "abc"`,
		`{type: record.create, entity: lead, fields: {email: 7}}`:                                `nodes[0].fields.email: expected text, found 7`,
		`{type: record.create, entity: lead, fields: {email: a, source: shop}}`:                  `nodes[0].fields.source: expected one of web, fair, found "shop"`,
		`{type: record.upsert, entity: lead, by: email, fields: {email: a, born: "2026-13-01"}}`: `nodes[0].fields.born: expected a date like 2026-01-31, found "2026-13-01"`,
		`{type: record.update, entity: lead, record_id: x, fields: {tags: [a, c]}}`:              `nodes[0].fields.tags: expected a list of distinct options out of a, b, found ["a","c"]`,
		`{type: record.update, entity: lead, record_id: x, fields: {more: 7, owner_id: 7}}`: "nodes[0].fields.more: expected an object or a list, found 7\n" +
			`nodes[0].fields.owner_id: expected the id of a user, found 7`,
		`{type: record.update, entity: user, record_id: x, fields: {size: big}}`: `nodes[0].fields.size: expected a number, found "big"`,

		`{type: record.create, entity: lead, fields: {email: "{{inputs.q}}", score: "{{inputs.q}}", tags: "{{inputs.data}}", more: {a: ["{{inputs.q}}"]}, source: "{{inputs.q}}"}}`: ``,
		`{type: record.create, entity: lead, fields: {email: a, score: null, tags: [a, "{{inputs.q}}"]}}`:                                                                           ``,
		`{type: record.create, entity: lead, fields: "{{inputs.data}}"}`:                                                                                                            ``,
		`{type: record.create, entity: plain}`:                                                                  ``,
		`{type: record.update, entity: lead, record_id: x, fields: {score: 1}}`:                                 ``,
		`{type: record.upsert, entity: lead, by: email, fields: {email: a}}`:                                    ``,
		`{type: record.update, entity: user, record_id: x, fields: {size: 1, name: y, locale: null}}`:           ``,
		`{type: record.create, entity: lead, fields: {email: a, more: [1, {b: "c"}], born: "2026-01-31"}}`:      ``,
		`{type: component, component: rate, inputs: {points: 7}}`:                                               `nodes[0].inputs: expected a value of "id", which component rate requires`,
		`{type: component, component: rate}`:                                                                    `nodes[0].inputs: expected a value of "id", which component rate requires`,
		`{type: component, component: rate, inputs: {id: null}}`:                                                `nodes[0].inputs.id: required, found null`,
		`{type: component, component: rate, inputs: {id: a, points: many, rows: 7}}`:                            "nodes[0].inputs.points: expected number, found \"many\"\nnodes[0].inputs.rows: expected json, found 7",
		`{type: component, component: rate, inputs: {id: 7, points: "{{inputs.q}}", rows: [1], undeclared: 1}}`: ``,
		`{type: component, component: rate, inputs: {id: "{{inputs.q}}", points: null}}`:                        ``,
		`{type: component, component: rate, inputs: "{{inputs.data}}"}`:                                         ``,
	})
}

// TestFlowsThatReadWhatIsNotThere (contract F7).
func TestFlowsThatReadWhatIsNotThere(t *testing.T) {
	const list = "{id: l, type: record.list, entity: lead}\n"
	const made = "{id: made, type: record.create, entity: lead, fields: {email: a}}\n"
	out := func(value string) string { return `{type: output, set: {out: "` + value + `"}}` }
	eachFlow(t, map[string]string{
		list + out("{{l.recrods}}"):                                                                        `nodes[1].set.out: l is the result of record.list and has no member "recrods": expected records or hasMore`,
		list + out("{{len(l.recrods)}}"):                                                                   `nodes[1].set.out: l is the result of record.list and has no member "recrods": expected records or hasMore`,
		list + out("{{nodes.l.recrods}}"):                                                                  `nodes[1].set.out: nodes.l is the result of record.list and has no member "recrods": expected records or hasMore`,
		list + out("x {{l.records.0.emial}}"):                                                              `nodes[1].set.out: l.records.0 is a record of lead and has no member "emial": expected ` + lead,
		list + out("{{l.records.email}}"):                                                                  `nodes[1].set.out: l.records is a list and has no member "email": expected the place of an item, like l.records.0`,
		list + out("{{l.records.0.email.x}}"):                                                              `nodes[1].set.out: l.records.0.email is a text, a number, true or false and has no member "x"`,
		list + out("{{l?.records[0]?.emial ?? 1}}"):                                                        `nodes[1].set.out: l.records.0 is a record of lead and has no member "emial": expected ` + lead,
		list + `{type: if, when: l.hasmore, then: [{type: fail, message: m}]}`:                             `nodes[1].when: l is the result of record.list and has no member "hasmore": expected records or hasMore`,
		list + `{type: each, in: l.records, as: r, do: [` + out("{{r.emial}}") + `]}`:                      `nodes[1].do[0].set.out: r is a record of lead and has no member "emial": expected ` + lead,
		list + `{type: each, in: "{{l.records}}", as: r, do: [` + out("{{r.email}} {{r.more.x.y}}") + `]}`: ``,
		list + out("{{l.records.0.id}}{{l.hasMore}}{{l.records.0.tags.1}}{{l.records.3.more.a.0}}"):        ``,
		list + out("{{filter(l.records, .score > 1)}}"):                                                    ``,
		list + `{type: set, values: {x: "{{l}}"}}` + "\n" + out("{{vars.x.records}}"):                      ``,

		made + out("{{made.emial}}"): `nodes[1].set.out: made is a record of lead and has no member "emial": expected ` + lead,
		made + out("{{made.id}}{{made.owner_id}}{{made.created_at}}{{made.score}}{{made.more.anything}}"):                ``,
		"{id: made, type: record.create, entity: lead, fields: [{email: a}]}\n" + out("{{made.id}}"):                     `nodes[1].set.out: made is a list and has no member "id": expected the place of an item, like made.0`,
		"{id: made, type: record.create, entity: lead, fields: [{email: a}]}\n" + out("{{made.0.id}}"):                   ``,
		"{id: made, type: record.create, entity: lead, fields: \"{{inputs.data}}\"}\n" + out("{{made.id}}{{made.0.id}}"): ``,
		"{id: u, type: record.get, entity: user, record_id: x}\n" + out("{{u.mail}}"):                                    `nodes[1].set.out: u is a record of user and has no member "mail": expected id, email, name, locale, userType, isOwner, active, created_at, updated_at or size`,
		"{id: u, type: record.get, entity: user, record_id: x}\n" + out("{{u.email}}{{u.size}}"):                         ``,
		"{id: d, type: record.delete, entity: lead, record_id: x}\n" + out("{{d.email}}"):                                `nodes[1].set.out: d is the result of record.delete and has no member "email": expected id or deleted`,
		"{id: s, type: record.share, entity: lead, record_id: x, role: r, access: read}\n" + out("{{s.id}}"):             `nodes[1].set.out: s is a share and has no member "id": expected user, role, access or created_at`,
		"{id: s, type: record.unshare, entity: lead, record_id: x, role: r}\n" + out("{{s.access}}"):                     `nodes[1].set.out: s is the result of record.unshare and has no member "access": expected user, role or deleted`,
		"{id: c, type: component, component: rate, inputs: {id: a}}\n" + out("{{c.whatever.it.is}}"):                     ``,
		"{id: gone, type: record.get, entity: nothing, record_id: x}\n" + out("{{gone.a}}"):                              `nodes[0].entity: there is no entity type "nothing"`,
	})
}

// TestFlowsAndWhatChangesWithThem: names are those after the change, and what a stored
// flow reads stays.
func TestFlowsAndWhatChangesWithThem(t *testing.T) {
	each(t, func(p *place) {
		src := flowOf("{id: l, type: record.list, entity: lead, sort: score, where: {source: web}}\n" + `{type: output, set: {out: "{{l.records.0.note}}"}}`)
		p.apply(src)
		alone, flow, _ := strings.Cut(src, "automations:")
		p.refused(manifest.Options{}, strings.Replace(alone, "      - {name: note, type: text, searchable: true}\n", "", 1),
			"acme.yaml:3: field note of lead cannot be removed: automation f needs it")
		renamed := strings.Replace(alone, "{name: note,", "{name: remark, renamed_from: note,", 1)
		p.refused(manifest.Options{}, renamed, "acme.yaml:3: field note of lead cannot be renamed to remark: automation f needs it")
		p.refused(manifest.Options{}, renamed+"automations:"+flow,
			`acme.yaml:24: automation f: nodes[1].set.out: l.records.0 is a record of lead and has no member "note": expected id, owner_id, created_at, updated_at, email, source, score, born, tags, more or remark`)
		p.apply(renamed + "automations:" + strings.Replace(flow, "0.note", "0.remark", 1))
		p.apply(p.export("acme"))
	})
}

// TestAFlowsMistakesAreToldTogether: those of its declarations, of the form of its nodes, of
// names and of expressions; and nothing is said of names that what is wrong may define.
func TestAFlowsMistakesAreToldTogether(t *testing.T) {
	p := newPlace(t, dbtest.Open(t, db.SQLite))
	p.refused(manifest.Options{DryRun: true}, shop+`automations:
  - name: f
    trigger: cron
    input_schema: [{name: a, type: text}, {name: b, type: date}]
    outputs: [{name: out, type: json}]
    on_skip: never
    nodes:
      - {id: l, type: record.list, entity: lead, limit: 0, where: {nope: 1}}
      - {id: m, type: record.list, entity: leed, sort: nope}
      - {id: made, type: record.create, entity: lead, fields: {email: "{{inputs.gone}}", score: abc}, extra: 1}
      - {type: record.create, entity: lead, fields: {email: "{{inputs.b}}", score: abc}}
      - {type: output, set: {out: "{{l.records.0.email}} {{made.whatever}}", other: "{{m.recrods}}"}}
      - type: if
        when: 7
        then:
          - {type: component, component: rate}
          - {type: output, set: {out: "{{len(}}"}}
      - type: each
        in: l.records
        as: 7
        do: [{id: inner, type: record.get, entity: lead, record_id: "{{x.id}}"}]
      - {type: output, set: {out: "{{inner.emial}}"}}
`,
		`acme.yaml:19: trigger: expected http.request, found "cron"`,
		`acme.yaml:20: input_schema: expected text, number, boolean or json, found "date"`,
		`acme.yaml:22: on_skip: expected skip or fail, found "never"`,
		`acme.yaml:24: automation f: nodes[0].limit: expected a whole number of 1 to 1000000, found 0`,
		`acme.yaml:25: automation f: nodes[1].entity: there is no entity type "leed"`,
		`acme.yaml:26: automation f: nodes[2].extra: unknown member of record.create: expected id, type, on_skip, entity or fields`,
		`acme.yaml:27: automation f: nodes[3].fields.score: expected a number, found "abc"`,
		`acme.yaml:28: automation f: nodes[4].set.other: there is no output "other" in outputs: expected out`,
		`acme.yaml:28: automation f: nodes[4].set.other: m is the result of record.list and has no member "recrods": expected records or hasMore`,
		`acme.yaml:30: automation f: nodes[5].when: expected an expression like inputs.score > 50, found a number`,
		`acme.yaml:32: automation f: nodes[5].then[0].inputs: expected a value of "id", which component rate requires`,
		`acme.yaml:33: automation f: nodes[5].then[1].set.out: expected an expression like inputs.score > 50: unexpected token EOF (at character 4)`,
		`acme.yaml:36: automation f: nodes[6].as: expected text, found a number`,
		`acme.yaml:38: automation f: nodes[7].set.out: inner is a record of lead and has no member "emial": expected `+lead)
}
