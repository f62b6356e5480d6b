package automation

import (
	"cmp"

	"gatehouse/internal/inputs"
)

// Names says which names of the tenant a flow may use. A nil function accepts all.
type Names struct {
	// Entity reports whether there is such an entity type.
	Entity func(entity string) bool
	// Field reports whether create and update may set a field of the entity type;
	// Filter, whether where may name it.
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
	size   int // number of steps that a trace most likely has
}

// instruction is a compiled node.
type instruction struct {
	name string // its id, or else its path
	kind string // its type
	slot int    // of its result, or noResult
	do   executor
}

// Compile checks a definition's names, templates and conditions (contract F7) and
// makes it ready to run. There is a Flow exactly when there are no problems.
func Compile(def *Definition, names Names) (*Flow, Problems) {
	return compile(def, &compiler{names: names})
}

// Restore is Compile for a stored definition, which was checked when it was stored:
// names of the tenant are not checked again, and rules that were added since do not
// stop it.
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
		made[i] = &instruction{name: cmp.Or(n.id, n.path), kind: n.typ.name, slot: noResult}
		made[i].do = n.compile(c, n)
		if n.typ.readable {
			made[i].slot = c.slot()
		}
		if n.id != "" {
			c.nodes[n.id] = made[i].slot
		}
	}
	return made
}
