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
	made := &setNode{}
	made.values = c.namedTemplates(d.values, member(n.path, "values"), func(_, name string) {
		made.slots = append(made.slots, c.vars[name])
	})
	return made
}

type setNode struct {
	slots  []int
	values objectOf
}

// execute evaluates all values before it sets a var: the values of one set do
// not see each other.
func (n *setNode) execute(r *run) (any, error) {
	made, err := n.values.evaluate(r)
	if err != nil {
		return nil, err
	}
	for i, s := range n.slots {
		r.slots[s].value = made.members[i].value
	}
	return made, nil
}
