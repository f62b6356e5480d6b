package component

import (
	"bytes"
	"encoding/base64"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gatehouse/internal/fault"
	"gatehouse/internal/wtf8"
)

// Redacted stands where the text of a secret was.
const Redacted = "[redacted]"

// redactor removes secrets from what a run says. It finds a secret as it is, as JSON
// escapes it, and as base64 of the whole of it; it does not find a part of it, or what
// else is computed from it. A nil redactor removes nothing.
type redactor struct{ forms *matcher }

func newRedactor(secrets map[string]string) *redactor {
	if len(secrets) == 0 {
		return nil
	}
	forms := map[string]bool{}
	for _, s := range secrets {
		escaped := string(wtf8.AppendUTF8(nil, s))
		forms[s], forms[escaped[1:len(escaped)-1]] = true, true
		for _, e := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
			forms[e.EncodeToString([]byte(s))] = true
		}
	}
	return &redactor{newMatcher(slices.Sorted(maps.Keys(forms)))}
}

// size returns the memory that the redactor holds, in bytes.
func (r *redactor) size() int {
	if r == nil {
		return 0
	}
	return r.forms.size()
}

// secretsJSON returns secrets as a JSON object.
func secretsJSON(secrets map[string]string) []byte {
	text := []byte{'{'}
	for n, name := range slices.Sorted(maps.Keys(secrets)) {
		if n > 0 {
			text = append(text, ',')
		}
		text = wtf8.AppendUTF8(append(wtf8.AppendUTF8(text, name), ':'), secrets[name])
	}
	return append(text, '}')
}

// text returns s without secrets.
func (r *redactor) text(s string) string { return redacted(s, find(r.forms, s), len(s)) }

// has reports whether s contains a secret.
func (r *redactor) has(s string) bool { return len(find(r.forms, s)) > 0 }

// cut returns s, which was cut at most bytes, give or take a character, if it is that
// long, without secrets. A secret that was cut is not found. So such a text loses its
// end, as much as a secret can have of it, whatever it is: who chooses the text could
// otherwise guess the beginning of a secret and see whether that is removed.
func (r *redactor) cut(s string, most int) string {
	if len(s) <= most-utf8.UTFMax {
		return r.text(s)
	}
	end := max(0, len(s)-r.forms.longest+1)
	for end > 0 && end < len(s) && !utf8.RuneStart(s[end]) {
		end--
	}
	return redacted(s, find(r.forms, s), end) + Redacted
}

// redacted returns s up to end, with Redacted in the place of each stretch that begins
// there.
func redacted(s string, secrets []stretch, end int) string {
	if len(secrets) == 0 {
		return s[:end]
	}
	var clean strings.Builder
	at := 0
	for _, one := range secrets {
		if one.begin >= end {
			break
		}
		clean.WriteString(s[at:one.begin] + Redacted)
		at = one.end
	}
	clean.WriteString(s[at:max(at, end)])
	return clean.String()
}

// inResult removes secrets from a run's result, but for Failed; see inThrown.
func (r *redactor) inResult(result *Result) {
	if r == nil {
		return
	}
	for n := range result.Console {
		result.Console[n].Text = r.cut(result.Console[n].Text, MaxConsoleLine)
	}
	if value, ok := r.inJSON(result.Value); ok {
		result.Value = value
	} else {
		result.Value, result.Responds = nil, false
		result.Failed = failure(fault.New(fault.ExecutionError, "the handler returned an object with a secret in a member's name"))
	}
	if result.Failed != nil {
		if details, ok := r.inValue(result.Failed.Details).(map[string]any); ok {
			result.Failed.Details = details
		}
	}
}

// inThrown removes secrets from the description of an uncaught error, but for its
// details, as the prelude has cut it.
func (r *redactor) inThrown(t *thrown) {
	if r == nil || t == nil {
		return
	}
	t.Name, t.Message, t.Stack = r.cut(t.Name, maxErrorName), r.cut(t.Message, MaxConsoleLine), r.cut(t.Stack, MaxConsoleLine)
	if r.has(t.Code) {
		t.Code = string(fault.ExecutionError)
	}
}

// inValue returns a decoded JSON value without secrets. Of members whose names become
// equal one stays.
func (r *redactor) inValue(v any) any {
	switch v := v.(type) {
	case string:
		return r.text(v)
	case float64:
		if r.has(strconv.FormatFloat(v, 'f', -1, 64)) {
			return Redacted
		}
	case []any:
		for n := range v {
			v[n] = r.inValue(v[n])
		}
	case map[string]any:
		if v == nil {
			return nil
		}
		clean := make(map[string]any, len(v))
		for name, member := range v {
			clean[r.text(name)] = r.inValue(member)
		}
		return clean
	}
	return v
}

// inJSON returns a JSON text without secrets; a number that has one becomes Redacted. ok
// is false when the name of a member has one: another name could become equal to it.
func (r *redactor) inJSON(text []byte) (clean []byte, ok bool) {
	kept := 0
	for at := 0; at < len(text); at++ {
		end := at
		switch c := text[at]; {
		case c == '"':
			for end++; text[end] != '"'; end++ {
				if text[end] == '\\' {
					end++
				}
			}
			end++
		case c == '-' || '0' <= c && c <= '9':
			for end < len(text) && bytes.IndexByte([]byte("+-.0123456789Ee"), text[end]) >= 0 {
				end++
			}
		default:
			continue
		}
		if is := r.inToken(text[at:end]); is != nil {
			if text[at] == '"' && end < len(text) && text[end] == ':' {
				return nil, false
			}
			clean = append(append(clean, text[kept:at]...), is...)
			kept = end
		}
		at = end - 1
	}
	if kept == 0 {
		return text, true
	}
	return append(clean, text[kept:]...), true
}

// inToken returns a JSON string or number without secrets, or nil for one that has none.
func (r *redactor) inToken(token []byte) []byte {
	if token[0] != '"' {
		if len(find(r.forms, token)) == 0 {
			return nil
		}
		return wtf8.AppendQuote(nil, Redacted)
	}
	if bytes.IndexByte(token, '\\') < 0 && len(find(r.forms, token[1:len(token)-1])) == 0 { // most have neither
		return nil
	}
	plain, err := wtf8.Unquote(token)
	if err == nil && !r.has(plain) {
		return nil
	}
	return wtf8.AppendQuote(nil, r.text(plain))
}
