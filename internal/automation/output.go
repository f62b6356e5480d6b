package automation

import "slices"

// outputPath is a place in the outputs: a declared output and what goes on from it.
type outputPath struct {
	output int
	path   []segment
	text   string
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

// put sets an output. What is missing on the way becomes an object; a list takes
// an index it has, or the next one; anything else on the way is a mistake.
func (r *run) put(place *outputPath, v any) error {
	at := &r.outputs[place.output]
	for _, step := range place.path {
		if err := r.open(at); err != nil {
			return err
		}
		switch container := (*at).(type) {
		case nil:
			own := &object{owned: true}
			*at = own
			at = own.place(step.name)
		case *object:
			if !container.owned { // others read it too
				if err := r.spend(valueSize * len(container.members)); err != nil {
					return err
				}
				container = &object{members: slices.Clone(container.members), owned: true}
				*at = container
			}
			at = container.place(step.name)
		case []any:
			if step.index < 0 || step.index > len(container) {
				return mistakef("output %s: the list has %d items, and no place %s", place.text, len(container), step.name)
			}
			if err := r.spend(valueSize * (len(container) + 1)); err != nil {
				return err
			}
			own := slices.Clone(container)
			if step.index == len(own) {
				own = append(own, nil)
			}
			*at = own
			at = &own[step.index]
		default:
			return mistakef("output %s: %s has no members", place.text, kindOf(*at))
		}
	}
	*at = v
	return nil
}

// place is where a member's value is, which is made when it is not there.
func (o *object) place(name string) *any {
	if at := o.get(name); at != nil {
		return at
	}
	o.set(name, nil)
	return o.get(name)
}
