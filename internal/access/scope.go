package access

import (
	"sync/atomic"

	"gatehouse/internal/schema"
	"gatehouse/internal/user"
)

// Scope says which records of one entity type a verb reaches: all of them, or
// the union of its ways. It is the only description of that; package records
// turns it into SQL and into checks (its way.go).
type Scope struct {
	All  bool
	Ways []Way // in the order of their kinds

	// Dense and Lists are for records to remember, from one list to the next,
	// whether the scope reaches most of the newest records. They decide how a
	// page is read, never what it holds.
	Dense atomic.Bool
	Lists atomic.Uint32
	// RowSize and ReadSize are for records to remember about how many bytes a
	// listed record takes where it is shown, and where it is stored, if that is
	// much; else 0.
	RowSize, ReadSize atomic.Int64
	// PointRead is for records to keep the statement that reads one record
	// within the scope.
	PointRead atomic.Pointer[Statement]
}

// Way is one way in which a viewer reaches records: those that are reached in
// this way under one of the names.
type Way struct {
	Kind  Kind
	Names []string
	// EditOnly limits ByShare to shares of level edit.
	EditOnly bool
}

// Kind is a kind of way. A new one needs an entry in package records, too
// (its way.go), and a place in Viewer.scope.
type Kind uint8

const (
	// ByOwner reaches the records of a user, its only name.
	ByOwner Kind = iota
	// ByOwnerRole reaches the records whose owner has one of the named roles. A
	// role has further names while a change of users' roles is in progress
	// (Config.ownerRoles).
	ByOwnerRole
	// ByShare reaches the records that are shared with one of the named
	// principals. The names are those that the table shares has (Roles.Stored).
	ByShare
	// ByRule reaches the records that a sharing rule by field value matches. The
	// names are those that its matches are stored under (SharingRule.StoredAs).
	ByRule
)

// add adds a way, unless it has no names.
func (s *Scope) add(w Way) {
	if len(w.Names) > 0 {
		s.Ways = append(s.Ways, w)
	}
}

// Statement is an SQL text and those of its arguments that the scope decides.
type Statement struct {
	SQL  string
	Args []any
}

// UserPrincipal returns the name of a user as one whom records are shared with.
func UserPrincipal(id user.ID) string { return "user:" + string(id) }

// RolePrincipal is UserPrincipal for the users with a role or an ancestor of it.
func RolePrincipal(role string) string { return "role:" + role }

// scope returns the records of an entity type that a verb reaches (contract A7
// to A11): the owner and users with an ancestor of the owner's role do all;
// shares and sharing rules let read, or read and update; the entity's default
// is for internal users.
func (v *viewer) scope(e *schema.Entity, verb Verb) *Scope {
	if verb == Create {
		return &Scope{}
	}
	if v.all {
		return &Scope{All: true}
	}
	if !v.external && verb != Delete {
		if e.Sharing == schema.PublicReadWrite || e.Sharing == schema.PublicRead && verb == Read {
			return &Scope{All: true}
		}
	}
	var below []string
	if v.role != "" {
		below = v.config.Roles.Below(v.role)
	}
	s := &Scope{}
	s.add(Way{Kind: ByOwner, Names: []string{string(v.userID)}})
	if verb == Delete {
		s.add(Way{Kind: ByOwnerRole, Names: v.config.ownerRoles(below)})
		return s
	}
	editOnly := verb == Update
	owners, rules := v.ruled(e, below, editOnly)
	s.add(Way{Kind: ByOwnerRole, Names: v.config.ownerRoles(owners)})
	s.add(Way{Kind: ByShare, Names: v.principals(below), EditOnly: editOnly})
	s.add(Way{Kind: ByRule, Names: rules})
	return s
}

// principals returns the principals whose shares reach the viewer: the viewer,
// their role and those below it.
func (v *viewer) principals(below []string) []string {
	list := []string{UserPrincipal(v.userID)}
	if v.role == "" {
		return list
	}
	list = append(list, v.config.Roles.shares[v.role])
	for _, role := range below {
		list = append(list, v.config.Roles.shares[role])
	}
	return list
}

// ruled returns what sharing rules open to the viewer: roles of owners, which
// begin with those below the viewer's own, and names of rules by field value.
func (v *viewer) ruled(e *schema.Entity, below []string, editOnly bool) (owners, rules []string) {
	if v.role == "" {
		return nil, nil
	}
	mine := map[string]bool{v.role: true} // the roles whose rules reach the viewer
	known := map[string]bool{}            // the roles in owners
	for _, role := range below {
		mine[role], known[role] = true, true
	}
	owners = append(owners, below...)
	for _, rule := range v.config.Rules {
		if rule.Entity != e.Name || !mine[rule.ShareWithRole] || editOnly && rule.Access != Edit {
			continue
		}
		switch {
		case rule.OwnedByRole == "":
			rules = append(rules, rule.StoredAs())
		case !known[rule.OwnedByRole]:
			known[rule.OwnedByRole] = true
			owners = append(owners, rule.OwnedByRole)
		}
	}
	return owners, rules
}
