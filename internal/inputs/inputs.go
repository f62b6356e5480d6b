// Package inputs holds the declarations of what a logic component or an automation
// takes and returns (contract N1), and checks what it is sent (contract N2 to N5).
//
// A body becomes an Object: the declared inputs, each in the declared type.
//
//   - A text that is sent an object or a list gets its JSON text; one that is sent
//     a number or a boolean gets it as it was sent.
//   - A number, boolean or json that is sent something else is a failure; null
//     counts as missing.
//   - A field of a form is parsed as JSON where a number, a boolean or json is
//     declared; a field that is sent several times is the list of its texts.
//   - One EXECUTION_ERROR reports all failures.
//
// Members that are not declared reach a component unchanged and do not reach an
// automation (contract N4); the caller says which.
package inputs

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/fault"
	"gatehouse/internal/wtf8"
)

// Type is the type of an input or output.
type Type string

// The four types (contract N1).
const (
	Text    Type = "text"
	Number  Type = "number"
	Boolean Type = "boolean"
	JSON    Type = "json" // an object or a list
)

// kinds is the kinds of JSON values that each type takes, as jsontext.Kind writes
// them. A text takes the others as their text.
var kinds = map[Type]string{Text: `"`, Number: "0", Boolean: "tf", JSON: "{["}

// Declaration is one declared input or output.
type Declaration struct {
	Name     string `json:"name" yaml:"name"`
	Type     Type   `json:"type" yaml:"type"`
	Required bool   `json:"required,omitempty" yaml:"required,omitempty"`
	// Pattern is a regular expression that the text must match.
	Pattern Pattern `json:"pattern,omitzero" yaml:"pattern,omitempty"`
}

// What an author may declare.
const (
	MaxDeclarations = 200
	MaxNameLength   = 64 // characters
)

// Mistake is one mistake in a declaration.
type Mistake struct {
	Index  int    // in the list
	Member string // "name", "type" or "pattern"; "" for the declaration as a whole
	Text   string
}

// Mistakes are all mistakes in a list of declarations, in its order.
type Mistakes []Mistake

func (m Mistakes) Error() string {
	lines := make([]string, len(m))
	for i, one := range m {
		lines[i] = fmt.Sprintf("[%d]: %s", one.Index, one.Text)
		if one.Member != "" {
			lines[i] = fmt.Sprintf("[%d].%s: %s", one.Index, one.Member, one.Text)
		}
	}
	return strings.Join(lines, "\n")
}

// Check checks declarations (contract N1). The error is Mistakes, in words for their
// author. A name is letters, digits, _ and -, so that it is one step of a dot-path.
func Check(decls []Declaration) error {
	var found Mistakes
	note := func(i int, member, format string, args ...any) {
		found = append(found, Mistake{Index: i, Member: member, Text: fmt.Sprintf(format, args...)})
	}
	first, patterns := make(map[string]int, len(decls)), 0
	for i, d := range decls {
		if i == MaxDeclarations {
			note(i, "", "expected at most %d declarations", MaxDeclarations)
			break
		}
		if !validName(d.Name) {
			note(i, "name", "expected 1 to %d letters, digits, _ or -, found %q", MaxNameLength, shorten(d.Name))
		} else if before, twice := first[d.Name]; twice {
			note(i, "name", "%s is declared twice, first at [%d]", d.Name, before)
		} else {
			first[d.Name] = i
		}
		if _, known := kinds[d.Type]; !known {
			note(i, "type", "expected text, number, boolean or json, found %q", shorten(string(d.Type)))
		} else if d.Type != Text && !d.Pattern.IsZero() {
			note(i, "pattern", "expected type text beside a pattern, found %s", d.Type)
		}
		if d.Pattern.IsZero() || patterns > maxPatterns {
			continue
		}
		err := d.Pattern.Err()
		if patterns += d.Pattern.Cost(); err == nil && patterns > maxPatterns {
			err = fmt.Errorf("the patterns are compiled to more than %d instructions together", maxPatterns)
		}
		if err != nil {
			note(i, "pattern", "%v", err)
		}
	}
	if found == nil {
		return nil
	}
	return found
}

func validName(name string) bool {
	if name == "" || utf8.RuneCountInString(name) > MaxNameLength {
		return false
	}
	for _, c := range name {
		if c == utf8.RuneError || c != '_' && c != '-' && !unicode.IsLetter(c) && !unicode.IsDigit(c) {
			return false
		}
	}
	return true
}

func shorten(text string) string {
	if len(text) <= 80 {
		return text
	}
	return strings.ToValidUTF8(text[:77], "") + "…"
}

// Member is one member of a JSON object.
type Member struct {
	Name  string // WTF-8 (package wtf8)
	Value jsontext.Value
}

// MarshalJSON writes {"Name", "Value"}, the name without loss.
func (m Member) MarshalJSON() ([]byte, error) {
	text := append(wtf8.AppendQuote([]byte(`{"Name":`), m.Name), `,"Value":`...)
	return append(append(text, m.Value...), '}'), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (m *Member) UnmarshalJSON(text []byte) error {
	var parts struct{ Name, Value jsontext.Value }
	err := json.Unmarshal(text, &parts)
	if err == nil {
		m.Value = parts.Value
		m.Name, err = wtf8.Unquote(parts.Name)
	}
	return err
}

// Object is a JSON object whose names differ, in a fixed order.
type Object []Member

// Get returns the value of a member and whether there is one. A member that is null
// is there.
func (o Object) Get(name string) (jsontext.Value, bool) {
	for i := range o {
		if o[i].Name == name {
			return o[i].Value, true
		}
	}
	return nil, false
}

// JSON returns the object as JSON text.
func (o Object) JSON() jsontext.Value {
	size := 2
	for i := range o {
		size += len(o[i].Name) + len(o[i].Value) + 4
	}
	text := append(make([]byte, 0, size), '{')
	for i := range o {
		if i > 0 {
			text = append(text, ',')
		}
		text = wtf8.AppendQuote(text, o[i].Name)
		text = append(text, ':')
		text = append(text, o[i].Value...)
	}
	return append(text, '}')
}

// failures collects the reasons why inputs fail, in the order of declaration.
type failures struct {
	list    []string
	reasons map[string]string
}

func (f *failures) add(name, reason string) {
	if f.reasons == nil {
		f.reasons = map[string]string{}
	}
	f.list = append(f.list, name+": "+reason)
	f.reasons[name] = reason
}

// err returns EXECUTION_ERROR with the message of contract N2, or nil.
func (f *failures) err() error {
	if len(f.list) == 0 {
		return nil
	}
	return fault.New(fault.ExecutionError, "Input validation failed: [%s]", strings.Join(f.list, ", ")).With("fields", f.reasons)
}
