// Package schema holds a tenant's entity types and their fields: what a record
// may contain, and what a value must look like (contract V1 to V6).
//
// A field type is one file, type_NAME.go, and one entry of fieldTypes. A Schema is
// immutable once loaded; a change of configuration makes a new one.
package schema

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
)

// Sharing is an entity type's default: what internal users with the entity
// permission may do with records that are not shared with them in another way.
type Sharing string

// The defaults (contract A10).
const (
	Private         Sharing = "private"
	PublicRead      Sharing = "public_read"
	PublicReadWrite Sharing = "public_read_write"
)

// UserEntity is the API name of the built-in entity type of users (contract U3).
const UserEntity = "user"

// Field is one declared field of an entity type.
type Field struct {
	Name     string
	Type     Type
	Required bool
	Unique   bool // no two records of the entity type hold the same value
	Indexed  bool // may be filtered by
	// Searchable says that lists find records by the words of the value.
	Searchable bool     `json:",omitzero"`
	Options    []string // of a select or multiselect
	Target     string   // the entity type a reference points at; UserEntity for users
	// TargetStored is Target's StoredAs; New finds it.
	TargetStored string `json:",omitzero"`
	// Member is the name of the field's values in stored data; "" is Name. A field
	// that was renamed keeps it. See MemberName.
	Member string `json:",omitzero"`
	// RenamedFrom is the name that its author says it had before.
	RenamedFrom string `json:"-"`
	// Managed says of a field of users that others than the user set it (contract U9).
	Managed bool `json:",omitzero"`
	// IndexName is the name of the index rows in use; "" is Name. See StoredAs.
	IndexName string
	// Index is the field's place in its entity type; masks are indexed by it.
	Index int `json:"-"`
	// Label is the member name as it is written in a record's JSON: `"name":`.
	Label string `json:"-"`
	// StoredLabel is Label in stored data.
	StoredLabel []byte `json:"-"`

	known *fieldType // that of Type, once indexed
}

// MemberName returns the name of the field's values in stored data. Managed
// values have names of their own, so that a field that becomes managed does not
// take over what users said about themselves.
func (f *Field) MemberName() string {
	if f.Managed {
		return f.PlainMember() + managedSuffix
	}
	return f.PlainMember()
}

// managedSuffix ends the names of managed values. No field's name has it.
const managedSuffix = "#managed"

// PlainMember returns what MemberName is, or would be, if the field is not managed.
func (f *Field) PlainMember() string { return cmp.Or(f.Member, f.Name) }

// TargetAs returns the name under which the records that a reference points at
// are stored.
func (f *Field) TargetAs() string { return cmp.Or(f.TargetStored, f.Target) }

// StoredAs returns the name of the field's index rows. It changes when they are
// rebuilt: the new rows are added while the old ones are in use.
func (f *Field) StoredAs() string { return cmp.Or(f.IndexName, f.Name) }

// Refers reports whether values name records, or users: of its Target.
func (f *Field) Refers() bool { return f.kind().target }

// Keyed reports whether each value has an index row.
func (f *Field) Keyed() bool { return f.Unique || f.Indexed || f.Type == Reference }

// Filterable reports whether lists may be filtered by the field (contract P7).
func (f *Field) Filterable() bool { return f.Unique || f.Indexed }

// Sortable reports whether lists are sorted by the field (contract P13).
func (f *Field) Sortable() bool { return f.Scalar() && !f.Refers() }

// Scalar reports whether values can be compared for equality: those of all types
// but multiselect and json, whose values are lists and objects. PostgreSQL gives
// these back with white space in them.
func (f *Field) Scalar() bool { return !f.kind().list }

// Describe returns the type in words for the author of a configuration, like
// "select of [new won]" or "reference to contact".
func (f *Field) Describe() string {
	switch kind := f.kind(); {
	case kind.options:
		return fmt.Sprintf("%s of %v", f.Type, f.Options)
	case kind.target:
		return fmt.Sprintf("%s to %s", f.Type, f.Target)
	}
	return string(f.Type)
}

// Entity is one entity type.
type Entity struct {
	Name    string // singular snake_case: how the API addresses it
	Label   string
	Sharing Sharing // Private where ControlledBy is set
	Fields  []*Field
	// ControlledBy is the field that refers to the parent of a record, if the
	// parent decides who reaches it (contract A21); "" if the type is not
	// controlled by a parent. See Chain.
	ControlledBy string `json:",omitzero"`
	// Lineage is the name of the index rows that ancestors of the type's records
	// have for it; "" if the type is not controlled.
	Lineage string `json:",omitzero"`
	// KeepDays is how many days after their creation records are deleted; 0 is never.
	KeepDays int `json:",omitzero"`
	// Stored is the name under which its records are stored; "" is Name. An entity
	// type that was renamed keeps it. See StoredAs.
	Stored string `json:",omitzero"`
	// RenamedFrom is the name that its author says it had before.
	RenamedFrom string `json:"-"`
	// Endpoint is how logs and rollups name the type: /data/<name>.
	Endpoint string `json:"-"`

	byName   map[string]*Field
	byMember map[string]*Field
	id       *Field // see Comparand
}

// StoredAs returns the name under which records of the type, their index rows and
// shares are stored. Every statement about them takes this one.
func (e *Entity) StoredAs() string { return cmp.Or(e.Stored, e.Name) }

// Field returns the declared field of a name, or nil.
func (e *Entity) Field(name string) *Field { return e.byName[name] }

// IDField is the name of a record's own id in a condition of a sharing rule. No
// declared field has it.
const IDField = "id"

// Comparand returns what a condition of a sharing rule names: a declared field, or
// for IDField a reference from each record to itself, whose Index is -1. It returns
// nil for any other name.
func (e *Entity) Comparand(name string) *Field {
	if name == IDField {
		return e.id
	}
	return e.byName[name]
}

// OfMember returns the declared field whose values have the name in stored data,
// or nil.
func (e *Entity) OfMember(name string) *Field { return e.byMember[name] }

// OfMemberBytes is OfMember for a name in a buffer; it copies nothing.
func (e *Entity) OfMemberBytes(name []byte) *Field { return e.byMember[string(name)] }

// OfIndex returns the name of the field whose index rows have the name, or the
// name itself when there is none.
func (e *Entity) OfIndex(name string) string {
	for _, f := range e.Fields {
		if f.StoredAs() == name {
			return f.Name
		}
	}
	return name
}

// Index numbers the fields and indexes them by name. It must be called before
// the Entity is used; New does so. It returns e.
func (e *Entity) Index() *Entity {
	e.Endpoint = "/data/" + e.Name
	e.byName = make(map[string]*Field, len(e.Fields))
	e.byMember = make(map[string]*Field, len(e.Fields))
	e.id = &Field{Name: IDField, Type: Reference, Target: e.Name, Index: -1}
	for i, f := range e.Fields {
		f.Index, f.known = i, f.kind()
		f.Label = strconv.Quote(f.Name) + ":"
		f.StoredLabel = []byte(strconv.Quote(f.MemberName()) + ":")
		e.byName[f.Name] = f
		e.byMember[f.MemberName()] = f
	}
	return e
}

// Schema is every entity type of one tenant.
type Schema struct {
	Entities []*Entity // by name
	// User is the built-in entity type 'user'; its Fields are the tenant's
	// declared custom fields of users.
	User *Entity

	byName   map[string]*Entity
	byStored map[string]*Entity
}

// New returns the schema of the given entity types and custom fields of users,
// which it sorts, indexes and keeps.
func New(entities []*Entity, userFields []*Field) *Schema {
	s := &Schema{Entities: entities, byName: make(map[string]*Entity, len(entities)), byStored: make(map[string]*Entity, len(entities))}
	slices.SortFunc(s.Entities, func(a, b *Entity) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	for _, e := range entities {
		s.byName[e.Name] = e.Index()
		s.byStored[e.StoredAs()] = e
	}
	s.User = (&Entity{Name: UserEntity, Label: "User", Sharing: Private, Fields: userFields}).Index()
	for _, e := range append(slices.Clip(entities), s.User) {
		for _, f := range e.Fields {
			if to := s.byName[f.Target]; to != nil {
				f.TargetStored = to.Stored
			}
		}
	}
	return s
}

// Entity returns the entity type of an API name, or nil. The built-in 'user' is
// not among them: it is Schema.User.
func (s *Schema) Entity(name string) *Entity { return s.byName[name] }

// StoredAs returns the entity type whose records are stored under a name, or nil.
func (s *Schema) StoredAs(name string) *Entity { return s.byStored[name] }

// nameRule is the form of the names of entity types and fields: snake_case.
var nameRule = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)

// reserved are the members that every record has besides its fields (contract R2)
// and those that the product keeps for itself.
var reserved = []string{"id", "owner_id", "created_at", "updated_at", "version", "created_by", "updated_by"}

// userColumns are the members of the built-in entity type 'user' (contract U3).
var userColumns = []string{"id", "email", "password", "name", "locale", "userType", "isOwner", "active", "created_at", "updated_at"}

// Check returns the first mistake in the declaration of an entity type, in words
// for its author, or nil. Whether references lead to entity types that exist is
// checked by CheckTargets.
//
// Whether the field that controls it fits is checked by CheckControl.
func (e *Entity) Check() error {
	if !nameRule.MatchString(e.Name) {
		return fmt.Errorf("entity %q: expected a singular snake_case name of at most 63 characters", e.Name)
	}
	if e.Name == UserEntity {
		return fmt.Errorf("entity %q is built in; declare its custom fields under user_fields", e.Name)
	}
	if e.Sharing != Private && e.Sharing != PublicRead && e.Sharing != PublicReadWrite {
		return fmt.Errorf("entity %s: sharing %q: expected private, public_read or public_read_write", e.Name, e.Sharing)
	}
	for _, f := range e.Fields {
		if f.Managed || f.kind().ofUsers {
			return fmt.Errorf("entity %s: field %s: managed and %s are for user_fields", e.Name, f.Name, and(typesWhere(func(t *fieldType) bool { return t.ofUsers })))
		}
	}
	return checkFields("entity "+e.Name, e.Fields, reserved, false)
}

// CheckSearchable returns an error, in words for its author, where too many fields of an
// entity type are searchable, or nil.
func (e *Entity) CheckSearchable() error {
	searchable := 0
	for _, f := range e.Fields {
		if f.Searchable {
			searchable++
		}
	}
	if searchable > MaxSearchable {
		return fmt.Errorf("entity %s: %d fields are searchable: expected at most %d", e.Name, searchable, MaxSearchable)
	}
	return nil
}

// CheckUserFields is Check for the custom fields of users.
func CheckUserFields(fields []*Field) error {
	for _, f := range fields {
		if f.Unique || f.Indexed || f.Searchable {
			return fmt.Errorf("user_fields: %s: unique, indexed and searchable are not available for fields of users", f.Name)
		}
		if f.kind().target && f.Target == UserEntity {
			return fmt.Errorf("user_fields: %s: a %s of users points at an entity, not at user", f.Name, f.Type)
		}
	}
	return checkFields("user_fields", fields, userColumns, true)
}

func checkFields(where string, fields []*Field, taken []string, ofUsers bool) error {
	seen := map[string]bool{}
	for _, f := range fields {
		if err := f.check(ofUsers); err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
		if seen[f.Name] {
			return fmt.Errorf("%s: field %s is declared twice", where, f.Name)
		}
		if slices.Contains(taken, f.Name) {
			return fmt.Errorf("%s: field %s: the name is reserved", where, f.Name)
		}
		seen[f.Name] = true
	}
	return nil
}

func (f *Field) check(ofUsers bool) error {
	kind := f.kind()
	switch {
	case !nameRule.MatchString(f.Name):
		return fmt.Errorf("field %q: expected a snake_case name of at most 63 characters", f.Name)
	case kind == &unknownType:
		return fmt.Errorf("field %s: type %q: expected one of %s", f.Name, f.Type, TypeNames(ofUsers))
	case kind.options && len(f.Options) == 0:
		return fmt.Errorf("field %s: a %s needs options", f.Name, f.Type)
	case !kind.options && len(f.Options) > 0:
		return fmt.Errorf("field %s: options belong to %s, not to %s", f.Name, and(typesWhere(func(t *fieldType) bool { return t.options })), f.Type)
	case kind.target && f.Target == "":
		return fmt.Errorf("field %s: a %s needs the entity it points at", f.Name, f.Type)
	case !kind.target && f.Target != "":
		return fmt.Errorf("field %s: entity belongs to %s, not to %s", f.Name, and(typesWhere(func(t *fieldType) bool { return t.target })), f.Type)
	case (f.Unique || f.Indexed) && kind.list:
		return fmt.Errorf("field %s: a %s cannot be unique or indexed", f.Name, f.Type)
	case f.Searchable && f.Type != Text:
		return fmt.Errorf("field %s: only a text is searchable, not a %s", f.Name, f.Type)
	}
	seen := map[string]bool{}
	for _, o := range f.Options {
		if o == "" || seen[o] {
			return fmt.Errorf("field %s: options must be distinct and not empty", f.Name)
		}
		seen[o] = true
	}
	return nil
}

// CheckTargets returns an error, in words for its author, for the first reference
// to an entity type that does not exist, or nil.
func (s *Schema) CheckTargets() error {
	for _, e := range append(slices.Clip(s.Entities), s.User) {
		for _, f := range e.Fields {
			if f.Refers() && f.Target != UserEntity && s.byName[f.Target] == nil {
				return fmt.Errorf("entity %s: field %s: there is no entity %q", e.Name, f.Name, f.Target)
			}
		}
	}
	return nil
}
