package manifest

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// decoder reads YAML nodes strictly: whatever is not as expected becomes a
// problem, and decoding goes on, so that an author learns of everything at once.
type decoder struct {
	*Problems
	getenv func(string) string
	read   reader // nil when files that the manifest names are not to be read
	key    string // whose value is being read
}

// reader reads a file whose path is relative to the manifest's folder.
type reader func(path string) ([]byte, error)

func (d *decoder) fail(n *yaml.Node, format string, args ...any) { d.add(n.Line, format, args...) }

// bad is fail for a value: it says first of which key.
func (d *decoder) bad(n *yaml.Node, format string, args ...any) {
	prefix := ""
	if d.key != "" {
		prefix = printable(d.key) + ": "
	}
	d.fail(n, "%s%s", prefix, fmt.Sprintf(format, args...))
}

// within reads what stands under a key that was kept for later.
func (d *decoder) within(key string, read func()) {
	was := d.key
	d.key = key
	read()
	d.key = was
}

// member is a key that a mapping may have, and what reads its value.
type member struct {
	key  string
	read func(*yaml.Node)
}

// object reads a mapping whose keys are known. what names it in messages ("a field").
func (d *decoder) object(n *yaml.Node, what string, members ...member) (given map[string]bool) {
	names := make([]string, len(members))
	for i, m := range members {
		names[i] = m.key
	}
	given = map[string]bool{}
	d.mapping(n, what, func(key, value *yaml.Node) {
		i := slices.Index(names, key.Value)
		if i < 0 {
			d.fail(key, "unknown key %s in %s: expected %s", show(key.Value), what, strings.Join(names, ", "))
			return
		}
		given[key.Value] = true
		members[i].read(value)
	})
	return given
}

// mapping reads a mapping with keys of the author's choice, each only once.
func (d *decoder) mapping(n *yaml.Node, what string, each func(key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		d.wrong(n, strings.TrimPrefix(what+" as a mapping", d.key+" as "))
		return
	}
	lines := map[string]int{}
	defer func(was string) { d.key = was }(d.key)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if unquotedTemplate(n) {
			d.fail(key, "a text with {{…}} needs quotes: \"{{…}}\"")
			continue
		}
		if key.Kind != yaml.ScalarNode {
			d.fail(key, "expected a name as key of %s, found %s", what, kindOf(key))
			continue
		}
		if line, twice := lines[key.Value]; twice {
			d.fail(key, "key %s is given twice in %s, first on line %d", show(key.Value), what, line)
			continue
		}
		lines[key.Value] = key.Line
		d.key = key.Value
		each(key, value)
	}
}

// list reads a sequence. what names it in messages ("a list of roles").
func (d *decoder) list(n *yaml.Node, what string, each func(i int, item *yaml.Node)) {
	if n.Kind != yaml.SequenceNode {
		d.wrong(n, what)
		return
	}
	for i, item := range n.Content {
		each(i, item)
	}
}

// scalar is a value as it stands in the file or, when env, as the environment
// variable named by `${NAME}` has it.
type scalar struct {
	text string
	tag  string
	env  bool
}

// envRule is a scalar that stands for an environment variable (decisions 4).
var envRule = regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$`)

// scalar reads a single value; one that is exactly ${NAME} is taken from the
// environment, unless it carries the tag !!str, by which export marks a text
// that only looks like it.
func (d *decoder) scalar(n *yaml.Node, expected string) (scalar, bool) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		d.wrong(n, expected)
		return scalar{}, false
	}
	m := envRule.FindStringSubmatch(n.Value)
	if m == nil || n.Style&yaml.TaggedStyle != 0 {
		return scalar{text: n.Value, tag: n.ShortTag()}, true
	}
	text := d.getenv(m[1])
	if text == "" {
		d.bad(n, "the environment variable %s is not set, or empty", m[1])
		return scalar{}, false
	}
	return scalar{text: text, tag: "env", env: true}, true
}

// text reads a text. A date counts as text: YAML tells them apart, nobody else does.
func (d *decoder) text(n *yaml.Node) (string, bool) {
	s, ok := d.scalar(n, "text")
	if !ok {
		return "", false
	}
	if s.tag != "!!str" && s.tag != "!!timestamp" && !s.env {
		d.wrong(n, "text")
		return "", false
	}
	return s.text, d.storable(n, s.text)
}

// verbatim reads a text in which nothing is taken from the environment.
func (d *decoder) verbatim(n *yaml.Node) (string, bool) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" && n.ShortTag() != "!!timestamp" {
		d.wrong(n, "text")
		return "", false
	}
	return n.Value, d.storable(n, n.Value)
}

// storable reports whether a text can be stored, and says so if not.
func (d *decoder) storable(n *yaml.Node, s string) bool {
	if strings.ContainsRune(s, 0) {
		d.bad(n, "expected text without the character U+0000")
		return false
	}
	return true
}

// oneOf reads a text out of a fixed choice.
func (d *decoder) oneOf(n *yaml.Node, choice ...string) (string, bool) {
	s, ok := d.text(n)
	if !ok {
		return "", false
	}
	if !slices.Contains(choice, s) {
		d.bad(n, "expected %s, found %s", orList(choice), d.found(n))
		return "", false
	}
	return s, true
}

// texts reads a list of texts, all different.
func (d *decoder) texts(n *yaml.Node, what string, each func(item *yaml.Node, text string)) {
	seen := map[string]bool{}
	d.list(n, "a list of "+what, func(_ int, item *yaml.Node) {
		s, ok := d.text(item)
		if !ok {
			return
		}
		if seen[s] {
			d.bad(item, "%s stands twice", d.found(item))
			return
		}
		seen[s] = true
		each(item, s)
	})
}

// boolean reads true or false.
func (d *decoder) boolean(n *yaml.Node) (value, ok bool) {
	s, ok := d.scalar(n, "true or false")
	if !ok {
		return false, false
	}
	lower := strings.ToLower(s.text)
	if (s.tag != "!!bool" && !s.env) || (lower != "true" && lower != "false") {
		d.wrong(n, "true or false")
		return false, false
	}
	return lower == "true", true
}

// maxLimit bounds every number of a manifest; they are counts a minute, an hour or a day.
const maxLimit = 1_000_000_000

// limit reads a whole number of at least 1.
func (d *decoder) limit(n *yaml.Node) (int, bool) {
	s, ok := d.scalar(n, "a whole number of at least 1")
	if !ok {
		return 0, false
	}
	value, err := strconv.Atoi(s.text)
	if (s.tag != "!!int" && !s.env) || err != nil || value < 1 || value > maxLimit {
		if s.tag == "!!int" {
			d.bad(n, "expected a whole number of 1 to %d, found %s", maxLimit, s.text)
		} else {
			d.wrong(n, "a whole number of at least 1")
		}
		return 0, false
	}
	return value, true
}

// wrong notes that something else was expected than what the node is.
func (d *decoder) wrong(n *yaml.Node, expected string) {
	found := kindOf(n)
	if expected == "text" && found == "a number" {
		found += " (in quotes it is a text)"
	}
	if unquotedTemplate(n) {
		found += ` (a text with {{…}} needs quotes: "{{…}}")`
	}
	d.bad(n, "expected %s, found %s", expected, found)
}

// found is the node's value for a message. What came from the environment may
// be a secret, and is not told.
func (d *decoder) found(n *yaml.Node) string {
	if envRule.MatchString(n.Value) {
		return "the value of " + n.Value
	}
	return show(n.Value)
}

// to, flag and count read a member straight into a variable, which keeps its
// value when the member is not as expected.
func (d *decoder) to(p *string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if s, ok := d.text(n); ok {
			*p = s
		}
	}
}

func (d *decoder) flag(p *bool) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if v, ok := d.boolean(n); ok {
			*p = v
		}
	}
}

func (d *decoder) count(p *int) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if v, ok := d.limit(n); ok {
			*p = v
		}
	}
}

// between reads a whole number within bounds straight into a variable.
func (d *decoder) between(p *int, low, high int) func(*yaml.Node) {
	return func(n *yaml.Node) {
		expected := fmt.Sprintf("a whole number of %d to %d", low, high)
		s, ok := d.scalar(n, expected)
		if !ok {
			return
		}
		value, err := strconv.Atoi(s.text)
		switch {
		case (s.tag == "!!int" || s.env) && err == nil && value >= low && value <= high:
			*p = value
		case s.tag == "!!int":
			d.bad(n, "expected %s, found %s", expected, s.text)
		default:
			d.wrong(n, expected)
		}
	}
}

func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	if envRule.MatchString(n.Value) {
		return "the value of " + n.Value
	}
	switch n.ShortTag() {
	case "!!null":
		return "nothing"
	case "!!bool":
		return n.Value
	case "!!int", "!!float":
		return "a number"
	}
	return "text"
}

func orList(choice []string) string {
	if len(choice) < 2 {
		return strings.Join(choice, "")
	}
	last := len(choice) - 1
	return strings.Join(choice[:last], ", ") + " or " + choice[last]
}

// show is a text for a message of one line.
func show(s string) string {
	if len(s) > 80 {
		s = strings.ToValidUTF8(s[:77], "") + "…"
	}
	return fmt.Sprintf("%q", s)
}
