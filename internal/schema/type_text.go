package schema

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// Text is any string without U+0000.
const Text Type = "text"

var textType = fieldType{
	name:  Text,
	order: byBytes,
	canonical: func(_ *Field, v jsontext.Value) (jsontext.Value, string) {
		return canonicalString(v, "expected text")
	},
}

const hasNUL = "expected text without U+0000"

func canonicalString(v jsontext.Value, reason string) (jsontext.Value, string) {
	if v.Kind() != '"' {
		return nil, reason
	}
	s, err := jsontext.AppendUnquote(nil, v)
	if err != nil {
		return nil, reason
	}
	if bytes.IndexByte(s, 0) >= 0 { // a text of PostgreSQL cannot hold it
		return nil, hasNUL
	}
	q, err := jsontext.AppendQuote(nil, s)
	if err != nil {
		return nil, reason
	}
	return q, ""
}

// parsed is canonicalString for strings of a certain form.
func parsed(v jsontext.Value, reason string, ok func(string) bool) (jsontext.Value, string) {
	c, bad := canonicalString(v, reason)
	if bad != "" {
		return nil, bad
	}
	if !ok(Unquote(c)) {
		return nil, reason
	}
	return c, ""
}
