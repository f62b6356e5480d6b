package access

import (
	"slices"
	"strings"
	"sync/atomic"

	"gatehouse/internal/schema"
	"gatehouse/internal/user"
)

// Scope describes which records of one entity type a verb reaches: all of them,
// or the union of its ways. It is the only description of that; package records
// turns it into SQL and into checks (its way.go).
type Scope struct {
	All bool
	// Ways are in the order of their kinds. If the entity type is controlled by a
	// parent, there is at most one, ByParent, also where All is set: its records
	// are reached only while they have a parent.
	Ways []Way

	// Dense and Lists are used by package records to remember, from one list to
	// the next, whether the scope reaches most of the newest records. They
	// decide how a page is read, never what it contains.
	Dense atomic.Bool
	Lists atomic.Uint32
	// RowSize and ReadSize are used by package records to remember the
	// approximate size in bytes of a listed record, as rendered and as stored,
	// if it is large; otherwise they are 0.
	RowSize, ReadSize atomic.Int64
	// PointRead is used by package records to keep the statement that reads one
	// record within the scope.
	PointRead atomic.Pointer[Statement]
}

// Way is one way in which a viewer reaches records: the records reached in this
// way under one of the names.
type Way struct {
	Kind  Kind
	Names []string
	// EditOnly limits ByShare to shares of level edit.
	EditOnly bool
	// Parent is set for ByParent, which has no names.
	Parent *Parent
}

// Parent is the part of a way that reaches records by their parent.
type Parent struct {
	Of     *schema.Entity // of the record
	Field  *schema.Field  // refers to the parent
	Entity *schema.Entity // of the parent
	Scope  *Scope         // the parents whose records are reached
}

// Kind is a kind of way. A new one needs an entry in package records, too
// (its way.go), and a source (viewer.sources).
type Kind uint8

const (
	// ByOwner reaches the records of a user, its only name.
	ByOwner Kind = iota
	// ByOwnerRole reaches the records whose owner has one of the named roles. A
	// role has further names while a change of users' roles is in progress
	// (Config.ownedBy).
	ByOwnerRole
	// ByShare reaches the records that are shared with one of the named
	// principals. The names are those in the table shares (Roles.Stored).
	ByShare
	// ByRule reaches the records that a sharing rule by field value matches.
	// The names are those under which its matches are stored
	// (SharingRule.StoredAs), or those of the members in which the viewer stands
	// (Member).
	ByRule
	// ByParent reaches the records whose parent is in a scope. It is the only
	// way to records of an entity type that is controlled by a parent.
	ByParent
)

// add adds the name of a source.
func (s *Scope) add(src Source) {
	if src.known {
		return
	}
	if src.Kind == ByParent {
		s.All, s.Ways = s.All || src.parent.Scope.All, []Way{src.Way()}
		return
	}
	i := slices.IndexFunc(s.Ways, func(w Way) bool { return w.Kind == src.Kind })
	if i < 0 {
		i = len(s.Ways)
		s.Ways = append(s.Ways, Way{Kind: src.Kind, EditOnly: src.EditOnly})
	}
	s.Ways[i].Names = append(s.Ways[i].Names, src.Name)
}

// Statement is an SQL text and those of its arguments that depend on the scope.
type Statement struct {
	SQL  string
	Args []any
}

// Principal is whom a record is shared with: user:ID or role:NAME. The table
// shares has its stored form (Roles.Stored).
type Principal string

// UserPrincipal returns the principal that represents a user in shares.
func UserPrincipal(id user.ID) Principal { return Principal("user:" + string(id)) }

// RolePrincipal returns the principal that represents the users with a role or
// an ancestor of it.
func RolePrincipal(role string) Principal { return Principal("role:" + role) }

// User returns the user that the principal is, and false for a role.
func (p Principal) User() (user.ID, bool) {
	id, ok := strings.CutPrefix(string(p), "user:")
	return user.ID(id), ok
}

// Role returns the name of the role that the principal is, and false for a user.
func (p Principal) Role() (string, bool) { return strings.CutPrefix(string(p), "role:") }

// scope returns the records of an entity type that a verb reaches: all of them,
// or those that its sources name.
func (v *viewer) scope(e *schema.Entity, verb Verb) *Scope {
	if verb == Create {
		return &Scope{}
	}
	s := &Scope{All: len(v.whole(e, verb)) > 0}
	if !s.All || e.ControlledBy != "" {
		v.sources(e, verb, s.add)
	}
	return s
}

// ByParent returns the way of a scope of an entity type that is controlled by a
// parent, or nil.
func (s *Scope) ByParent() *Parent {
	if len(s.Ways) == 1 {
		return s.Ways[0].Parent
	}
	return nil
}
