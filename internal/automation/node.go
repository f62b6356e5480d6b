package automation

import (
	"regexp"
	"slices"
	"strings"
)

// nodeType is one type of node. Its file, node_NAME.go, has its declaration, which
// decodes and checks what an author wrote, and its executor.
type nodeType struct {
	name string
	// members are the names of a node's members besides id, type and on_skip. For a type with
	// record_id, decoder.identify reads the record's id.
	members []string
	// readable says that paths may read the node's result.
	readable bool
	// declare returns an empty declaration of the type.
	declare func() declaration
}

// nodeTypes has every type of node, in the order in which messages list them.
var nodeTypes = []nodeType{
	recordCreate, recordGet, recordList, recordUpdate, recordUpsert, recordDelete, recordShare, recordUnshare,
	componentType, setType, outputType, ifType, eachType, failType,
}

// declaration is a node as its author wrote it, without the members that all types
// have.
type declaration interface {
	// decode reads the node's members. It adds a problem for each that has not the
	// right form. depth is that of the node.
	decode(m members, n *node, depth int)
	// compile checks names, templates and conditions, and returns the executor. It
	// adds a problem for each mistake; then the executor is not used.
	compile(c *compiler, n *node) executor
}

// parent is a declaration that contains nodes.
type parent interface{ children() []*node }

// assigner is a declaration that sets vars.
type assigner interface{ assigned() []string }

// executor runs a node. execute returns a result for the trace and, if the type is
// readable, for paths. The error is a *skipped, a mistake, errLong, errDeep, a
// *fault.Error, or one of the host.
type executor interface {
	execute(r *run) (any, error)
}

// node is a decoded node: the members that all types have, and its declaration.
type node struct {
	id, path string
	onSkip   string // "" as the flow has it
	record   any    // the record's id, a text, if the type has record_id
	typ      *nodeType
	declaration
	broken bool // it has not the right form; nodes inside it may have
}

// children returns the nodes inside this one.
func (n *node) children() []*node {
	if p, ok := n.declaration.(parent); ok {
		return p.children()
	}
	return nil
}

// typeNamed returns the type with a name, or nil.
func typeNamed(name string) *nodeType {
	if i := slices.IndexFunc(nodeTypes, func(t nodeType) bool { return t.name == name }); i >= 0 {
		return &nodeTypes[i]
	}
	return nil
}

// typeNames returns the names of all types.
func typeNames() []string {
	names := make([]string, len(nodeTypes))
	for i := range nodeTypes {
		names[i] = nodeTypes[i].name
	}
	return names
}

// readableTypes lists the types whose results can be read, with one name for the
// types of records: "record.* and component".
func readableTypes() string {
	var names []string
	for i := range nodeTypes {
		name, _, family := strings.Cut(nodeTypes[i].name, ".")
		if family {
			name += ".*"
		}
		if nodeTypes[i].readable && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, " and ")
}

// idRule is the form of names that an author chooses for nodes, vars and items. A
// condition cannot read a name with - in it.
var idRule = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// reserved are the names that have another meaning in paths and conditions.
var reserved = []string{"inputs", "vars", "event", "nodes", "outputs",
	"true", "false", "nil", "null", "and", "or", "not", "in", "let", "if", "else", "matches", "contains", "startsWith", "endsWith"}

// nodes decodes the list of nodes in a member. depth is that of its nodes.
func (m members) nodes(name string, depth int, required bool) []*node {
	before := len(m.problems)
	defer func(inside int) { m.inside = inside + len(m.problems) - before }(m.inside)
	list, path, ok := m.list(name, "a list of nodes", required)
	if !ok {
		return nil
	}
	if len(list) == 0 && required {
		m.problems.add(path, "expected at least one node")
	}
	if depth > MaxNesting {
		m.problems.add(path, "nodes are nested too deeply: expected at most %d levels", MaxNesting)
		m.lost.nodes = true
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
	before, inside := len(d.problems), d.inside
	defer func() {
		n.broken = len(d.problems)-before > d.inside-inside
		// What the node names may be lost with it.
		if _, names := n.declaration.(assigner); n.broken && (n.typ == nil || names || n.typ.name == eachType.name) {
			d.lost.nodes = true
		}
	}()
	o, ok := v.(*object)
	if !ok {
		d.problems.add(path, "expected a node as an object, found %s", kindOf(v))
		return n
	}
	name := members{d, o, path, "a node"}.text("type", true)
	if n.typ = typeNamed(name); n.typ == nil {
		if name != "" {
			d.problems.add(member(path, "type"), "unknown type %s: expected %s", show(name), orList(typeNames()))
		}
		return n
	}
	m := d.members(o, path, name, append([]string{"id", "type", "on_skip"}, n.typ.members...)...)
	d.identify(n, m)
	n.onSkip = m.choice("on_skip", OnSkip...)
	n.declaration = n.typ.declare()
	n.decode(m, n, depth)
	return n
}

// identify reads a node's id and, if its type has record_id, the record's. An id with
// {{…}} in it is the record's (contract F2).
func (d *decoder) identify(n *node, m members) {
	n.id = m.text("id", false)
	path := member(n.path, "id")
	if slices.Contains(n.typ.members, "record_id") {
		if given := m.o.get("record_id"); given != nil {
			n.record = m.text("record_id", true)
		} else if strings.Contains(n.id, "{{") {
			n.record, n.id = n.id, ""
		} else {
			d.problems.add(member(n.path, "record_id"), "%s needs record_id: expected the id of a record, like {{inputs.id}}", n.typ.name)
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
