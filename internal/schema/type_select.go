package schema

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Select is one of the field's options.
const Select Type = "select"

var selectType = fieldType{
	name:    Select,
	options: true,
	canonical: func(f *Field, v jsontext.Value) (jsontext.Value, string) {
		return parsed(v, "expected one of "+strings.Join(f.Options, ", "), func(s string) bool {
			return slices.Contains(f.Options, s)
		})
	},
}
