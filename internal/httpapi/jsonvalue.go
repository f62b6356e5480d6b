package httpapi

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// ParseValue parses text that must be exactly one JSON value, as strictly as
// ParseObject parses a body. It returns a part of text, which must not change
// afterwards, and false when text is anything else.
func ParseValue(text []byte) (v jsontext.Value, ok bool) {
	if _, problem := tooMuchOpen(text); problem != "" { // before anything is built
		return nil, false
	}
	err := withDecoder(text, func(d *jsontext.Decoder) error {
		if _, err := d.ReadValue(); err != nil {
			return err
		}
		end := int(d.InputOffset())
		if rest := bytes.TrimLeft(text[end:], " \t\r\n"); len(rest) > 0 {
			return trailingData(len(text) - len(rest))
		}
		return nil
	})
	if err != nil {
		return nil, false
	}
	_, problem := scanBody(text)
	return bytes.TrimSpace(text), problem == ""
}
