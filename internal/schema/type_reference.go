package schema

import "github.com/go-json-experiment/json/jsontext"

// Reference is the id of a record of the field's Target, or of a user. Whether
// there is such a record that the viewer may see is checked by records (contract
// R10).
const Reference Type = "reference"

var referenceType = fieldType{
	name:   Reference,
	target: true,
	canonical: func(f *Field, v jsontext.Value) (jsontext.Value, string) {
		return parsed(v, "expected the id of a "+f.target(), func(s string) bool { return s != "" })
	},
}

// target returns what the field refers to, for messages: "record of contact".
func (f *Field) target() string {
	if f.Target == UserEntity {
		return UserEntity
	}
	return "record of " + f.Target
}
