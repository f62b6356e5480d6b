package config

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/schema"
)

// Kind is what a Value is.
type Kind int

// The kinds of values. JSON is a value that is handed on as it is: a decoder
// takes it where any value may stand, Export returns it there.
const (
	Null Kind = iota
	Bool
	Number
	Text
	List
	Mapping
	JSON
)

// Value is one value of a configuration, whatever it was written in. A codec
// makes a tree of them from a text, which Decode reads; Export returns one.
type Value struct {
	Kind  Kind
	Place Place
	// Text is the text of a Text, and a Number or Bool as its author wrote it.
	Text string
	// JSON is a Number or Bool as JSON has it, nil when JSON cannot say it, and
	// the whole of a JSON.
	JSON jsontext.Value
	// Whole is set for a Number that its author wrote as a whole number.
	Whole bool
	// Variable names the environment variable that a Text is taken from wherever
	// a text, number or flag is expected. Messages never show its value.
	Variable string
	Items    []*Value // of a List
	Members  []Member // of a Mapping, in order; Decode refuses doubled keys
	// Hint is what the codec thinks that the author of a Mapping meant.
	Hint string
	// Lines is set when the lines of a Text stand as lines in what was decoded,
	// so that a codec can say where each of them is.
	Lines bool
	// Inline and Long are for whoever writes an exported value: a list or mapping
	// that fits on one line, and a text that may be long and is no variable.
	Inline, Long bool
}

// Member is a member of a Mapping. Key is a Text but where the codec lets other
// values be keys.
type Member struct{ Key, Value *Value }

// Place says where a value stands in a configuration.
type Place struct {
	// Path leads to the value: users[3].role. Root is the path of the whole; ""
	// is that of what is stored and was not given.
	Path string
	// Key is set when the place is that of the member's name, not of its value.
	Key bool
}

// Root is the path of the whole configuration.
const Root = "$"

// Of is the path of a member of the value at the path.
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

// At is the path of an item of the list at the path.
func At(path string, i int) string { return below(path) + "[" + strconv.Itoa(i) + "]" }

func below(path string) string {
	if path == Root {
		return ""
	}
	return path
}

// Member is the value of a key of a mapping, or the mapping itself.
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
