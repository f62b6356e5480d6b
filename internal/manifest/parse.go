package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"

	"go.yaml.in/yaml/v3"

	"gatehouse/internal/config"
)

// document is a YAML document that becomes a tree of values, and knows where each of
// them stands.
type document struct {
	*Problems
	file    string
	src     []byte
	places  map[config.Place]position
	literal map[string]*yaml.Node // texts in literal blocks, by path
}

// position is a place in a file: line and column count from 1, 0 where unknown.
type position struct{ line, column int }

// start is the position of what is wrong with a manifest as a whole.
var start = position{line: 1}

func positionOf(n *yaml.Node) position { return position{n.Line, n.Column} }

// maxSize bounds a manifest, which is read whole.
const maxSize = 8 << 20

// parse reads a document into a tree. The tree is nil when the text is not YAML,
// or more of it than a tree of values: the document has problems then.
func parse(file string, src []byte) (*document, *config.Value) {
	d := &document{Problems: &Problems{File: file}, file: file, src: src, places: map[config.Place]position{}, literal: map[string]*yaml.Node{}}
	root := d.root()
	if root == nil || root.Kind == yaml.MappingNode && !d.plain(root) {
		return d, nil
	}
	v := d.value(root, config.Root)
	return d, v
}

func (d *document) fail(n *yaml.Node, format string, args ...any) {
	d.add(positionOf(n), format, args...)
}

// envRule is a scalar that stands for an environment variable (contract D3).
var envRule = regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$`)

// value is a node as a value of the tree.
func (d *document) value(n *yaml.Node, path string) *config.Value {
	v := &config.Value{Place: config.Place{Path: path}}
	d.places[v.Place] = positionOf(n)
	switch n.Kind {
	case yaml.MappingNode:
		v.Kind = config.Mapping
		d.members(v, n)
		if unquotedTemplate(n) {
			v.Hint = `a text with {{…}} needs quotes: "{{…}}"`
		}
	case yaml.SequenceNode:
		v.Kind = config.List
		for i, item := range n.Content {
			v.Items = append(v.Items, d.value(item, config.At(path, i)))
		}
	default:
		scalar(v, n)
		if v.Lines {
			d.literal[path] = n
		}
	}
	return v
}

// members adds the members of a mapping. Of keys that are given twice each but
// the first has a path that no other has.
func (d *document) members(v *config.Value, n *yaml.Node) {
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		at := config.Of(v.Place.Path, n.Content[i].Value)
		for ; seen[at]; at += "(again)" {
		}
		seen[at] = true
		key := d.value(n.Content[i], at)
		key.Place.Key = true
		d.places[key.Place] = positionOf(n.Content[i])
		v.Members = append(v.Members, config.Member{Key: key, Value: d.value(n.Content[i+1], at)})
	}
}

// scalar makes v what a scalar says. One that is exactly ${NAME} is taken from
// the environment, unless it carries the tag !!str, by which export marks a text
// that only looks like it. A date is a text: YAML tells them apart, nobody else does.
func scalar(v *config.Value, n *yaml.Node) {
	v.Text, v.Kind = n.Value, config.Text
	switch n.ShortTag() {
	case "!!null":
		v.Kind = config.Null
	case "!!bool":
		v.Kind = config.Bool
	case "!!int", "!!float":
		v.Kind, v.Whole = config.Number, n.ShortTag() == "!!int"
	default:
		v.Lines = n.Style&yaml.LiteralStyle != 0
		if m := envRule.FindStringSubmatch(n.Value); m != nil && n.Style&yaml.TaggedStyle == 0 {
			v.Variable = m[1]
		}
		return
	}
	var decoded any
	if n.Decode(&decoded) == nil {
		v.JSON, _ = json.Marshal(decoded) // nil for what has no end
	}
}

// root reads the one YAML document of a file; nil when that is impossible.
func (d *document) root() *yaml.Node {
	if len(d.src) > maxSize {
		d.add(start, "the manifest is larger than %d MiB", maxSize>>20)
		return nil
	}
	if at := config.InvalidUTF8(d.src); at >= 0 {
		d.add(position{line: 1 + bytes.Count(d.src[:at], []byte("\n"))}, "expected UTF-8 text")
		return nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(d.src))
	var doc, more yaml.Node
	err := dec.Decode(&doc)
	switch {
	case errors.Is(err, io.EOF) || err == nil && len(doc.Content) != 1:
		d.add(start, "the manifest is empty: expected at least tenant: NAME")
		return nil
	case err != nil:
		d.syntax(err)
		return nil
	}
	switch err := dec.Decode(&more); {
	case err == nil:
		d.fail(&more, "a second document begins here: expected one tenant a file")
		return nil
	case !errors.Is(err, io.EOF):
		d.syntax(err)
		return nil
	}
	return doc.Content[0]
}

var plainTags = map[string]bool{"!!str": true, "!!int": true, "!!float": true, "!!bool": true, "!!null": true,
	"!!map": true, "!!seq": true, "!!timestamp": true, "": true}

// plain refuses what makes YAML more than a tree of values: anchors, aliases,
// merge keys and tags of one's own.
func (d *document) plain(n *yaml.Node) bool {
	ok := true
	switch {
	case n.Kind == yaml.AliasNode:
		d.fail(n, "aliases (*%s) are not supported: write the value out", n.Value)
		return false
	case n.Anchor != "":
		d.fail(n, "anchors (&%s) are not supported: write the value out where it is needed", n.Anchor)
		ok = false
	case n.ShortTag() == "!!merge":
		d.fail(n, "merge keys (<<) are not supported: write the members out")
		return false
	case !plainTags[n.ShortTag()]:
		d.fail(n, "the tag %s is not supported", n.Tag)
		ok = false
	}
	for _, c := range n.Content {
		ok = d.plain(c) && ok
	}
	return ok
}
