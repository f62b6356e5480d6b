package automation_test

import (
	"fmt"
	"strings"
	"testing"

	"gatehouse/internal/automation"
	"gatehouse/internal/fault"
)

const expressed = `{"email":" 7.50 ","score":19.90,"data":[1,2,3.0]}`

// {{…}} takes an expression of the language of conditions (contract F3).
func TestExpressionsInTemplates(t *testing.T) {
	for given, want := range map[string]string{
		`{{len(inputs.data)}}`:                          `3`,
		`{{count(inputs.data, # > 1)}}`:                 `2`,
		`{{filter(inputs.data, # > 1)}}`:                `[2,3.0]`,
		`{{inputs.score * 2 - 1}}`:                      `38.8`,
		`{{ number(inputs.email) }}`:                    `7.50`,
		`of {{len(inputs.data)}}: {{sum(inputs.data)}}`: `"of 3: 6"`,
		`{{inputs.vip ? "yes" : null}}`:                 `null`,
		`{{text(inputs.score)}}`:                        `"19.90"`,
		`{{text(inputs.data)}}`:                         `"[1,2,3.0]"`,
		`{{text(vars.nothing)}}`:                        `null`,
		`{{number(vars.nothing)}}`:                      `null`,
		`{{date(vars.nothing)}}`:                        `null`,
		`{{datetime(vars.nothing)}}`:                    `null`,
		`{{date(1700000000)}}`:                          `"2023-11-14"`,
		`{{datetime(1700000000.25)}}`:                   `"2023-11-14T22:13:20.25Z"`,
		`{{datetime(1700000000123 / 1000)}}`:            `"2023-11-14T22:13:20.123Z"`,
		`{{date("2026-11-24T00:30:00+01:00")}}`:         `"2026-11-23"`,
		`{{datetime(" 2026-11-24T00:30:00+01:00")}}`:    `"2026-11-23T23:30:00Z"`,
		`{{datetime("2026-11-24")}}`:                    `"2026-11-24T00:00:00Z"`,
		`{{inputs.data[0]}}`:                            `1`,
		`{{number("1e3") + 1}}`:                         `1001`,
		`{{inputs.email}}`:                              `" 7.50 "`,
	} {
		s := flow(t, `
- {type: set, values: {made: '`+given+`', nothing: null}}
- {type: output, set: {a: "{{vars.made}}"}}`)
		s.gives(expressed, `{"a":`+want+`,"b":null}`, 2)
	}
}

func TestExpressionsThatFail(t *testing.T) {
	for given, want := range map[string]string{
		`{{number(inputs.data)}}`:                                "number: expected a number or a text that is one, found a list",
		`{{number("19,90")}}`:                                    `number: expected a number like 19.90, found "19,90"`,
		`{{number("")}}`:                                         `number: expected a number like 19.90, found ""`,
		`{{number("NaN")}}`:                                      `number: expected a number like 19.90, found "NaN"`,
		`{{number("true")}}`:                                     `number: expected a number like 19.90, found "true"`,
		`{{date("24.11.2026")}}`:                                 `date: expected a time like 2026-11-23T09:30:00Z or a date like 2026-11-23, found "24.11.2026"`,
		`{{datetime("2026-02-30")}}`:                             `datetime: expected a time like`,
		`{{datetime(1e300)}}`:                                    "datetime: expected seconds since 1970, of milliseconds x / 1000, found 1e+300",
		`{{date(1767225600000)}}`:                                "date: expected seconds since 1970, of milliseconds x / 1000, found 1767225600000, which is beyond",
		`{{datetime(true)}}`:                                     "datetime: expected seconds since 1970 or a text, found true or false",
		`{{date("9999-12-31T23:59:59-01:00")}}`:                  "date: expected a time like",
		`{{datetime("2026-11-23T9:30:00Z")}}`:                    "datetime: expected a time like",
		`{{datetime("2026-11-23T09:30:00+24:00")}}`:              "datetime: expected a time like",
		`{{date("` + strings.Repeat(" ", 100) + `2026-11-23")}}`: "date: expected a time like",
		`{{number("` + strings.Repeat("1", 401) + `")}}`:         "number: expected a number like 19.90",
		`{{float("` + strings.Repeat(" ", 400) + `1")}}`:         "float: expected a number, found text",
		`{{1 / 0}}`:                                     "/: the result is not a number",
		`{{inputs.score + inputs.email}}`:               "+: expected two numbers, found a number and text",
		`{{sum(map(1..10000, sum(map(1..10000, #))))}}`: "the conditions take more than 2000000 steps",
	} {
		s := flow(t, `
- {type: output, set: {a: '`+given+`'}}`)
		s.fails(expressed, 422, fault.ExecutionError, "nodes[0]: "+want)
	}
	for given, want := range map[string]string{
		`{{nothing(inputs.data)}}`: `there is no function "nothing"`,
		`{{number()}}`:             "number expects one argument, found 0",
		`{{number(1, 2)}}`:         "number expects one argument, found 2",
		`{{inputs.score *}}`:       "expected an expression like inputs.score > 50",
		`{{inputs.missing + 1}}`:   `there is no input "missing"`,
		`{{inputs.a b}}`:           "expected an expression like inputs.score > 50",
		`{{# > 1}}`:                "expected an expression like inputs.score > 50",
		`{{now()}}`:                "the function now is not available in a condition",
		`{{` + strings.Repeat("1 + ", 600) + `1}}`: "the expression is 2401 bytes long: expected at most 2000",
	} {
		_, found := problems(t, `
- {type: output, set: {a: '`+given+`'}}`)
		if len(found) != 1 || !strings.HasPrefix(found[0].Text, want) {
			t.Errorf("%s: %v, want %s", given, found, want)
		}
	}
}

// What is in the braces is an expression after a line break, too, as YAML folds one.
func TestAnExpressionOfSeveralLines(t *testing.T) {
	s := flow(t, `
- {type: output, set: {a: "{{inputs.score ?:\t1}}", b: "{{-1\n-\n1}}"}}`)
	s.gives(`{"score":null}`, `{"a":1,"b":-2}`, 1)
}

func TestTheExpressionsOfAFlowShareABound(t *testing.T) {
	one := "{{1" + strings.Repeat(" ", 1898) + "* 0}}"
	source := "\n- {type: set, values: {"
	for i := range automation.MaxExpressions/1902 + 2 {
		source += fmt.Sprintf("x%d: '%s', ", i, one)
	}
	_, found := problems(t, source+"y: 1}}")
	if len(found) != 1 || !strings.HasPrefix(found[0].Text, "the expressions in {{…}} are too long together: expected at most 256 KiB in an automation") {
		t.Errorf("%v", found)
	}
}

// What an expression makes is charged as what a path reads is.
func TestExpressionsAreBounded(t *testing.T) {
	s := flow(t, `
- {type: set, values: {x: "{{text(inputs.data)}}"}}
- {type: each, in: inputs.data, as: i, do: [{type: set, values: {x: "{{vars.x + vars.x}}"}}]}`)
	s.fails(`{"data":[`+strings.Repeat("1,", 99)+`1]}`, 422, fault.ExecutionError, "")
}

// A run says which node was skipped, and ends where on_skip says so (contract F4).
func TestOnSkip(t *testing.T) {
	const skips = `
- {id: first, type: set, values: {x: "{{inputs.email.x}}"}}
- {id: second, type: set, values: {x: "{{inputs.email.y}}"}}
- {type: output, set: {a: 1}}`
	s := flow(t, skips)
	s.gives(`{"email":"e"}`, `{"a":1,"b":null}`, 1)
	if s.last.Skipped != 2 || s.last.SkippedBecause != "first: inputs.email.x reads x out of text, which is not an object or a list" {
		t.Errorf("%d: %s", s.last.Skipped, s.last.SkippedBecause)
	}
	const because = ": inputs.email.y reads y out of text, which is not an object or a list"
	s = flow(t, strings.Replace(skips, "id: second", "on_skip: fail, id: second", 1))
	s.fails(`{"email":"e"}`, 422, fault.ExecutionError, "second"+because)
	s = flow(t, strings.Replace(skips, "id: first", "on_skip: skip, id: first", 1)+"\non_skip: fail")
	s.fails(`{"email":"e"}`, 422, fault.ExecutionError, "second"+because)
	s = flow(t, `
- {id: all, type: each, in: inputs.data, as: i, on_skip: skip, do: [{id: inner, type: set, values: {x: "{{inputs.email.y}}"}}]}
on_skip: fail`)
	s.gives(`{"email":"e"}`, `{"a":null,"b":null}`, 0)
	s.fails(`{"email":"e","data":[1]}`, 422, fault.ExecutionError, "inner"+because)
	for given, want := range map[string]string{
		`- {type: set, values: {x: 1}, on_skip: stop}`:   `nodes[0].on_skip: expected skip or fail, found "stop"`,
		`- {type: set, values: {x: 1}, on_skip: 1}`:      `nodes[0].on_skip: expected skip or fail, found a number`,
		"- {type: set, values: {x: 1}}\non_skip: always": `on_skip: expected skip or fail, found "always"`,
	} {
		if _, found := problems(t, given); found.Error() != want {
			t.Errorf("%s: %v", given, found)
		}
	}
}
