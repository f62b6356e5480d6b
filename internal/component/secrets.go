package component

import (
	"bytes"
	"encoding/base64"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gatehouse/internal/fault"
	"gatehouse/internal/wtf8"
)

// Redacted stands where the text of a secret was.
const Redacted = "[redacted]"

// redactor removes secrets from what a run says. It finds a secret as it is, as JSON
// escapes it, and as base64 of the whole of it; it does not find a part of it, or what
// else is computed from it. A nil redactor removes nothing.
type redactor struct {
	forms    []string // longest first
	replacer *strings.Replacer
}

func newRedactor(secrets map[string]string) *redactor {
	forms := map[string]bool{}
	for _, s := range secrets {
		escaped := string(wtf8.AppendUTF8(nil, s))
		forms[s], forms[escaped[1:len(escaped)-1]] = true, true
		for _, e := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
			forms[e.EncodeToString([]byte(s))] = true
		}
	}
	if len(forms) == 0 {
		return nil
	}
	r := &redactor{forms: slices.Collect(maps.Keys(forms))}
	slices.SortFunc(r.forms, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, f := range r.forms {
		pairs = append(pairs, f, Redacted)
	}
	r.replacer = strings.NewReplacer(pairs...)
	return r
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

// text returns s without secrets. The end of s, which may have been cut at most bytes,
// is removed if a secret may begin there.
func (r *redactor) text(s string, most int) string {
	cut := len(s) >= most
	s = r.replacer.Replace(s)
	if !cut {
		return s
	}
	begun := 0
	for _, f := range r.forms {
		for n := min(len(f)-1, len(s)); n > begun; n-- {
			if strings.HasSuffix(s, f[:n]) {
				begun = n
				break
			}
		}
	}
	if begun == 0 {
		return s
	}
	return s[:len(s)-begun] + Redacted
}

// inResult removes secrets from a run's result.
func (r *redactor) inResult(result *Result) {
	if r == nil {
		return
	}
	for n := range result.Console {
		result.Console[n].Text = r.text(result.Console[n].Text, MaxConsoleLine)
	}
	if value, ok := r.inJSON(result.Value); ok {
		result.Value = value
	} else {
		result.Value, result.Responds = nil, false
		result.Failed = failure(fault.New(fault.ExecutionError, "the handler returned an object with a secret in a member's name"))
	}
	r.inFailure(result.Failed)
}

func (r *redactor) inFailure(f *Failure) {
	if f == nil {
		return
	}
	f.Message, f.Stack = r.text(f.Message, MaxConsoleLine), r.text(f.Stack, MaxConsoleLine)
	if r.replacer.Replace(f.Code) != f.Code {
		f.Code = string(fault.ExecutionError)
	}
	if details, ok := r.inValue(f.Details).(map[string]any); ok {
		f.Details = details
	}
}

// inError removes secrets from the message of a *SourceError.
func (r *redactor) inError(err error) error {
	var wrong *SourceError
	if r != nil && errors.As(err, &wrong) {
		wrong.Message = r.text(wrong.Message, MaxConsoleLine)
	}
	return err
}

// inValue returns a decoded JSON value without secrets. Of members whose names become
// equal one stays.
func (r *redactor) inValue(v any) any {
	switch v := v.(type) {
	case string:
		return r.text(v, len(v)+1)
	case float64:
		if text := strconv.FormatFloat(v, 'f', -1, 64); r.replacer.Replace(text) != text {
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
			clean[r.text(name, len(name)+1)] = r.inValue(member)
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
		token, is := text[at:end], text[at:end]
		if text[at] == '"' {
			plain, err := wtf8.Unquote(token)
			if redacted := r.replacer.Replace(plain); err != nil || redacted != plain {
				if end < len(text) && text[end] == ':' {
					return nil, false
				}
				is = wtf8.AppendQuote(nil, redacted)
			}
		} else if r.replacer.Replace(string(token)) != string(token) {
			is = wtf8.AppendQuote(nil, Redacted)
		}
		if !bytes.Equal(is, token) {
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
