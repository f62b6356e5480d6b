package automation

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/wtf8"
)

var errLong = errors.New("the value is too large")

// appendJSON appends a value as JSON text. It returns errLong, and a beginning of the
// text, when dst gets longer than limit, and errDeep for a value that is nested
// deeper than MaxDepth. A value may contain another many times, so that its size is
// not known before it is written.
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
			return wtf8.AppendUTF8(dst, strings.ToValidUTF8(v[:max(limit-len(dst), 0)], "")), errLong
		}
		dst = wtf8.AppendUTF8(dst, v)
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
		dst = wtf8.AppendUTF8(dst, o.members[i].name)
		dst = append(dst, ':')
		if dst, err = encode(dst, o.members[i].value, limit, depth); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

// appendText appends a value for use inside other text: text unchanged, null as
// nothing, all else as JSON. The errors are those of appendJSON.
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

// appendNumber appends a double in its shortest form, as ECMAScript does. f must be
// finite, as all numbers of a run are.
func appendNumber(dst []byte, f float64) []byte {
	if n := int64(f); float64(n) == f && n > -1e15 && n < 1e15 && (n != 0 || !math.Signbit(f)) {
		return strconv.AppendInt(dst, n, 10)
	}
	if size := math.Abs(f); f != 0 && (size < 1e-6 || size >= 1e21) {
		return strconv.AppendFloat(dst, f, 'e', -1, 64)
	}
	return strconv.AppendFloat(dst, f, 'f', -1, 64)
}
