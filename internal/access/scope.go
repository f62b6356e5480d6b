package access

import (
	"slices"
	"sync/atomic"

	"gatehouse/internal/schema"
	"gatehouse/internal/user"
)

// Scope says which records of one entity type a verb reaches: every one, or
// the union of the rest. records turns it into SQL; this is the whole rule.
type Scope struct {
	All bool
	// Owner: records that this user owns.
	Owner user.ID
	// OwnerRoles: records whose owner has one of these roles, by all names that
	// a role has at the time (Config.ownerRoles).
	OwnerRoles []string
	// SharedTo: records with an explicit share to one of these principals, as
	// they are stored (Roles.Stored);
	// only shares of level edit where EditOnly is set.
	SharedTo []string
	EditOnly bool
	// Rules: records that a sharing rule by field value matches whose matches
	// stand under one of these names.
	Rules []string

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

// OfOwner reports whether the scope reaches a record by its owner and the owner's
// role alone, whatever it is shared with and whatever rules it matches.
func (s *Scope) OfOwner(owner user.ID, role string) bool {
	return s.All || owner == s.Owner || slices.Contains(s.OwnerRoles, role)
}

// Statement is an SQL text and those of its arguments that the scope decides.
type Statement struct {
	SQL  string
	Args []any
}

// UserPrincipal and RolePrincipal name whom a record is shared with.
func UserPrincipal(id user.ID) string { return "user:" + string(id) }

// RolePrincipal is UserPrincipal for a role.
func RolePrincipal(role string) string { return "role:" + role }

// scope is the contract's A7 to A11 for one entity type and verb: the owner and
// their ancestors in the role tree do all; shares and sharing rules read, or
// read and update; the entity's default is for internal users.
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
	s := &Scope{Owner: v.userID}
	below := v.config.Roles.Below(v.role)
	if v.role != "" {
		s.OwnerRoles = append(s.OwnerRoles, below...)
	}
	if verb == Delete {
		s.OwnerRoles = v.config.ownerRoles(s.OwnerRoles)
		return s
	}
	s.EditOnly = verb == Update
	s.SharedTo = []string{UserPrincipal(v.userID)}
	if v.role == "" {
		return s
	}
	mine := map[string]bool{v.role: true} // the roles whose shares reach the viewer
	s.SharedTo = append(s.SharedTo, v.config.Roles.shares[v.role])
	for _, role := range below {
		mine[role] = true
		s.SharedTo = append(s.SharedTo, v.config.Roles.shares[role])
	}
	owners := map[string]bool{}
	for _, role := range s.OwnerRoles {
		owners[role] = true
	}
	for _, rule := range v.config.Rules {
		if rule.Entity != e.Name || !mine[rule.ShareWithRole] || s.EditOnly && rule.Access != Edit {
			continue
		}
		switch {
		case rule.OwnedByRole == "":
			s.Rules = append(s.Rules, rule.StoredAs())
		case !owners[rule.OwnedByRole]:
			owners[rule.OwnedByRole] = true
			s.OwnerRoles = append(s.OwnerRoles, rule.OwnedByRole)
		}
	}
	s.OwnerRoles = v.config.ownerRoles(s.OwnerRoles)
	return s
}
