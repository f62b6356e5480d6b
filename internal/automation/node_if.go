package automation

var ifType = nodeType{"if", []string{"when", "then", "else"}, false, func() declaration { return &ifDecl{} }}

type ifDecl struct {
	when            any // a text or a bool
	then, otherwise []*node
}

func (d *ifDecl) decode(m members, _ *node, depth int) {
	const expected = "an expression like inputs.score > 50"
	if v, path, ok := m.get("when", expected, true); ok {
		switch v.(type) {
		case string, bool:
			d.when = v
		default:
			m.wrong(path, expected, v)
		}
	}
	d.then = m.nodes("then", depth+1, m.o.get("else") == nil)
	d.otherwise = m.nodes("else", depth+1, false)
}

func (d *ifDecl) children() []*node { return append(d.then[:len(d.then):len(d.then)], d.otherwise...) }

func (d *ifDecl) compile(c *compiler, n *node) executor {
	return &ifNode{when: c.when(d.when, member(n.path, "when")), then: c.list(d.then), otherwise: c.list(d.otherwise)}
}

type ifNode struct {
	when            expression
	then, otherwise []*instruction
}

func (n *ifNode) execute(r *run) (any, error) {
	yes, err := n.when.truth(r)
	if err != nil {
		return nil, err
	}
	r.depth++
	if yes {
		err = r.list(n.then)
	} else {
		err = r.list(n.otherwise)
	}
	r.depth--
	return yes, err
}
