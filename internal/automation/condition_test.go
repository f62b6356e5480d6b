package automation_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/automation"
	"gatehouse/internal/fault"
)

// ask compiles a condition into a flow that returns its value.
func ask(t *testing.T, when string) (*scenario, automation.Problems) {
	t.Helper()
	quoted, _ := json.Marshal(when)
	compiled, found := problems(t, `
- {id: got, type: record.get, entity: contact, record_id: "7"}
- {type: set, values: {list: [1, 2, 3], order: {total: 10}}}
- {id: cond, type: if, when: `+string(quoted)+`, then: [{type: output, set: {a: true}}], else: [{type: output, set: {a: false}}]}`)
	if len(found) > 0 {
		return nil, found
	}
	return &scenario{t: t, flow: compiled, host: &host{}, ctx: t.Context()}, nil
}

const asked = `{"email":"ana@acme.example","score":12.0,"vip":true,"note":"Größe","data":{"tags":["x","y"],"lines":[{"sku":"A","qty":2,"price":1.5},{"sku":"B","qty":0,"price":9}],"k-1":{"deep":null},"big":12345678901234567890,"empty":[]}}`

func TestConditions(t *testing.T) {
	for when, want := range map[string]string{
		`true`:                          "true",
		`inputs.vip`:                    "true",
		`{{ inputs.vip }}`:              "true",
		`not inputs.vip or !inputs.vip`: "false",
		`inputs.score > 10`:             "true",
		`inputs.score == 12`:            "true",
		`inputs.score >= 12 && inputs.score <= 12 and inputs.score != 13`: "true",
		`inputs.score in 1..12`:                     "true",
		`inputs.score % 5 == 2`:                     "true",
		`-inputs.score + 2 * 6 == 0`:                "true",
		`2 ** 3 ^ 1 == 8 and 7 / 2 == 3.5`:          "true",
		`inputs.email contains "@acme"`:             "true",
		`inputs.email endsWith ".example"`:          "true",
		`inputs.email not startsWith "bob"`:         "true",
		`inputs.email matches "^[a-z]+@"`:           "true",
		`inputs.email matches ""`:                   "true",
		`inputs.email + "!" == 'ana@acme.example!'`: "true",
		`"b" > "a"`:             "true",
		`len(inputs.note) == 5`: "true",
		`upper(inputs.note) == "GRÖSSE" or upper(inputs.note) == "GRÖßE"`: "true",
		`inputs.data.tags.0 == "x"`:                                       "true",
		`inputs.data.tags[1] == "y" and 1.5 == 1.50`:                      "true",
		`inputs.data.lines.1.sku == "B"`:                                  "true",
		`inputs.data.tags.9 == nil`:                                       "true",
		`inputs.data.tags.9 == null`:                                      "true",
		`inputs.data["k-1"]["deep"] == nil`:                               "true",
		`inputs.data["k-1"].deep ?? "none" == "none"`:                     "problem",
		`(inputs.data["k-1"].deep ?? "none") == "none"`:                   "true",
		`inputs.data["k-1"].deep?.x == nil`:                               "true",
		`inputs.data["k-1"].deep?.x.y.z == nil`:                           "true",
		`inputs.data["k-1"].deep.x == nil`:                                "skipped",
		`inputs.email.x == nil`:                                           "skipped",
		`inputs.vip or inputs.email.x == nil`:                             "true",
		`inputs.data[inputs.data.tags[0]] == nil`:                         "true",
		`inputs.data.tags[vars.list[0]] == "y"`:                           "true",
		`inputs["email"] == inputs.email`:                                 "true",
		`"x" in inputs.data.tags`:                                         "true",
		`"tags" in inputs.data`:                                           "true",
		`"x" in inputs.data.none`:                                         "false",
		`"z" not in inputs.data.tags`:                                     "true",
		`inputs.data.tags == ["x", "y"]`:                                  "true",
		`inputs.data.big == 12345678901234567890.0`:                       "true",
		`inputs.data == inputs.data`:                                      "true",
		`inputs.data.lines == [1]`:                                        "false",
		`any(inputs.data.lines, .qty == 0)`:                               "true",
		`all(inputs.data.lines, {.qty > 0})`:                              "false",
		`none(inputs.data.lines, #.sku == "C")`:                           "true",
		`one(inputs.data.lines, #index == 1)`:                             "true",
		`count(inputs.data.lines, .qty > 0) == 1`:                         "true",
		`sum(inputs.data.lines, .qty * .price) == 3`:                      "true",
		`sum(vars.list) == 6 and max(vars.list) == 3 and min(4, 2) == 2`:  "true",
		`len(filter(inputs.data.lines, .price > 1)) == 2`:                 "true",
		`map(inputs.data.lines, .sku) == ["A", "B"]`:                      "true",
		`find(inputs.data.lines, .sku == "B").price == 9`:                 "true",
		`findIndex(inputs.data.lines, .sku == "Z") == -1`:                 "true",
		`any(inputs.data.lines, any(vars.list, # == 3))`:                  "true",
		`inputs.data.lines | filter(.qty > 0) | len() == 1`:               "true",
		`first(inputs.data.empty) == nil and last(vars.list) == 3`:        "true",
		`keys(vars.order) == ["total"] and values(vars.order)[0] == 10`:   "true",
		`int("7") == 7 and float("1.5") == 1.5 and string(1.50) == "1.5"`: "true",
		`type(inputs.data) == "map" and abs(-1) == 1 and round(1.6) == 2`: "true",
		`inputs.vip ? inputs.score > 1 : false`:                           "true",
		`if inputs.vip { false } else { true }`:                           "false",
		`got.tags[0] == "x" and got.score == 3 and nodes.got.id == "7"`:   "true",
		`inputs.data.none`:                                                "false",
		`inputs.data.none and inputs.email.x`:                             "false",
		`inputs.note contains inputs.data.none`:                           "false",
		`inputs.score`:                                                    "error: expected true or false, found a number",
		`inputs.score > "1"`:                                              "error: >: cannot compare a number with text",
		`inputs.data.none > 1`:                                            "false",
		`1 <= inputs.data.none`:                                           "false",
		`not (inputs.data.none <= nil)`:                                   "true",
		`inputs.data.none <= 1 or 1 >= inputs.data.none`:                  "false",
		`not (inputs.data.none < "a")`:                                    "true",
		`any(inputs.data.lines, #.none > 1)`:                              "false",
		`inputs.score / 0 > 1`:                                            "error: /: the result is not a number",
		`inputs.email - 1 == 0`:                                           "error: -: expected two numbers, found text and a number",
		`inputs.score in inputs.email`:                                    "error: in: expected a list or an object, found text",
		`any(inputs.email, true)`:                                         "error: any: expected a list, found text",
		`1..1000000 == []`:                                                "error: ..: expected at most 10000 numbers",
	} {
		s, found := ask(t, when)
		if want == "problem" {
			if len(found) == 0 {
				t.Errorf("%s: has no problem", when)
			}
			continue
		}
		if len(found) > 0 {
			t.Errorf("%s: %v", when, found)
			continue
		}
		result, err := s.run(asked)
		got := s.step("cond")
		switch {
		case strings.HasPrefix(want, "error: "):
			if fault.CodeOf(err) != fault.ExecutionError || !strings.Contains(err.Error(), "cond: "+want[len("error: "):]) {
				t.Errorf("%s: got %v, %s; want %s", when, err, got, want)
			}
		case want == "skipped":
			if !strings.HasPrefix(got, "skipped") || err != nil {
				t.Errorf("%s: got %s, %v", when, got, err)
			}
		case err != nil || got != want || string(result.Outputs) != `{"a":`+want+`,"b":null}`:
			t.Errorf("%s: got %s, %v; want %s", when, got, err, want)
		}
	}
}

func TestRefusedConditions(t *testing.T) {
	for when, want := range map[string]string{
		``:                                       "if needs when|empty|expression",
		`inputs.nope == 1`:                       `there is no input "nope"`,
		`nope == 1`:                              `unknown name "nope"`,
		`vars.nope == 1`:                         "no set node sets vars.nope",
		`event.nope == 1`:                        "expected event.id or event.kind",
		`vars == 1`:                              "expected the name of a var",
		`inputs.score + 1`:                       "",
		`1 + 1 - 1`:                              "expected a condition that is true or false, found a number",
		`"text"`:                                 "found text",
		`len(inputs.email)`:                      "found a number",
		`inputs.score >`:                         "expected an expression like inputs.score > 50: unexpected token EOF (at character",
		`{{inputs.score}} > 1`:                   "names what it reads without braces",
		`let x = inputs.email; x == "a"`:         "let is not available",
		`1; true`:                                "not available",
		`inputs.email[0:1] == "a"`:               "not available",
		`{a: 1} == nil`:                          "not available",
		`repeat("x", 1000000000) == ""`:          "the function repeat is not available",
		`reduce(1..9, #acc + #, 0) == 1`:         "the function reduce is not available",
		`toJSON(inputs.data) == ""`:              "toJSON is not available",
		`fromJSON("[]") == 1`:                    "fromJSON is not available",
		`now() > 1`:                              "now is not available",
		`sort(vars.list) == 1`:                   "sort is not available",
		`flatten(vars.list) == 1`:                "flatten is not available",
		`system("rm") == 1`:                      `there is no function "system"`,
		`inputs.email.Foo() == 1`:                "there is no function",
		`inputs.email matches inputs.note`:       "matches expects a literal pattern",
		`inputs.email matches "["`:               "expected a regular expression",
		`inputs.email matches "(a{1000}){1000}"`: "expected a regular expression",
		`inputs.email matches "` + strings.Repeat("a", 257) + `"`: "the pattern is 257 bytes long",
		`# == 1`:                  "",
		`b"bytes" == 1`:           "not available",
		strings.Repeat("a", 2001): "the expression is 2001 bytes long",
		strings.Repeat("(", 999) + "1" + strings.Repeat(")", 999): "found a number",
		strings.Repeat("!", 100) + "true":                         "nested too deeply",
		strings.Repeat("1+", 900) + "1 == 1":                      "maximum allowed nodes",
		strings.Repeat("[", 300):                                  "expected an expression",
		strings.Repeat("not ", 300) + "true":                      "nested",
		strings.Repeat("a?b:", 100) + "c":                         "nested",
		`inputs` + strings.Repeat(".data", 100):                   "",
		"\x00":                                                    "expected an expression",
	} {
		_, found := ask(t, when)
		if len(found) == 0 {
			if want != "" {
				t.Errorf("%.60s: is not refused, want %s", when, want)
			}
			continue
		}
		if found[0].Path != "nodes[2].when" {
			t.Errorf("%.60s: the path is %s", when, found[0].Path)
		}
		ok := false
		for part := range strings.SplitSeq(want, "|") {
			ok = ok || strings.Contains(found.Error(), part)
		}
		if !ok || strings.Contains(found.Error(), "\n") && !strings.Contains(when, "system") && len(found) == 1 {
			t.Errorf("%.60s: got %v, want %s", when, found, want)
		}
	}
}

func TestConditionsEndAtTheDeadline(t *testing.T) {
	s, found := ask(t, `all(1..10000, all(1..10000, inputs.note matches "^(a|a)*b"))`)
	if len(found) > 0 {
		t.Fatal(found)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	s.ctx = ctx
	s.fails(`{"email":"e","note":"b"}`, 504, fault.ExecutionTimeout, "out of time")
}
