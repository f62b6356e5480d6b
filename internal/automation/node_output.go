package automation

var outputType = nodeType{"output", []string{"set"}, false, func() declaration { return &outputDecl{} }}

type outputDecl struct{ set *object }

func (d *outputDecl) decode(m members, _ *node, _ int) {
	d.set = m.object("set", "an object of outputs and values", true)
}

func (d *outputDecl) compile(c *compiler, n *node) executor {
	made := &outputNode{}
	made.values = c.namedTemplates(d.set, member(n.path, "set"), func(at, name string) {
		place, ok := c.outputPath(name, at)
		for i := range made.places {
			if ok {
				c.overlap(&made.places[i], &place, at)
			}
		}
		made.places = append(made.places, place)
	})
	return made
}

type outputNode struct {
	places []outputPath
	values objectOf
}

// execute evaluates all values before it sets an output. It sets outputs in the
// order of the node.
func (n *outputNode) execute(r *run) (any, error) {
	made, err := n.values.evaluate(r)
	if err != nil {
		return nil, err
	}
	for i := range n.places {
		if err := r.put(&n.places[i], made.members[i].value); err != nil {
			return nil, err
		}
	}
	return made, nil
}
