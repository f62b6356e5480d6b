package automation

import (
	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/inputs"
)

var componentType = nodeType{"component", []string{"component", "inputs", "outputs"}, true, func() declaration { return &componentDecl{} }}

type componentDecl struct {
	component string
	inputs    any         // an object, or one template as a text
	outputs   [][2]string // return path, declared output
}

func (d *componentDecl) decode(m members, n *node, _ int) {
	d.component = m.text("component", true)
	d.inputs = &object{}
	if given := m.o.get("inputs"); given != nil {
		if text, whole := (*given).(string); whole && text != "" {
			d.inputs = text
		} else if !whole {
			d.inputs = m.object("inputs", "an object of inputs and values", false)
		}
	}
	outputs := m.object("outputs", "an object of return paths and declared outputs", false)
	for i := range outputs.members {
		e := &outputs.members[i]
		name, ok := e.value.(string)
		if !ok {
			m.wrong(member(member(n.path, "outputs"), e.name), "the name of a declared output", e.value)
			continue
		}
		d.outputs = append(d.outputs, [2]string{e.name, name})
	}
}

func (d *componentDecl) compile(c *compiler, n *node) executor {
	if c.names.Component != nil && !c.names.Component(d.component) {
		c.problems.add(member(n.path, "component"), "there is no logic component %s", show(d.component))
	}
	made := &componentNode{component: d.component, inputs: c.template(d.inputs, member(n.path, "inputs"))}
	if given, ok := d.inputs.(*object); ok {
		d.checkInputs(c, given, member(n.path, "inputs"))
	}
	for _, pair := range d.outputs {
		at := member(member(n.path, "outputs"), pair[0])
		path, problem := parsePath(pair[0])
		if problem != "" {
			c.problems.add(at, "%s", problem)
			continue
		}
		if place, ok := c.outputPath(pair[1], at); ok {
			for i := range made.outputs {
				c.overlap(&made.outputs[i].to, &place, at)
			}
			made.outputs = append(made.outputs, mapping{path, place})
		}
	}
	return made
}

// checkInputs checks what the component is given as far as it does not depend on the run.
func (d *componentDecl) checkInputs(c *compiler, given *object, path string) {
	if c.names.Inputs == nil {
		return
	}
	for _, one := range c.names.Inputs(d.component) {
		v := given.get(one.Name)
		if v == nil {
			if one.Required {
				c.problems.add(path, "expected a value of %s, which component %s requires", show(one.Name), d.component)
			}
			continue
		}
		if text, fixed := fixedJSON(*v); fixed {
			c.refuse(member(path, one.Name), inputs.Reason(one, text), text)
		}
	}
}

type componentNode struct {
	component string
	inputs    template
	outputs   []mapping
}

// mapping puts what a component returned at a path into an output.
type mapping struct {
	from []segment
	to   outputPath
}

func (n *componentNode) execute(r *run) (any, error) {
	text, err := n.inputs.json(r, make([]byte, 0, 256))
	if err != nil {
		return nil, err
	}
	if len(text) == 0 || text[0] != '{' {
		return nil, mistakef("the inputs of component %s: expected an object", n.component)
	}
	answer, err := r.callHost(func() (jsontext.Value, error) { return r.host.Component(r.ctx, n.component, text) })
	if err != nil {
		return nil, err
	}
	if r.returned -= len(answer); r.returned < 0 {
		return nil, mistakef("the components of a run may return at most %d MiB together", MaxReturned>>20)
	}
	result, err := fromJSON(answer)
	if err != nil {
		return nil, err
	}
	for i := range n.outputs {
		if result, err = r.mapOutput(result, &n.outputs[i]); err != nil {
			return nil, err
		}
	}
	return result, nil
}

// mapOutput sets an output to the value at a path of the result. It does not set the
// output when the path leads nowhere. It returns the result, decoded.
func (r *run) mapOutput(result any, m *mapping) (any, error) {
	if err := r.open(&result); err != nil {
		return nil, err
	}
	v := result
	for _, step := range m.from {
		switch container := v.(type) {
		case *object:
			place := container.get(step.name)
			if place == nil {
				return result, nil
			}
			v = *place
		case []any:
			if step.index < 0 || step.index >= len(container) {
				return result, nil
			}
			v = container[step.index]
		default:
			return result, nil
		}
	}
	return result, r.put(&m.to, v)
}
