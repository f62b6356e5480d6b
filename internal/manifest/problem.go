package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one mistake in a manifest, for its author.
type Problem struct {
	// File is where the mistake is when that is not the manifest, but a file
	// that it names; Line is in it then.
	File string
	Line int
	Text string
	// Cause is the refusal of another package that the problem passes on, or nil.
	Cause error
}

// Problems are all the mistakes found in one manifest, in the order of their
// lines, and after them those in the files that it names. As an error it is one line each: `FILE:LINE: what was expected`.
type Problems struct {
	File string
	List []Problem
	// Left counts those beyond the first hundred, which nobody reads.
	Left int
}

const maxProblems = 100

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

// Unwrap gives the refusals that problems pass on, for errors.As.
func (p *Problems) Unwrap() []error {
	var list []error
	for _, one := range p.List {
		if one.Cause != nil {
			list = append(list, one.Cause)
		}
	}
	return list
}

// add notes a problem, once.
func (p *Problems) add(line int, format string, args ...any) { p.addIn("", line, format, args...) }

// addIn is add for a mistake in another file than the manifest.
func (p *Problems) addIn(file string, line int, format string, args ...any) {
	one := Problem{File: file, Line: max(line, 1), Text: fmt.Sprintf(format, args...)}
	for _, had := range p.List {
		if had.File == one.File && had.Line == one.Line && had.Text == one.Text {
			return
		}
	}
	if len(p.List) == maxProblems {
		p.Left++
		return
	}
	p.List = append(p.List, one)
}

// at reports whether a problem was noted for the line.
func (p *Problems) at(line int) bool {
	return slices.ContainsFunc(p.List, func(one Problem) bool { return one.File == "" && one.Line == line })
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
