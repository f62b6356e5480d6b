package config

import (
	"cmp"
	"fmt"
	"strings"
)

// Problem is one mistake in a configuration, for its author.
type Problem struct {
	Place
	// File and Line locate the mistake inside the text at Place: Line counts from 1
	// in the text or, if File is set, in the file that the text names. Line 0 is
	// the text as a whole. Column counts characters from 1 in that line; 0 is the line
	// as a whole.
	File         string
	Line, Column int
	Text         string
	// Reason is Text without the name of the object and member that it begins
	// with, for a form that shows it beside the member; "" when Text has neither.
	Reason string
	// First is the position of the first of two things of which only one is allowed.
	First *Place
	// Cause is the error of another package that the problem reports, or nil.
	Cause error
}

// Problems are all the mistakes found in one configuration. Its error text has one
// line for each: `PATH: what was expected`.
type Problems struct {
	List []Problem
	// Left counts the problems beyond MaxProblems, which are dropped.
	Left int
}

// MaxProblems is how many problems are reported.
const MaxProblems = 100

func (p *Problems) Error() string {
	lines := make([]string, 0, len(p.List)+1)
	for _, one := range p.List {
		line := one.Text
		if one.Path != "" && one.Path != Root {
			line = one.Path + ": " + line
		}
		if one.First != nil {
			line += ", first at " + one.First.Path
		}
		lines = append(lines, line)
	}
	if p.Left > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", p.Left))
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the causes of the problems, for errors.As.
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
func (p *Problems) add(at Place, format string, args ...any) {
	p.Note(Problem{Place: at, Text: fmt.Sprintf(format, args...)})
}

// member is add for a mistake in a member of an object, which what names.
func (p *Problems) member(at Place, what, format string, args ...any) {
	reason := fmt.Sprintf(format, args...)
	p.Note(Problem{Place: at, Text: what + ": " + reason, Reason: reason})
}

// twice is add for the second of two things of which there may be one.
func (p *Problems) twice(at, first Place, format string, args ...any) {
	p.Note(Problem{Place: at, First: &first, Text: fmt.Sprintf(format, args...)})
}

// Note adds a problem, unless it is there or there are MaxProblems.
func (p *Problems) Note(one Problem) {
	for _, had := range p.List {
		if had.Place == one.Place && had.File == one.File && had.Line == one.Line && had.Text == one.Text {
			return
		}
	}
	if len(p.List) == MaxProblems {
		p.Left++
		return
	}
	p.List = append(p.List, one)
}

func (p *Problem) reason() string { return cmp.Or(p.Reason, p.Text) }

// has reports whether there is a problem at the path.
func (p *Problems) has(path string) bool {
	for _, one := range p.List {
		if one.Path == path {
			return true
		}
	}
	return false
}

// err returns p, or nil when there are no problems.
func (p *Problems) err() error {
	if len(p.List) == 0 {
		return nil
	}
	return p
}
