package config

import (
	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/schema"
	"gatehouse/internal/tenant"
)

// MemberType is what may stand in a member of an object.
type MemberType string

// The types of members. Members has what is in an ObjectMember, in each item of a
// ListMember and in each value of a MapMember; a MapMember without is of scalars.
const (
	TextMember    MemberType = "text"
	ChoiceMember  MemberType = "choice" // one of Values
	BooleanMember MemberType = "boolean"
	NumberMember  MemberType = "number"  // whole, from Min to Max
	TextsMember   MemberType = "texts"   // a list; of Values, where there are any
	SecretMember  MemberType = "secret"  // a text that nothing shows
	SecretsMember MemberType = "secrets" // such texts by name; null keeps the stored one
	ObjectMember  MemberType = "object"
	ListMember    MemberType = "list"
	MapMember     MemberType = "map"
	JSONMember    MemberType = "json"
	ContextMember MemberType = "execution_context"
	TargetMember  MemberType = "target"
	SharingMember MemberType = "sharing" // one of Values, or {controlled_by: FIELD}
)

// MemberDescription describes one member of a kind of object.
type MemberDescription struct {
	Name     string     `json:"name"`
	Type     MemberType `json:"type"`
	Required bool       `json:"required,omitempty"`
	// Default is what the member is when it is absent from a new object; nil where
	// that is not one value.
	Default jsontext.Value      `json:"default,omitempty"`
	Values  []string            `json:"values,omitempty"`
	Min     int                 `json:"min,omitempty"`
	Max     int                 `json:"max,omitempty"`
	Doc     string              `json:"doc"`
	Members []MemberDescription `json:"members,omitempty"`
}

// KindDescription describes a kind of object.
type KindDescription struct {
	Kind    string              `json:"kind"`              // as Edit.Kind
	Section string              `json:"section,omitempty"` // the top-level key of such objects
	ID      string              `json:"id,omitempty"`      // the member that names an object
	Members []MemberDescription `json:"members"`
}

// Kinds lists the kinds of objects that an Edit may have.
func Kinds() []string {
	var list []string
	for _, k := range kinds {
		list = append(list, k.name)
	}
	return append(list, templateKind.name)
}

// Describe lists the kinds of objects with the members that can be given. It comes
// from the tables that decode, export and record them.
func Describe() []KindDescription {
	of := func(k kind, members []MemberDescription) KindDescription {
		return KindDescription{k.name, k.section, k.id, members}
	}
	fresh := &tenant.Tenant{Settings: tenant.DefaultSettings()}
	return []KindDescription{
		of(tenantKind, settingsTable.describe(fresh)),
		of(entityKind, entityTable.describe(newEntity())),
		of(userFieldsKind, fieldTable.describe(&schema.Field{})),
		of(roleKind, roleTable.describe(&access.Role{})),
		of(setKind, setTable.describe(newSet())),
		of(ruleKind, ruleTable.describe(&access.SharingRule{})),
		of(userKind, userTable.describe(newUser())),
		of(moduleKind, moduleTable.describe(&moduleDecl{})),
		of(componentKind, componentTable.describe(newComponent())),
		of(automationKind, automationTable.describe(newAutomation())),
		of(endpointKind, endpointTable.describe(newEndpoint())),
		of(templateKind, templateTable.describe(&tenant.EmailTemplate{})),
	}
}

// describe describes the members that can be given; o is an object that has only
// defaults.
func (t table[T]) describe(o *T) (list []MemberDescription) {
	for _, a := range t {
		if a.read == nil {
			continue
		}
		m := MemberDescription{
			Name: a.key, Type: a.kind, Required: a.required, Values: a.values, Min: a.low, Max: a.high, Doc: a.doc,
		}
		if a.of != nil {
			m.Members = a.of(o)
		}
		if v := a.initial(o); v.Kind == Bool || v.Kind == Number || v.Kind == List || !v.empty() {
			m.Default = v.json()
		}
		list = append(list, m)
	}
	return list
}

// initial is the member of an object that has only defaults; Null where that says
// nothing.
func (a attr[T]) initial(o *T) *Value {
	if a.required || a.tell == nil || a.kind == ObjectMember {
		return &Value{}
	}
	v := a.tell(o, asIs)
	if a.past != nil && (v.Kind == Null || a.kind == ChoiceMember) { // what Export leaves out
		return a.past(o, new(T))
	}
	return v
}
