package config

import (
	"context"
	"slices"
	"strings"

	"gatehouse/internal/access"
	"gatehouse/internal/fault"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// Author is who makes a change of configuration: the operator, who may make any, or
// a user, who may make what contract D13 allows. The zero Author may change nothing.
type Author struct {
	name     string // in the change history
	operator bool
	viewer   access.Viewer
	// also is a second user who must be allowed the change, too; the zero Viewer is none.
	also access.Viewer
}

// Operator returns the author of what a command does; name is what the change history
// has of them. It must not be made of a request.
func Operator(name string) Author { return Author{name: name, operator: true} }

// By returns the author of what a user asks for. Their rights are those that they
// have when the change is made. name is who the change history names: the user, or
// two users where one acts as another.
func By(viewer access.Viewer, name string) Author { return Author{name: name, viewer: viewer} }

// And returns the author by while another user acts as them: the change outlives the acting,
// so it must be allowed to both.
func (by Author) And(real access.Viewer) Author {
	by.also = real
	return by
}

// The permissions that changes of kinds of objects need are in the entries of kinds.
// settingsPermission is that of a member of the tenant.
func settingsPermission(key string) string {
	if key == "public_api" {
		return access.ManageEndpoints
	}
	return access.TenantSettings
}

// ownersSettings are the members of the tenant that only its owner may change: they
// decide where people sign in and where the links of mails lead.
var ownersSettings = []string{"hosts", "admin_hosts", "base_url"}

// AdminPermissions are the system permissions that one kind of object or another
// needs. Who has all of them may change all that a manifest has.
var AdminPermissions = []string{
	access.ManageUsers, access.ManagePermissions, access.ManageEntities, access.ManageEndpoints, access.TenantSettings,
}

// Changing returns the permissions one of which a change of a kind of object needs, as
// far as that depends on the kind alone, and Reading those one of which lets read such
// objects. Both are empty for what is no kind. The tenant's owner has all permissions.
func Changing(kindName string) []string {
	k, _ := find(kindName)
	return slices.Clone(k.changing)
}

// Reading is described at Changing.
func Reading(kindName string) []string {
	k, _ := find(kindName)
	return slices.Clone(k.reading)
}

// MayRead returns FORBIDDEN if a viewer may not read the objects of a kind. It returns
// VALIDATION when there is no such kind.
func MayRead(w access.Viewer, kindName string) error {
	k, ok := find(kindName)
	if !ok {
		return fault.New(fault.Validation, "there is no kind of object %q", kindName)
	}
	return needs(w, k.reading, "reading "+words(k.name))
}

// needs returns FORBIDDEN unless a viewer has one of the permissions.
func needs(w access.Viewer, oneOf []string, what string) error {
	if slices.ContainsFunc(oneOf, w.May) {
		return nil
	}
	return fault.New(fault.Forbidden, "%s needs the permission %s", what, orList(oneOf)).With("needs", oneOf)
}

// early refuses, before any work is done for it, what the author had no permission for
// when they asked; enter asks again.
func (by Author) early(m *Spec) error {
	switch {
	case by.operator:
		return nil
	case by.viewer.UserID() == "" || by.viewer.External():
		return errNobody
	case m.tenant != "" && by.viewer.Tenant() != m.tenant:
		return fault.New(fault.Forbidden, "this configuration is of tenant %s, and you are of another", m.tenant)
	}
	if by.also.UserID() != "" {
		if err := m.mayBe(by.also); err != nil {
			return err
		}
	}
	return m.mayBe(by.viewer)
}

// author is an Author inside the transaction of a change.
type author struct {
	viewer access.Viewer // with the rights of now; of a user only
	key    string        // the user's e-mail key
	free   bool          // may make any change
}

// may reports whether an author holds a permission.
func (w author) may(permission string) bool { return w.free || w.viewer.May(permission) }

// knows reports whether an author may know how many records of an entity type there
// are, and with which values.
func (w author) knows(c *access.Config, entity string) bool {
	if w.free || w.viewer.AllEntityAccess() {
		return true
	}
	if c == nil {
		return false
	}
	e := c.Schema.Entity(entity)
	return e != nil && w.viewer.MayReadAll(e)
}

// enter finds who makes the change, with the rights of now. It returns FORBIDDEN when
// they have no permission for what the change names, whether or not that is there.
func (w *writer) enter(by Author) error {
	p := w.p
	if by.operator {
		p.author = author{free: true}
		return nil
	}
	if w.fresh || by.viewer.Tenant() != w.config.Tenant.ID || by.viewer.UserID() == "" || by.viewer.External() {
		return errNobody
	}
	v, err := viewerNow(w.ctx, w.tx, w.config, by.viewer.UserID())
	if err != nil {
		return err
	}
	p.author = author{viewer: v, key: user.EmailKey(v.Email())}
	u, err := user.ByID(w.ctx, w.tx, v.UserID())
	if err != nil {
		return err
	}
	p.people[p.author.key] = u
	if err := p.m.mayBe(v); err != nil {
		return err
	}
	if by.also.UserID() != "" {
		real, err := viewerNow(w.ctx, w.tx, w.config, by.also.UserID())
		if err != nil {
			return err
		}
		if err := p.m.mayBe(real); err != nil {
			return err
		}
		p.also = &author{viewer: real, key: user.EmailKey(real.Email())}
		if p.people[p.also.key], err = user.ByID(w.ctx, w.tx, real.UserID()); err != nil {
			return err
		}
	}
	return p.hidesStaff()
}

// hidesStaff returns NOT_FOUND where an author who may activate external users alone
// names anybody else.
func (p *plan) hidesStaff() error {
	if p.author.may(access.ManageUsers) {
		return nil
	}
	for _, key := range sortedKeys(p.m.activated) {
		if u := p.before.users[key]; u == nil || u.Type != user.External {
			return noUser(p.m.activated[key])
		}
	}
	return nil
}

func noUser(address string) error {
	return fault.New(fault.NotFound, "there is no user with the e-mail address %s", printableName(strings.TrimSpace(address)))
}

var errNobody = fault.New(fault.Forbidden, "only staff of the tenant may change its configuration")

func viewerNow(ctx context.Context, tx tenant.ConfigTx, c *access.Config, id user.ID) (access.Viewer, error) {
	v, err := access.ViewerIn(ctx, tx, c, id)
	if fault.CodeOf(err) == fault.Unauthorized || err == nil && v.External() {
		return v, errNobody
	}
	return v, err
}

// mayBe returns FORBIDDEN when a viewer lacks a permission for what a Spec names.
// Whether they may do it, too, is judged once it is known what changes (judge).
func (m *Spec) mayBe(v access.Viewer) error {
	for _, key := range sectionKeys() {
		if !m.has(key) || key == "tenant" {
			continue
		}
		k := kindOfSection(key)
		oneOf := k.changing
		if k.name == kindUser && len(m.users) == 0 && len(m.activated) > 0 && !m.removes("users") {
			oneOf = append(slices.Clone(oneOf), access.ManageExternalUsers)
		}
		if err := needs(v, oneOf, "a change of "+words(k.name)); err != nil {
			return err
		}
	}
	return nil
}

func (m *Spec) removes(section string) bool {
	for at := range m.removed {
		if at[0] == section {
			return true
		}
	}
	return false
}

// kindOfSection is the kind of the objects that a top-level key has.
func kindOfSection(key string) kind {
	for _, k := range append(slices.Clone(kinds), templateKind) {
		if k.section == key {
			return k
		}
	}
	return tenantKind
}
