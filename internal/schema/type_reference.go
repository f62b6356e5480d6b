package schema

import "github.com/go-json-experiment/json/jsontext"

// Reference is the id of a record of the field's Target. Whether there is such a
// record that the viewer may see is checked by records (contract R10).
const Reference Type = "reference"

var referenceType = fieldType{
	name:   Reference,
	target: true,
	canonical: func(f *Field, v jsontext.Value) (jsontext.Value, string) {
		return parsed(v, "expected the id of a record of "+f.Target, func(s string) bool { return s != "" })
	},
}
