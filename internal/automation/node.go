package automation

import (
	"regexp"
	"slices"
	"strings"
)

// node is one node as its author wrote it.
type node struct {
	id, kind, path string

	entity, component string
	record            any     // a text, the record's id
	content           *object // fields, inputs, values or set
	where             *object
	whole             string      // inputs as one template instead of an object
	outputs           [][2]string // return path, declared output
	limit             int

	when            any // a text or a bool
	in, as          string
	then, otherwise []*node // then or do; else

	message, code string
	status        int
}

// idRule is what names an author chooses for nodes, vars and items may be; in a
// condition a name with - in it cannot be written.
var (
	idRule   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)
	codeRule = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,63}$`)
)

// reserved are names that mean something else in paths and conditions.
var reserved = []string{"inputs", "vars", "event", "nodes", "outputs",
	"true", "false", "nil", "null", "and", "or", "not", "in", "let", "if", "else", "matches", "contains", "startsWith", "endsWith"}

// kinds are the types of nodes, in the order of messages.
var kinds = []string{"record.create", "record.get", "record.list", "record.update", "record.delete", "component", "set", "output", "if", "each", "fail"}

// kindMembers are the members of each type, beside id and type.
var kindMembers = map[string][]string{
	"record.create": {"entity", "fields"},
	"record.get":    {"entity", "record_id"},
	"record.list":   {"entity", "where", "limit"},
	"record.update": {"entity", "record_id", "fields"},
	"record.delete": {"entity", "record_id"},
	"component":     {"component", "inputs", "outputs"},
	"set":           {"values"},
	"output":        {"set"},
	"if":            {"when", "then", "else"},
	"each":          {"in", "as", "do"},
	"fail":          {"message", "code", "status"},
}

// nodes reads a list of nodes at a depth of nesting.
func (m members) nodes(name string, depth int, required bool) []*node {
	list, path, ok := m.list(name, "a list of nodes", required)
	if !ok {
		return nil
	}
	if len(list) == 0 && required {
		m.problems.add(path, "expected at least one node")
	}
	if depth > MaxNesting {
		m.problems.add(path, "nodes are nested too deeply: expected at most %d levels", MaxNesting)
		return nil
	}
	nodes := make([]*node, 0, len(list))
	for i, v := range list {
		if m.count++; m.count > MaxNodes {
			if m.count == MaxNodes+1 {
				m.problems.add(item(path, i), "too many nodes: expected at most %d", MaxNodes)
			}
			break
		}
		nodes = append(nodes, m.node(v, item(path, i), depth))
	}
	return nodes
}

func (d *decoder) node(v any, path string, depth int) *node {
	n := &node{path: path}
	o, ok := v.(*object)
	if !ok {
		d.problems.add(path, "expected a node as an object, found %s", kindOf(v))
		return n
	}
	n.kind = members{d, o, path, "a node"}.text("type", true)
	known, ok := kindMembers[n.kind]
	if !ok {
		if n.kind != "" {
			d.problems.add(member(path, "type"), "unknown type %s: expected %s", show(n.kind), orList(kinds))
		}
		return n
	}
	m := d.members(o, path, n.kind, append([]string{"id", "type"}, known...)...)
	d.identify(n, m)
	d.content(n, m, depth)
	return n
}

// identify reads a node's id and, where it has one, its record's. The contract
// writes both as id (decisions 4): an id with {{…}} in it is the record's.
func (d *decoder) identify(n *node, m members) {
	n.id = m.text("id", false)
	path := member(n.path, "id")
	if slices.Contains(kindMembers[n.kind], "record_id") {
		if given := m.o.get("record_id"); given != nil {
			n.record = m.text("record_id", true)
		} else if strings.Contains(n.id, "{{") {
			n.record, n.id = n.id, ""
		} else {
			d.problems.add(member(n.path, "record_id"), "%s needs record_id: expected the id of a record, like {{inputs.id}}", n.kind)
		}
	}
	switch {
	case n.id == "" && m.o.get("id") != nil && n.record == nil:
		d.problems.add(path, "expected a name, or no id")
	case n.id != "":
		d.name(path, n.id)
	}
}

// name checks a name that the author chose.
func (d *decoder) name(path, name string) {
	switch {
	case !idRule.MatchString(name) || len(name) > maxIDLength:
		d.problems.add(path, "expected at most %d letters, digits, _ and -, a letter or _ first, found %s", maxIDLength, show(name))
	case slices.Contains(reserved, name):
		d.problems.add(path, "%s is a reserved name", name)
	}
}

func (d *decoder) content(n *node, m members, depth int) {
	switch n.kind {
	case "record.create", "record.update":
		n.entity = m.text("entity", true)
		n.content = m.object("fields", "an object of fields", n.kind == "record.update")
	case "record.get", "record.delete":
		n.entity = m.text("entity", true)
	case "record.list":
		n.entity = m.text("entity", true)
		n.where = m.object("where", "an object of fields and values", false)
		n.limit = min(m.whole("limit", 1, 1_000_000, defaultListLimit), maxListLimit)
	case "component":
		d.component(n, m)
	case "set":
		n.content = m.object("values", "an object of names and values", true)
		for i := range n.content.members {
			name := n.content.members[i].name
			d.name(member(member(n.path, "values"), name), name)
		}
	case "output":
		n.content = m.object("set", "an object of outputs and values", true)
	case "if":
		d.condition(n, m)
		n.then = m.nodes("then", depth+1, m.o.get("else") == nil)
		n.otherwise = m.nodes("else", depth+1, false)
	case "each":
		n.in, n.as = m.text("in", true), m.text("as", true)
		if n.as != "" {
			d.name(member(n.path, "as"), n.as)
		}
		n.then = m.nodes("do", depth+1, true)
	case "fail":
		n.message, n.code = m.text("message", true), m.text("code", false)
		if n.code != "" && !codeRule.MatchString(n.code) {
			d.problems.add(member(n.path, "code"), "expected a code like OUT_OF_STOCK, found %s", show(n.code))
		}
		n.status = m.whole("status", 400, 599, 422)
	}
}

func (d *decoder) condition(n *node, m members) {
	v, path, ok := m.get("when", "an expression like inputs.score > 50", true)
	if !ok {
		return
	}
	switch v.(type) {
	case string, bool:
		n.when = v
	default:
		m.wrong(path, "an expression like inputs.score > 50", v)
	}
}

func (d *decoder) component(n *node, m members) {
	n.component = m.text("component", true)
	n.content = &object{}
	if given := m.o.get("inputs"); given != nil {
		if text, whole := (*given).(string); whole {
			n.whole = text
		} else {
			n.content = m.object("inputs", "an object of inputs and values", false)
		}
	}
	outputs := m.object("outputs", "an object of return paths and declared outputs", false)
	for i := range outputs.members {
		e := &outputs.members[i]
		name, ok := e.value.(string)
		if !ok {
			m.wrong(member(member(n.path, "outputs"), e.name), "the name of a declared output", e.value)
			continue
		}
		n.outputs = append(n.outputs, [2]string{e.name, name})
	}
}
