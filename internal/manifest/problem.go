package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

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

// Places returns a line for each mistake, in the form by which editors find the place:
// `PATH:LINE:COLUMN: what was expected`. Paths begin where that of File begins. The
// column is 1 where only the line is known.
func (p *Problems) Places() []string {
	var lines []string
	for _, one := range p.List {
		path := p.File
		if one.File != "" {
			path = filepath.Join(filepath.Dir(p.File), one.File)
		}
		lines = append(lines, fmt.Sprintf("%s:%d:%d: %s", path, one.Line, max(one.Column, 1), one.Text))
	}
	return lines
}

// add notes a problem, once.
func (p *Problems) add(at position, format string, args ...any) {
	p.note(Problem{Line: at.line, Column: at.column, Text: fmt.Sprintf(format, args...)})
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
			text += fmt.Sprintf(", first on line %d", d.at(*one.First).line)
		}
		at := d.at(one.Place)
		block := d.literal[one.Path]
		switch {
		case one.File != "":
			at = position{one.Line, one.Column}
		case block != nil && one.Line > 0:
			at = d.inBlock(block, position{one.Line, one.Column})
		}
		p.note(Problem{File: one.File, Line: at.line, Column: at.column, Text: text, Cause: one.Cause})
	}
	return p.err()
}

// at is the position of a place, line 1 for what the document does not have.
func (d *document) at(place config.Place) position {
	if at, ok := d.places[place]; ok {
		return at
	}
	return start
}

// inBlock is the position in the document of a position in the text of a literal block,
// whose lines stand below the block's and are indented. The line behind the last one is
// another value's, where no column counts.
func (d *document) inBlock(block *yaml.Node, in position) position {
	at := position{line: block.Line + in.line}
	shown, text := textOfLine(d.src, at.line), textOfLine([]byte(block.Value), in.line)
	if in.column > 0 && text != "" {
		at.column = in.column + max(0, len(strings.TrimSuffix(shown, "\r"))-len(text))
	}
	return at
}
