package schema

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Multiselect is a list of distinct options of the field.
const Multiselect Type = "multiselect"

var multiselectType = fieldType{
	name:      Multiselect,
	list:      true,
	options:   true,
	canonical: canonicalOptions,
}

func canonicalOptions(f *Field, v jsontext.Value) (jsontext.Value, string) {
	reason := "expected a list of distinct options out of " + strings.Join(f.Options, ", ")
	var list []string
	if v.Kind() != '[' || json.Unmarshal(v, &list) != nil || list == nil {
		return nil, reason
	}
	seen := map[string]bool{}
	for _, s := range list {
		if seen[s] || !slices.Contains(f.Options, s) {
			return nil, reason
		}
		seen[s] = true
	}
	b, err := json.Marshal(list)
	if err != nil {
		return nil, reason
	}
	return b, ""
}
