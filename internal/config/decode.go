package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// decoder reads values strictly: anything unexpected becomes a problem and decoding
// continues, so that the author sees every mistake at once.
type decoder struct {
	*Problems
	getenv func(string) string
	read   func(path string) ([]byte, error)
	key    string // the key whose value is being read
}

func (d *decoder) fail(n *Value, format string, args ...any) { d.add(n.Place, format, args...) }

// bad is fail for a value: the message begins with its key.
func (d *decoder) bad(n *Value, format string, args ...any) {
	if d.key == "" {
		d.fail(n, format, args...)
		return
	}
	d.member(n.Place, printable(d.key), format, args...)
}

// within calls read with the decoder at a key whose value is read later.
func (d *decoder) within(key string, read func()) {
	was := d.key
	d.key = key
	read()
	d.key = was
}

// member is an allowed key of a mapping and the function that reads its value.
type member struct {
	key  string
	read func(*Value)
}

// object reads a mapping with a fixed set of keys. what names it in messages ("a field").
func (d *decoder) object(n *Value, what string, members ...member) (given map[string]bool) {
	names := make([]string, len(members))
	for i, m := range members {
		names[i] = m.key
	}
	given = map[string]bool{}
	d.mapping(n, what, func(key, value *Value) {
		i := slices.Index(names, key.Text)
		if i < 0 {
			d.fail(key, "unknown key %s in %s: expected %s", show(key.Text), what, strings.Join(names, ", "))
			return
		}
		given[key.Text] = true
		members[i].read(value)
	})
	return given
}

// mapping reads a mapping with arbitrary keys, each at most once.
func (d *decoder) mapping(n *Value, what string, each func(key, value *Value)) {
	if n.Kind != Mapping {
		d.wrong(n, strings.TrimPrefix(what+" as a mapping", d.key+" as "))
		return
	}
	places := map[string]Place{}
	defer func(was string) { d.key = was }(d.key)
	for _, m := range n.Members {
		key := m.Key
		if n.Hint != "" {
			d.fail(key, "%s", n.Hint)
			continue
		}
		if key.Kind == Mapping || key.Kind == List {
			d.fail(key, "expected a name as key of %s, found %s", what, kindOf(key))
			continue
		}
		if first, twice := places[key.Text]; twice {
			d.twice(key.Place, first, "key %s is given twice in %s", show(key.Text), what)
			continue
		}
		places[key.Text] = key.Place
		d.key = key.Text
		each(key, m.Value)
	}
}

// list reads a sequence. what names it in messages ("a list of roles").
func (d *decoder) list(n *Value, what string, each func(i int, item *Value)) {
	if n.Kind != List {
		d.wrong(n, what)
		return
	}
	for i, item := range n.Items {
		each(i, item)
	}
}

// scalar is a single value as it was given or, if env, as the environment has it.
type scalar struct {
	text  string
	kind  Kind
	whole bool // as Value.Whole
	env   bool
}

// scalar reads a single value, out of the environment where it names a variable.
func (d *decoder) scalar(n *Value, expected string) (scalar, bool) {
	if n.Kind != Text && n.Kind != Number && n.Kind != Bool {
		d.wrong(n, expected)
		return scalar{}, false
	}
	if n.Variable == "" {
		return scalar{text: n.Text, kind: n.Kind, whole: n.Whole}, true
	}
	text := d.getenv(n.Variable)
	if text == "" {
		d.bad(n, "the environment variable %s is not set, or empty", n.Variable)
		return scalar{}, false
	}
	return scalar{text: text, env: true}, true
}

// meant returns the text of a value that was read before.
func (d *decoder) meant(n *Value) string {
	if n.Variable != "" {
		return d.getenv(n.Variable)
	}
	return n.Text
}

// text reads a text.
func (d *decoder) text(n *Value) (string, bool) {
	s, ok := d.scalar(n, "text")
	if !ok {
		return "", false
	}
	if s.kind != Text && !s.env {
		d.wrong(n, "text")
		return "", false
	}
	return s.text, d.storable(n, s.text)
}

// verbatim reads a text without replacing a variable.
func (d *decoder) verbatim(n *Value) (string, bool) {
	if n.Kind != Text {
		d.wrong(n, "text")
		return "", false
	}
	return n.Text, d.storable(n, n.Text)
}

// storable reports whether a text can be stored, and adds a problem if not.
func (d *decoder) storable(n *Value, s string) bool {
	if strings.ContainsRune(s, 0) {
		d.bad(n, "expected text without the character U+0000")
		return false
	}
	return true
}

// oneOf reads one of a fixed set of texts.
func (d *decoder) oneOf(n *Value, choice ...string) (string, bool) {
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

// texts reads a list of distinct texts.
func (d *decoder) texts(n *Value, what string, each func(item *Value, text string)) {
	seen := map[string]bool{}
	d.list(n, "a list of "+what, func(_ int, item *Value) {
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
func (d *decoder) boolean(n *Value) (value, ok bool) {
	s, ok := d.scalar(n, "true or false")
	if !ok {
		return false, false
	}
	lower := strings.ToLower(s.text)
	if (s.kind != Bool && !s.env) || (lower != "true" && lower != "false") {
		d.wrong(n, "true or false")
		return false, false
	}
	return lower == "true", true
}

// maxLimit bounds every number; they are counts per minute, hour or day.
const maxLimit = 1_000_000_000

// limit reads a whole number of at least 1.
func (d *decoder) limit(n *Value) (int, bool) {
	s, ok := d.scalar(n, "a whole number of at least 1")
	if !ok {
		return 0, false
	}
	value, err := strconv.Atoi(s.text)
	if (!s.whole && !s.env) || err != nil || value < 1 || value > maxLimit {
		if s.whole {
			d.bad(n, "expected a whole number of 1 to %d, found %s", maxLimit, s.text)
		} else {
			d.wrong(n, "a whole number of at least 1")
		}
		return 0, false
	}
	return value, true
}

// wrong adds a problem for a value of the wrong kind.
func (d *decoder) wrong(n *Value, expected string) {
	found := kindOf(n)
	if expected == "text" && found == "a number" {
		found += " (in quotes it is a text)"
	}
	if n.Hint != "" {
		found += " (" + n.Hint + ")"
	}
	d.bad(n, "expected %s, found %s", expected, found)
}

// found returns the value as a message shows it. A value of the environment may be
// a secret and is not shown.
func (d *decoder) found(n *Value) string {
	if n.Variable != "" {
		return "the value of " + n.Text
	}
	return show(n.Text)
}

// to, flag and count return functions that read a member into a variable, which
// keeps its value when the member is wrong.
func (d *decoder) to(p *string) func(*Value) {
	return func(n *Value) {
		if s, ok := d.text(n); ok {
			*p = s
		}
	}
}

func (d *decoder) flag(p *bool) func(*Value) {
	return func(n *Value) {
		if v, ok := d.boolean(n); ok {
			*p = v
		}
	}
}

func (d *decoder) count(p *int) func(*Value) {
	return func(n *Value) {
		if v, ok := d.limit(n); ok {
			*p = v
		}
	}
}

// between is count for a whole number within bounds.
func (d *decoder) between(p *int, low, high int) func(*Value) {
	return func(n *Value) {
		expected := fmt.Sprintf("a whole number of %d to %d", low, high)
		s, ok := d.scalar(n, expected)
		if !ok {
			return
		}
		value, err := strconv.Atoi(s.text)
		switch {
		case (s.whole || s.env) && err == nil && value >= low && value <= high:
			*p = value
		case s.whole:
			d.bad(n, "expected %s, found %s", expected, s.text)
		default:
			d.wrong(n, expected)
		}
	}
}

func kindOf(n *Value) string {
	if n.Variable != "" {
		return "the value of " + n.Text
	}
	switch n.Kind {
	case Mapping:
		return "a mapping"
	case List:
		return "a list"
	case Null:
		return "nothing"
	case Bool:
		return n.Text
	case Number:
		return "a number"
	case JSON:
		return "JSON"
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

// show returns a text in the form of a one-line message.
func show(s string) string {
	if len(s) > 80 {
		s = strings.ToValidUTF8(s[:77], "") + "…"
	}
	return fmt.Sprintf("%q", s)
}

// InvalidUTF8 returns the offset of the first byte that is not UTF-8, or -1.
func InvalidUTF8(src []byte) int {
	for i := 0; i < len(src); {
		r, size := utf8.DecodeRune(src[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}
