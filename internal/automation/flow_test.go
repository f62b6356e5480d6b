package automation_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/admission"
	"gatehouse/internal/automation"
	"gatehouse/internal/fault"
)

func TestExampleOfTheContract(t *testing.T) {
	s := flow(t, `
- {id: create, type: record.create, entity: contact, fields: {name: "{{inputs.email}}"}}
- {id: out, type: output, set: {a: "{{create.id}}"}}`)
	s.gives(`{"email":"ana@x"}`, `{"a":"new-1","b":null}`, 2)
	s.called(`create contact  {"name":"ana@x"} {} 0`)
}

func TestRecordNodes(t *testing.T) {
	s := flow(t, `
- {id: got, type: record.get, entity: contact, record_id: "{{inputs.note}}"}
- {id: page, type: record.list, entity: contact, where: {email: "{{got.email}}", score: 3}, limit: 500}
- {id: changed, type: record.update, entity: contact, record_id: "{{page.records.1.id}}", fields: {meta: {tags: "{{got.tags}}", n: 1}}}
- {type: record.delete, entity: contact, id: "{{got.id}}-x"}
- {type: output, set: {a: "{{page.records}}", b: "{{changed.score}}"}}`)
	s.gives(`{"email":"e","note":"7"}`, `{"a":[{"id":"1","email":"a@x","score":1},{"id":"2","email":"b@x","score":2}],"b":19.90}`, 5)
	s.called(
		`get contact 7 {} {} 0`,
		`list contact  {} {"email":"got@x","score":3} 200`,
		`update contact 2 {"meta":{"n":1,"tags":["x","y"]}} {} 0`,
		`delete contact 7-x {} {} 0`)
}

func TestAbsentRecordsAreNull(t *testing.T) {
	s := flow(t, `
- {id: got, type: record.get, entity: contact, record_id: "{{inputs.note}}"}
- {type: if, when: got == nil, then: [{type: output, set: {a: absent}}], else: [{type: output, set: {a: "{{got.email}}"}}]}
- {id: reads, type: output, set: {b: "{{got.email}}"}}`)
	s.gives(`{"email":"e","note":"none"}`, `{"a":"absent","b":null}`, 3)
	s.gives(`{"email":"e"}`, `{"a":"absent","b":null}`, 3) // no id: nothing is asked
	s.gives(`{"email":"e","note":"5"}`, `{"a":"got@x","b":"got@x"}`, 4)
	s.called(`get contact none {} {} 0`, `get contact 5 {} {} 0`)

	s = flow(t, `
- {id: page, type: record.list, entity: contact, where: {email: "{{inputs.note}}"}}
- {type: output, set: {a: "{{page.records}}"}}`)
	s.gives(`{"email":"e"}`, `{"a":[],"b":null}`, 2) // no record's email equals null
	s.called()
	s = flow(t, `
- {id: gone, type: record.delete, entity: contact, record_id: "{{inputs.note}}"}`)
	s.fails(`{"email":"e"}`, 422, fault.ExecutionError, "gone: expected the id of a record, found null")
}

func TestMissingInputsAreNull(t *testing.T) {
	s := flow(t, `
- {id: whole, type: output, set: {a: "{{inputs.data}}"}}
- {id: within, type: output, set: {b: "score <{{inputs.score}}>"}}
- {id: deeper, type: output, set: {b: "{{inputs.data.x}}"}}
- {id: all, type: output, set: {a: "{{inputs}}"}}`)
	s.gives(`{"email":"e"}`, `{"a":{"email":"e","score":null,"vip":null,"data":null,"note":null},"b":"score <>"}`, 3)
	if got := s.step("deeper"); got != "skipped: inputs.data.x reads x out of null, which is not an object or a list" {
		t.Error(got)
	}
}

func TestPathsIntoScalarsSkipTheNode(t *testing.T) {
	s := flow(t, `
- {id: text, type: output, set: {a: "{{inputs.note.x}}"}}
- {id: inner, type: record.create, entity: contact, fields: {email: "{{inputs.email}}", name: "Hello {{inputs.data.a.b.c}}"}}
- {id: missing, type: output, set: {a: "{{inputs.data.nope}}"}}
- {id: past, type: output, set: {b: ["{{inputs.data.list.7}}", "{{inputs.data.list.x}}", "{{inputs.data.list.0}}"]}}
- {id: after, type: record.get, entity: contact, record_id: "{{inner.id}}"}
- {id: cond, type: if, when: inputs.note.x == 1, then: [{type: output, set: {a: yes}}], else: [{type: output, set: {a: no}}]}
- {id: loop, type: each, in: "{{inputs.note}}", as: line, do: [{type: output, set: {a: "{{line}}"}}]}
- {id: whole, type: set, values: {x: "{{after}}"}}`)
	s.gives(`{"email":"e","note":"text","data":{"a":{"b":"text"},"list":[1]}}`, `{"a":null,"b":[null,null,1]}`, 2)
	s.called()
	for node, why := range map[string]string{
		"text":  "inputs.note.x reads x out of text, which is not an object or a list",
		"inner": "inputs.data.a.b.c reads c out of text, which is not an object or a list",
		"after": "inner.id: the node did not run",
		"cond":  "inputs.note.x reads x out of text, which is not an object or a list",
		"loop":  "inputs.note reads into text, which is not an object or a list",
		"whole": "after: the node did not run",
	} {
		if got := s.step(node); got != "skipped: "+why {
			t.Errorf("%s: %s", node, got)
		}
	}
	// An object that is declared as text is a text; a node that reads into it is skipped.
	s.gives(`{"email":"e","note":"{\"x\":1}","data":{"a":{"b":{}},"list":[1]}}`, `{"a":null,"b":[null,null,1]}`, 5)
}

func TestNodesOfTheOtherBranchDidNotRun(t *testing.T) {
	s := flow(t, `
- type: if
  when: inputs.vip
  then: [{id: made, type: record.create, entity: contact, fields: {}}]
- {id: out, type: output, set: {a: "{{made.id}}"}}
- {type: if, when: made.id != nil, then: [{type: output, set: {b: made}}], else: [{type: output, set: {b: not made}}]}`)
	s.gives(`{"email":"e","vip":true}`, `{"a":"new-1","b":"made"}`, 5)
	s.gives(`{"email":"e","vip":false}`, `{"a":null,"b":null}`, 1)
	s.gives(`{"email":"e"}`, `{"a":null,"b":null}`, 1) // null counts as false
}

func TestNodesExecutedCountsIterations(t *testing.T) {
	s := flow(t, `
- {type: set, values: {last: none, sum: 0}}
- id: lines
  type: each
  in: "{{inputs.data.lines}}"
  as: line
  do:
    - {id: made, type: record.create, entity: contact, fields: {email: "{{line.sku}}"}}
    - {type: if, when: line.qty > 1, then: [{type: set, values: {last: "{{line.sku}}/{{made.id}}"}}]}
- {type: output, set: {a: "{{vars.last}}"}}`)
	// set, each, 3 × create, 3 × if, 2 × the set inside, output
	s.gives(`{"email":"e","data":{"lines":[{"sku":"A","qty":2},{"sku":"B","qty":3},{"sku":"C","qty":1}]}}`, `{"a":"B/new-1","b":null}`, 11)
	// A line that is not an object skips the nodes that read it, and those that read these.
	s.gives(`{"email":"e","data":{"lines":[7,{"sku":"A","qty":2}]}}`, `{"a":"A/new-1","b":null}`, 6)
	s.gives(`{"email":"e","data":{"lines":[]}}`, `{"a":"none","b":null}`, 3)
}

func TestIterationsAreIndependent(t *testing.T) {
	s := flow(t, `
- type: each
  in: inputs.data
  as: one
  do:
    - {type: if, when: one == 1, then: [{id: made, type: record.create, entity: contact, fields: {}}]}
    - {type: output, set: {a: "{{made.id}} at {{one}}"}}`)
	s.gives(`{"email":"e","data":[1,2,3]}`, `{"a":"new-1 at 1","b":null}`, 6)
}

func TestComponentsAndOutputs(t *testing.T) {
	s := flow(t, `
- {id: sum, type: component, component: total, inputs: {lines: "{{inputs.data}}", who: "<{{inputs.email}}>"}, outputs: {total: a.sum, lines.0.sku: a.first.sku, nope.x: b, none: b}}
- {id: whole, type: component, component: total, inputs: "{{inputs.data}}"}
- {type: output, set: {a.again: "{{sum.total}}", "a.__proto__.x": 1, a.constructor: "{{sum.lines.0}}"}}
- {type: output, set: {a.constructor.more: true}}`)
	s.gives(`{"email":"e","data":{"q":[1]}}`,
		`{"a":{"first":{"sku":"A"},"sum":42.50,"__proto__":{"x":1},"again":42.50,"constructor":{"sku":"A","more":true}},"b":null}`, 4)
	s.called(`component total {"lines":{"q":[1]},"who":"<e>"}`, `component total {"q":[1]}`)
	if got := s.step("sum"); got != `{"total":42.50,"lines":[{"sku":"A"}],"none":null}` {
		t.Errorf("an output changed the result that it was taken from: %s", got)
	}
	s.fails(`{"email":"e","data":[1]}`, 422, fault.ExecutionError, "whole: the inputs of component total: expected an object")
}

func TestOutputsGrowAndReplace(t *testing.T) {
	s := flow(t, `
- {type: set, values: {list: [1, {x: "{{inputs.data}}"}]}}
- {type: output, set: {a: "{{vars.list}}"}}
- {type: output, set: {a.1.y: 2, a.2: three, a.0: zero, b: "{{vars.list}}"}}
- {id: last, type: output, set: {a.9: 1}}`)
	s.fails(`{"email":"e","data":{"k":"v"}}`, 422, fault.ExecutionError, "last: output a.9: the list has 3 items, and no place 9")
	s = flow(t, `
- {type: set, values: {list: [1, {x: "{{inputs.data}}"}]}}
- {type: output, set: {a: "{{vars.list}}"}}
- {type: output, set: {a.1.y: 2, a.2: three, a.0: zero, b: "{{vars.list}}"}}`)
	s.gives(`{"email":"e","data":{"k":"v"}}`, `{"a":["zero",{"x":{"k":"v"},"y":2},"three"],"b":[1,{"x":{"k":"v"}}]}`, 3)
	s = flow(t, `
- {type: output, set: {a: text}}
- {id: into, type: output, set: {a.b: 1}}`)
	s.fails(`{"email":"e"}`, 422, fault.ExecutionError, "into: output a.b: text has no members")
}

func TestVarsKeepTheirValueUntilTheNextSet(t *testing.T) {
	s := flow(t, `
- {type: output, set: {a: "{{vars.n}}"}}
- {type: set, values: {n: 1, m: "{{vars.n}}"}}
- {type: set, values: {n: "{{vars.m}}", m: "{{vars.n}}"}}
- {type: output, set: {b: ["{{vars.n}}", "{{vars.m}}"]}}`)
	s.gives(`{"email":"e"}`, `{"a":null,"b":[null,1]}`, 4)
}

func TestEvent(t *testing.T) {
	s := flow(t, `
- {type: if, when: event.kind == "order.paid", then: [{type: output, set: {a: "{{event.id}}"}}]}
- {type: output, set: {b: "{{event}}"}}`)
	s.ev = &automation.Event{ID: "evt-1", Kind: "order.paid"}
	s.gives(`{"email":"e"}`, `{"a":"evt-1","b":{"id":"evt-1","kind":"order.paid"}}`, 3)
	s.ev = nil
	s.gives(`{"email":"e"}`, `{"a":null,"b":{"id":null,"kind":null}}`, 2)
}

func TestOnlyFailChoosesStatusAndCode(t *testing.T) {
	s := flow(t, `
- {type: fail, message: "No stock for {{inputs.email}}", code: OUT_OF_STOCK, status: 409}`)
	s.fails(`{"email":"e"}`, 409, "OUT_OF_STOCK", "No stock for e")
	s = flow(t, `
- {type: if, when: "true", then: [{type: fail, message: no}]}
- {type: output, set: {a: 1}}`)
	s.fails(`{"email":"e"}`, 422, fault.ExecutionError, "no")

	s = flow(t, `
- {type: each, in: inputs.data, as: x, do: [{id: make, type: record.create, entity: contact, fields: {}}]}`)
	s.host.fail = fault.Fields("email: is taken", map[string]string{"email": "is taken"})
	f := s.failure(`{"email":"e","data":[1]}`, 422, fault.ExecutionError, "make: email: is taken")
	if f.Details["node"] != "make" || f.Details["code"] != "VALIDATION" || f.Details["fields"] == nil {
		t.Errorf("details are %v", f.Details)
	}
	if got := s.step("make"); got != "error: EXECUTION_ERROR: make: email: is taken" {
		t.Errorf("the trace of a failed run: %s", got)
	}
	if text := string(s.last.Trace.JSON()); strings.Count(text, `"details":`) != 1 ||
		!strings.Contains(text, `"error":"EXECUTION_ERROR: make: email: is taken","details":{"code":"VALIDATION","fields":{"email":"is taken"},"node":"make"}}`) {
		t.Errorf("the trace has the details once, where it failed: %s", text)
	}
	s.host.fail = fault.Fields("wrong", map[string]string{"email": strings.Repeat("é", 3<<10)})
	_ = s.failure(`{"email":"e","data":[1]}`, 422, fault.ExecutionError, "make: wrong")
	if text := s.last.Trace.JSON(); !text.IsValid() || len(text) > 3<<10 || !strings.Contains(string(text), `"details":"{\"code\":\"VALIDATION\",`) || !strings.HasSuffix(string(text), `,"truncated":true}]`) {
		t.Errorf("long details in the trace: %s", text)
	}
	for code, status := range map[fault.Code]int{fault.NotFound: 422, fault.Forbidden: 422, fault.Conflict: 422, fault.Overloaded: 503, fault.ExecutionTimeout: 504} {
		s.host.fail = fault.New(code, "said the host")
		want := code
		if status == 422 {
			want = fault.ExecutionError
		}
		s.fails(`{"email":"e","data":[1]}`, status, want, "said the host")
	}
	s.host.fail = &fault.Error{Code: "GONE_FISHING", Status: 410, Message: "by fail() in a component"}
	s.fails(`{"email":"e","data":[1]}`, 410, "GONE_FISHING", "by fail()")
	s.host.fail = errors.New("disk on fire")
	if _, err := s.run(`{"email":"e","data":[1]}`); !errors.Is(err, s.host.fail) || fault.CodeOf(err) != "" {
		t.Errorf("a foreign error came out as %v", err)
	}
}

func TestDeadline(t *testing.T) {
	s := flow(t, `
- {id: slow, type: record.create, entity: contact, fields: {}}
- {type: output, set: {a: 1}}`)
	s.host.wait = true
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	s.ctx = ctx
	s.fails(`{"email":"e"}`, 504, fault.ExecutionTimeout, "out of time")
	s.fails(`{"email":"e"}`, 504, fault.ExecutionTimeout, "out of time") // over before it begins
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	s.ctx = ctx
	if _, err := s.run(`{"email":"e"}`); !errors.Is(err, context.Canceled) {
		t.Errorf("a run that was called off: %v", err)
	}
}

func TestConcurrentRuns(t *testing.T) {
	s := flow(t, `
- {type: set, values: {list: [{a: 1, b: 2, c: 3, d: 4, e: 5, f: 6, g: 7, h: 8, i: 9, j: 10, k: 11, l: 12, m: 13}, [1], "{{inputs.data}}"]}}
- {type: each, in: vars.list, as: x, do: [{type: if, when: "x.m == 13 or any(vars.list, # == 1)", then: [{type: output, set: {a: "{{x.a}}"}}]}]}
- {type: output, set: {b: "{{vars.list}}"}}
- {type: output, set: {b.0.m: 1}}`)
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 50 {
				one := &scenario{t: t, flow: s.flow, host: &host{}, ctx: t.Context()}
				one.gives(`{"email":"e","data":{"m":13,"a":"x"}}`,
					`{"a":"x","b":[{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"j":10,"k":11,"l":12,"m":1},[1],{"m":13,"a":"x"}]}`, 9)
			}
		})
	}
	wait.Wait()
}

func TestTrace(t *testing.T) {
	s := flow(t, `
- {id: made, type: record.create, entity: contact, fields: {}}
- {type: set, values: {x: "{{inputs.note}}"}}
- {type: if, when: inputs.vip, then: [{id: yes, type: output, set: {a: 1}}], else: [{id: no, type: output, set: {a: "{{inputs.email.x}}"}}]}
- {id: end, type: fail, message: enough}`)
	s.fails(`{"email":"e","note":"`+strings.Repeat("x", 3000)+`"}`, 422, fault.ExecutionError, "enough")
	want := []string{"made record.create 0", "nodes[1] set 0", "nodes[2] if 0", "no output 1", "end fail 0"}
	for i, step := range s.last.Trace.Steps {
		if got := fmt.Sprintf("%s %s %d", step.Node, step.Type, step.Depth); got != want[i] {
			t.Errorf("step %d is %s, want %s", i, got, want[i])
		}
		if step.Took < 0 || step.Took > time.Second {
			t.Errorf("%s took %v", step.Node, step.Took)
		}
	}
	if text, truncated := s.last.Trace.Steps[1].Result(); !truncated || !strings.HasPrefix(string(text), `"{\"x\":\"xxx`) || len(text) > 2100 {
		t.Errorf("a long result is %t %.80s… of %d bytes", truncated, text, len(text))
	}
	if text := s.last.Trace.JSON(); !text.IsValid() || !strings.Contains(string(text), `"depth":1,"took_us":`) || !strings.Contains(string(text), `"skipped":"inputs.email.x reads x out of text`) {
		t.Errorf("as JSON: %s", text)
	}
}

// padded is a host whose component returns a text of a given size.
type padded struct {
	host
	size int
}

func (h *padded) Component(context.Context, string, jsontext.Value) (jsontext.Value, error) {
	return jsontext.Value(`"` + strings.Repeat("x", h.size) + `"`), nil
}

// TestValuesAreChargedBeforeTheyAreBuilt: the values of a run are charged to a budget
// that all runs share. When that is used up, the run is OVERLOADED; a small one may
// still fit.
func TestValuesAreChargedBeforeTheyAreBuilt(t *testing.T) {
	s := flow(t, `
- {type: output, set: {a: "{{inputs.data.0}}"}}`)
	given := func(n int) string {
		return `{"email":"e","data":[` + strings.TrimSuffix(strings.Repeat("1,", n), ",") + `]}`
	}
	budget := admission.NewBudget(8 << 20)
	charge := budget.Charge("acme")
	s.hold = &charge
	f := s.failure(given(500_000), 503, fault.Overloaded, "too much memory")
	if f.RetryAfter <= 0 {
		t.Error("it does not say when to try again")
	}
	if held := budget.Used(); held > 4<<20 {
		t.Errorf("%d bytes are held of what was refused", held)
	}
	charge.Release()
	if _, err := s.run(given(50_000)); err != nil {
		t.Fatal(err)
	}
	if held := budget.Used(); held < 50_000*40 || held > 4<<20 {
		t.Errorf("%d bytes are held for 50,000 numbers", held)
	}
	charge.Release()
	if _, err := s.run(given(10)); err != nil || budget.Used() != 0 {
		t.Errorf("%v: %d bytes are held of a small run", err, budget.Used())
	}
}

// TestTextsAreChargedBeforeTheyAreWritten: one node may write a text many times. Its
// memory is charged while it is written, not when the node has ended.
func TestTextsAreChargedBeforeTheyAreWritten(t *testing.T) {
	given := `{"email":"` + strings.Repeat("e", 1<<20) + `","data":[` + strings.Repeat(`"e",`, 1<<18) + `1]}`
	for what, node := range map[string]string{
		"a text":             `{type: set, values: {v: "` + strings.Repeat("{{inputs.email}}", 32) + `"}}`,
		"a list in a text":   `{type: set, values: {v: "` + strings.Repeat("{{inputs.data}}", 32) + `"}}`,
		"a decoded one":      `{type: set, values: {w: "{{inputs.data.0}}", v: "` + strings.Repeat("{{inputs.data}}", 32) + `"}}`,
		"a component's text": `{id: c, type: component, component: total, inputs: {v: "` + strings.Repeat("{{inputs.email}}", 32) + `"}}`,
		"its members":        `{id: c, type: component, component: total, inputs: {v: [` + strings.Repeat(`"{{inputs.email}}", `, 31) + `"{{inputs.email}}"]}}`,
	} {
		s := flow(t, "\n- "+node)
		budget := admission.NewBudget(64 << 20)
		charge := budget.Charge("acme")
		s.hold = &charge
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if f := s.failure(given, 503, fault.Overloaded, "too much memory"); f.RetryAfter <= 0 {
			t.Errorf("%s: it does not say when to try again", what)
		}
		runtime.ReadMemStats(&after)
		if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 100 {
			t.Errorf("%s: %d MiB were made before the run was refused", what, took)
		}
		charge.Release()
		if budget.Used() != 0 {
			t.Errorf("%s: %d bytes are held", what, budget.Used())
		}
	}
}
