package automation

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

var eachType = nodeType{"each", []string{"in", "as", "do"}, false, func() declaration { return &eachDecl{} }}

type eachDecl struct {
	in, as string
	do     []*node
}

func (d *eachDecl) decode(m members, n *node, depth int) {
	d.in, d.as = m.text("in", true), m.text("as", true)
	if d.as != "" {
		m.name(member(n.path, "as"), d.as)
	}
	d.do = m.nodes("do", depth+1, true)
}

func (d *eachDecl) children() []*node { return d.do }

func (d *eachDecl) compile(c *compiler, n *node) executor {
	path := member(n.path, "as")
	if c.ids[d.as] != "" {
		c.problems.add(path, "%s is the id of the node at %s", d.as, c.ids[d.as])
	}
	if slices.ContainsFunc(c.items, func(i itemName) bool { return i.name == d.as }) {
		c.problems.add(path, "%s is the name of an each around this one", d.as)
	}
	made := &eachNode{}
	in := member(n.path, "in")
	if strings.Contains(d.in, "{{") {
		made.in = c.template(d.in, in)
	} else { // a text is never a list, so this is a path without braces
		made.in = c.reading(strings.TrimSpace(d.in), in)
	}
	made.first = c.slot()
	if list := c.shapeOf(made.in); list != nil && list.list {
		c.shapes[made.first] = list.items
	}
	c.allItems[d.as] = true
	c.items = append(c.items, itemName{d.as, made.first})
	made.do = c.list(d.do)
	c.items = c.items[:len(c.items)-1]
	made.last = c.slots
	return made
}

type eachNode struct {
	in          template
	first, last int // slots: the item's, then those of the nodes inside
	do          []*instruction
}

func (n *eachNode) execute(r *run) (any, error) {
	v, err := n.in.value(r)
	if err == nil {
		err = r.open(&v)
	}
	if err != nil {
		return nil, err
	}
	list, ok := v.([]any)
	if !ok {
		return nil, &skipped{ref: n.source(), kind: kindOf(v)}
	}
	if len(list) > MaxIterations {
		return nil, mistakef("the list has %d items: expected at most %d", len(list), MaxIterations)
	}
	r.depth++
	defer func() { r.depth-- }()
	for i := range list {
		clear(r.slots[n.first:n.last])
		r.slots[n.first] = slot{list[i], true}
		if err := r.list(n.do); err != nil {
			return nil, err
		}
		if _, closed := list[i].(jsontext.Value); closed { // the nodes may have decoded it
			list[i] = r.slots[n.first].value
		}
	}
	return float64(len(list)), nil
}

// source returns the list's path, for the trace.
func (n *eachNode) source() *ref {
	if at, ok := n.in.(*ref); ok {
		return &ref{text: at.text}
	}
	return &ref{text: "in"}
}
