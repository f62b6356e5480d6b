package schema

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Type is a field's type.
type Type string

// fieldType is what the program knows of one type of fields. Its file,
// type_NAME.go, holds the value and the functions that it needs.
type fieldType struct {
	name Type
	// canonical checks a value that is not null and returns the one form that is
	// stored, or the reason why the value does not fit.
	canonical func(f *Field, v jsontext.Value) (canonical jsontext.Value, reason string)
	// list says that values are lists or objects. They cannot be compared for
	// equality, so such a field is neither unique nor indexed.
	list bool
	// literal says that a value's text form is its JSON, as true and 1.5 are. That
	// of other types is the inside of their JSON string.
	literal bool
	// key returns what equal values have in common, given their text. nil means
	// the text itself.
	key func(text string) (key string, ok bool)
	// ordered turns such a key into one that is in the order of the values, as texts
	// are by their bytes. nil means that the key is.
	ordered func(key string) (in string, ok bool)
	// order compares two values by the texts that have what equal values have in
	// common, as in a key; ok is false where one is no value of the type. nil means
	// that values have no order.
	order func(a, b string) (order int, ok bool)
	// options and target say which of these a declaration must have; types without
	// them must not have them.
	options, target bool
	// ofUsers says that only fields of users may have the type.
	ofUsers bool
}

// fieldTypes is every field type (contract V1), in the order in which messages
// list them.
var fieldTypes = []fieldType{
	textType, numberType, booleanType, dateType, datetimeType, selectType, multiselectType, referenceType, multireferenceType, jsonType,
}

// Types lists every field type.
var Types = typesWhere(func(*fieldType) bool { return true })

func typesWhere(has func(t *fieldType) bool) []Type {
	var names []Type
	for i := range fieldTypes {
		if has(&fieldTypes[i]) {
			names = append(names, fieldTypes[i].name)
		}
	}
	return names
}

// and joins types for a message: "select and multiselect".
func and(types []Type) string { return namesOf(types, " and ") }

func namesOf(types []Type, by string) string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = string(t)
	}
	return strings.Join(names, by)
}

// TypeNames lists the types that fields of users, or of entity types, may have.
func TypeNames(ofUsers bool) string {
	return namesOf(typesWhere(func(t *fieldType) bool { return ofUsers || !t.ofUsers }), ", ")
}

// kind returns what is known of the field's type. That of a type that does not
// exist takes no value.
func (f *Field) kind() *fieldType {
	if f.known != nil && f.known.name == f.Type {
		return f.known
	}
	for i := range fieldTypes {
		if fieldTypes[i].name == f.Type {
			return &fieldTypes[i]
		}
	}
	return &unknownType
}

var unknownType = fieldType{canonical: func(*Field, jsontext.Value) (jsontext.Value, string) {
	return nil, "has an unknown type"
}}
