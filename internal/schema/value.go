package schema

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Null is the JSON null.
var Null = jsontext.Value("null")

// IsNull reports whether a value is JSON null or absent.
func IsNull(v jsontext.Value) bool { return len(v) == 0 || v[0] == 'n' }

// Canonical checks a JSON value against the field's type and returns it in the
// one form that is stored (contract V3): compact, numbers as number.Append writes
// them. When the value does not fit, canonical is nil and reason says what was
// expected. null always fits; the caller decides whether it may stand there
// (Required).
//
// v must be well-formed JSON without duplicate names (httpapi.ParseObject).
func (f *Field) Canonical(v jsontext.Value) (canonical jsontext.Value, reason string) {
	if IsNull(v) {
		return Null, ""
	}
	return f.kind().canonical(f, v)
}

// Unquote returns the text of a JSON string, and of any other value its JSON.
func Unquote(v jsontext.Value) string {
	if v.Kind() != '"' {
		return string(v)
	}
	s, err := jsontext.AppendUnquote(nil, v)
	if err != nil {
		return string(v)
	}
	return string(s)
}

// maxKey bounds an index entry: PostgreSQL refuses entries over about 2,700 bytes.
const maxKey = 400

// Key returns the text by which a value of the field is found: two values are
// equal exactly when their keys are. v must be canonical. null, lists and objects
// have no key; ok is false for them.
func (f *Field) Key(v jsontext.Value) (key string, ok bool) {
	if IsNull(v) || !f.Scalar() {
		return "", false
	}
	key = Unquote(v)
	if form := f.kind().key; form != nil {
		if key, ok = form(key); !ok {
			return "", false
		}
	}
	if len(key) > maxKey || digested(key) {
		sum := sha256.Sum256([]byte(key))
		key = strings.ToValidUTF8(key[:min(len(key), maxKey-70)], "") + ellipsis + hex.EncodeToString(sum[:])
	}
	return key, true
}

// Unset is what the index has in the place of the key of a value that is not set. It
// comes after every key, and none begins with it.
const Unset = "\U0010FFFF"

// IndexKey returns the text by which the index finds a value. Two values have the same
// one exactly when Key gives them the same, and the keys of a field are in the order
// of its values (contract P13). ok is false where Key has none.
func (f *Field) IndexKey(v jsontext.Value) (key string, ok bool) {
	key, ok = f.Key(v)
	switch {
	case ok && f.kind().ordered != nil:
		return f.kind().ordered(key)
	case ok && strings.HasPrefix(key, Unset):
		sum := sha256.Sum256([]byte(key))
		return beforeUnset + ellipsis + hex.EncodeToString(sum[:]), true
	}
	return key, ok
}

// beforeUnset begins the index keys of texts that begin with Unset.
const beforeUnset = "\U0010FFFE"

// ellipsis precedes the digest of a long text in its key.
const ellipsis = "…"

// digested reports whether a text has the form of the key of a long one. Key gives
// it a digest of its own, so that spelling a key does not make a value equal.
func digested(text string) bool {
	at := len(text) - 2*sha256.Size
	return at >= len(ellipsis) && text[at-len(ellipsis):at] == ellipsis && strings.Trim(text[at:], "0123456789abcdef") == ""
}

// ParseText reads the text form of a value, as it is given in a filter of a list,
// and returns the value as Canonical does: a text is taken as it is, a number or
// boolean is written as in JSON (contract P7).
func (f *Field) ParseText(s string) (canonical jsontext.Value, reason string) {
	if f.kind().literal {
		v := jsontext.Value(s)
		if !v.IsValid() || strings.TrimSpace(s) != s || IsNull(v) {
			return nil, "expected a " + string(f.Type)
		}
		return f.Canonical(v)
	}
	q, err := jsontext.AppendQuote(nil, s)
	if err != nil {
		return nil, "expected valid UTF-8"
	}
	return f.Canonical(q)
}
