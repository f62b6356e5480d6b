package admin

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/config"
)

// valueOf returns a JSON value as a value of a configuration. Its places are given to it
// by config.DecodeEdits. No text in it is a variable.
func valueOf(v jsontext.Value) (*config.Value, error) {
	return readValue(jsontext.NewDecoder(bytes.NewReader(v)))
}

func readValue(d *jsontext.Decoder) (*config.Value, error) {
	t, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch t.Kind() {
	case '{':
		return readMapping(d)
	case '[':
		v := &config.Value{Kind: config.List}
		for d.PeekKind() != ']' {
			item, err := readValue(d)
			if err != nil {
				return nil, err
			}
			v.Items = append(v.Items, item)
		}
		_, err := d.ReadToken()
		return v, err
	case '"': // a problem in a text says in which line of it
		return &config.Value{Kind: config.Text, Text: t.String(), Lines: true}, nil
	case '0':
		text := t.String()
		return &config.Value{Kind: config.Number, Text: text, JSON: jsontext.Value(text), Whole: !strings.ContainsAny(text, ".eE")}, nil
	case 't', 'f':
		text := t.String()
		return &config.Value{Kind: config.Bool, Text: text, JSON: jsontext.Value(text)}, nil
	}
	return &config.Value{Kind: config.Null}, nil
}

func readMapping(d *jsontext.Decoder) (*config.Value, error) {
	v := &config.Value{Kind: config.Mapping}
	for d.PeekKind() != '}' {
		key, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		name := key.String() // the next read invalidates the token
		value, err := readValue(d)
		if err != nil {
			return nil, err
		}
		v.Members = append(v.Members, config.Member{Key: &config.Value{Kind: config.Text, Text: name}, Value: value})
	}
	_, err := d.ReadToken()
	return v, err
}
