package automation

import "strings"

// shape is what is known of a value before the run. A nil shape is a value of which
// nothing is known.
type shape struct {
	what string // for a message, like "a record of contact"
	// member returns the shape of a member, and whether there can be such a member;
	// names, the members that there can be. They are nil for what is no object.
	member func(name string) (of *shape, ok bool)
	names  func() []string
	list   bool
	items  *shape // of a list
}

// shaper is a declaration that knows of its result.
type shaper interface{ shape(c *compiler) *shape }

// one is the shape of a text, a number, true or false.
var one = &shape{what: "a text, a number, true or false"}

// listOfItems returns the shape of a list.
func listOfItems(items *shape) *shape { return &shape{what: "a list", list: true, items: items} }

// objectWith returns the shape of an object with members, given as their names and shapes in turn.
func objectWith(what string, names []string, shapes ...*shape) *shape {
	return &shape{what: what, names: func() []string { return names }, member: func(name string) (*shape, bool) {
		for i := range names {
			if names[i] == name {
				return shapes[i], true
			}
		}
		return nil, false
	}}
}

// recordShape returns the shape of a record of an entity type, nil if there is no such type.
func (c *compiler) recordShape(entity string) *shape {
	if c.names.Member == nil || c.names.Members == nil || !c.knows(entity) {
		return nil
	}
	return &shape{what: "a record of " + entity, names: func() []string { return c.names.Members(entity) }, member: func(name string) (*shape, bool) {
		holds, ok := c.names.Member(entity, name)
		switch holds {
		case HoldsOne:
			return one, ok
		case HoldsList:
			return listOfItems(one), ok
		}
		return nil, ok
	}}
}

// follow returns the shape at the end of a path, or why the path can lead nowhere (contract
// F7). root is the path's beginning as it is written.
func (s *shape) follow(root string, path []segment) (end *shape, problem string) {
	for i := range path {
		step := &path[i]
		switch {
		case s == nil:
			return nil, ""
		case s.list && step.index < 0:
			return nil, root + " is a list and has no member " + show(step.name) + ": expected the place of an item, like " + root + ".0"
		case s.list:
			s = s.items
		case s.member == nil:
			return nil, root + " is " + s.what + " and has no member " + show(step.name)
		default:
			of, ok := s.member(step.name)
			if !ok {
				return nil, root + " is " + s.what + " and has no member " + show(step.name) + ": expected " + orList(s.names())
			}
			s = of
		}
		root += "." + step.name
	}
	return s, ""
}

// shapeOf returns the shape of what a template reads, nil for one that is no path.
func (c *compiler) shapeOf(t template) *shape {
	at, ok := t.(*ref)
	if !ok {
		return nil
	}
	end, _ := c.shapes[at.slot].follow("", at.path)
	return end
}

// read returns the ref of a path into a slot that a node or an each sets, or the problem
// of one that leads nowhere. text is the whole path as it is written.
func (c *compiler) read(slot int, root string, path []segment, text string) (*ref, string) {
	if strings.HasPrefix(text, "nodes.") {
		root = "nodes." + root
	}
	_, problem := c.shapes[slot].follow(root, path)
	return &ref{slot: slot, path: path, text: text}, problem
}
