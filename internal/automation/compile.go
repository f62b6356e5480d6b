package automation

import (
	"cmp"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/inputs"
)

// Names says which names of the tenant a flow may use, and what is refused in every run.
// A nil function accepts all. A reason is for the author, "" if there is none.
type Names struct {
	// Entity reports whether there is such an entity type. The other functions are
	// called only for one that there is.
	Entity func(entity string) bool
	// Field reports whether create and update may set a field of the entity type;
	// Filter, whether where may name it; Unique, whether an upsert may find a record by it.
	Field, Filter, Unique func(entity, field string) bool
	// Required returns the fields that a new record must have.
	Required func(entity string) []string
	// Value returns the reason why a field cannot be set to v.
	Value func(entity, field string, v jsontext.Value) (reason string)
	// Where returns the reason why a list cannot have a condition.
	Where func(entity string, c Condition) (reason string)
	// Sort returns the reason why a list cannot be in an order; Search, why it cannot
	// be searched for words, which are "" if only the run has them.
	Sort, Search func(entity, text string) (reason string)
	// TakesList reports whether an operator of where has a list of operands.
	TakesList func(operator string) bool
	// Member returns what a member of a record holds, and whether records have it;
	// Members, the names of all members.
	Member  func(entity, name string) (Holds, bool)
	Members func(entity string) []string
	// Component reports whether there is such a logic component.
	Component func(name string) bool
	// Inputs returns what a component declares.
	Inputs func(component string) []inputs.Declaration
}

// Condition is what a list asks of a field.
type Condition struct {
	Field, Operator string
	// Operands are texts, numbers, true or false. Known is false if only the run has them.
	Operands []jsontext.Value
	Known    bool
}

// Holds says what a member of a record holds.
type Holds int

// What a member of a record holds.
const (
	HoldsAnything Holds = iota // an object or a list with members of its own
	HoldsOne                   // a text, a number, true or false
	HoldsList                  // a list of texts
)

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
// compiles it. It returns either a Flow or problems; neither for the part of a definition
// (DecodePartly) in which there are none.
func Compile(def *Definition, names Names) (*Flow, Problems) {
	return compile(def, &compiler{names: names})
}

// Restore is Compile for a stored definition, which was checked when it was stored.
// It does not check names of the tenant again, nor rules that were added since.
func Restore(def *Definition) (*Flow, Problems) {
	return compile(def, &compiler{stored: true})
}

func compile(def *Definition, c *compiler) (*Flow, Problems) {
	c.lost = def.lost
	c.scope, c.allItems, c.shapes, c.must, c.room = newScope(def), map[string]bool{}, map[int]*shape{}, def.FailOnSkip, MaxExpressions
	for _, d := range def.Outputs {
		c.outputs = append(c.outputs, d.Name)
	}
	c.findIDs(def.nodes)
	nodes := c.list(def.nodes)
	if len(c.problems) > 0 || def.partial {
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
	shapes   map[int]*shape  // what is known of results and items, by slot
	allItems map[string]bool // the names of all items that were compiled so far
	lost     lost            // what a partial definition may have named
	problems Problems
}

func (c *compiler) list(nodes []*node) []*instruction {
	made := make([]*instruction, len(nodes))
	for i, n := range nodes {
		if n.broken {
			c.aside(n)
			continue
		}
		made[i] = &instruction{name: cmp.Or(n.id, n.path), kind: n.typ.name, slot: noResult, must: n.onSkip == FailOnSkip || c.must && n.onSkip == ""}
		made[i].do = n.compile(c, n)
		if n.typ.readable {
			made[i].slot = c.slot()
		}
		if d, ok := n.declaration.(shaper); ok && !c.stored {
			c.shapes[made[i].slot] = d.shape(c)
		}
		if n.id != "" {
			c.nodes[n.id] = made[i].slot
		}
	}
	return made
}

// knows reports whether there is an entity type.
func (c *compiler) knows(entity string) bool {
	return entity != "" && (c.names.Entity == nil || c.names.Entity(entity))
}

// aside compiles the nodes inside one that has not the right form, for their problems,
// and lets other nodes read its result.
func (c *compiler) aside(n *node) {
	if d, ok := n.declaration.(*eachDecl); ok {
		c.allItems[d.as] = true
		c.items = append(c.items, itemName{d.as, c.slot()})
		defer func() { c.items = c.items[:len(c.items)-1] }()
	}
	c.list(n.children())
	if n.id != "" {
		c.nodes[n.id] = c.slot()
	}
}
