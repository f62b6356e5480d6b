package openapi

import "gatehouse/internal/schema"

// Describes reports whether there is a schema for the values of a field type.
func Describes(kind schema.Type) bool {
	for _, m := range valueOf(&schema.Field{Type: kind}) {
		if m.name == "type" {
			return true
		}
	}
	return false
}
