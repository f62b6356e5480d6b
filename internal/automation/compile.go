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
	// Filter, whether where may name it; Unique, whether an upsert may find a record by it.
	Field, Filter, Unique func(entity, field string) bool
	// Component reports whether there is such a logic component.
	Component func(name string) bool
}

// Flow is a compiled definition. It is safe for concurrent use.
type Flow struct {
	name   string
	inputs []inputs.Declaration
	output []string
	nodes  []*instruction
	scope  *scope
	size   int // likely number of steps of a trace
}

// instruction is a compiled node.
type instruction struct {
	name string // its id, or else its path
	kind string // its type
	slot int    // of its result, or noResult
	must bool   // it ends the run when it cannot read what it needs
	do   executor
}

// Compile checks a definition's names, templates and conditions (contract F7) and
// compiles it. It returns either a Flow or problems.
func Compile(def *Definition, names Names) (*Flow, Problems) {
	return compile(def, &compiler{names: names})
}

// Restore is Compile for a stored definition, which was checked when it was stored.
// It does not check names of the tenant again, nor rules that were added since.
func Restore(def *Definition) (*Flow, Problems) {
	return compile(def, &compiler{stored: true})
}

func compile(def *Definition, c *compiler) (*Flow, Problems) {
	c.scope, c.allItems, c.must, c.room = newScope(def), map[string]bool{}, def.FailOnSkip, MaxExpressions
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
	stored   bool // the definition was accepted before
	must     bool // nodes end the run when they cannot read what they need
	outputs  []string
	room     int             // of MaxExpressions, in bytes
	allItems map[string]bool // the names of all items that were compiled so far
	problems Problems
}

func (c *compiler) list(nodes []*node) []*instruction {
	made := make([]*instruction, len(nodes))
	for i, n := range nodes {
		made[i] = &instruction{name: cmp.Or(n.id, n.path), kind: n.typ.name, slot: noResult, must: n.onSkip == FailOnSkip || c.must && n.onSkip == ""}
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
