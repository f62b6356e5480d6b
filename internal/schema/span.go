package schema

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Span is a range of index keys (Field.IndexKey): From is in it, To is not.
type Span struct{ From, To string }

// Everything has the keys of all values that are set.
var Everything = Span{"", Unset}

// Within returns what is in both spans.
func (s Span) Within(of Span) Span { return Span{max(s.From, of.From), min(s.To, of.To)} }

// least follows a key in the place of the next one: no key has a lesser character.
const least = "\x01"

// exactKey is the length in bytes up to which a text is in its key as it is.
const exactKey = 300

// Span returns a range in which the keys of all values are for which the condition
// holds, and few others. ok is false where there is none, or it is of no use.
func (c *Condition) Span() (s Span, ok bool) {
	s = Everything
	key, whole := c.Operand, true
	switch c.Op {
	case OpIsNull:
		return s, c.Operand == "false"
	case OpPrefix:
		key, _ = shortened(key)
		s.From, s.To = key, min(after(key), s.To)
		return s, true
	case OpLt, OpLte, OpGt, OpGte:
	default:
		return s, false
	}
	switch kind := c.field.kind(); {
	case kind.ordered != nil:
		if key, ok = kind.ordered(key); !ok {
			return s, false
		}
	default:
		key, whole = shortened(key)
	}
	switch c.Op {
	case OpGt, OpGte:
		if s.From = key; c.Op == OpGt && whole {
			s.From += least
		}
	default:
		if s.To = key; !whole {
			s.To = after(key)
		} else if c.Op == OpLte {
			s.To += least
		}
		s.To = min(s.To, Unset)
	}
	return s, true
}

// Reach returns a range as Span does, also for a condition that names values: it is from the
// least of their keys to the greatest.
func (c *Condition) Reach() (s Span, ok bool) {
	switch {
	case c.Op == OpEq || c.Op == OpIn:
		return Span{slices.Min(c.Keys), slices.Max(c.Keys) + least}, true
	case c.Op == OpIsNull && c.Operand == "true":
		return Span{Unset, Unset + least}, true
	}
	return c.Span()
}

// shortened returns the beginning of a text that keys of texts begin with as well, and
// whether that is the whole text.
func shortened(text string) (string, bool) {
	if text >= beforeUnset {
		return beforeUnset, false
	}
	if len(text) <= exactKey {
		return text, !digested(text)
	}
	return strings.ToValidUTF8(text[:exactKey], ""), false
}

// after returns a text that is greater than all that begin with a prefix.
func after(prefix string) string {
	for prefix != "" {
		r, size := utf8.DecodeLastRuneInString(prefix)
		prefix = prefix[:len(prefix)-size]
		switch {
		case r == 0xD7FF: // surrogates are no characters
			return prefix + "\uE000"
		case r < utf8.MaxRune:
			return prefix + string(r+1)
		}
	}
	return Unset
}
