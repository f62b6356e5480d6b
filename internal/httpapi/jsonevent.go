package httpapi

import (
	"bytes"
	"io"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/fault"
	"gatehouse/internal/wtf8"
)

// MaxEventDepth is how deeply lists and objects may be nested in an event that a
// provider has sent, the event's own object included.
const MaxEventDepth = 256

// ParseEvent reads a JSON object that is handed on rather than stored: a
// provider's event, or what a flow gives a component. It takes what JSON takes,
// U+0000, halves of surrogate pairs and any number of members included, nested at
// most depth levels deep; a record's fields are checked where they are stored.
// Names that hold a half are WTF-8 (package wtf8). The text is what a component or
// a flow has written, so that its names differ.
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

// eachMember hands over the members of the one object that d reads. end is where
// a value ends in the input.
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
		name = append(name[:0], quoted...) // before the next read ends its life
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

// deeper reports whether lists and objects are nested more than most levels deep
// in a text that is JSON.
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
