package automation_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/automation"
	"gatehouse/internal/fault"
	"gatehouse/internal/inputs"
)

// compileOne compiles a text as a template and as a condition.
func compileOne(template, when string) (*automation.Flow, automation.Problems) {
	def, found := automation.Decode(map[string]any{
		"name":         "x",
		"input_schema": []any{map[string]any{"name": "t", "type": "text"}, map[string]any{"name": "d", "type": "json"}},
		"outputs":      []any{map[string]any{"name": "o", "type": "json"}},
		"nodes": []any{
			map[string]any{"type": "output", "set": map[string]any{"o": template}},
			map[string]any{"type": "if", "when": when, "then": []any{map[string]any{"type": "output", "set": map[string]any{"o.x": true}}}},
		},
	})
	if len(found) > 0 {
		return nil, found
	}
	return automation.Compile(def, automation.Names{})
}

// FuzzTemplate: whatever compiles runs, returns valid JSON, and contains an input no
// more often than the template names it.
func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{"{{inputs.t}}", "a {{ inputs.d.0.x }} {{", "}}{{inputs.t}}{{inputs.d}}", "{{{inputs.t}}}", "{{inputs.d.__proto__}}", "{{event.id}}"} {
		f.Add(seed, "{{inputs.t}}")
	}
	f.Fuzz(func(t *testing.T, template, text string) {
		compiled, found := compileOne(template, "true")
		if len(found) > 0 {
			return
		}
		quoted, _ := json.Marshal(text)
		result, err := compiled.Run(t.Context(), automation.Run{Inputs: inputs.Object{
			{Name: "t", Value: quoted}, {Name: "d", Value: jsontext.Value(`[{"x":"{{inputs.t}}"}]`)}}})
		if err != nil {
			if fault.CodeOf(err) == "" {
				t.Fatalf("%q gives %v", template, err)
			}
			return
		}
		if !result.Outputs.IsValid() || !result.Trace.JSON().IsValid() {
			t.Fatalf("%q gives %s", template, result.Outputs)
		}
		if limit := 64 + 6*(len(template)+(1+strings.Count(template, "{{"))*(len(quoted)+32)); len(result.Outputs) > limit {
			t.Fatalf("%q and %q give %d bytes", template, text, len(result.Outputs))
		}
	})
}

// FuzzCondition: whatever compiles ends within its limits.
func FuzzCondition(f *testing.F) {
	for _, seed := range []string{
		`inputs.d.0.x == "a" and inputs.t matches "^a+$"`, `any(inputs.d, #.x > 1 or #index == 0)`, `inputs.d[0]?.x ?? (1..5)[2] == 3`,
		`len(filter(1..100, # % 2 == 0)) > -inputs.d.0 ? true : not false`, `if inputs.t in ["a"] { true } else { false }`, `inputs.d | map(.x) | sum() == 1.5`,
		`string(inputs.d) + 'x' contains upper(inputs.t)`, "inputs.d.0.0.`x` == 0x1F", `"\u00e9" < '\'' && inputs.t.0.1e5`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, when string) {
		compiled, found := compileOne("x", when)
		if len(found) > 0 {
			return
		}
		_, err := compiled.Run(t.Context(), automation.Run{Inputs: inputs.Object{
			{Name: "t", Value: jsontext.Value(`"aaa"`)}, {Name: "d", Value: jsontext.Value(`[{"x":1},2,[3],null]`)}}})
		if err != nil && fault.CodeOf(err) != fault.ExecutionError {
			t.Fatalf("%q gives %v", when, err)
		}
	})
}

// FuzzDefinition: Decode of a definition's JSON returns the same definition, and what
// DecodePartly returns of one that is not right compiles to no flow.
func FuzzDefinition(f *testing.F) {
	f.Add([]byte(`{"name":"x","input_schema":[{"name":"t","type":"text"}],"outputs":[{"name":"o","type":"json"}],"nodes":[
		{"id":"a","type":"record.get","entity":"contact","record_id":"{{inputs.t}}"},
		{"type":"each","in":"{{a.tags}}","as":"i","do":[{"type":"if","when":"i == 1","then":[{"type":"fail","message":"x","status":400}]}]},
		{"type":"component","component":"c","inputs":{"x":["{{a}}"]},"outputs":{"y.0":"o.z"}},{"type":"set","values":{"v":1e5}}]}`))
	f.Add([]byte(`{"name":"x","nodes":[{"type":"output","set":{}}]}`))
	f.Add([]byte(`{"name":7,"outputs":7,"nodes":[7,{"type":"sets","id":"a"},{"type":"each","as":7,"do":[{"type":"record.list","entity":"contact","where":7}]},
		{"type":"if","then":[{"type":"set","values":[]}],"else":[{"type":"component","inputs":7}]},{"type":"record.upsert","fields":[]},{"type":"record.share"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		def, found := automation.Decode(text)
		if len(found) > 0 {
			if part, _ := automation.DecodePartly(text); part != nil {
				if made, _ := automation.Compile(part, names()); made != nil {
					t.Fatalf("%s is made a flow", text)
				}
			}
			return
		}
		again, found := automation.Decode(def.JSON())
		if len(found) > 0 || string(again.JSON()) != string(def.JSON()) {
			t.Fatalf("%s comes back as %v", def.JSON(), found)
		}
		one, first := automation.Compile(def, automation.Names{})
		_, second := automation.Compile(again, automation.Names{})
		if first.Error() != second.Error() || (one == nil) != (len(first) > 0) {
			t.Fatalf("%s compiles to %v, then to %v", def.JSON(), first, second)
		}
	})
}
