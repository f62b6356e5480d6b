package automation

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/inputs"
)

// Definition is a flow as its author wrote it. Every member has the right form;
// Compile checks names.
type Definition struct {
	Name        string
	InputSchema []inputs.Declaration
	Outputs     []inputs.Declaration
	// FailOnSkip is whether a node that cannot read what it needs ends the run, unless
	// the node says otherwise.
	FailOnSkip bool

	nodes  []*node
	source *object

	// partial says that some of it is not right; lost are the names that the part has
	// which could not be read.
	partial bool
	lost    lost
}

// lost says which names of a partial definition are not known.
type lost struct {
	inputs, outputs bool
	nodes           bool // also of vars and items
}

// JSON returns the definition as one JSON object, which Decode takes.
func (d *Definition) JSON() jsontext.Value {
	text, _ := appendJSON(nil, d.source, math.MaxInt) // Decode has checked its depth
	return text
}

// Decode decodes a definition: an object with name, input_schema, outputs, on_skip and
// nodes. data is JSON text (jsontext.Value or []byte), whose order of members is
// kept, or the result of a JSON or YAML decoder (maps, lists, texts, numbers, true
// and false, nil), whose members are ordered by name.
//
// Decoding is strict: unknown members and wrong types are problems. Decode returns
// either a Definition or all problems.
func Decode(data any) (*Definition, Problems) {
	def, problems := DecodePartly(data)
	if len(problems) > 0 {
		return nil, problems
	}
	return def, nil
}

// DecodePartly is Decode for an author who is to be told of all mistakes at once. Beside
// problems it returns the part of the definition that is right, nil if there is none.
// Compile finds the mistakes in it, and makes no Flow of it. incomplete names the
// members, input_schema and outputs, that the caller has left out because they are wrong.
func DecodePartly(data any, incomplete ...string) (*Definition, Problems) {
	d := decoder{}
	tree := d.normal(data, "", 0)
	if len(d.problems) > 0 {
		return nil, d.problems
	}
	def := &Definition{}
	source, ok := tree.(*object)
	if !ok {
		d.problems.add("", "expected an object with name, input_schema, outputs and nodes, found %s", kindOf(tree))
		return nil, d.problems
	}
	def.source = source
	m := d.members(source, "", "an automation", "name", "input_schema", "outputs", "on_skip", "nodes")
	def.Name = m.text("name", true)
	before := len(d.problems)
	def.InputSchema = d.declarations(m, "input_schema")
	d.lost.inputs = len(d.problems) > before || slices.Contains(incomplete, "input_schema")
	before = len(d.problems)
	def.Outputs = d.declarations(m, "outputs")
	d.lost.outputs = len(d.problems) > before || slices.Contains(incomplete, "outputs")
	def.FailOnSkip = m.choice("on_skip", OnSkip...) == FailOnSkip
	def.nodes = m.nodes("nodes", 1, true)
	def.partial, def.lost = len(d.problems) > 0 || len(incomplete) > 0, d.lost
	if len(d.problems) >= maxProblems {
		return nil, d.problems
	}
	return def, d.problems
}

// What a node does that cannot read what it needs (contract F4).
const (
	SkipOnSkip = "skip" // it does nothing
	FailOnSkip = "fail" // it ends the run
)

// OnSkip are the values of on_skip, the first if there is none.
var OnSkip = []string{SkipOnSkip, FailOnSkip}

// decoder collects problems and continues after each.
type decoder struct {
	problems Problems
	count    int // nodes
	inside   int // problems of nodes inside the node that is decoded
	lost     lost
}

func (d *decoder) declarations(m members, name string) []inputs.Declaration {
	list, at, ok := m.list(name, "a list of declarations like {name: email, type: text}", false)
	if !ok {
		return nil
	}
	decls := make([]inputs.Declaration, len(list))
	bad := len(d.problems)
	for i, v := range list {
		one := d.asMembers(v, item(at, i), "a declaration", "name", "type", "required", "pattern")
		decls[i] = inputs.Declaration{Name: one.text("name", true), Type: inputs.Type(one.text("type", true)), Required: one.flag("required"), Pattern: inputs.PatternOf(one.text("pattern", false))}
	}
	if len(d.problems) > bad {
		return decls
	}
	var mistakes inputs.Mistakes
	if errors.As(inputs.Check(decls), &mistakes) {
		for _, one := range mistakes {
			path := item(at, one.Index)
			if one.Member != "" {
				path = member(path, one.Member)
			}
			d.problems.add(path, "%s", one.Text)
		}
	}
	return decls
}

// normal converts the result of a JSON or YAML decoder to a value of this package.
func (d *decoder) normal(v any, path string, depth int) any {
	if depth > maxDepth {
		d.problems.add("", "objects and lists are nested too deeply: expected at most %d levels", maxDepth)
		return nil
	}
	switch v := v.(type) {
	case nil, bool, string:
		return v
	case jsontext.Value:
		return d.json(v, path)
	case []byte:
		return d.json(v, path)
	case map[string]any:
		o := &object{members: make([]entry, 0, len(v))}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			o.members = append(o.members, entry{name, d.normal(v[name], member(path, name), depth+1)})
		}
		return o
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = d.normal(v[i], item(path, i), depth+1)
		}
		return list
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			d.problems.add(path, "expected a finite number")
			return nil
		}
		return v
	case float32, int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64:
		n, err := numberOf(fmt.Sprint(v), false)
		if err != nil {
			d.problems.add(path, "expected a finite number")
		}
		return n
	}
	d.problems.add(path, "expected text, a number, true or false, null, a list or an object, found %T: a date must be in quotes", v)
	return nil
}

func (d *decoder) json(text []byte, path string) any {
	if !jsontext.Value(text).IsValid() {
		d.problems.add(path, "expected JSON in UTF-8 without duplicate names")
		return nil
	}
	v, _, err := parseJSON(text, MaxWork)
	if err != nil {
		d.problems.add(path, "expected JSON: %v", err)
	}
	return v
}

// members is an object whose member names were checked. Its methods read a member;
// they add a problem for one of the wrong type.
type members struct {
	*decoder
	o    *object
	path string
	what string
}

// members returns the members of an object, and adds a problem for each that is not
// known.
func (d *decoder) members(o *object, path, what string, known ...string) members {
	for i := range o.members {
		if name := o.members[i].name; !slices.Contains(known, name) {
			d.problems.add(member(path, name), "unknown member of %s: expected %s", what, orList(known))
		}
	}
	return members{d, o, path, what}
}

func (d *decoder) asMembers(v any, path, what string, known ...string) members {
	o, ok := v.(*object)
	if !ok {
		d.problems.add(path, "expected %s as an object, found %s", what, kindOf(v))
		return members{d, nil, path, what}
	}
	return d.members(o, path, what, known...)
}

// get returns a member that exists and is not null. It adds a problem for a required
// one that is missing.
func (m members) get(name, expected string, required bool) (v any, path string, ok bool) {
	path = member(m.path, name)
	if m.o == nil {
		return nil, path, false
	}
	if place := m.o.get(name); place != nil && *place != nil {
		return *place, path, true
	}
	if required {
		m.problems.add(path, "%s needs %s: expected %s", m.what, name, expected)
	}
	return nil, path, false
}

func (m members) wrong(path, expected string, v any) {
	m.problems.add(path, "expected %s, found %s", expected, kindOf(v))
}

func (m members) text(name string, required bool) string {
	v, path, ok := m.get(name, "text", required)
	if !ok {
		return ""
	}
	text, ok := v.(string)
	switch {
	case !ok:
		m.wrong(path, "text", v)
	case text == "" && required:
		m.problems.add(path, "expected text that is not empty")
	}
	return text
}

// choice returns a member that has one of some values, "" when it is missing or wrong.
func (m members) choice(name string, values ...string) string {
	v, path, ok := m.get(name, orList(values), false)
	if !ok {
		return ""
	}
	if chosen, ok := v.(string); ok && slices.Contains(values, chosen) {
		return chosen
	}
	found := kindOf(v)
	if text, ok := v.(string); ok {
		found = show(text)
	}
	m.problems.add(path, "expected %s, found %s", orList(values), found)
	return ""
}

func (m members) flag(name string) bool {
	v, path, ok := m.get(name, "true or false", false)
	if !ok {
		return false
	}
	flag, ok := v.(bool)
	if !ok {
		m.wrong(path, "true or false", v)
	}
	return flag
}

func (m members) list(name, expected string, required bool) (list []any, path string, ok bool) {
	v, path, ok := m.get(name, expected, required)
	if !ok {
		return nil, path, false
	}
	if list, ok = v.([]any); !ok {
		m.wrong(path, expected, v)
	}
	return list, path, ok
}

func (m members) object(name, expected string, required bool) *object {
	v, path, ok := m.get(name, expected, required)
	if !ok {
		return &object{}
	}
	o, ok := v.(*object)
	if !ok {
		m.wrong(path, expected, v)
		return &object{}
	}
	if required && len(o.members) == 0 {
		m.problems.add(path, "expected %s, found an empty object", expected)
	}
	return o
}

// whole returns a whole number within bounds, or otherwise when it is missing or
// wrong.
func (m members) whole(name string, low, high, otherwise int) int {
	expected := "a whole number of " + strconv.Itoa(low) + " to " + strconv.Itoa(high)
	v, path, ok := m.get(name, expected, false)
	if !ok {
		return otherwise
	}
	f, ok := double(v)
	if !ok || f != math.Trunc(f) || f < float64(low) || f > float64(high) {
		if found, err := appendJSON(nil, v, 80); err == nil {
			m.problems.add(path, "expected %s, found %s", expected, found)
		} else {
			m.wrong(path, expected, v)
		}
		return otherwise
	}
	return int(f)
}
