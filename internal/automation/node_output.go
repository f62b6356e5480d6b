package automation

var outputType = nodeType{"output", []string{"set"}, false, func() declaration { return &outputDecl{} }}

type outputDecl struct{ set *object }

func (d *outputDecl) decode(m members, _ *node, _ int) {
	d.set = m.object("set", "an object of outputs and values", true)
}

func (d *outputDecl) compile(c *compiler, n *node) executor {
	made := &outputNode{}
	for i := range d.set.members {
		e := &d.set.members[i]
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

type outputNode struct {
	names  []string
	places []outputPath
	values []template
}

// execute reads all values before it sets one, then sets them in order.
func (n *outputNode) execute(r *run) (any, error) {
	made := &object{members: make([]entry, len(n.values))}
	for i := range n.values {
		v, err := n.values[i].value(r)
		if err != nil {
			return nil, err
		}
		made.members[i] = entry{n.names[i], v}
	}
	for i := range n.places {
		if err := r.put(&n.places[i], made.members[i].value); err != nil {
			return nil, err
		}
	}
	return made, nil
}
