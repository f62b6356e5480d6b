package automation

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// ref is a place that a template or condition reads: a slot of the run and the path
// from its value.
type ref struct {
	slot int
	path []segment
	text string // as its author wrote it
}

// segment is one step of a path: a member's name, and also an index of a list when it
// is a whole number.
type segment struct {
	name     string
	index    int // or -1
	optional bool
}

func newSegment(name string) segment {
	index := -1
	if n, err := strconv.Atoi(name); err == nil && n >= 0 && strconv.Itoa(n) == name {
		index = n
	}
	return segment{name: name, index: index}
}

// parsePath splits a dot-path. problem is "" or a message for its author.
func parsePath(text string) (path []segment, problem string) {
	if text == "" {
		return nil, "expected a path like inputs.email, found nothing"
	}
	if n := strings.Count(text, ".") + 1; n > MaxPath {
		return nil, fmt.Sprintf("the path has %d steps: expected at most %d", n, MaxPath)
	}
	for name := range strings.SplitSeq(text, ".") {
		if name == "" {
			return nil, "expected a path like inputs.email, found " + show(text)
		}
		if i := strings.IndexFunc(name, notInPath); i >= 0 {
			return nil, fmt.Sprintf("expected a path like inputs.lines.0.sku, found %s: %q is not allowed in a path", show(text), []rune(name[i:])[0])
		}
		path = append(path, newSegment(name))
	}
	return path, ""
}

func notInPath(c rune) bool {
	return c <= ' ' || c == 0x7f || strings.ContainsRune("{}[]()|\"'`,;+*=<>!?&\\", c)
}

// skipped is the error of a node that reads a path into a value without members, or
// into a node that did not run (contract F4). It ends the node, not the run.
type skipped struct {
	ref  *ref
	step int // the step that failed; -1 when the node that is read did not run
	kind string
}

func (s *skipped) Error() string {
	if s.step < 0 {
		return s.ref.text + ": the node did not run"
	}
	path := s.ref.path
	if s.step >= len(path) { // an index computed by a condition
		return s.ref.text + " reads into " + s.kind + ", which is not an object or a list"
	}
	return fmt.Sprintf("%s reads %s out of %s, which is not an object or a list", s.ref.text, path[s.step].name, s.kind)
}

// place returns the place of a ref's value. It decodes the values on the path in
// place, once. The error is a *skipped or one of open.
func (r *run) place(ref *ref) (*any, error) {
	s := &r.slots[ref.slot]
	if !s.set {
		return nil, &skipped{ref: ref, step: -1}
	}
	at := &s.value
	for i := range ref.path {
		step := &ref.path[i]
		if err := r.open(at); err != nil {
			return nil, err
		}
		switch v := (*at).(type) {
		case *object:
			if at = v.get(step.name); at == nil {
				at = new(any)
			}
		case []any:
			if step.index < 0 || step.index >= len(v) {
				at = new(any)
			} else {
				at = &v[step.index]
			}
		default:
			if v == nil && step.optional {
				return new(any), nil
			}
			return nil, &skipped{ref: ref, step: i, kind: kindOf(v)}
		}
	}
	return at, nil
}

// read returns a ref's value. An object or list may not be decoded yet.
func (r *run) read(ref *ref) (any, error) {
	at, err := r.place(ref)
	if err != nil {
		return nil, err
	}
	return *at, nil
}

// readOpen returns a ref's value, decoded.
func (r *run) readOpen(ref *ref) (any, error) {
	at, err := r.place(ref)
	if err != nil {
		return nil, err
	}
	err = r.open(at)
	return *at, err
}

// open decodes the value at a place, if it is not decoded yet. The error is errLong,
// errDeep or one of hold.
func (r *run) open(at *any) error {
	text, closed := (*at).(jsontext.Value)
	if !closed {
		return nil
	}
	for room := 4 * len(text); ; room *= 2 { // charge before the value is built
		room = min(room, r.work)
		if err := r.hold(room); err != nil {
			return err
		}
		v, used, err := parseJSON(text, room)
		switch {
		case err == nil:
			r.work -= used
			*at = v
			return nil
		case !errors.Is(err, errLong) || room == r.work:
			return err
		}
	}
}
