package automation_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"

	"gatehouse/internal/admission"
	"gatehouse/internal/automation"
	"gatehouse/internal/fault"
	"gatehouse/internal/inputs"
)

// head declares the inputs and outputs of most flows of the tests.
const head = `
name: lead
input_schema:
  - {name: email, type: text, required: true}
  - {name: score, type: number}
  - {name: vip, type: boolean}
  - {name: data, type: json}
  - {name: note, type: text}
outputs: [{name: a, type: json}, {name: b, type: json}]
`

func names() automation.Names {
	known := func(list ...string) func(string) bool {
		return func(name string) bool { return slices.Contains(list, name) }
	}
	field := known("email", "score", "stage", "meta", "name", "owner_id")
	return automation.Names{
		Entity:    known("contact", "account"),
		Field:     func(_, name string) bool { return field(name) },
		Filter:    func(_, name string) bool { return name == "email" || name == "score" },
		Unique:    func(_, name string) bool { return name == "email" },
		Component: known("total", "broken"),
	}
}

// problems decodes and compiles head and nodes.
func problems(t *testing.T, nodes string) (*automation.Flow, automation.Problems) {
	t.Helper()
	var data any
	if err := yaml.Unmarshal([]byte(head+"nodes:\n"+nodes), &data); err != nil {
		t.Fatalf("the test's YAML: %v\n%s", err, nodes)
	}
	def, found := automation.Decode(data)
	if len(found) > 0 {
		return nil, found
	}
	again, found := automation.Decode(def.JSON())
	if len(found) > 0 || string(again.JSON()) != string(def.JSON()) {
		t.Errorf("%s does not come back: %v", def.JSON(), found)
	}
	return automation.Compile(again, names())
}

// scenario is a compiled flow and a host that records its calls.
type scenario struct {
	t    *testing.T
	flow *automation.Flow
	host *host
	ctx  context.Context
	ev   *automation.Event
	last *automation.Result
	hold *admission.Charge
}

func flow(t *testing.T, nodes string) *scenario {
	t.Helper()
	compiled, found := problems(t, nodes)
	if len(found) > 0 {
		t.Fatalf("the flow has problems:\n%v", found)
	}
	return &scenario{t: t, flow: compiled, host: &host{}, ctx: t.Context()}
}

// run runs the flow with a JSON object as inputs.
func (s *scenario) run(given string) (*automation.Result, error) {
	s.t.Helper()
	var members inputs.Object
	object := map[string]jsontext.Value{}
	d := jsontext.NewDecoder(strings.NewReader(given))
	if _, err := d.ReadToken(); err != nil {
		s.t.Fatal(err)
	}
	for d.PeekKind() == '"' {
		name, _ := d.ReadToken()
		key := name.String()
		value, err := d.ReadValue()
		if err != nil {
			s.t.Fatal(err)
		}
		object[key] = value.Clone()
		members = append(members, inputs.Member{Name: key, Value: object[key]})
	}
	result, err := s.flow.Run(s.ctx, automation.Run{Inputs: members, Event: s.ev, Host: s.host, Memory: s.hold})
	if result == nil {
		s.t.Fatal("Run gave no result")
	}
	s.last = result
	return result, err
}

// gives fails the test unless the outputs and the number of executed nodes are these.
func (s *scenario) gives(given, outputs string, executed int) {
	s.t.Helper()
	result, err := s.run(given)
	if err != nil {
		s.t.Errorf("given %s: %v", given, err)
		return
	}
	if string(result.Outputs) != outputs || result.NodesExecuted != executed {
		s.t.Errorf("given %s: got %s and %d nodes executed, want %s and %d\ntrace %s",
			given, result.Outputs, result.NodesExecuted, outputs, executed, result.Trace.JSON())
	}
}

// fails fails the test unless the run's error is this.
func (s *scenario) fails(given string, status int, code fault.Code, message string) {
	s.t.Helper()
	_ = s.failure(given, status, code, message)
}

// failure returns the run's error, and fails the test if there is none.
func (s *scenario) failure(given string, status int, code fault.Code, message string) *fault.Error {
	s.t.Helper()
	result, err := s.run(given)
	var f *fault.Error
	if !errors.As(err, &f) || f.HTTPStatus() != status || f.Code != code || !strings.Contains(f.Message, message) {
		s.t.Errorf("given %.100s: got %.300v, want %d %s with %q", given, err, status, code, message)
		return &fault.Error{}
	}
	if result.Outputs != nil {
		s.t.Errorf("a failed flow gave outputs %s", result.Outputs)
	}
	return f
}

// step returns the trace's text for the first step of a node.
func (s *scenario) step(node string) string {
	for _, step := range s.last.Trace.Steps {
		if step.Node == node {
			switch {
			case step.SkippedBecause != "":
				return "skipped: " + step.SkippedBecause
			case step.Error != "":
				return "error: " + step.Error
			}
			text, _ := step.Result()
			return string(text)
		}
	}
	return "not there"
}

// host returns what it was called with.
type host struct {
	calls []string
	fail  error
	wait  bool
}

func (h *host) Record(ctx context.Context, call automation.RecordCall) (jsontext.Value, error) {
	h.calls = append(h.calls, fmt.Sprintf("%s %s %s %s %s %d", call.Op, call.Entity, call.ID, inputs.Object(call.Fields).JSON(), inputs.Object(call.Where).JSON(), call.Limit))
	if call.Op == automation.Share || call.Op == automation.Unshare {
		h.calls[len(h.calls)-1] += fmt.Sprintf(" %s %s %s", call.User, call.Role, call.Access)
	}
	if call.By != "" || call.Whole != nil {
		h.calls[len(h.calls)-1] += fmt.Sprintf(" %s%s", call.By, []byte(call.Whole))
	}
	if h.wait {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if h.fail != nil {
		return nil, h.fail
	}
	switch call.Op {
	case automation.List:
		return jsontext.Value(`{"records": [{"id":"1","email":"a@x","score":1},{"id":"2","email":"b@x","score":2}]}`), nil
	case automation.Get:
		if call.ID == "none" {
			return jsontext.Value("null"), nil
		}
		return jsontext.Value(`{"id":"` + call.ID + `","email":"got@x","score":3,"tags":["x","y"]}`), nil
	case automation.Delete:
		return jsontext.Value(`{"id":"` + call.ID + `","deleted":true}`), nil
	case automation.Share:
		return jsontext.Value(`{"user":"u-1","role":null,"access":"read","created_at":"2026-01-01T00:00:00.000000Z"}`), nil
	}
	if call.Whole.Kind() == '[' {
		return jsontext.Value(`[{"id":"new-1"}]`), nil
	}
	return jsontext.Value(`{"id":"new-1","email":null,"score":19.90}`), nil
}

func (h *host) Component(_ context.Context, name string, given jsontext.Value) (jsontext.Value, error) {
	h.calls = append(h.calls, "component "+name+" "+string(given))
	if h.fail != nil {
		return nil, h.fail
	}
	return jsontext.Value(`{"total": 42.50, "lines": [{"sku":"A"}], "none": null}`), nil
}

func (s *scenario) called(want ...string) {
	s.t.Helper()
	if !slices.Equal(s.host.calls, want) {
		s.t.Errorf("the host was asked\n%s\nwant\n%s", strings.Join(s.host.calls, "\n"), strings.Join(want, "\n"))
	}
}
