package automation

var setType = nodeType{"set", []string{"values"}, false, func() declaration { return &setDecl{} }}

type setDecl struct{ values *object }

func (d *setDecl) decode(m members, n *node, _ int) {
	d.values = m.object("values", "an object of names and values", true)
	for _, name := range d.assigned() {
		m.name(member(member(n.path, "values"), name), name)
	}
}

func (d *setDecl) assigned() []string {
	names := make([]string, len(d.values.members))
	for i := range d.values.members {
		names[i] = d.values.members[i].name
	}
	return names
}

func (d *setDecl) compile(c *compiler, n *node) executor {
	made := &setNode{names: d.assigned()}
	for i, name := range made.names {
		made.slots = append(made.slots, c.vars[name])
		made.values = append(made.values, c.template(d.values.members[i].value, member(member(n.path, "values"), name)))
	}
	return made
}

type setNode struct {
	names  []string
	slots  []int
	values []template
}

// execute reads all values before it sets one: within a set there is no order.
func (n *setNode) execute(r *run) (any, error) {
	made := &object{members: make([]entry, len(n.values))}
	for i := range n.values {
		v, err := n.values[i].value(r)
		if err != nil {
			return nil, err
		}
		made.members[i] = entry{n.names[i], v}
	}
	for i, s := range n.slots {
		r.slots[s].value = made.members[i].value
	}
	return made, nil
}
