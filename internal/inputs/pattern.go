package inputs

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// The bounds of a pattern.
const (
	maxPattern     = 256     // bytes
	maxPatternWork = 2 << 20 // instructions × bytes of one match
)

// Pattern is a regular expression (RE2) that is looked for anywhere in a text; the zero
// Pattern is none. One that cannot be compiled keeps its text, so that Err says what is
// wrong with it where it stands.
type Pattern struct {
	text    string
	program *regexp.Regexp
	cost    int
}

// PatternOf compiles a pattern.
func PatternOf(text string) Pattern {
	p := Pattern{text: text, cost: 1}
	if text == "" || len(text) > maxPattern {
		return p
	}
	p.program, _ = regexp.Compile(text) // Err has the error
	if p.program != nil {
		p.cost = instructions(text)
	}
	return p
}

// Err says what is wrong with the pattern, in words for its author.
func (p Pattern) Err() error {
	if len(p.text) > maxPattern {
		return fmt.Errorf("the pattern is %d bytes long: expected at most %d", len(p.text), maxPattern)
	}
	if _, err := regexp.Compile(p.text); err != nil {
		return fmt.Errorf("expected a regular expression: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	return nil
}

// Cost is the steps that each byte of a text may take, at least 1.
func (p Pattern) Cost() int { return p.cost }

// Longest is the length in bytes of the longest text that the pattern is looked for in.
func (p Pattern) Longest() int { return maxPatternWork / p.cost }

// Matches reports whether the pattern, which has no Err, is in a text of at most Longest bytes.
func (p Pattern) Matches(text string) bool { return p.program.MatchString(text) }

func (p Pattern) String() string { return p.text }

// IsZero reports whether there is no pattern.
func (p Pattern) IsZero() bool { return p.text == "" }

// MarshalText returns the pattern as its author wrote it.
func (p Pattern) MarshalText() ([]byte, error) { return []byte(p.text), nil }

// UnmarshalText compiles a pattern; whether it could says Err.
func (p *Pattern) UnmarshalText(text []byte) error {
	*p = PatternOf(string(text))
	return nil
}

// instructions returns the number of instructions of a pattern, at least 1.
func instructions(pattern string) int {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 1
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 1
	}
	return max(len(program.Inst), 1)
}
