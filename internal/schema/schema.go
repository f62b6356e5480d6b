// Package schema holds a tenant's entity types and their fields: what a record
// may contain, and what a value must look like (decisions 2.7 and 2.8).
//
// A Schema is immutable once loaded; a change of configuration makes a new one.
package schema

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
)

// Type is a field's type.
type Type string

// The field types of decisions 2.7.
const (
	Text        Type = "text"
	Number      Type = "number"
	Boolean     Type = "boolean"
	Date        Type = "date"        // YYYY-MM-DD
	Datetime    Type = "datetime"    // RFC 3339
	Select      Type = "select"      // one of Options
	Multiselect Type = "multiselect" // a list of distinct Options
	Reference   Type = "reference"   // id of a record of Target
	JSON        Type = "json"        // an object or a list
)

// Types lists every field type.
var Types = []Type{Text, Number, Boolean, Date, Datetime, Select, Multiselect, Reference, JSON}

// Sharing is an entity type's default: what every internal user with the
// entity permission may do with records that nothing else shares with them.
type Sharing string

// The defaults of decisions 2.14.
const (
	Private         Sharing = "private"
	PublicRead      Sharing = "public_read"
	PublicReadWrite Sharing = "public_read_write"
)

// UserEntity is the API name of the built-in entity type of users (decisions 2.12).
const UserEntity = "user"

// Field is one declared field of an entity type.
type Field struct {
	Name     string
	Type     Type
	Required bool
	Unique   bool     // no two records of the entity type hold the same value
	Indexed  bool     // may be filtered by
	Options  []string // of a select or multiselect
	Target   string   // the entity type a reference points at
	// TargetStored is Target's StoredAs; New finds it.
	TargetStored string `json:",omitzero"`
	// Member is what the field's values stand under in stored data; "" is Name. A
	// field that was renamed keeps it. See MemberName.
	Member string `json:",omitzero"`
	// RenamedFrom is what its author says that it was called before.
	RenamedFrom string `json:"-"`
	// IndexName is what the index rows in use stand under; "" is Name. See StoredAs.
	IndexName string
	// Index is the field's place in its entity type; masks are indexed by it.
	Index int `json:"-"`
	// Label is the member name as it stands in a record's JSON: `"name":`.
	Label string `json:"-"`
	// StoredLabel is Label in stored data.
	StoredLabel []byte `json:"-"`
}

// MemberName is the name that the field's values stand under in stored data.
func (f *Field) MemberName() string { return cmp.Or(f.Member, f.Name) }

// TargetAs is what the records that a reference points at are stored as.
func (f *Field) TargetAs() string { return cmp.Or(f.TargetStored, f.Target) }

// StoredAs is the name that the field's index rows stand under. It changes when
// they are made anew: the new ones are filled beside those in use.
func (f *Field) StoredAs() string {
	if f.IndexName != "" {
		return f.IndexName
	}
	return f.Name
}

// Keyed reports whether each value has a row of its own to be found by.
func (f *Field) Keyed() bool { return f.Unique || f.Indexed || f.Type == Reference }

// Filterable reports whether lists may be filtered by the field (decisions 2.9).
func (f *Field) Filterable() bool { return f.Unique || f.Indexed }

// Scalar reports whether values can be compared for equality: all but
// multiselect and json.
func (f *Field) Scalar() bool { return f.Type != Multiselect && f.Type != JSON }

// Entity is one entity type.
type Entity struct {
	Name    string // singular snake_case: how the API addresses it
	Label   string
	Sharing Sharing
	Fields  []*Field
	// Stored is the name that its records are stored under; "" is Name. An entity
	// type that was renamed keeps it. See StoredAs.
	Stored string `json:",omitzero"`
	// RenamedFrom is what its author says that it was called before.
	RenamedFrom string `json:"-"`
	// Endpoint is how logs and rollups name the type: /data/<name>.
	Endpoint string `json:"-"`

	byName   map[string]*Field
	byMember map[string]*Field
}

// StoredAs is the name that records of the type, their index rows and shares are
// stored under. Every statement about them takes this one.
func (e *Entity) StoredAs() string { return cmp.Or(e.Stored, e.Name) }

// Field finds a declared field; nil when there is none of that name.
func (e *Entity) Field(name string) *Field { return e.byName[name] }

// OfMember finds a declared field by the name that its values stand under in
// stored data; nil when there is none.
func (e *Entity) OfMember(name string) *Field { return e.byMember[name] }

// OfMemberBytes is OfMember for a name that stands in a buffer; it copies nothing.
func (e *Entity) OfMemberBytes(name []byte) *Field { return e.byMember[string(name)] }

// OfIndex is the name of the field whose index rows stand under a name.
func (e *Entity) OfIndex(name string) string {
	for _, f := range e.Fields {
		if f.StoredAs() == name {
			return f.Name
		}
	}
	return name
}

// Index numbers the fields and makes them findable. Every Entity passes
// through it before use.
func (e *Entity) Index() *Entity {
	e.Endpoint = "/data/" + e.Name
	e.byName = make(map[string]*Field, len(e.Fields))
	e.byMember = make(map[string]*Field, len(e.Fields))
	for i, f := range e.Fields {
		f.Index = i
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

// New indexes entity types and the custom fields of users.
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
	for _, e := range entities {
		for _, f := range e.Fields {
			if to := s.byName[f.Target]; to != nil {
				f.TargetStored = to.Stored
			}
		}
	}
	s.User = (&Entity{Name: UserEntity, Label: "User", Sharing: Private, Fields: userFields}).Index()
	return s
}

// Entity finds an entity type of records by its API name, or nil. The built-in
// 'user' is not among them: it is Schema.User.
func (s *Schema) Entity(name string) *Entity { return s.byName[name] }

// StoredAs finds an entity type by the name that its records are stored under, or nil.
func (s *Schema) StoredAs(name string) *Entity { return s.byStored[name] }

// nameRule is what entity types and fields may be called: snake_case.
var nameRule = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)

// reserved are the members every record has besides its fields (decisions 2.6)
// and those that stay free for the product.
var reserved = []string{"id", "owner_id", "created_at", "updated_at", "version", "created_by", "updated_by"}

// userColumns are the members of the built-in entity type 'user' (decisions 2.12).
var userColumns = []string{"id", "email", "password", "name", "locale", "userType", "isOwner", "active", "created_at", "updated_at"}

// Check reports the first thing wrong with the declaration of an entity type,
// in words for its author. References are checked against all, by CheckTargets.
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
	return checkFields("entity "+e.Name, e.Fields, reserved)
}

// CheckUserFields is Check for the custom fields of users.
func CheckUserFields(fields []*Field) error {
	for _, f := range fields {
		if f.Unique || f.Indexed || f.Type == Reference {
			return fmt.Errorf("user_fields: %s: unique, indexed and reference are not available for fields of users", f.Name)
		}
	}
	return checkFields("user_fields", fields, userColumns)
}

func checkFields(where string, fields []*Field, taken []string) error {
	seen := map[string]bool{}
	for _, f := range fields {
		if err := f.check(); err != nil {
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

func (f *Field) check() error {
	switch {
	case !nameRule.MatchString(f.Name):
		return fmt.Errorf("field %q: expected a snake_case name of at most 63 characters", f.Name)
	case !slices.Contains(Types, f.Type):
		return fmt.Errorf("field %s: type %q: expected one of %v", f.Name, f.Type, Types)
	case (f.Type == Select || f.Type == Multiselect) && len(f.Options) == 0:
		return fmt.Errorf("field %s: a %s needs options", f.Name, f.Type)
	case f.Type != Select && f.Type != Multiselect && len(f.Options) > 0:
		return fmt.Errorf("field %s: options belong to select and multiselect, not to %s", f.Name, f.Type)
	case f.Type == Reference && f.Target == "":
		return fmt.Errorf("field %s: a reference needs the entity it points at", f.Name)
	case f.Type != Reference && f.Target != "":
		return fmt.Errorf("field %s: entity belongs to reference, not to %s", f.Name, f.Type)
	case (f.Unique || f.Indexed) && !f.Scalar():
		return fmt.Errorf("field %s: a %s cannot be unique or indexed", f.Name, f.Type)
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

// CheckTargets reports the first reference to an entity type that does not exist.
func (s *Schema) CheckTargets() error {
	for _, e := range s.Entities {
		for _, f := range e.Fields {
			if f.Type == Reference && s.byName[f.Target] == nil {
				return fmt.Errorf("entity %s: field %s: there is no entity %q", e.Name, f.Name, f.Target)
			}
		}
	}
	return nil
}
