package automation

import (
	"slices"
	"strings"

	"gatehouse/internal/fault"
	"gatehouse/internal/inputs"
)

// Names says which names of the tenant a flow may use. A nil function knows all.
type Names struct {
	// Entity reports whether there is such an entity type.
	Entity func(entity string) bool
	// Field reports whether a record of the entity type has a field that create
	// and update may set; Filter, whether where may ask for it.
	Field, Filter func(entity, field string) bool
	// Component reports whether there is such a logic component.
	Component func(name string) bool
}

// Flow is a compiled definition. Many runs may use it at once.
type Flow struct {
	name   string
	inputs []inputs.Declaration
	output []string
	nodes  []*instruction
	scope  *scope
	size   int // how many steps a trace most likely has
}

// instruction is a compiled node.
type instruction struct {
	name string // its id, or else its path
	kind string
	slot int // of its result, or noResult
	do   executor
}

// executor is what a node does: it returns a result for the trace and, where
// the instruction has a slot, for paths.
type executor interface {
	execute(r *run) (any, error)
}

// Compile checks a definition's names, templates and conditions and makes it
// ready to run. There is a Flow exactly when there are no problems.
func Compile(def *Definition, names Names) (*Flow, Problems) {
	return compile(def, &compiler{names: names})
}

// Restore is Compile for a definition that was stored: which of its names mean
// anything was checked then, and what was taken once goes on as it did.
func Restore(def *Definition) (*Flow, Problems) {
	return compile(def, &compiler{stored: true})
}

func compile(def *Definition, c *compiler) (*Flow, Problems) {
	c.scope, c.asNames = newScope(def), map[string]bool{}
	for _, d := range def.Outputs {
		c.outputs = append(c.outputs, d.Name)
	}
	c.findIDs(def.nodes)
	nodes := c.list(def.nodes)
	if len(c.problems) > 0 {
		return nil, c.problems
	}
	return &Flow{name: def.Name, inputs: def.InputSchema, output: c.outputs, nodes: nodes, scope: c.scope, size: min(len(c.ids)+len(nodes), 32)}, nil
}

type compiler struct {
	*scope
	names    Names
	stored   bool // the definition was taken before
	outputs  []string
	asNames  map[string]bool
	problems Problems
}

func (c *compiler) list(nodes []*node) []*instruction {
	made := make([]*instruction, len(nodes))
	for i, n := range nodes {
		made[i] = &instruction{name: n.id, kind: n.kind, slot: noResult}
		if n.id == "" {
			made[i].name = n.path
		}
		made[i].do = c.node(n)
		if strings.HasPrefix(n.kind, "record.") || n.kind == "component" {
			made[i].slot = c.slot()
		}
		if n.id != "" {
			c.nodes[n.id] = made[i].slot
		}
	}
	return made
}

func (c *compiler) node(n *node) executor {
	if n.entity != "" && c.names.Entity != nil && !c.names.Entity(n.entity) {
		c.problems.add(member(n.path, "entity"), "there is no entity type %s", show(n.entity))
		n = withoutFields(n)
	}
	switch n.kind {
	case "record.create":
		return &recordNode{op: Create, entity: n.entity, fields: c.fields(n, n.content, "fields", c.names.Field)}
	case "record.get":
		return &recordNode{op: Get, entity: n.entity, id: c.template(n.record, member(n.path, "record_id"))}
	case "record.list":
		return &recordNode{op: List, entity: n.entity, limit: n.limit, fields: c.fields(n, n.where, "where", c.names.Filter)}
	case "record.update":
		return &recordNode{op: Update, entity: n.entity, id: c.template(n.record, member(n.path, "record_id")),
			fields: c.fields(n, n.content, "fields", c.names.Field)}
	case "record.delete":
		return &recordNode{op: Delete, entity: n.entity, id: c.template(n.record, member(n.path, "record_id"))}
	case "component":
		return c.component(n)
	case "set":
		return c.set(n)
	case "output":
		return c.output(n)
	case "if":
		return &ifNode{when: c.when(n.when, member(n.path, "when")), then: c.list(n.then), otherwise: c.list(n.otherwise)}
	case "each":
		return c.each(n)
	}
	fail := &failNode{message: c.template(n.message, member(n.path, "message")), code: fault.Code(n.code), status: n.status}
	if n.code == "" {
		fail.code = fault.ExecutionError
	}
	return fail
}

// withoutFields is a node whose fields nobody can judge.
func withoutFields(n *node) *node {
	copied := *n
	copied.entity = ""
	return &copied
}

func (c *compiler) fields(n *node, given *object, name string, known func(entity, field string) bool) []namedTemplate {
	path := member(n.path, name)
	made := make([]namedTemplate, len(given.members))
	for i := range given.members {
		e := &given.members[i]
		at := member(path, e.name)
		if n.entity != "" && known != nil && !known(n.entity, e.name) {
			if name == "where" {
				c.problems.add(at, "%s has no indexed or unique field %s", n.entity, show(e.name))
			} else {
				c.problems.add(at, "%s has no field %s that can be set", n.entity, show(e.name))
			}
		}
		made[i] = namedTemplate{e.name, c.template(e.value, at)}
	}
	return made
}

func (c *compiler) component(n *node) executor {
	if c.names.Component != nil && !c.names.Component(n.component) {
		c.problems.add(member(n.path, "component"), "there is no logic component %s", show(n.component))
	}
	made := &componentNode{component: n.component}
	if n.whole != "" {
		made.inputs = c.template(n.whole, member(n.path, "inputs"))
	} else {
		made.inputs = c.template(n.content, member(n.path, "inputs"))
	}
	for _, pair := range n.outputs {
		at := member(member(n.path, "outputs"), pair[0])
		path, problem := parsePath(pair[0])
		if problem != "" {
			c.problems.add(at, "%s", problem)
			continue
		}
		if place, ok := c.outputPath(pair[1], at); ok {
			for i := range made.outputs {
				c.overlap(&made.outputs[i].to, &place, at)
			}
			made.outputs = append(made.outputs, mapping{path, place})
		}
	}
	return made
}

func (c *compiler) set(n *node) executor {
	made := &setNode{names: make([]string, len(n.content.members))}
	for i := range n.content.members {
		e := &n.content.members[i]
		made.names[i] = e.name
		made.slots = append(made.slots, c.vars[e.name])
		made.values = append(made.values, c.template(e.value, member(member(n.path, "values"), e.name)))
	}
	return made
}

func (c *compiler) output(n *node) executor {
	made := &outputNode{}
	for i := range n.content.members {
		e := &n.content.members[i]
		at := member(member(n.path, "set"), e.name)
		place, ok := c.outputPath(e.name, at)
		for i := range made.places {
			if ok {
				c.overlap(&made.places[i], &place, at)
			}
		}
		made.names = append(made.names, e.name)
		made.places = append(made.places, place)
		made.values = append(made.values, c.template(e.value, at))
	}
	return made
}

// overlap refuses that one node sets a place and a place within it: what it
// would leave there depends on the order in which they are set. Two paths of a
// component's answer may lead to one place, for one may lead nowhere.
func (c *compiler) overlap(first, second *outputPath, at string) {
	n := min(len(first.path), len(second.path))
	if len(first.path) == len(second.path) {
		return
	}
	same := func(a, b segment) bool { return a.name == b.name }
	if c.stored || first.text == "" || first.output != second.output || !slices.EqualFunc(first.path[:n], second.path[:n], same) {
		return
	}
	c.problems.add(at, "%s and %s overlap: expected places of which none lies in another", show(first.text), show(second.text))
}

// outputPath is a dot-path whose first step is a declared output.
func (c *compiler) outputPath(text, at string) (place outputPath, ok bool) {
	path, problem := parsePath(text)
	if problem != "" {
		c.problems.add(at, "%s", problem)
		return place, false
	}
	i := slices.Index(c.outputs, path[0].name)
	if i < 0 {
		c.problems.add(at, "there is no output %s in outputs: expected %s", show(path[0].name), orList(c.outputs))
		return place, false
	}
	return outputPath{output: i, path: path[1:], text: text}, true
}

func (c *compiler) each(n *node) executor {
	path := member(n.path, "as")
	if c.ids[n.as] != "" {
		c.problems.add(path, "%s is the id of the node at %s", n.as, c.ids[n.as])
	}
	if slices.ContainsFunc(c.items, func(i itemName) bool { return i.name == n.as }) {
		c.problems.add(path, "%s is the name of an each around this one", n.as)
	}
	made := &eachNode{}
	in := member(n.path, "in")
	if strings.Contains(n.in, "{{") {
		made.in = c.template(n.in, in)
	} else { // a text is no list: this is the path alone
		made.in = c.path(strings.TrimSpace(n.in), in)
	}
	made.first = c.slot()
	c.asNames[n.as] = true
	c.items = append(c.items, itemName{n.as, made.first})
	made.do = c.list(n.then)
	c.items = c.items[:len(c.items)-1]
	made.last = c.slots
	return made
}
