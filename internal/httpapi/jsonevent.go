package httpapi

import (
	"bytes"
	"io"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/fault"
	"gatehouse/internal/wtf8"
)

// MaxEventDepth is how deeply lists and objects may be nested in a provider's
// event, the event's own object included (contract W11).
const MaxEventDepth = 256

// ParseEvent parses a JSON object that is passed on and not stored: a provider's
// event, or the inputs that a flow gives a component. It accepts all of JSON,
// including U+0000, lone surrogates and any number of members, nested at most depth
// levels deep. Names with a lone surrogate are WTF-8 (package wtf8). A component or
// a flow must have written the text, so that names are distinct. ParseEvent returns
// VALIDATION for anything else.
//
// The object's values are parts of text, which must not change afterwards.
func ParseEvent(text []byte, depth int) (*Object, error) {
	if !utf8.Valid(text) || deeper(text, depth) {
		return nil, fault.New(fault.Validation, "expected a JSON object in UTF-8, of at most %d levels", depth)
	}
	object := &Object{}
	d := jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	err := eachMember(d, func(name jsontext.Value, value jsontext.Value, end int) error {
		decoded, err := wtf8.Unquote(name)
		object.Members = append(object.Members, Member{Name: decoded, Value: text[end-len(value) : end : end]})
		return err
	})
	if err != nil {
		return nil, fault.New(fault.Validation, "expected a JSON object")
	}
	object.indexMembers()
	return object, nil
}

// eachMember calls do for each member of the one object that d reads. end is
// the offset after the value.
func eachMember(d *jsontext.Decoder, do func(name, value jsontext.Value, end int) error) error {
	if d.PeekKind() != '{' {
		return io.ErrUnexpectedEOF
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	var name jsontext.Value
	for d.PeekKind() != '}' {
		quoted, err := d.ReadValue()
		if err != nil {
			return err
		}
		name = append(name[:0], quoted...) // the next read invalidates quoted
		value, err := d.ReadValue()
		if err != nil {
			return err
		}
		if err := do(name, value, int(d.InputOffset())); err != nil {
			return err
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	if _, err := d.ReadToken(); err != io.EOF { //nolint:errorlint // as the decoder documents it
		return io.ErrUnexpectedEOF
	}
	return nil
}

// deeper reports whether lists and objects are nested more than most levels
// deep in text, which must be JSON.
func deeper(text []byte, most int) bool {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i, _ = scanString(text, i+1, false)
		case '{', '[':
			if depth++; depth > most {
				return true
			}
		case '}', ']':
			depth--
		}
	}
	return false
}
