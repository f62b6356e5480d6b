// Package examples_test compiles the components and automations of the examples and runs
// them with records in memory.
package examples_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"

	"gatehouse/internal/automation"
	"gatehouse/internal/component"
	"gatehouse/internal/fault"
	"gatehouse/internal/inputs"
)

// manifest has the parts of a manifest that these tests use.
type manifest struct {
	Tenant   string   `yaml:"tenant"`
	Hosts    []string `yaml:"hosts"`
	Entities []struct {
		Name   string `yaml:"name"`
		Fields []struct {
			Name     string `yaml:"name"`
			Required bool   `yaml:"required"`
			Unique   bool   `yaml:"unique"`
			Indexed  bool   `yaml:"indexed"`
		} `yaml:"fields"`
	} `yaml:"entities"`
	Users []struct {
		Email string `yaml:"email"`
	} `yaml:"users"`
	Components []struct {
		Name       string               `yaml:"name"`
		Inputs     []inputs.Declaration `yaml:"inputs"`
		Outputs    []inputs.Declaration `yaml:"outputs"`
		Source     string               `yaml:"source"`
		SourceFile string               `yaml:"source_file"`
	} `yaml:"logic_components"`
	Automations []map[string]any `yaml:"automations"`
	Endpoints   []struct {
		Slug   string `yaml:"slug"`
		Target struct {
			Component  string `yaml:"component"`
			Automation string `yaml:"automation"`
		} `yaml:"target"`
		RunAs string `yaml:"run_as"`
	} `yaml:"custom_endpoints"`
}

// example is a compiled manifest with its records.
type example struct {
	manifest
	folder     string
	declared   map[string][]inputs.Declaration // of components
	components map[string]*component.Program
	flows      map[string]*automation.Flow
	schemas    map[string][]inputs.Declaration // of flows
	records    map[string][]map[string]any     // by entity
}

// load compiles everything in a folder's manifest.
func load(t *testing.T, folder string) *example {
	t.Helper()
	engine, err := start()
	if err != nil {
		t.Fatal(err)
	}
	x := &example{folder: folder, declared: map[string][]inputs.Declaration{}, components: map[string]*component.Program{},
		flows: map[string]*automation.Flow{}, schemas: map[string][]inputs.Declaration{}, records: map[string][]map[string]any{}}
	if err := yaml.Unmarshal(x.file(t, "manifest.yaml"), &x.manifest); err != nil {
		t.Fatal(err)
	}
	for _, c := range x.Components {
		source := c.Source
		if c.SourceFile != "" {
			if !filepath.IsLocal(c.SourceFile) {
				t.Errorf("%s: %s is outside the manifest's folder", c.Name, c.SourceFile)
			}
			source = string(x.file(t, c.SourceFile))
		}
		for _, list := range [][]inputs.Declaration{c.Inputs, c.Outputs} {
			if err := inputs.Check(list); err != nil {
				t.Errorf("%s: %v", c.Name, err)
			}
		}
		program, err := engine.CompileFor(t.Context(), x.Tenant, component.Source{Text: source})
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		x.components[c.Name], x.declared[c.Name] = program, c.Inputs
	}
	for _, data := range x.Automations {
		if data["trigger"] != "http.request" {
			t.Errorf("%v: trigger %v", data["name"], data["trigger"])
		}
		delete(data, "trigger") // only manifests have these members
		delete(data, "execution_context")
		definition, problems := automation.Decode(data)
		if len(problems) > 0 {
			t.Fatalf("%v: %v", data["name"], problems)
		}
		flow, problems := automation.Compile(definition, x.names())
		if len(problems) > 0 {
			t.Fatalf("%s: %v", definition.Name, problems)
		}
		x.flows[definition.Name], x.schemas[definition.Name] = flow, definition.InputSchema
	}
	x.check(t)
	return x
}

// check checks the endpoints' names.
func (x *example) check(t *testing.T) {
	t.Helper()
	for _, e := range x.Endpoints {
		if x.components[e.Target.Component] == nil && x.flows[e.Target.Automation] == nil {
			t.Errorf("%s has no target", e.Slug)
		}
		known := func(u struct {
			Email string `yaml:"email"`
		}) bool {
			return u.Email == e.RunAs
		}
		if e.RunAs != "" && !slices.ContainsFunc(x.Users, known) {
			t.Errorf("%s runs as nobody: %s", e.Slug, e.RunAs)
		}
		address := "http://127.0.0.1:8081/public/v1/custom/" + e.Slug + " "
		if readme := string(x.file(t, "README.md")); !strings.Contains(readme, address) || !strings.Contains(readme, "--tenant "+x.Tenant) {
			t.Errorf("README.md does not call %s", address)
		}
	}
}

func (x *example) file(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(x.folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// field reports whether an entity type has a field, whether lists may be filtered by it,
// and whether it is unique and required.
func (x *example) field(entity, name string) (known, filter, unique, required bool) {
	for _, e := range x.Entities {
		for _, f := range e.Fields {
			if e.Name == entity && f.Name == name {
				return true, f.Unique || f.Indexed, f.Unique, f.Required
			}
		}
	}
	return false, false, false, false
}

func (x *example) names() automation.Names {
	return automation.Names{
		Entity: func(entity string) bool {
			for _, e := range x.Entities {
				if e.Name == entity {
					return true
				}
			}
			return false
		},
		Field:     func(entity, name string) bool { known, _, _, _ := x.field(entity, name); return known },
		Filter:    func(entity, name string) bool { _, filter, _, _ := x.field(entity, name); return filter },
		Component: func(name string) bool { return x.components[name] != nil },
	}
}

// Call executes a component's calls on records.
func (x *example) Call(_ context.Context, name string, args []byte, _ int) ([]byte, error) {
	var a struct {
		Entity, ID, By string
		Where, Fields  map[string]any
	}
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, err
	}
	answer, err := x.do(strings.TrimPrefix(name, "records."), a.Entity, a.ID, a.By, a.Where, a.Fields)
	if err != nil {
		return nil, err
	}
	return json.Marshal(answer)
}

// Record executes a flow's calls on records.
func (x *example) Record(_ context.Context, call automation.RecordCall) (jsontext.Value, error) {
	object := func(members []inputs.Member) map[string]any {
		m := map[string]any{}
		for _, one := range members {
			var v any
			if err := json.Unmarshal(one.Value, &v); err != nil {
				panic(err)
			}
			m[one.Name] = v
		}
		return m
	}
	answer, err := x.do(string(call.Op), call.Entity, call.ID, call.By, object(call.Where), object(call.Fields))
	if err != nil {
		return nil, err
	}
	return json.Marshal(answer)
}

// Component is part of automation.Host. No example calls a component from a flow.
func (x *example) Component(context.Context, string, jsontext.Value) (jsontext.Value, error) {
	return nil, fault.New(fault.NotFound, "no component is called here")
}

// do executes a call on the records in memory. It checks the fields, and required and
// unique values.
func (x *example) do(op, entity, id, by string, where, fields map[string]any) (any, error) {
	switch op {
	case "list":
		found := []any{}
		for _, r := range x.records[entity] {
			if matches(r, where) {
				found = append(found, r)
			}
		}
		for name := range where {
			if _, filter, _, _ := x.field(entity, name); !filter {
				return nil, fault.New(fault.Validation, "%s is not indexed", name)
			}
		}
		return map[string]any{"records": found, "nextCursor": nil}, nil
	case "upsert":
		for _, r := range x.records[entity] {
			if r[by] == fields[by] {
				return r, x.set(entity, r, fields)
			}
		}
		fallthrough
	case "create":
		r := map[string]any{"id": fmt.Sprintf("%s-%d", entity, len(x.records[entity])+1)}
		x.records[entity] = append(x.records[entity], r)
		return r, x.set(entity, r, fields)
	case "update":
		for _, r := range x.records[entity] {
			if r["id"] == id {
				return r, x.set(entity, r, fields)
			}
		}
	}
	return nil, fault.New(fault.NotFound, "there is no %s %s to %s", entity, id, op)
}

func matches(r, where map[string]any) bool {
	for name, v := range where {
		if r[name] != v {
			return false
		}
	}
	return true
}

func (x *example) set(entity string, r, fields map[string]any) error {
	for name, v := range fields {
		known, _, unique, required := x.field(entity, name)
		if !known || required && v == nil {
			return fault.New(fault.Validation, "%s: unknown, or required", name)
		}
		for _, other := range x.records[entity] {
			if unique && other["id"] != r["id"] && other[name] == v {
				return fault.New(fault.Conflict, "%s is taken", name)
			}
		}
		r[name] = v
	}
	return nil
}
