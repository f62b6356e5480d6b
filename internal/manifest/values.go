package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"

	"gatehouse/internal/number"
)

// json makes JSON of a value of the author's choice: texts, numbers, true and
// false, null, lists and objects stay what YAML has them be, in their order, and
// nothing is taken from the environment. lines takes note of where each path
// stands. Of what is not right, null is made.
func (d *decoder) json(n *yaml.Node, path string, lines map[string]int) jsontext.Value {
	if lines[path] == 0 {
		lines[path] = n.Line
	}
	switch n.Kind {
	case yaml.SequenceNode:
		out := jsontext.Value{'['}
		for i, item := range n.Content {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, d.json(item, fmt.Sprintf("%s[%d]", path, i), lines)...)
		}
		return append(out, ']')
	case yaml.MappingNode:
		out := jsontext.Value{'{'}
		d.mapping(n, "an object", func(key, value *yaml.Node) {
			if len(out) > 1 {
				out = append(out, ',')
			}
			d.storable(key, key.Value)
			at := path + "." + shortened(key.Value)
			lines[at] = key.Line
			out = append(append(out, quoted(key.Value)...), ':')
			out = append(out, d.json(value, at, lines)...)
		})
		return append(out, '}')
	}
	return d.jsonScalar(n)
}

// shortened is a member's name as automation writes it in the path of a problem.
func shortened(name string) string {
	if len(name) > 80 {
		name = strings.ToValidUTF8(name[:77], "") + "…"
	}
	return name
}

func quoted(s string) jsontext.Value {
	b, _ := jsontext.AppendQuote(nil, s) // of UTF-8, which the document was checked to be
	return b
}

func (d *decoder) jsonScalar(n *yaml.Node) jsontext.Value {
	null := jsontext.Value("null")
	switch n.ShortTag() {
	case "!!null":
		return null
	case "!!str", "!!timestamp":
		d.storable(n, n.Value)
		return quoted(n.Value)
	case "!!int", "!!float":
		if v := jsontext.Value(n.Value); v.IsValid() && v.Kind() == '0' {
			if !number.Holds(v) {
				d.bad(n, "%s, found %s", number.OutOfRange, show(n.Value))
				return null
			}
			return v // 19.90 and 1e3 stay as they were written
		}
	}
	var v any
	if err := n.Decode(&v); err != nil {
		d.bad(n, "expected text, a number, true or false, null, a list or an object, found %s", show(n.Value))
		return null
	}
	if f, ok := v.(float64); ok && (math.IsInf(f, 0) || math.IsNaN(f)) {
		d.bad(n, "expected a finite number, found %s", show(n.Value))
		return null
	}
	b, err := json.Marshal(v)
	if err != nil {
		d.bad(n, "expected text, a number, true or false, null, a list or an object, found %s", show(n.Value))
		return null
	}
	return b
}

// flowWidth is how long a list or object of the export may be on one line.
const flowWidth = 100

// fromJSON is a stored JSON value as YAML, short lists and objects on one line.
// json reads the same value out of it. Nothing in it is marked as no variable:
// where it stands, nothing is one.
func fromJSON(v jsontext.Value) *yaml.Node {
	return fromTokens(jsontext.NewDecoder(bytes.NewReader(v), jsontext.AllowDuplicateNames(true)), v)
}

func fromTokens(dec *jsontext.Decoder, all jsontext.Value) *yaml.Node {
	begin := int(dec.InputOffset())
	t, err := dec.ReadToken()
	if err != nil {
		panic("manifest: a stored value is no JSON: " + err.Error())
	}
	n := &yaml.Node{}
	switch t.Kind() {
	case '{', '[':
		n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
		if t.Kind() == '{' {
			n.Kind, n.Tag = yaml.MappingNode, "!!map"
		}
		for dec.PeekKind() != '}' && dec.PeekKind() != ']' {
			item := fromTokens(dec, all)
			if isKey := t.Kind() == '{' && len(n.Content)%2 == 0; isKey && item.Style == yaml.LiteralStyle {
				item.Style = yaml.DoubleQuotedStyle
			}
			n.Content = append(n.Content, item)
		}
		if _, err := dec.ReadToken(); err != nil {
			panic("manifest: a stored value is no JSON: " + err.Error())
		}
		one := all[begin:dec.InputOffset()]
		if len(one) <= flowWidth && !bytes.Contains(one, []byte(`\n`)) || len(n.Content) == 0 {
			n.Style = yaml.FlowStyle
		}
		return n
	case '"':
		return long(t.String())
	case '0':
		n.Kind, n.Value = yaml.ScalarNode, t.String()
		return n
	case 'n':
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
	}
	return yes(t.Bool())
}

// long is a text in which nothing is a variable: of several lines where it can
// be, in a literal block, so that people can read it.
func long(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	switch {
	case strings.Contains(s, "\n") && blockable(s):
		n.Style = yaml.LiteralStyle
	case !bare.MatchString(s) || otherTools.MatchString(s):
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// blockable reports whether a text can be written as a literal block and read
// back as it was; what YAML would have to guess about is not tried.
func blockable(s string) bool {
	if strings.ContainsAny(s, "\r\u0085\u2028\u2029\ufeff") || strings.HasPrefix(s, "\n") || strings.HasPrefix(s, " ") || strings.HasPrefix(s, "\t") {
		return false
	}
	if strings.HasSuffix(s, "\n\n") || strings.TrimRight(s, " \t\n") == "" {
		return false // it would take the empty lines that follow it in the file for its own
	}
	written := rows([]*yaml.Node{block(pair{"source", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s, Style: yaml.LiteralStyle}})})
	b, err := render([]pair{{"list", written}})
	var back struct {
		List []struct{ Source string }
	}
	return err == nil && yaml.Unmarshal(b, &back) == nil && len(back.List) == 1 && back.List[0].Source == s
}
