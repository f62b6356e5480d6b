package config

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/schema"
)

// Kind tells the values of a configuration apart.
type Kind int

// The kinds of values. JSON is a value that is passed on unchanged: the decoder
// accepts it where any value is allowed, and Export returns it there.
const (
	Null Kind = iota
	Bool
	Number
	Text
	List
	Mapping
	JSON
)

// Value is one value of a configuration, independent of the text format. A codec
// builds a tree of them, which Decode reads; Export returns one.
type Value struct {
	Kind  Kind
	Place Place
	// Text is the text of a Text, and a Number or Bool as its author wrote it.
	Text string
	// JSON is the JSON form of a Number or Bool, nil when there is none, and the
	// text of a JSON.
	JSON jsontext.Value
	// Whole is set for a Number that its author wrote as a whole number.
	Whole bool
	// Variable names the environment variable whose value replaces a Text where a
	// text, number or flag is expected. Messages never show that value.
	Variable string
	Items    []*Value // of a List
	Members  []Member // of a Mapping, in order; Decode refuses doubled keys
	// Hint is the codec's guess at what the author of a Mapping meant.
	Hint string
	// Lines is set when each line of a Text is a line of the document, so that a
	// codec can locate it.
	Lines bool
	// Inline and Long are for the codec that writes an exported value: Inline marks
	// a list or mapping that fits on one line, Long a text that may be long and
	// contains no variable.
	Inline, Long bool
}

// Member is a member of a Mapping. Key is a Text unless the codec allows other
// values as keys.
type Member struct{ Key, Value *Value }

// Place is the position of a value in a configuration.
type Place struct {
	// Path is the path of the value: users[3].role. Root is the path of the whole;
	// "" is the path of what is stored and was not given.
	Path string
	// Key is set for the position of a member's name rather than its value.
	Key bool
}

// Root is the path of the whole configuration.
const Root = "$"

// Of returns the path of a member of the value at path.
func Of(path, key string) string {
	for i, r := range key {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '_' && r != '-' && (i == 0 || r < '0' || r > '9') {
			return below(path) + "[" + strconv.Quote(key) + "]"
		}
	}
	if below(path) == "" {
		return key
	}
	return path + "." + key
}

// At returns the path of an item of the list at path.
func At(path string, i int) string { return below(path) + "[" + strconv.Itoa(i) + "]" }

func below(path string) string {
	if path == Root {
		return ""
	}
	return path
}

// Member returns the value of a key of a mapping, or v itself when there is none.
func (v *Value) Member(key string) *Value {
	for _, m := range v.Members {
		if m.Key.Text == key {
			return m.Value
		}
	}
	return v
}

// pair is a key of an exported mapping and its value.
type pair struct {
	key   string
	value *Value
}

// block is a mapping of one line a member, flow one on a single line.
func block(pairs ...pair) *Value {
	v := &Value{Kind: Mapping}
	for _, p := range pairs {
		v.Members = append(v.Members, Member{str(p.key), p.value})
	}
	return v
}

func flow(pairs ...pair) *Value {
	v := block(pairs...)
	v.Inline = true
	return v
}

// rows is a list of one item a line.
func rows(items []*Value) *Value { return &Value{Kind: List, Items: items} }

// strs is a list of texts on a single line.
func strs(list []string) *Value {
	v := &Value{Kind: List, Inline: true}
	for _, s := range list {
		v.Items = append(v.Items, str(s))
	}
	return v
}

func str(s string) *Value { return &Value{Kind: Text, Text: s} }

// long is a text that may have many lines, in which nothing is a variable.
func long(s string) *Value { return &Value{Kind: Text, Text: s, Long: true} }

func yes(on bool) *Value {
	text := strconv.FormatBool(on)
	return &Value{Kind: Bool, Text: text, JSON: jsontext.Value(text)}
}

func num(n int) *Value { return numeral(strconv.Itoa(n)) }

func numeral(text string) *Value {
	_, err := strconv.Atoi(text)
	return &Value{Kind: Number, Text: text, JSON: jsontext.Value(text), Whole: err == nil}
}

// scalarOf is a canonical value of a condition.
func scalarOf(v jsontext.Value) *Value {
	switch v.Kind() {
	case '"':
		return str(schema.Unquote(v))
	case '0':
		return numeral(string(v))
	}
	return yes(string(v) == "true")
}
