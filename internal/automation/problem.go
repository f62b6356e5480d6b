package automation

import (
	"fmt"
	"strings"
)

// Problem is one mistake in a definition, for its author.
type Problem struct {
	// Path is the place of the mistake, like nodes[2].then[0].when.
	Path string
	// Text says what is wrong and what was expected.
	Text string
}

// Problems are the first hundred mistakes of a definition.
type Problems []Problem

func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, one := range p {
		lines[i] = one.Path + ": " + one.Text
	}
	return strings.Join(lines, "\n")
}

func (p *Problems) add(path, format string, args ...any) {
	if len(*p) < maxProblems {
		*p = append(*p, Problem{Path: path, Text: fmt.Sprintf(format, args...)})
	}
}

// show quotes an author's text for a message of one line.
func show(s string) string {
	if len(s) > 80 {
		s = strings.ToValidUTF8(s[:77], "") + "…"
	}
	return fmt.Sprintf("%q", s)
}

func member(path, name string) string {
	if len(name) > 80 {
		name = strings.ToValidUTF8(name[:77], "") + "…"
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

func item(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

func orList(names []string) string {
	switch len(names) {
	case 0:
		return "nothing"
	case 1:
		return names[0]
	}
	if len(names) > 20 {
		names = append(names[:20:20], "…")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
