package schema

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/number"
)

// JSON is an object or a list.
const JSON Type = "json"

var jsonType = fieldType{
	name: JSON,
	list: true,
	canonical: func(_ *Field, v jsontext.Value) (jsontext.Value, string) {
		return canonicalJSON(v)
	},
}

// maxLevels is how deeply lists and objects may be nested in a value: as deeply
// as a body may be, which is one level around it.
const maxLevels = 63

// canonicalJSON returns a list or object in the form that both engines return
// byte for byte: compact, numbers and texts in their one form, and the
// members of an object in the order of PostgreSQL's JSONB, shorter names first.
func canonicalJSON(v jsontext.Value) (jsontext.Value, string) {
	if k := v.Kind(); k != '{' && k != '[' {
		return nil, "expected an object or a list"
	}
	w := jsonWriter{in: jsontext.NewDecoder(bytes.NewReader(v)), out: make([]byte, 0, len(v))}
	if reason := w.value(0); reason != "" {
		return nil, reason
	}
	return w.out, ""
}

// jsonWriter copies one value from in to out.
type jsonWriter struct {
	in  *jsontext.Decoder
	out []byte
}

// value copies the next value, which is nested in depth lists and objects. It
// returns why it cannot be stored, "" if it can.
func (w *jsonWriter) value(depth int) string {
	token, err := w.in.ReadToken()
	if err != nil {
		return "expected well-formed JSON, without half of a surrogate pair"
	}
	switch token.Kind() {
	case '"':
		return w.text(token.String())
	case '0':
		return w.number(token.String())
	case '{', '[':
		if depth++; depth > maxLevels {
			return "lists and objects are nested too deeply: expected at most 63 levels"
		}
		if token.Kind() == '{' {
			return w.object(depth)
		}
		return w.list(depth)
	}
	w.out = append(w.out, token.String()...) // null, true or false
	return ""
}

func (w *jsonWriter) text(s string) string {
	if strings.IndexByte(s, 0) >= 0 {
		return hasNUL + w.where()
	}
	out, err := jsontext.AppendQuote(w.out, s)
	if err != nil {
		return "expected text in UTF-8"
	}
	w.out = out
	return ""
}

func (w *jsonWriter) number(text string) string {
	f, ok := number.Parse([]byte(text))
	switch {
	case !ok:
		return number.OutOfRange + w.where()
	case number.InexactInteger([]byte(text), f):
		return "expected no integer beyond 2^53, as clients read it as another one" + w.where()
	}
	w.out = number.Append(w.out, f)
	return ""
}

// where returns the place of the value just read, or "" when it is long.
func (w *jsonWriter) where() string {
	if at := string(w.in.StackPointer()); len(at) <= 100 {
		return " at " + at
	}
	return ""
}

func (w *jsonWriter) list(depth int) string {
	w.out = append(w.out, '[')
	for n := 0; w.in.PeekKind() != ']'; n++ {
		if n > 0 {
			w.out = append(w.out, ',')
		}
		if reason := w.value(depth); reason != "" {
			return reason
		}
	}
	return w.end(']')
}

// end copies the end of a list or object.
func (w *jsonWriter) end(c byte) string {
	if _, err := w.in.ReadToken(); err != nil {
		return "expected well-formed JSON"
	}
	w.out = append(w.out, c)
	return ""
}

// jsonMember is a member of an object in out: its name and its position.
type jsonMember struct {
	name       string
	start, end int
}

func (w *jsonWriter) object(depth int) string {
	w.out = append(w.out, '{')
	begin := len(w.out)
	var members []jsonMember
	for w.in.PeekKind() != '}' {
		name, err := w.in.ReadToken()
		if err != nil || name.Kind() != '"' {
			return "expected well-formed JSON"
		}
		if len(members) > 0 {
			w.out = append(w.out, ',')
		}
		m := jsonMember{name: name.String(), start: len(w.out)}
		if reason := w.text(m.name); reason != "" {
			return reason
		}
		w.out = append(w.out, ':')
		if reason := w.value(depth); reason != "" {
			return reason
		}
		m.end = len(w.out)
		members = append(members, m)
	}
	w.sort(begin, members)
	return w.end('}')
}

// sort orders the members of the object whose inside begins at begin in out.
func (w *jsonWriter) sort(begin int, members []jsonMember) {
	order := func(a, b jsonMember) int {
		return cmp.Or(cmp.Compare(len(a.name), len(b.name)), cmp.Compare(a.name, b.name))
	}
	if slices.IsSortedFunc(members, order) {
		return
	}
	as := bytes.Clone(w.out[begin:])
	slices.SortFunc(members, order)
	w.out = w.out[:begin]
	for i, m := range members {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		w.out = append(w.out, as[m.start-begin:m.end-begin]...)
	}
}
