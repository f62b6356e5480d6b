package schema

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/number"
)

// Null is the JSON null.
var Null = jsontext.Value("null")

// IsNull reports whether a value is JSON null or absent.
func IsNull(v jsontext.Value) bool { return len(v) == 0 || v[0] == 'n' }

// Canonical checks a JSON value against the field's type and returns it in the
// one form that is stored: compact, numbers as number.Append writes them. When
// the value does not fit, reason says what was expected. null always fits; whether
// it may stand there is the caller's question (Required).
//
// v must be well-formed JSON without duplicate names (httpapi.ParseObject).
func (f *Field) Canonical(v jsontext.Value) (canonical jsontext.Value, reason string) {
	if IsNull(v) {
		return Null, ""
	}
	switch f.Type {
	case Text:
		return canonicalString(v, "expected text")
	case Number:
		return canonicalNumber(v)
	case Boolean:
		if k := v.Kind(); k != 't' && k != 'f' {
			return nil, "expected true or false"
		}
		return v, ""
	case Date:
		return parsed(v, "expected a date like 2026-01-31", func(s string) bool {
			_, err := time.Parse(time.DateOnly, s)
			return err == nil
		})
	case Datetime:
		return parsed(v, "expected an RFC 3339 date and time like 2026-01-31T12:00:00Z", func(s string) bool {
			_, err := parseDatetime(s)
			return err == nil && strictDatetime(s)
		})
	case Select:
		return parsed(v, "expected one of "+strings.Join(f.Options, ", "), func(s string) bool {
			return slices.Contains(f.Options, s)
		})
	case Multiselect:
		return f.canonicalList(v)
	case Reference:
		return parsed(v, "expected the id of a record of "+f.Target, func(s string) bool { return s != "" })
	case JSON:
		return canonicalJSON(v)
	}
	return nil, "has an unknown type"
}

// parseDatetime reads what was stored. It takes a little more than Canonical
// does now (strictDatetime); a comma and a lower-case t are refused.
func parseDatetime(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err == nil && strings.ContainsRune(s, ',') {
		return t, strconv.ErrSyntax
	}
	return t, err
}

// strictDatetime reports whether what parseDatetime reads is RFC 3339: time.Parse
// takes an hour of one digit and an offset of 24 hours.
func strictDatetime(s string) bool {
	const hour, offset = "2006-01-02T15", "+07:00"
	if len(s) <= len(hour) || s[len(hour)] != ':' {
		return false
	}
	if strings.HasSuffix(s, "Z") {
		return true
	}
	zone := s[len(s)-len(offset):]
	return zone[1:3] < "24" && zone[4:6] < "60"
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
	if bytes.IndexByte(s, 0) >= 0 { // which a text of PostgreSQL cannot hold
		return nil, hasNUL
	}
	q, err := jsontext.AppendQuote(nil, s)
	if err != nil {
		return nil, reason
	}
	return q, ""
}

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

func canonicalNumber(v jsontext.Value) (jsontext.Value, string) {
	if v.Kind() != '0' {
		return nil, "expected a number"
	}
	n, ok := number.Parse(v)
	if !ok {
		return nil, number.OutOfRange
	}
	if math.Abs(n) > number.MaxInteger || number.Integer(v, n) {
		return nil, "expected an integer of at most 2^53, which a double holds exactly"
	}
	return number.Append(nil, n), ""
}

func (f *Field) canonicalList(v jsontext.Value) (jsontext.Value, string) {
	reason := "expected a list of distinct options out of " + strings.Join(f.Options, ", ")
	var list []string
	if v.Kind() != '[' || json.Unmarshal(v, &list) != nil || list == nil {
		return nil, reason
	}
	seen := map[string]bool{}
	for _, s := range list {
		if seen[s] || !slices.Contains(f.Options, s) {
			return nil, reason
		}
		seen[s] = true
	}
	b, err := json.Marshal(list)
	if err != nil {
		return nil, reason
	}
	return b, ""
}

// Unquote is the text of a JSON string; of anything else, its JSON.
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

// Key is the text by which equal values of the field are found: two values are
// equal exactly when their keys are. v is canonical; null has no key.
func (f *Field) Key(v jsontext.Value) (key string, ok bool) {
	if IsNull(v) || !f.Scalar() {
		return "", false
	}
	key = Unquote(v)
	if f.Type == Datetime {
		t, err := parseDatetime(key)
		if err != nil {
			return "", false
		}
		key = t.UTC().Format("2006-01-02T15:04:05.000000000Z")
	}
	if len(key) > maxKey || digested(key) {
		sum := sha256.Sum256([]byte(key))
		key = strings.ToValidUTF8(key[:min(len(key), maxKey-70)], "") + ellipsis + hex.EncodeToString(sum[:])
	}
	return key, true
}

// ellipsis stands in a key before the digest of a long text.
const ellipsis = "…"

// digested reports whether a text has the form of the key of a long one. It gets
// a digest of its own, so that nobody can take another's key by spelling it.
func digested(text string) bool {
	at := len(text) - 2*sha256.Size
	return at >= len(ellipsis) && text[at-len(ellipsis):at] == ellipsis && strings.Trim(text[at:], "0123456789abcdef") == ""
}

// ParseText reads the text form of a value, as it stands in a filter of a
// list: a text as it is, a number or boolean as in JSON.
func (f *Field) ParseText(s string) (jsontext.Value, string) {
	switch f.Type {
	case Number, Boolean:
		v := jsontext.Value(s)
		if !v.IsValid() || strings.TrimSpace(s) != s {
			return nil, "expected a " + string(f.Type)
		}
		if IsNull(v) {
			return nil, "expected a " + string(f.Type)
		}
		return f.Canonical(v)
	default:
		q, err := jsontext.AppendQuote(nil, s)
		if err != nil {
			return nil, "expected valid UTF-8"
		}
		return f.Canonical(q)
	}
}
