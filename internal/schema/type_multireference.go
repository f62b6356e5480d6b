package schema

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Multireference is a list of distinct ids of records of the field's Target, at
// most MaxReferences. Only fields of users have this type.
const Multireference Type = "multireference"

// MaxReferences is how many records a multireference names (contract V1).
const MaxReferences = 100

var multireferenceType = fieldType{
	name:      Multireference,
	list:      true,
	target:    true,
	ofUsers:   true,
	canonical: canonicalReferences,
}

func canonicalReferences(f *Field, v jsontext.Value) (jsontext.Value, string) {
	reason := fmt.Sprintf("expected a list of at most %d distinct ids, each of a %s", MaxReferences, f.target())
	var list []string
	if v.Kind() != '[' || json.Unmarshal(v, &list) != nil || list == nil || len(list) > MaxReferences {
		return nil, reason
	}
	seen := map[string]bool{}
	for _, id := range list {
		quoted, err := jsontext.AppendQuote(nil, id)
		if err != nil || seen[id] {
			return nil, reason
		}
		if _, wrong := referenceType.canonical(f, quoted); wrong != "" {
			return nil, reason
		}
		seen[id] = true
	}
	b, err := json.Marshal(list)
	if err != nil {
		return nil, reason
	}
	return b, ""
}

// Elements returns the values that a value of the field consists of: those of a
// list of texts, and of other types the value itself. null has none.
func (f *Field) Elements(v jsontext.Value) []jsontext.Value {
	if IsNull(v) {
		return nil
	}
	if f.Scalar() {
		return []jsontext.Value{v}
	}
	var list []jsontext.Value
	if f.Type == JSON || json.Unmarshal(v, &list) != nil {
		return nil
	}
	return list
}
