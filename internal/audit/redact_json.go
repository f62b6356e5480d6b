package audit

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	// maxBody is how much is kept of one body.
	maxBody = 64 << 10
	// maxNesting is how many levels of JSON inside a string inside JSON are
	// read; what may be secret further down is taken out whole.
	maxNesting = 4
)

// duplicates are allowed: a body that the API refuses because of them is still
// JSON.
var duplicates = jsontext.AllowDuplicateNames(true)

// appendJSON appends a JSON text without its secrets, on one line. It may leave
// out what is beyond limit: then the result is longer than limit but not
// complete. ok is false, and nothing is appended, when the text does not parse.
//
// Of a text that is known to be valid only what is kept is read. No part of a
// secret can be before the limit then: its name, or the beginning of a token,
// comes first and is found, and the text is then read token by token.
func appendJSON(dst, body []byte, limit int, valid bool) (out []byte, ok bool) {
	body = bytes.Trim(body, " \t\r\n")
	looked := body
	if valid {
		looked = body[:min(len(body), limit+1)]
	}
	if !suspicious(looked) {
		if !valid && !jsontext.Value(body).IsValid(duplicates) {
			return dst, false
		}
		return append(dst, body[:min(len(body), limit+1)]...), true
	}
	r := redactors.Get().(*redactor)
	defer redactors.Put(r)
	r.out, r.limit, r.nesting, r.stop = dst, len(dst)+limit, 0, valid
	_, ok = r.text(body)
	out, r.out = r.out, nil
	if !ok {
		return out[:len(dst)], false
	}
	return out, true
}

var redactors = sync.Pool{New: func() any { return new(redactor) }}

// redactor copies JSON token by token.
type redactor struct {
	out     []byte
	limit   int    // of len(out); nothing is kept beyond it
	stop    bool   // nor read
	nesting int    // levels of JSON inside strings
	name    []byte // scratch
}

// text copies one JSON text; changed reports whether anything was taken out.
func (r *redactor) text(body []byte) (changed, ok bool) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(body), duplicates)
	for {
		if r.stop && len(r.out) > r.limit {
			return changed, true
		}
		kind := dec.PeekKind()
		if dec.StackDepth() == 0 && dec.InputOffset() > 0 {
			_, err := dec.ReadToken()
			return changed, errors.Is(err, io.EOF)
		}
		isName := r.separate(dec, kind)
		switch kind {
		case '{', '[', '}', ']':
			if _, err := dec.ReadToken(); err != nil {
				return changed, false
			}
			r.keep([]byte{byte(kind)})
			continue
		}
		v, err := dec.ReadValue()
		if err != nil {
			return changed, false
		}
		if kind != '"' {
			r.keep(v)
			continue
		}
		c, secret := r.str(v, isName)
		changed = changed || c || secret
		if secret {
			r.keep([]byte(`:"` + redacted + `"`))
			if err := dec.SkipValue(); err != nil {
				return changed, false
			}
		}
	}
}

// separate writes the separator before the next token and reports whether that
// token is a member's name.
func (r *redactor) separate(dec *jsontext.Decoder, next jsontext.Kind) (isName bool) {
	depth := dec.StackDepth()
	kind, n := dec.StackIndex(depth)
	if depth == 0 || next == '}' || next == ']' {
		return false
	}
	isName = kind == '{' && n%2 == 0
	switch {
	case kind == '{' && !isName:
		r.keep([]byte{':'})
	case n > 0:
		r.keep([]byte{','})
	}
	return isName
}

// str writes a string, a name or a value. secret reports whether it is a name
// whose value must not be kept.
func (r *redactor) str(quoted []byte, isName bool) (changed, secret bool) {
	raw := quoted[1 : len(quoted)-1]
	escaped := bytes.IndexByte(raw, '\\') >= 0
	text := raw
	if escaped {
		r.name, _ = jsontext.AppendUnquote(r.name[:0], quoted)
		text = r.name
	}
	if isName && isSecretName(string(text)) {
		r.keep(quoted)
		return false, true
	}
	if !isName && escaped {
		if inner, ok := r.nested(string(text)); ok {
			r.keep(appendQuoted(nil, inner))
			return true, false
		}
	}
	if hasToken(text) {
		if masked := maskTokens(string(text)); masked != string(text) {
			r.keep(appendQuoted(nil, masked))
			return true, false
		}
	}
	r.keep(quoted)
	return false, false
}

// nested redacts JSON inside a string. ok is false when the string is not JSON,
// or nothing was taken out.
func (r *redactor) nested(text string) (inner string, ok bool) {
	if !looksLikeJSON(text) {
		return "", false
	}
	if r.nesting >= maxNesting {
		return redacted, suspicious([]byte(text))
	}
	in := redactor{nesting: r.nesting + 1, limit: maxBody}
	changed, parsed := in.text([]byte(text))
	return string(in.out), changed && parsed
}

// keep appends b while there is room.
func (r *redactor) keep(b []byte) {
	if len(r.out) <= r.limit {
		r.out = append(r.out, b...)
	}
}

// looksLikeJSON reports whether a text begins like an object or list.
func looksLikeJSON[T string | []byte](s T) bool {
	i := 0
	for i < len(s) && (s[i] == ' ' || s[i] == '\t' || s[i] == '\r' || s[i] == '\n') {
		i++
	}
	return i < len(s) && (s[i] == '{' || s[i] == '[')
}
