package manifest

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"

	"gatehouse/internal/config"
)

// node is an exported value as YAML, in the style in which it would be written by hand.
func node(v *config.Value) *yaml.Node {
	switch v.Kind {
	case config.Mapping:
		n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		if v.Inline || len(v.Members) == 0 {
			n.Style = yaml.FlowStyle
		}
		for _, m := range v.Members {
			n.Content = append(n.Content, node(m.Key), node(m.Value))
		}
		return n
	case config.List:
		n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		if v.Inline || len(v.Items) == 0 {
			n.Style = yaml.FlowStyle
		}
		for _, item := range v.Items {
			n.Content = append(n.Content, node(item))
		}
		return n
	case config.JSON:
		return fromJSON(v.JSON)
	case config.Text:
		if v.Long {
			return long(v.Text)
		}
		return str(v.Text)
	case config.Bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: v.Text}
	case config.Number:
		if v.Whole {
			return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: v.Text}
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!float", Value: v.Text}
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
}

// bare is a text that YAML takes as text without quotes, unless it is a word
// like true, which the encoder knows.
var bare = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.@/-]*( [A-Za-z0-9_.@/-]+)*$`)

// otherTools take these words for true and false, as YAML 1.1 had them.
var otherTools = regexp.MustCompile(`^(?i:y|n|yes|no|on|off)$`)

// str is a text. One that looks like an environment variable is tagged !!str,
// so that apply takes it as it is: users choose their names, and a name must
// not become the operator's secret.
func str(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	if !bare.MatchString(s) || otherTools.MatchString(s) {
		n.Style = yaml.DoubleQuotedStyle
	}
	if envRule.MatchString(s) {
		n.Style |= yaml.TaggedStyle
	}
	return n
}

// render writes the sections as a YAML document, an empty line between those
// that take more than one line.
func render(root *config.Value) ([]byte, error) {
	var out bytes.Buffer
	was := false
	for i, m := range root.Members {
		one, err := encode(node(&config.Value{Kind: config.Mapping, Members: []config.Member{m}}))
		if err != nil {
			return nil, err
		}
		long := bytes.Count(one, []byte("\n")) > 1
		if i > 0 && (long || was) {
			out.WriteByte('\n')
		}
		was = long
		out.Write(one)
	}
	return out.Bytes(), nil
}

func encode(n *yaml.Node) ([]byte, error) {
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(n); err != nil {
		return nil, err
	}
	err := enc.Close()
	return out.Bytes(), err
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
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(t.Bool())}
}

// long is a text in which nothing is a variable: of several lines where it can
// be, in a literal block, so that it is easy to read.
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
	text := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s, Style: yaml.LiteralStyle}
	item := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{str("source"), text}}
	list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: []*yaml.Node{item}}
	b, err := encode(&yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{str("list"), list}})
	var back struct {
		List []struct{ Source string }
	}
	return err == nil && yaml.Unmarshal(b, &back) == nil && len(back.List) == 1 && back.List[0].Source == s
}
