package inputs

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"
)

// The bounds of a pattern.
const (
	maxPattern      = 256     // bytes
	maxInstructions = 2_000   // of a compiled one: some 100 KiB
	maxPatterns     = 10_000  // instructions of all that a target declares
	maxPatternWork  = 2 << 20 // instructions × bytes of one match
)

// Pattern is a regular expression (RE2) that is looked for anywhere in a text; the zero
// Pattern is none. It is compiled when it is first asked about, so that a body with
// thousands of them costs no more than those that are checked. One that cannot be compiled
// keeps its text: Err says what is wrong with it where it stands.
type Pattern struct {
	text     string
	compiled func() compiled // once; nil for the zero Pattern
}

type compiled struct {
	program *regexp.Regexp
	cost    int
	err     error
}

// PatternOf returns a pattern.
func PatternOf(text string) Pattern {
	if text == "" {
		return Pattern{}
	}
	return Pattern{text, sync.OnceValue(func() compiled { return compile(text) })}
}

func (p Pattern) get() compiled {
	if p.compiled == nil {
		return compile("")
	}
	return p.compiled()
}

func compile(text string) compiled {
	if len(text) > maxPattern {
		return compiled{cost: 1, err: fmt.Errorf("the pattern is %d bytes long: expected at most %d", len(text), maxPattern)}
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return compiled{cost: 1, err: fmt.Errorf("expected a regular expression: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))}
	}
	instructions, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return compiled{cost: 1, err: fmt.Errorf("expected a regular expression: %w", err)}
	}
	cost := len(instructions.Inst)
	if cost > maxInstructions {
		return compiled{cost: cost, err: fmt.Errorf("the pattern is compiled to %d instructions: expected at most %d, which is x{1000} twice", cost, maxInstructions)}
	}
	program, err := regexp.Compile(text)
	return compiled{program, cost, err}
}

// Err says what is wrong with the pattern, in words for its author.
func (p Pattern) Err() error { return p.get().err }

// Cost is the steps that each byte of a text may take, at least 1.
func (p Pattern) Cost() int { return max(p.get().cost, 1) }

// Longest is the length in bytes of the longest text that the pattern is looked for in.
func (p Pattern) Longest() int { return maxPatternWork / p.Cost() }

// Matches reports whether the pattern, which has no Err, is in a text of at most Longest bytes.
func (p Pattern) Matches(text string) bool { return p.get().program.MatchString(text) }

func (p Pattern) String() string { return p.text }

// IsZero reports whether there is no pattern.
func (p Pattern) IsZero() bool { return p.text == "" }

// MarshalText returns the pattern as its author wrote it.
func (p Pattern) MarshalText() ([]byte, error) { return []byte(p.text), nil }

// UnmarshalText takes a pattern, right or not: Err says which.
func (p *Pattern) UnmarshalText(text []byte) error {
	*p = PatternOf(string(text))
	return nil
}
