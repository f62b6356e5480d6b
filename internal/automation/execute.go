package automation

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/fault"
	"gatehouse/internal/inputs"
)

// recordNode is any of the five record nodes. fields is where for a list.
type recordNode struct {
	op     Op
	entity string
	id     template
	fields []namedTemplate
	limit  int
}

func (n *recordNode) execute(r *run) (any, error) {
	call := RecordCall{Op: n.op, Entity: n.entity, Limit: n.limit, Room: r.room}
	if n.id != nil {
		v, err := n.id.value(r)
		if err != nil {
			return nil, err
		}
		if v == nil && n.op == Get { // a reference that is not set leads nowhere
			return nil, nil
		}
		id, ok := v.(string)
		if !ok || id == "" {
			return nil, mistakef("expected the id of a record, found %s", describe(v))
		}
		call.ID = id
	}
	members, null, err := r.members(n.fields)
	if err != nil {
		return nil, err
	}
	if n.op == List {
		call.Where = members
		for _, m := range members {
			if k := m.Value.Kind(); k == '{' || k == '[' {
				return nil, mistakef("where %s: expected text, a number, true or false, found an object or a list", m.Name)
			}
		}
		if null { // which no record's field equals
			return &object{members: []entry{{"records", []any{}}, {"hasMore", false}}}, nil
		}
	} else {
		call.Fields = members
	}
	answer, err := r.outside(func() (jsontext.Value, error) { return r.host.Record(r.ctx, call) })
	if err != nil {
		return nil, err
	}
	if r.room -= len(answer); r.room < 0 {
		return nil, ErrRecords
	}
	return fromJSON(answer)
}

func describe(v any) string {
	if v == "" {
		return "an empty text"
	}
	return kindOf(v)
}

// members writes the values of an object into one buffer; null says whether one
// of them is null.
func (r *run) members(given []namedTemplate) (made []inputs.Member, null bool, err error) {
	if len(given) == 0 {
		return nil, false, nil
	}
	buffer := make([]byte, 0, 32*len(given))
	made = make([]inputs.Member, len(given))
	for i := range given {
		start := len(buffer)
		if buffer, err = given[i].json(r, buffer); err != nil {
			return nil, false, err
		}
		made[i] = inputs.Member{Name: given[i].name, Value: buffer[start:len(buffer):len(buffer)]} // stays, also where buffer moves on
		null = null || buffer[start] == 'n'
	}
	return made, null, nil
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
	answer, err := r.outside(func() (jsontext.Value, error) { return r.host.Component(r.ctx, n.component, text) })
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

// mapOutput leaves the output as it is where the path leads nowhere. It returns
// the result, which is decoded by now.
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
		if _, closed := list[i].(jsontext.Value); closed { // decoded by now, perhaps
			list[i] = r.slots[n.first].value
		}
	}
	return float64(len(list)), nil
}

// source is what the each reads, for the trace.
func (n *eachNode) source() *ref {
	if at, ok := n.in.(*ref); ok {
		return &ref{text: at.text}
	}
	return &ref{text: "in"}
}

type failNode struct {
	message template
	code    fault.Code
	status  int
}

func (n *failNode) execute(r *run) (any, error) {
	v, err := n.message.value(r)
	if err != nil {
		return nil, err
	}
	message, err := appendText(nil, v, 4<<10)
	if err != nil {
		return nil, mistake("the message of fail is too long: expected at most 4 KiB")
	}
	return nil, &fault.Error{Code: n.code, Message: string(message), Status: n.status}
}

// result is the JSON object of the declared outputs.
func (r *run) result(f *Flow) (jsontext.Value, error) {
	text := append(make([]byte, 0, 256), '{')
	var err error
	for i, name := range f.output {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(appendString(text, name), ':')
		if text, err = appendJSON(text, r.outputs[i], MaxOutput); err != nil {
			return nil, fault.New(fault.ExecutionError, "The outputs cannot be written: %s: expected at most %d MiB and %d levels.", fmt.Sprint(err), MaxOutput>>20, MaxDepth)
		}
	}
	return append(text, '}'), nil
}
