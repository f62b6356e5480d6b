package schema

import "github.com/go-json-experiment/json/jsontext"

// Boolean is true or false.
const Boolean Type = "boolean"

var booleanType = fieldType{
	name:    Boolean,
	literal: true,
	canonical: func(_ *Field, v jsontext.Value) (jsontext.Value, string) {
		if k := v.Kind(); k != 't' && k != 'f' {
			return nil, "expected true or false"
		}
		return v, ""
	},
}
