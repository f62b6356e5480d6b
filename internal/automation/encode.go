package automation

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

var errLong = errors.New("the value is too large")

// appendJSON writes a value as JSON text; more than limit bytes in dst are
// errLong, and then it has written a beginning. A value may hold another many
// times, so that only what is written tells its size.
func appendJSON(dst []byte, v any, limit int) ([]byte, error) {
	return encode(dst, v, limit, 0)
}

func encode(dst []byte, v any, limit, depth int) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		dst = append(dst, "null"...)
	case bool:
		dst = strconv.AppendBool(dst, v)
	case float64:
		dst = appendNumber(dst, v)
	case number:
		dst = append(dst, v...)
	case string:
		if len(dst)+len(v) > limit {
			return appendString(dst, strings.ToValidUTF8(v[:max(limit-len(dst), 0)], "")), errLong
		}
		dst = appendString(dst, v)
	case jsontext.Value:
		if len(dst)+len(v) > limit {
			return append(dst, v[:max(limit-len(dst), 0)]...), errLong
		}
		dst = append(dst, v...)
	case []any:
		return encodeList(dst, v, limit, depth+1)
	case *object:
		return encodeObject(dst, v, limit, depth+1)
	}
	if len(dst) > limit {
		return dst, errLong
	}
	return dst, nil
}

func encodeList(dst []byte, list []any, limit, depth int) (_ []byte, err error) {
	if depth > MaxDepth {
		return dst, errDeep
	}
	dst = append(dst, '[')
	for i, v := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = encode(dst, v, limit, depth); err != nil {
			return dst, err
		}
	}
	return append(dst, ']'), nil
}

func encodeObject(dst []byte, o *object, limit, depth int) (_ []byte, err error) {
	if depth > MaxDepth {
		return dst, errDeep
	}
	dst = append(dst, '{')
	for i := range o.members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(dst, o.members[i].name)
		dst = append(dst, ':')
		if dst, err = encode(dst, o.members[i].value, limit, depth); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

// appendText writes a value as it stands inside other text: text as it is, null
// as nothing, all else as JSON.
func appendText(dst []byte, v any, limit int) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return dst, nil
	case string:
		if len(dst)+len(v) > limit {
			return dst, errLong
		}
		return append(dst, v...), nil
	}
	return appendJSON(dst, v, limit)
}

// appendString writes a JSON string. Most need no escape.
func appendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c > '~' {
			dst, _ = jsontext.AppendQuote(dst, s) // the error is about bytes that it has replaced
			return dst
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

// appendNumber writes a double in its shortest form, as ECMAScript does; JSON
// has no infinities, and nothing makes them.
func appendNumber(dst []byte, f float64) []byte {
	if n := int64(f); float64(n) == f && n > -1e15 && n < 1e15 && (n != 0 || !math.Signbit(f)) {
		return strconv.AppendInt(dst, n, 10)
	}
	if size := math.Abs(f); f != 0 && (size < 1e-6 || size >= 1e21) {
		return strconv.AppendFloat(dst, f, 'e', -1, 64)
	}
	return strconv.AppendFloat(dst, f, 'f', -1, 64)
}
