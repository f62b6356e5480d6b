package server_test

import (
	"fmt"
	"regexp"
	"strings"

	"pgregory.net/rapid"

	"gatehouse/internal/gatetest"
	"gatehouse/internal/records"
)

// scales is a tenant whose records hold any JSON.
const scales = `
tenant: acme
display_name: Acme GmbH
hosts: [acme.localhost]
public_api: {enabled: true}
user_fields: [{name: extra, type: json}, {name: more, type: json}]
entities:
  - name: thing
    fields:
      - {name: title, type: text, indexed: true}
      - {name: n, type: number, indexed: true}
      - {name: note, type: text}
      - {name: extra, type: json}
      - {name: more, type: json}
permission_sets:
  - name: guests
    entities: {thing: {read: true}}
users:
  - {email: olivia@acme.example, name: Olivia, owner: true}
  - {email: sam@acme.example, name: Sam, permission_sets: [guests]}
logic_components:
  - name: keeper
    source: |
      export default function handler(inputs, ctx) {
        const made = records.create("thing", {title: "run", extra: inputs.extra});
        return records.update("thing", made.id, {more: inputs.more ?? null});
      }
automations:
  - name: keep_flow
    trigger: http.request
    input_schema: [{name: extra, type: json}, {name: more, type: json}]
    outputs: [{name: id, type: text}]
    nodes:
      - {id: made, type: record.create, entity: thing, fields: {title: flow, extra: "{{inputs.extra}}", more: "{{inputs.more}}"}}
      - {id: out, type: output, set: {id: "{{made.id}}"}}
custom_endpoints:
  - {slug: run, target: {component: keeper}}
  - {slug: flow, target: {automation: keep_flow}}
`

const thing = "/public/v1/data/thing"

// ofItsOwn are the members that differ between two engines given the same
// calls.
var ofItsOwn = regexp.MustCompile(`^(\{"data":\[?)\{"id":"[^"]*"(?:,"owner_id":"[^"]*","created_at":"[^"]*","updated_at":"[^"]*")?`)

// told returns the text of an answer without those members.
func told(a *gatetest.Answer) string {
	return fmt.Sprintf("%d %s", a.Status, ofItsOwn.ReplaceAll(a.Body, []byte("$1{")))
}

// pair is one caller on each engine.
type pair [2]*gatetest.Actor

func (e pair) do(t *rapid.T, method string, path [2]string, body string) [2]*gatetest.Answer {
	var got [2]*gatetest.Answer
	for i, who := range e {
		got[i] = who.Do(method, path[i], body)
		if len(got[i].Body) > 2*records.MaxDocument {
			t.Fatalf("%s %s: the answer to %d bytes has %d", method, path[i], len(body), len(got[i].Body))
		}
		if got[i].Status >= 500 {
			t.Fatalf("%s %s %.200s: %d %.300s", method, path[i], body, got[i].Status, got[i].Body)
		}
	}
	if a, b := told(got[0]), told(got[1]); a != b {
		t.Fatalf("%s %s %.300s:\nSQLite     %.400s\nPostgreSQL %.400s", method, path[0], body, a, b)
	}
	return got
}

// document generates the JSON of a record from values that are hard to store.
func document() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		var members []string
		for _, field := range []struct {
			name  string
			value *rapid.Generator[string]
		}{{"title", text()}, {"n", numeral()}, {"note", text()}, {"extra", container()}, {"more", container()}} {
			if rapid.IntRange(0, 2).Draw(t, field.name) > 0 {
				members = append(members, `"`+field.name+`":`+field.value.Draw(t, field.name))
			}
		}
		return "{" + strings.Join(members, ",") + "}"
	})
}

func numeral() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom([]string{
			"0", "-0", "-0.0e-99999", "1", "1.50", "100000", "1e5", "1E+5", "5e-324", "-4.9e-324", "2.4703282292062327e-324", "2e-324", "1e-300", "1e-20000",
			"1e300", "-1.7976931348623157e308", "1.8e308", "1e16000", "9007199254740992", "9007199254740993", "9007199254740993.0", "9007199254740993e0",
			"9.007199254740993e15", "1152921504606846976", "12345678901234567890", "0.1000000000000000055511151231257827", "3.14",
		}),
		rapid.Map(rapid.Float64(), func(f float64) string { return fmt.Sprint(f) }),
		rapid.StringMatching(`-?(0|[1-9][0-9]{0,330})(\.[0-9]{1,330})?(e[+-]?[0-9]{1,6})?`),
	)
}

func text() *rapid.Generator[string] {
	piece := rapid.SampledFrom([]string{`a`, `\u0001`, `\u001f`, `\"`, `\\`, `\/`, `/`, `\n`, `é`, `\u00e9`, `\u00E9`, `\ud83d\ude00`, "\U0001F600", `\u2028`, "\u007f", `<`, `\u003c`, ` `})
	return rapid.Custom(func(t *rapid.T) string {
		all := strings.Join(rapid.SliceOfN(piece, 0, 8).Draw(t, "pieces"), "")
		return `"` + strings.Repeat(all, rapid.SampledFrom([]int{1, 1, 1, 50, 5000, 20000}).Draw(t, "times")) + `"`
	})
}

func container() *rapid.Generator[string] {
	repeated := func(t *rapid.T) string {
		item := rapid.OneOf(numeral(), text(), rapid.Just("[]"), rapid.Just("{}"), rapid.Just("null")).Draw(t, "item")
		n := rapid.SampledFrom([]int{1, 10, 3000, 3400, 3460, 3500, 100000}).Draw(t, "n")
		if len(item) > 20 {
			n = 1 + n%20
		}
		return "[" + strings.TrimSuffix(strings.Repeat(item+" , ", n), " , ") + "]"
	}
	deep := func(t *rapid.T) string {
		n := rapid.IntRange(1, 66).Draw(t, "depth")
		open, end := "[", "]"
		if rapid.Bool().Draw(t, "objects") {
			open, end = `{"k":`, "}"
		}
		return strings.Repeat(open, n) + map[string]string{"[": "1.0", `{"k":`: "1.0"}[open] + strings.Repeat(end, n)
	}
	object := func(t *rapid.T) string {
		var members []string
		for i := range rapid.IntRange(0, 12).Draw(t, "members") {
			name := text().Draw(t, "name")
			members = append(members, fmt.Sprintf(`%s%d" : %s`, name[:len(name)-1], (i*7)%12, rapid.OneOf(numeral(), text()).Draw(t, "value")))
		}
		return "{ " + strings.Join(members, ", ") + " }"
	}
	return rapid.OneOf(rapid.Custom(repeated), rapid.Custom(deep), rapid.Custom(object))
}
