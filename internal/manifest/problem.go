package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gatehouse/internal/config"
)

// Problem is one mistake in a manifest: Line is in File when that is not "", else in
// the manifest.
type Problem = config.Problem

// Problems are all the mistakes found in one manifest, in the order of their
// lines, followed by those in the files that it names. As an error it is a line
// each: `FILE:LINE: what was expected`.
type Problems struct {
	File string
	config.Problems
}

func (p *Problems) Error() string {
	lines := make([]string, 0, len(p.List)+1)
	for _, one := range p.List {
		lines = append(lines, fmt.Sprintf("%s:%d: %s", cmp.Or(one.File, p.File), one.Line, one.Text))
	}
	if p.Left > 0 {
		lines = append(lines, fmt.Sprintf("%s: and %d more", p.File, p.Left))
	}
	return strings.Join(lines, "\n")
}

// add notes a problem, once.
func (p *Problems) add(line int, format string, args ...any) {
	p.note(Problem{Line: line, Text: fmt.Sprintf(format, args...)})
}

func (p *Problems) note(one Problem) {
	one.Line = max(one.Line, 1)
	p.Note(one)
}

// err is the problems in order, or nil when there are none.
func (p *Problems) err() error {
	if len(p.List) == 0 {
		return nil
	}
	slices.SortStableFunc(p.List, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return p
}

// located gives the *config.Problems in an error, which have paths, the lines of
// the document. Any other error is left as it is.
func (d *document) located(err error) error {
	var found *config.Problems
	if !errors.As(err, &found) {
		return err
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok && !errors.Is(found, err) {
		var list []error
		for _, one := range joined.Unwrap() {
			list = append(list, d.located(one))
		}
		return errors.Join(list...)
	}
	p := &Problems{File: d.file, Problems: config.Problems{Left: found.Left}}
	for _, one := range found.List {
		text := one.Text
		if one.First != nil {
			text += fmt.Sprintf(", first on line %d", d.line(*one.First))
		}
		line := d.line(one.Place)
		switch {
		case one.File != "":
			line = one.Line
		case d.literal[one.Path]: // its lines are the document's, below the key's
			line += one.Line
		}
		p.note(Problem{File: one.File, Line: line, Text: text, Cause: one.Cause})
	}
	return p.err()
}

// line is the line of a place, 1 for what the document does not have.
func (d *document) line(at config.Place) int { return max(d.lines[at], 1) }
