package openapi

import (
	"fmt"
	"strconv"

	"gatehouse/internal/wtf8"
)

// object is a JSON object whose members keep the order in which they were added,
// so that the same configuration gives the same document.
type object []member

type member struct {
	name  string
	value any // object, list, text, whole number, true, false or nil
}

type list []any

// obj returns an object of names and values in turn.
func obj(pairs ...any) object {
	o := make(object, 0, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		o = append(o, member{pairs[i].(string), pairs[i+1]})
	}
	return o
}

// with returns the object with one more member.
func (o object) with(name string, value any) object { return append(o, member{name, value}) }

// texts returns a list of texts.
func texts[T ~string](values ...T) list {
	l := make(list, len(values))
	for i, v := range values {
		l[i] = string(v)
	}
	return l
}

// appendValue appends a value as JSON. It panics for a value that member does not
// list, which is a mistake in this package.
func appendValue(dst []byte, value any) []byte {
	switch v := value.(type) {
	case object:
		dst = append(dst, '{')
		for i, m := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(wtf8.AppendUTF8(dst, m.name), ':')
			dst = appendValue(dst, m.value)
		}
		return append(dst, '}')
	case list:
		dst = append(dst, '[')
		for i, one := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendValue(dst, one)
		}
		return append(dst, ']')
	case string:
		return wtf8.AppendUTF8(dst, v)
	case int:
		return strconv.AppendInt(dst, int64(v), 10)
	case bool:
		return strconv.AppendBool(dst, v)
	case nil:
		return append(dst, "null"...)
	}
	panic(fmt.Sprintf("openapi: a %T cannot be written", value))
}
