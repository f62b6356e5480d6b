// Package access decides who may do what: permission sets, the role tree and
// sharing rules make a Viewer, which holds a user's rights.
//
// The rules are A1 to A13 of the contract, written as pure functions. Package
// records turns a viewer's Scope into SQL; no other code decides about access.
package access

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gatehouse/internal/schema"
)

// System permissions (contract A14). External users never hold one.
const (
	ManageUsers         = "manage_users"
	ManagePermissions   = "manage_permissions"
	ManageEntities      = "manage_entities"
	ManageEndpoints     = "manage_endpoints"
	TenantSettings      = "tenant_settings"
	LoginAs             = "login_as"
	ManageExternalUsers = "can_manage_external_users"
)

// SystemPermissions lists them all, in the order of the contract (A14).
var SystemPermissions = []string{ManageUsers, ManagePermissions, ManageEntities, ManageEndpoints, TenantSettings,
	LoginAs, ManageExternalUsers}

// FieldGrant is a permission set's permissions on one field. Edit implies Read.
type FieldGrant struct {
	Read bool `json:"read" yaml:"read"`
	Edit bool `json:"edit" yaml:"edit"`
}

// EntityGrant is a permission set's permissions on one entity type. A field that is
// not in Fields may be read and edited.
type EntityGrant struct {
	Create bool `json:"create"`
	Read   bool `json:"read"`
	Update bool `json:"update"`
	Delete bool `json:"delete"`
	// AssignOwner lets the viewer name owners of records (contract A20).
	AssignOwner bool                  `json:"assign_owner,omitempty"`
	Fields      map[string]FieldGrant `json:"fields,omitempty"`
}

// PermissionSet is a named set of permissions. A user has the union of their sets.
type PermissionSet struct {
	Name            string                 `json:"-"`
	System          []string               `json:"system"`
	AllEntityAccess bool                   `json:"all_entity_access"`
	Entities        map[string]EntityGrant `json:"entities"`
}

// Check returns the first mistake in the set, worded for its author, or nil.
func (p *PermissionSet) Check(s *schema.Schema) error {
	for _, name := range p.System {
		if !slices.Contains(SystemPermissions, name) {
			return fmt.Errorf("permission set %s: system permission %q: expected one of %s", p.Name, name,
				strings.Join(SystemPermissions, ", "))
		}
	}
	for name, g := range p.Entities {
		e := s.Entity(name)
		if name == schema.UserEntity {
			e = s.User
		}
		if e == nil {
			return fmt.Errorf("permission set %s: there is no entity %q", p.Name, name)
		}
		for f := range g.Fields {
			if e.Field(f) == nil && !(e == s.User && slices.Contains(UserColumns, f)) {
				return fmt.Errorf("permission set %s: entity %s has no field %q", p.Name, name, f)
			}
		}
	}
	return nil
}

// UserColumns are the built-in members of the entity type 'user' that a
// permission set may restrict (contract U3).
var UserColumns = []string{"email", "name", "locale", "userType", "isOwner", "active"}

// Level is what a share or sharing rule gives.
type Level string

// The levels: ReadOnly is read, Edit is read and update.
const (
	ReadOnly Level = "read"
	Edit     Level = "edit"
)

// Role is a node of the tenant's role tree; Parent is "" at a root.
type Role struct {
	Name   string `json:"name"`
	Parent string `json:"parent"`
	// Since is the version of the configuration that created the role. It
	// distinguishes the role from an earlier one of the same name.
	Since int64 `json:"-"`
}

// principal returns the name of the role in shares.
func (r Role) principal() string {
	if r.Since == 0 { // the role was created before Since existed
		return string(RolePrincipal(r.Name))
	}
	return "role#" + strconv.FormatInt(r.Since, 10) + ":" + r.Name
}

// Roles is the tenant's role tree.
type Roles struct {
	List     []Role // in the order declared, parents may follow children
	parent   map[string]string
	children map[string][]string
	shares   map[string]string // Role.principal by name
}

// NewRoles builds the tree. It returns an error, worded for the author, for a
// duplicate name, a missing parent or a cycle.
func NewRoles(list []Role) (*Roles, error) {
	r := &Roles{List: list, parent: map[string]string{}, children: map[string][]string{}, shares: map[string]string{}}
	for _, role := range list {
		if _, twice := r.parent[role.Name]; twice {
			return nil, fmt.Errorf("role %s is declared twice", role.Name)
		}
		r.parent[role.Name], r.shares[role.Name] = role.Parent, role.principal()
	}
	for _, role := range list {
		if role.Parent == "" {
			continue
		}
		if _, ok := r.parent[role.Parent]; !ok {
			return nil, fmt.Errorf("role %s: there is no role %q to be its parent", role.Name, role.Parent)
		}
		r.children[role.Parent] = append(r.children[role.Parent], role.Name)
	}
	for _, role := range list {
		for at, steps := role.Name, 0; at != ""; at, steps = r.parent[at], steps+1 {
			if steps > len(list) {
				return nil, fmt.Errorf("role %s is its own ancestor", role.Name)
			}
		}
	}
	return r, nil
}

// Has reports whether there is a role of that name.
func (r *Roles) Has(name string) bool { _, ok := r.parent[name]; return ok }

// Stored returns a principal in the form that the table shares uses, and false
// for a role that does not exist. A principal names a role by its name, and the
// table by its name and Since, so that a role with the name of a deleted one
// does not inherit its shares.
func (r *Roles) Stored(principal Principal) (stored string, ok bool) {
	name, isRole := principal.Role()
	if !isRole {
		return string(principal), true
	}
	stored, ok = r.shares[name]
	return stored, ok
}

// Principal reverses Stored. It returns false for a role that no longer exists.
func (r *Roles) Principal(stored string) (principal Principal, ok bool) {
	kind, name, _ := strings.Cut(stored, ":")
	if kind != "role" && !strings.HasPrefix(kind, "role#") {
		return Principal(stored), true
	}
	return RolePrincipal(name), r.shares[name] == stored
}

// within reports whether a role is the other role or below it. The time that it
// takes does not depend on the other role.
func (r *Roles) within(name, other string) bool {
	found := false
	for at := name; at != ""; at = r.parent[at] {
		found = found || at == other
	}
	return found
}

// Below returns every descendant of a role, without the role itself.
func (r *Roles) Below(name string) []string {
	var list []string
	next := slices.Clone(r.children[name])
	for len(next) > 0 {
		at := next[0]
		next = append(next[1:], r.children[at]...)
		list = append(list, at)
	}
	return list
}
