package automation

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/fault"
)

// outputPath is a place in the outputs: a declared output and a path from it.
type outputPath struct {
	output int
	path   []segment
	text   string
}

// overlap adds a problem when one node sets a place and a place within it, because
// the result would depend on the order in which they are set. Two paths of a
// component's result may be mapped to one place, because one of them may lead
// nowhere.
func (c *compiler) overlap(first, second *outputPath, at string) {
	n := min(len(first.path), len(second.path))
	if len(first.path) == len(second.path) {
		return
	}
	same := func(a, b segment) bool { return a.name == b.name }
	if c.stored || first.text == "" || first.output != second.output || !slices.EqualFunc(first.path[:n], second.path[:n], same) {
		return
	}
	c.problems.add(at, "%s and %s overlap: expected places of which none lies in another", show(first.text), show(second.text))
}

// outputPath parses a dot-path whose first step is a declared output.
func (c *compiler) outputPath(text, at string) (place outputPath, ok bool) {
	path, problem := parsePath(text)
	if problem != "" {
		c.problems.add(at, "%s", problem)
		return place, false
	}
	i := slices.Index(c.outputs, path[0].name)
	if i < 0 && c.lost.outputs {
		return place, false
	}
	if i < 0 {
		c.problems.add(at, "there is no output %s in outputs: expected %s", show(path[0].name), orList(c.outputs))
		return place, false
	}
	return outputPath{output: i, path: path[1:], text: text}, true
}

// put sets an output. It creates objects that are missing on the path. In a list, the
// index must exist or be the next one. put returns a mistake for any other value on
// the path, and errLong, errDeep and the errors of hold.
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
			if !container.owned { // it can be read elsewhere, too
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

// place returns the place of a member's value, and adds the member when it is
// missing.
func (o *object) place(name string) *any {
	if at := o.get(name); at != nil {
		return at
	}
	o.set(name, nil)
	return o.get(name)
}

// result returns the JSON object of the declared outputs, or EXECUTION_ERROR when it
// is too long or too deeply nested.
func (r *run) result(f *Flow) (jsontext.Value, error) {
	outputs := &object{members: make([]entry, len(f.output))}
	for i, name := range f.output {
		outputs.members[i] = entry{name, r.outputs[i]}
	}
	text, err := encode(make([]byte, 0, 256), outputs, MaxOutput, -1) // the object of the outputs does not count as a level
	if err != nil {
		return nil, fault.New(fault.ExecutionError, "The outputs cannot be written: %v: expected at most %d MiB and %d levels.", err, MaxOutput>>20, MaxDepth)
	}
	return text, nil
}
