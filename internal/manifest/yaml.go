package manifest

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"

	"gatehouse/internal/schema"
)

// pair is a key of an exported mapping and its value.
type pair struct {
	key   string
	value *yaml.Node
}

// block is a mapping of one line a member, flow one on a single line.
func block(pairs ...pair) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	if len(pairs) == 0 {
		n.Style = yaml.FlowStyle
	}
	for _, p := range pairs {
		n.Content = append(n.Content, str(p.key), p.value)
	}
	return n
}

func flow(pairs ...pair) *yaml.Node {
	n := block(pairs...)
	n.Style = yaml.FlowStyle
	return n
}

// rows is a list of one item a line.
func rows(items []*yaml.Node) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: items}
	if len(items) == 0 {
		n.Style = yaml.FlowStyle
	}
	return n
}

// strs is a list of texts on a single line.
func strs(list []string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Style: yaml.FlowStyle}
	for _, s := range list {
		n.Content = append(n.Content, str(s))
	}
	return n
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

func yes(v bool) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(v)}
}

func num(v int) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.Itoa(v)}
}

// jsonScalar is a canonical value of a condition.
func jsonScalar(v jsontext.Value) *yaml.Node {
	switch v.Kind() {
	case '"':
		return str(schema.Unquote(v))
	case '0':
		n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!float", Value: string(v)}
		if _, err := strconv.Atoi(n.Value); err == nil {
			n.Tag = "!!int"
		}
		return n
	}
	var b bool
	_ = json.Unmarshal(v, &b) // canonical: true or false
	return yes(b)
}

// render writes the sections as a YAML document, an empty line between those
// that take more than one line.
func render(pairs []pair) ([]byte, error) {
	var out bytes.Buffer
	was := false
	for i, p := range pairs {
		var one bytes.Buffer
		enc := yaml.NewEncoder(&one)
		enc.SetIndent(2)
		if err := enc.Encode(block(p)); err != nil {
			return nil, err
		}
		if err := enc.Close(); err != nil {
			return nil, err
		}
		long := bytes.Count(one.Bytes(), []byte("\n")) > 1
		if i > 0 && (long || was) {
			out.WriteByte('\n')
		}
		was = long
		out.Write(one.Bytes())
	}
	return out.Bytes(), nil
}
