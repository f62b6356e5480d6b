//go:build !race

package automation_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/automation"
	"gatehouse/internal/fault"
	"gatehouse/internal/inputs"

	"github.com/go-json-experiment/json/jsontext"
)

func TestHostileConditions(t *testing.T) {
	long := strings.Repeat("a", 1<<20)
	numbers := "[" + strings.TrimSuffix(strings.Repeat("1,", 100_000), ",") + "]"
	for _, when := range []string{
		`all(inputs.data.n, all(inputs.data.n, # == 1))`,
		`all(1..10000, all(1..10000, all(1..10000, true)))`,
		`len(map(1..10000, inputs.data.s + inputs.data.s)) == 1`,
		`sum(1..10000, len(upper(inputs.data.s))) == 1`,
		`count(1..10000, inputs.data.s == inputs.data.t) == 1`,
		`count(1..10000, inputs.data.s contains "b") == 1`,
		`count(1..10000, inputs.data.n == inputs.data.m) == 1`,
		`count(1..10000, 2 in inputs.data.n) == 1`,
		`inputs.data.s matches "(a?){100}(a|a)*b"`,
		`count(1..10000, inputs.data.u matches "(a|a)*(a|a)*(a|a)*b$") == 1`,
		`len(map(1..10000, 1..10000)) == 1`,
		`len(filter(1..10000, string(inputs.data) == "")) == 1`,
	} {
		s, found := ask(t, when)
		if len(found) > 0 {
			t.Errorf("%s: %v", when, found)
			continue
		}
		start := time.Now()
		f := s.failure(`{"email":"e","data":{"n":`+numbers+`,"m":`+numbers+`,"s":"`+long+`","t":"`+long+`","u":"`+long[:10_000]+`"}}`, 422, fault.ExecutionError, "cond: ")
		if !strings.Contains(f.Message, "more than 2000000 steps") && !strings.Contains(f.Message, "values are too large") && !strings.Contains(f.Message, "too long for this pattern") {
			t.Errorf("%s: %s", when, f.Message)
		}
		if took := time.Since(start); took > 10*time.Second { // some 100 ms on a machine that does nothing else
			t.Errorf("%s took %v", when, took)
		}
	}
}

func TestCaps(t *testing.T) {
	list := func(n int) string { return "[" + strings.TrimSuffix(strings.Repeat("1,", n), ",") + "]" }
	s := flow(t, `
- {id: outer, type: each, in: inputs.data.a, as: x, do: [{id: inner, type: each, in: inputs.data.b, as: y, do: [{type: output, set: {a: "{{y.no}}"}}]}]}`)
	s.fails(`{"email":"e","data":{"a":`+list(1001)+`,"b":[]}}`, 422, fault.ExecutionError, "outer: the list has 1001 items: expected at most 1000")
	s.fails(`{"email":"e","data":{"a":`+list(200)+`,"b":`+list(60)+`}}`, 422, fault.ExecutionError, "the flow executes more than 10000 nodes")
	if got := len(s.last.Trace.Steps); got != automation.MaxTrace || s.last.Trace.Dropped == 0 {
		t.Errorf("the trace has %d steps and dropped %d", got, s.last.Trace.Dropped)
	}

	s = flow(t, `
- {type: output, set: {a: "{{inputs.note}}", b: "{{inputs.note}}"}}`)
	s.fails(`{"email":"e","note":"`+strings.Repeat("x", 600<<10)+`"}`, 422, fault.ExecutionError, "outputs cannot be written")

	for name, value := range map[string]string{
		"text that doubles":        `"{{vars.x}}{{vars.x}}"`,
		"lists that double":        `["{{vars.x}}", "{{vars.x}}"]`,
		"objects that double":      `{a: "{{vars.x}}", b: "{{vars.x}}"}`,
		"lists that nest":          `["{{vars.x}}"]`,
		"conditions on them":       `["{{vars.x}}", "{{vars.x}}", 1]`,
		"text made of what nests":  `["{{vars.x}}", {y: "{{vars.x}}"}]`,
		"text that grows by a bit": `"{{vars.x}}xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx{{vars.x}}"`,
	} {
		s = flow(t, `
- {type: set, values: {x: seed, other: [[[1]]]}}
- type: each
  in: inputs.data
  as: i
  do:
    - {type: set, values: {x: `+value+`}}
    - {type: set, values: {other: `+value+`}}
- {type: if, when: "vars.x == vars.other || vars.x in [vars.other] || string(vars.x) == 'a'", then: [{type: output, set: {a: 1}}]}
- {type: output, set: {a: "<{{vars.x}}>"}}`)
		start := time.Now()
		_, err := s.run(`{"email":"e","data":` + list(1000) + `}`)
		if fault.CodeOf(err) != fault.ExecutionError {
			t.Errorf("%s: %v", name, err)
		}
		if took := time.Since(start); took > 10*time.Second { // as above
			t.Errorf("%s: took %v", name, took)
		}
	}

	s = flow(t, `
- {type: output, set: {a: "{{inputs.data.0}}"}}`)
	s.fails(`{"email":"e","data":`+list(2<<20)+`}`, 422, fault.ExecutionError, "the values are too large")
}

// TestComponentResultsAreBounded: a run with many components does not hold all of their
// results.
func TestComponentResultsAreBounded(t *testing.T) {
	s := flow(t, `
- {type: each, in: "{{inputs.data}}", as: x, do: [{id: c, type: component, component: total}]}
- {type: output, set: {a: 1}}`)
	given := func(n int) inputs.Object {
		return inputs.Object{{Name: "data", Value: jsontext.Value("[0" + strings.Repeat(",0", n-1) + "]")}}
	}
	result, err := s.flow.Run(t.Context(), automation.Run{Inputs: given(15), Host: &padded{size: 1_000_000}})
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	var with, without runtime.MemStats
	runtime.ReadMemStats(&with)
	trace := result.Trace.JSON()
	runtime.KeepAlive(result)
	result = nil
	runtime.GC()
	runtime.ReadMemStats(&without)
	if kept := int64(with.HeapAlloc) - int64(without.HeapAlloc); kept > 2_000_000 {
		t.Errorf("a trace of %d bytes keeps %d", len(trace), kept)
	}
	_, err = s.flow.Run(t.Context(), automation.Run{Inputs: given(18), Host: &padded{size: 1_000_000}})
	if fault.CodeOf(err) != fault.ExecutionError || !strings.Contains(err.Error(), "at most 16 MiB") {
		t.Errorf("18 components that return 1 MB each: %v", err)
	}
}
