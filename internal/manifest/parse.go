package manifest

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"gatehouse/internal/access"
	"gatehouse/internal/schema"
	"gatehouse/internal/tenant"
)

// manifest is what a file says, before anything is known of what is stored.
// It is not changed after parse.
type manifest struct {
	file string
	// lines tells where the object of a path stands; see mark.
	lines map[string]int

	tenant          string
	displayName     string
	hosts           []string // canonical, in the file's order
	adminHosts      []string
	baseURL         string
	publicAPI       tenant.PublicAPI
	unauthenticated int
	external        tenant.ExternalIdentity

	entities   []*schema.Entity
	userFields []*schema.Field
	roles      []access.Role
	sets       []*access.PermissionSet
	rules      []*ruleDecl
	users      []*userDecl

	dedupRetention int
	components     []*componentDecl
	automations    []*automationDecl
	endpoints      []*endpointDecl
	templates      map[string]tenant.EmailTemplate
}

// maxSize bounds a manifest, which is read whole.
const maxSize = 8 << 20

// mark remembers the line of an object: the section's key, then whatever
// leads to it inside.
func (m *manifest) mark(n *yaml.Node, path ...string) {
	key := strings.Join(path, "\x00")
	if _, had := m.lines[key]; !had {
		m.lines[key] = n.Line
	}
}

// line finds the line of an object, or of the nearest thing around it that is
// in the file.
func (m *manifest) line(path ...string) int {
	for ; len(path) > 0; path = path[:len(path)-1] {
		if line, ok := m.lines[strings.Join(path, "\x00")]; ok {
			return line
		}
	}
	return 1
}

// has reports whether the manifest has a top-level key.
func (m *manifest) has(key string) bool { _, ok := m.lines[key]; return ok }

// names reports whether the manifest has an object.
func (m *manifest) names(path ...string) bool {
	_, ok := m.lines[strings.Join(path, "\x00")]
	return ok
}

// parse reads a manifest. The manifest is as whole as it could be read even
// when there are problems; its tenant is "" when nothing more can be said. read
// gives the files that it names; nil leaves them unread.
func parse(file string, src []byte, getenv func(string) string, read reader) (*manifest, *Problems) {
	d := &decoder{Problems: &Problems{File: file}, getenv: getenv, read: read}
	m := &manifest{file: file, lines: map[string]int{}}
	root := d.document(src)
	if root == nil {
		return m, d.Problems
	}
	if root.Kind != yaml.MappingNode {
		d.wrong(root, "a manifest as a mapping, with at least the key tenant")
		return m, d.Problems
	}
	if !d.plain(root) {
		return m, d.Problems
	}
	d.mapping(root, "the manifest", func(key, value *yaml.Node) { d.section(m, key, value) })
	if !m.has("tenant") {
		d.fail(root, "the key tenant is missing: expected tenant: NAME")
	}
	return m, d.Problems
}

func (d *decoder) section(m *manifest, key, value *yaml.Node) {
	for _, s := range sections {
		for _, name := range s.keys {
			if name == key.Value {
				m.mark(key, name)
				s.decode(d, m, name, value)
				return
			}
		}
	}
	d.fail(key, "unknown key %s: expected %s", show(key.Value), strings.Join(sectionKeys(), ", "))
}

func sectionKeys() []string {
	var keys []string
	for _, s := range sections {
		keys = append(keys, s.keys...)
	}
	return keys
}

// document reads the one YAML document of a file; nil when that is impossible.
func (d *decoder) document(src []byte) *yaml.Node {
	if len(src) > maxSize {
		d.add(1, "the manifest is larger than %d MiB", maxSize>>20)
		return nil
	}
	if at := invalidUTF8(src); at >= 0 {
		d.add(1+bytes.Count(src[:at], []byte("\n")), "expected UTF-8 text")
		return nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(src))
	var doc, more yaml.Node
	err := dec.Decode(&doc)
	switch {
	case errors.Is(err, io.EOF) || err == nil && len(doc.Content) != 1:
		d.add(1, "the manifest is empty: expected at least tenant: NAME")
		return nil
	case err != nil:
		d.syntax(src, err)
		return nil
	}
	switch err := dec.Decode(&more); {
	case err == nil:
		d.fail(&more, "a second document begins here: expected one tenant a file")
		return nil
	case !errors.Is(err, io.EOF):
		d.syntax(src, err)
		return nil
	}
	return doc.Content[0]
}

func invalidUTF8(src []byte) int {
	for i := 0; i < len(src); {
		r, size := utf8.DecodeRune(src[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

var plainTags = map[string]bool{"!!str": true, "!!int": true, "!!float": true, "!!bool": true, "!!null": true,
	"!!map": true, "!!seq": true, "!!timestamp": true, "": true}

// plain refuses what makes YAML more than a tree of values: anchors, aliases,
// merge keys and tags of one's own.
func (d *decoder) plain(n *yaml.Node) bool {
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

// Check reads a manifest without a database, and without the files that it
// names: what it finds does not depend on what is stored. Its error is *Problems.
func Check(file string, src []byte, getenv func(string) string) error {
	_, problems := parse(file, src, getenv, nil)
	return problems.err()
}
