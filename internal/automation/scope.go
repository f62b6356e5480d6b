package automation

import (
	"slices"

	"gatehouse/internal/inputs"
)

// scope has the meaning of names at one place of a flow.
type scope struct {
	inputs    []inputs.Declaration // their slots are 0, 1, …
	vars      map[string]int
	event     int            // its slot
	allInputs int            // the slot of inputs as an object
	nodes     map[string]int // the nodes before the place; noResult for one without a result
	ids       map[string]string
	items     []itemName // of the enclosing each nodes, outermost first
	slots     int

	usesEvent bool
}

type itemName struct {
	name string
	slot int
}

const noResult = -1

// newScope assigns slots to the names that exist everywhere: inputs, vars, the event.
func newScope(def *Definition) *scope {
	s := &scope{inputs: def.InputSchema, vars: map[string]int{}, nodes: map[string]int{}, ids: map[string]string{}}
	s.slots = len(s.inputs)
	s.event, s.allInputs = s.slot(), s.slot()
	s.findVars(def.nodes)
	return s
}

func (s *scope) slot() int {
	s.slots++
	return s.slots - 1
}

func (s *scope) findVars(nodes []*node) {
	for _, n := range nodes {
		if a, ok := n.declaration.(assigner); ok {
			for _, name := range a.assigned() {
				if _, known := s.vars[name]; !known {
					s.vars[name] = s.slot()
				}
			}
		}
		s.findVars(n.children())
	}
}

// findIDs collects every id with its path. It adds a problem for one that occurs twice.
func (c *compiler) findIDs(nodes []*node) {
	for _, n := range nodes {
		if n.id != "" {
			if first, twice := c.ids[n.id]; twice {
				c.problems.add(member(n.path, "id"), "the id %s is used twice, first at %s", n.id, first)
			} else {
				c.ids[n.id] = n.path
			}
		}
		c.findIDs(n.children())
	}
}

// resolve returns the ref of a path, or a problem for its author. text is the path as
// written.
func (c *compiler) resolve(path []segment, text string) (_ *ref, problem string) {
	root := path[0].name
	if root == "nodes" && len(path) > 1 { // nodes.create.id is the long form of create.id
		path = path[1:]
		if _, known := c.ids[path[0].name]; !known && !c.lost.nodes {
			return nil, "there is no node " + show(path[0].name)
		}
		root = path[0].name
	} else {
		switch root {
		case "inputs":
			return c.resolveInput(path, text)
		case "vars":
			return c.resolveVar(path, text)
		case "event":
			if len(path) > 1 && path[1].name != "id" && path[1].name != "kind" {
				return nil, "expected event.id or event.kind, found " + show(text)
			}
			c.usesEvent = true
			return &ref{slot: c.event, path: path[1:], text: text}, ""
		}
		for i := len(c.items) - 1; i >= 0; i-- {
			if c.items[i].name == root {
				return c.read(c.items[i].slot, root, path[1:], text)
			}
		}
	}
	slot, before := c.nodes[root]
	switch {
	case before && slot == noResult:
		return nil, "the node " + root + " has no result to read: only " + readableTypes() + " have"
	case before:
		return c.read(slot, root, path[1:], text)
	case c.ids[root] != "":
		return nil, "the node " + root + " comes later, at " + c.ids[root]
	case c.allItems[root]:
		return nil, show(root) + " exists only inside its each"
	}
	if c.lost.nodes {
		return c.unknown(text), ""
	}
	return nil, "unknown name " + show(root) + ": expected inputs, vars, event or the id of a node before this one"
}

// unknown returns a ref for a name that may be in a part of the definition that is not right.
// The flow does not run.
func (c *compiler) unknown(text string) *ref { return &ref{slot: c.slot(), text: text} }

func (c *compiler) resolveInput(path []segment, text string) (*ref, string) {
	if len(path) == 1 {
		return &ref{slot: c.allInputs, text: text}, ""
	}
	i := slices.IndexFunc(c.inputs, func(d inputs.Declaration) bool { return d.Name == path[1].name })
	if i < 0 && c.lost.inputs {
		return c.unknown(text), ""
	}
	if i < 0 {
		names := make([]string, len(c.inputs))
		for i := range c.inputs {
			names[i] = c.inputs[i].Name
		}
		return nil, "there is no input " + show(path[1].name) + " in input_schema: expected " + orList(names)
	}
	return &ref{slot: i, path: path[2:], text: text}, ""
}

func (c *compiler) resolveVar(path []segment, text string) (*ref, string) {
	if len(path) == 1 {
		return nil, "expected the name of a var, like vars.total"
	}
	slot, known := c.vars[path[1].name]
	if !known && c.lost.nodes {
		return c.unknown(text), ""
	}
	if !known {
		return nil, "no set node sets vars." + path[1].name
	}
	return &ref{slot: slot, path: path[2:], text: text}, ""
}
