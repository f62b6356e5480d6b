package automation

import (
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/wtf8"
)

// template is a compiled value of a definition: a constant, a path or expression, text
// with those in it, or an object or list that contains such values.
type template interface {
	// value returns the template's value in this run. The errors are those of
	// expression.
	value(r *run) (any, error)
	// json appends that value as JSON.
	json(r *run, dst []byte) ([]byte, error)
}

type constant struct {
	v    any
	text jsontext.Value
}

func newConstant(v any) constant {
	index(v)
	text, _ := appendJSON(nil, v, math.MaxInt) // Decode has checked its depth
	return constant{v, text}
}

func (c constant) value(*run) (any, error)                 { return c.v, nil }
func (c constant) json(_ *run, dst []byte) ([]byte, error) { return append(dst, c.text...), nil }
func (ref *ref) value(r *run) (any, error)                 { return r.read(ref) }
func (ref *ref) json(r *run, dst []byte) (_ []byte, err error) {
	return r.write(dst, ref, appendJSON)
}

func (e expression) value(r *run) (any, error) { return e(r) }
func (e expression) json(r *run, dst []byte) ([]byte, error) {
	return r.write(dst, e, appendJSON)
}

// write appends the value of a path or an expression. It charges the run for the value,
// and for the text before it, before it writes the value.
func (r *run) write(dst []byte, from template, write func([]byte, any, int) ([]byte, error)) ([]byte, error) {
	v, err := from.value(r)
	if err != nil {
		return dst, err
	}
	// The size of a value is known only when it is written, so it is charged in steps.
	before, hint := len(dst), sizeHint(v)
	for room := max(hint, firstRoom); ; room *= 4 {
		room = min(room, r.work)
		if err := r.hold(copies * (before + room)); err != nil {
			return dst, err
		}
		if hint = min(hint, room); hint > cap(dst)-before { // a long text doubles, which leaves less garbage than append
			dst = slices.Grow(dst, max(hint, before))
		}
		out, err := write(dst, v, before+room)
		if err == nil {
			r.work -= len(out) - before
			return out, nil
		}
		if !errors.Is(err, errLong) || room == r.work {
			return out, err
		}
		dst = out[:before]
	}
}

const (
	// firstRoom is the room in bytes for writing a value of unknown size.
	firstRoom = 16 << 10
	// copies is how many copies of a text exist while it is written: the text so
	// far, the buffer that it grows into, and the finished value.
	copies = 3
)

// sizeHint returns about the length of a value as text, or 0 when it is not known.
func sizeHint(v any) int {
	switch v := v.(type) {
	case string:
		return len(v) + 2
	case jsontext.Value:
		return len(v)
	}
	return 0
}

// text is literal text with paths and expressions in it: literals[0] parts[0]
// literals[1] …
type text struct {
	literals []string
	parts    []template
	size     int // of the literals
}

func (t *text) append(r *run, dst []byte) (_ []byte, err error) {
	if err := r.spend(t.size); err != nil {
		return dst, err
	}
	for i, part := range t.parts {
		dst = append(dst, t.literals[i]...)
		if dst, err = r.write(dst, part, appendText); err != nil {
			return dst, err
		}
	}
	return append(dst, t.literals[len(t.literals)-1]...), nil
}

func (t *text) value(r *run) (any, error) {
	var short [128]byte
	b, err := t.append(r, short[:0])
	return string(b), err
}

func (t *text) json(r *run, dst []byte) ([]byte, error) {
	var short [128]byte
	b, err := t.append(r, short[:0])
	if err != nil {
		return dst, err
	}
	return wtf8.AppendUTF8(dst, string(b)), nil
}

type objectOf []namedTemplate

type namedTemplate struct {
	name string
	template
}

func (o objectOf) value(r *run) (any, error) {
	made, err := o.evaluate(r)
	if err != nil {
		return nil, err
	}
	return made, r.spend(valueSize * len(o))
}

// evaluate is value without a charge for the object.
func (o objectOf) evaluate(r *run) (*object, error) {
	made := &object{members: make([]entry, len(o))}
	for i := range o {
		v, err := o[i].value(r)
		if err != nil {
			return nil, err
		}
		made.members[i] = entry{o[i].name, v}
	}
	return made, nil
}

func (o objectOf) json(r *run, dst []byte) (_ []byte, err error) {
	dst = append(dst, '{')
	for i := range o {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(wtf8.AppendUTF8(dst, o[i].name), ':')
		if dst, err = o[i].template.json(r, dst); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

type listOf []template

func (l listOf) value(r *run) (any, error) {
	made := make([]any, len(l))
	for i := range l {
		v, err := l[i].value(r)
		if err != nil {
			return nil, err
		}
		made[i] = v
	}
	return made, r.spend(valueSize * len(l))
}

func (l listOf) json(r *run, dst []byte) (_ []byte, err error) {
	dst = append(dst, '[')
	for i := range l {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = l[i].json(r, dst); err != nil {
			return dst, err
		}
	}
	return append(dst, ']'), nil
}

// piece is a part of a text: literal, or what is between {{ and }}.
type piece struct {
	text string
	read bool
}

// splitTemplate splits a text at its {{…}}. It trims what is in the braces but does not
// parse it. Only an author's texts are split, never a result (contract F3).
func splitTemplate(s string) (pieces []piece, problem string) {
	if len(s) > MaxTemplate && strings.Contains(s, "{{") {
		return nil, "the text is too long for one with {{…}} in it: expected at most 64 KiB"
	}
	for {
		before, rest, found := strings.Cut(s, "{{")
		if before != "" || !found && pieces == nil {
			pieces = append(pieces, piece{text: before})
		}
		if !found {
			return pieces, ""
		}
		inside, after, closed := strings.Cut(rest, "}}")
		if !closed {
			return nil, "{{ without }} in " + show("{{"+rest)
		}
		pieces = append(pieces, piece{text: strings.TrimSpace(inside), read: true})
		if s = after; s == "" {
			return pieces, ""
		}
	}
}

// template compiles a value. It adds a problem at path for each mistake.
func (c *compiler) template(v any, path string) template {
	switch v := v.(type) {
	case string:
		return c.text(v, path)
	case *object:
		made := c.namedTemplates(v, path, func(string, string) {})
		if slices.ContainsFunc(made, func(t namedTemplate) bool { return !isConstant(t.template) }) {
			return made
		}
	case []any:
		made := make(listOf, len(v))
		for i := range v {
			made[i] = c.template(v[i], item(path, i))
		}
		if slices.ContainsFunc(made, func(t template) bool { return !isConstant(t) }) {
			return made
		}
	}
	return newConstant(v)
}

// namedTemplates compiles the members of an object. It calls check with the path
// and name of each before it compiles its value.
func (c *compiler) namedTemplates(given *object, path string, check func(at, name string)) objectOf {
	made := make(objectOf, len(given.members))
	for i := range given.members {
		e := &given.members[i]
		at := member(path, e.name)
		check(at, e.name)
		made[i] = namedTemplate{e.name, c.template(e.value, at)}
	}
	return made
}

func isConstant(t template) bool {
	_, ok := t.(constant)
	return ok
}

func (c *compiler) text(s, path string) template {
	pieces, problem := splitTemplate(s)
	if problem != "" {
		c.problems.add(path, "%s", problem)
		return newConstant(nil)
	}
	if len(pieces) == 1 {
		if pieces[0].read {
			return c.reading(pieces[0].text, path)
		}
		return newConstant(s)
	}
	t := &text{literals: make([]string, 0, len(pieces)+1)}
	literal := ""
	for _, p := range pieces {
		if !p.read {
			literal = p.text
			continue
		}
		t.literals = append(t.literals, literal)
		t.size += len(literal)
		literal = ""
		t.parts = append(t.parts, c.reading(p.text, path))
	}
	t.literals = append(t.literals, literal)
	t.size += len(literal)
	return t
}

// reading compiles the text between {{ and }}: a path, or an expression in the language
// of conditions. It adds a problem at at for a mistake.
func (c *compiler) reading(s, at string) template {
	if strings.ContainsAny(s, inExpression) {
		if made := c.expression(s, at); made != nil {
			return made
		}
		return newConstant(nil)
	}
	steps, problem := parsePath(s)
	if problem == "" {
		var found *ref
		if found, problem = c.resolve(steps, s); problem == "" {
			return found
		}
	}
	c.problems.add(at, "%s", problem)
	return newConstant(nil)
}

// inExpression are characters that make an expression of what is in the braces: a path has
// none of them.
const inExpression = " \t\r\n([\"'`+*/<>=!?&|%,"
