package access

import (
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/fault"
	"gatehouse/internal/schema"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// Verb is an operation on records of an entity type.
type Verb uint8

// The verbs.
const (
	Create Verb = iota
	Read
	Update
	Delete
)

func (v Verb) String() string { return [...]string{"create", "read", "update", "delete"}[v] }

// Viewer is a user together with their rights under one configuration. Records
// can only be read or changed through a Viewer. A Directory makes it, and it
// never changes. The zero Viewer may do nothing.
type Viewer struct{ v *viewer }

type viewer struct {
	config   *Config
	userID   user.ID
	email    string
	emailKey string // by which the address is found
	external bool
	role     string
	managed  map[string]jsontext.Value // the user's managed fields, by name
	owner    bool                      // the user owns the tenant
	all      bool                      // access to every type, record and field
	allBy    []string                  // the permission sets that set all
	sets     []*PermissionSet
	system   []string
	entities map[string]*EntityRights
	// people is the version of the tenant's users that the viewer was made from.
	people int64
	// evenInactive is set when the credential outlives its user's deactivation.
	evenInactive bool
	// elevated is set by SystemAs.
	elevated bool
}

// Identity is the part of a user that a Viewer is built from.
type Identity struct {
	UserID   user.ID
	Email    string
	External bool
	Owner    bool
	Role     string
	Sets     []string // names of permission sets
	EmailKey string
	Custom   jsontext.Value // the stored object of custom fields
}

// IdentityOf returns the part of a user, with their permission sets, that a
// Viewer is built from.
func IdentityOf(u *user.User) Identity {
	return Identity{
		UserID: u.ID, Email: u.Email, External: u.Type == user.External, Owner: u.Owner, Role: u.Role, Sets: u.Sets,
		EmailKey: u.Key, Custom: u.Custom,
	}
}

// ManagedFields returns the values of managed fields in the stored custom fields
// of a user, by name. fields are all fields of users.
func ManagedFields(fields []*schema.Field, custom jsontext.Value) map[string]jsontext.Value {
	if !slices.ContainsFunc(fields, func(f *schema.Field) bool { return f.Managed }) {
		return nil
	}
	var stored map[string]jsontext.Value
	if json.Unmarshal(custom, &stored) != nil {
		return nil // what cannot be read opens nothing
	}
	values := map[string]jsontext.Value{}
	for _, f := range fields {
		if v := stored[f.MemberName()]; f.Managed && !schema.IsNull(v) {
			if canonical, reason := f.Canonical(v); reason == "" {
				values[f.Name] = canonical
			}
		}
	}
	return values
}

// viewerOf is the only function that makes a Viewer from a user. It ignores the
// ownership, system permissions and all_entity_access of external users
// (contract A11).
func viewerOf(c *Config, id Identity) Viewer {
	v := &viewer{
		config: c, userID: id.UserID, email: id.Email, emailKey: id.EmailKey, external: id.External, role: id.Role,
		managed: ManagedFields(c.Schema.User.Fields, id.Custom), entities: map[string]*EntityRights{},
	}
	v.owner = id.Owner && !id.External
	for _, name := range id.Sets {
		set := c.Sets[name]
		if set == nil {
			continue // an assignment to a set that does not exist grants nothing
		}
		v.sets = append(v.sets, set)
		if v.takes(set) {
			v.allBy = append(v.allBy, set.Name)
		}
		if !id.External {
			v.system = append(v.system, set.System...)
		}
	}
	v.all = v.owner || len(v.allBy) > 0
	if v.owner {
		v.system = slices.Clone(SystemPermissions)
	}
	slices.Sort(v.system)
	v.system = slices.Compact(v.system)
	for _, e := range c.Schema.Entities {
		v.entities[e.Name] = v.rights(e)
	}
	v.entities[schema.UserEntity] = v.rights(c.Schema.User)
	for _, r := range v.entities {
		for verb, s := range r.scopes {
			if s == nil { // otherwise an entity type that this one controls has asked for it
				r.scopes[verb] = v.scope(r.Entity, Verb(verb))
			}
		}
	}
	return Viewer{v}
}

// UserID returns the id of the user for whom the viewer acts, or "" for the
// zero Viewer and the viewer of System.
func (w Viewer) UserID() user.ID {
	if w.v == nil {
		return ""
	}
	return w.v.userID
}

// Email returns the e-mail address of the user for whom the viewer acts, or ""
// where UserID is "".
func (w Viewer) Email() string {
	if w.v == nil {
		return ""
	}
	return w.v.email
}

// Tenant returns the tenant of the viewer, or "" for the zero Viewer.
func (w Viewer) Tenant() tenant.ID {
	if w.v == nil {
		return ""
	}
	return w.v.config.Tenant.ID
}

// Config returns the configuration that the viewer was made with, or nil for
// the zero Viewer.
func (w Viewer) Config() *Config {
	if w.v == nil {
		return nil
	}
	return w.v.config
}

// Role returns the role of the user, or "" for none.
func (w Viewer) Role() string {
	if w.v == nil {
		return ""
	}
	return w.v.role
}

// External reports whether the viewer is an end-user of the tenant's app.
func (w Viewer) External() bool { return w.v != nil && w.v.external }

// TenantOwner reports whether the viewer owns the tenant.
func (w Viewer) TenantOwner() bool { return w.v != nil && w.v.owner }

// AllEntityAccess reports whether the viewer may do everything with every record.
func (w Viewer) AllEntityAccess() bool { return w.v != nil && w.v.all }

// May reports whether the viewer holds a system permission.
func (w Viewer) May(permission string) bool {
	return w.v != nil && w.v.holds(permission)
}

// MayNameUsers reports whether the viewer may name any user when they share a
// record (contract A17), which only an internal user who may read the entity
// type user may do. All other viewers may name themselves.
func (w Viewer) MayNameUsers() bool {
	return w.v != nil && !w.v.external && w.v.entities[schema.UserEntity].May(Read)
}

// MayNameByAddress reports whether the viewer may name users by e-mail address,
// which a permission set may hide.
func (w Viewer) MayNameByAddress() bool {
	return w.MayNameUsers() && w.v.entities[schema.UserEntity].Column("email").Read
}

// MayNameRole reports whether the viewer may name a role, which need not exist,
// when they share a record (contract A17): an external user may name their own
// role and its ancestors, all others any role.
func (w Viewer) MayNameRole(role string) bool {
	switch {
	case w.v == nil:
		return false
	case !w.v.external:
		return true
	}
	return w.v.config.Roles.within(w.v.role, role)
}

// EntityRights is a viewer's rights on one entity type: verbs, fields and
// scopes. It is shared and must not be changed.
type EntityRights struct {
	Entity *schema.Entity
	verbs  [4]bool
	// ReadField and EditField say, by schema.Field.Index, which declared fields
	// the viewer may read and edit.
	ReadField, EditField []bool
	// columns are the rights on the built-in members of 'user'; nil where nothing
	// restricts them.
	columns map[string]FieldGrant
	assigns bool // may name owners; see MayOwn
	scopes  [4]*Scope
}

// May reports whether the viewer has the entity permission for a verb.
func (r *EntityRights) May(v Verb) bool { return r.verbs[v] }

// Column returns the rights on a built-in member of 'user'.
func (r *EntityRights) Column(name string) FieldGrant {
	if r.columns == nil {
		return FieldGrant{Read: true, Edit: true}
	}
	return r.columns[name]
}

// Scope returns the records that a verb reaches. The scope of Create is empty.
func (r *EntityRights) Scope(v Verb) *Scope { return r.scopes[v] }

// On returns the viewer's rights on an entity type of records. It returns NOT_FOUND
// when there is no such type, and for 'user' (see OnUsers), and FORBIDDEN for the
// zero Viewer.
func (w Viewer) On(entity string) (*EntityRights, error) {
	if w.v == nil {
		return nil, fault.New(fault.Forbidden, "nobody may do this")
	}
	if entity != schema.UserEntity {
		if r := w.v.entities[entity]; r != nil {
			return r, nil
		}
	}
	return nil, fault.New(fault.NotFound, "there is no entity of that name; names are singular and in snake_case")
}

// OnUsers returns the viewer's rights on the built-in entity type 'user'. It returns
// FORBIDDEN for the zero Viewer.
func (w Viewer) OnUsers() (*EntityRights, error) {
	if w.v == nil {
		return nil, fault.New(fault.Forbidden, "nobody may do this")
	}
	return w.v.entities[schema.UserEntity], nil
}

// takes reports whether a permission set grants the viewer everything.
func (v *viewer) takes(set *PermissionSet) bool { return set.AllEntityAccess && !v.external }

// rights returns the union of the sets' permissions on e (contract A5), without
// scopes.
func (v *viewer) rights(e *schema.Entity) *EntityRights {
	r := noRights(e)
	if v.all {
		r.full()
	} else {
		for _, set := range v.sets {
			if g, ok := set.Entities[e.Name]; ok {
				r.unite(g)
			}
		}
	}
	v.closeManaged(r)
	return r
}

// closeManaged takes the right to edit managed fields of users from viewers
// without a system permission for it (contract U9). Whose they may edit is
// checked where they do it (MayManage).
func (v *viewer) closeManaged(r *EntityRights) {
	if r.Entity != v.config.Schema.User || v.holds(ManageUsers) || v.holds(ManageExternalUsers) {
		return
	}
	for i, f := range r.Entity.Fields {
		r.EditField[i] = r.EditField[i] && !f.Managed
	}
}

func (v *viewer) holds(permission string) bool { return slices.Contains(v.system, permission) }

// MayManage reports whether the viewer may set the managed fields of a user
// (contract U9): with manage_users those of everybody else, and with
// can_manage_external_users those of other external users. What a target does
// with execution_context: system is not done by the user it runs for.
func (w Viewer) MayManage(id user.ID, external bool) bool {
	if w.v == nil || id == w.v.userID && !w.v.elevated {
		return false
	}
	return w.v.holds(ManageUsers) || external && w.v.holds(ManageExternalUsers)
}

// MayName reports whether the viewer may name other users as owners of records
// of the type (contract A20), and MayOwn which: anybody, or those whom a sharing
// rule of the type names.
func (r *EntityRights) MayName() bool { return r.assigns }

// MayOwn reports whether the viewer may give a record of an entity type to a user
// of that kind and role (contract A20).
func (w Viewer) MayOwn(e *schema.Entity, external bool, role string) bool {
	switch {
	case w.v == nil:
		return false
	case w.v.all:
		return true
	case !w.v.entities[e.Name].assigns:
		return false
	}
	return slices.ContainsFunc(w.v.config.Rules, func(q *SharingRule) bool {
		return q.Entity == e.Name && (q.ShareWith.Has(external) || q.ShareWithRole != "" && q.ShareWithRole == role)
	})
}

// noRights returns rights without any permission.
func noRights(e *schema.Entity) *EntityRights {
	r := &EntityRights{
		Entity: e, ReadField: make([]bool, len(e.Fields)), EditField: make([]bool, len(e.Fields)),
	}
	if e.Name == schema.UserEntity {
		r.columns = map[string]FieldGrant{}
	}
	return r
}

// full adds every permission.
func (r *EntityRights) full() *EntityRights {
	r.verbs, r.assigns = [4]bool{true, true, true, true}, true
	for i := range r.Entity.Fields {
		r.ReadField[i], r.EditField[i] = true, true
	}
	r.columns = nil
	return r
}

func (r *EntityRights) unite(g EntityGrant) {
	r.verbs[Create] = r.verbs[Create] || g.Create
	r.verbs[Read] = r.verbs[Read] || g.Read
	r.verbs[Update] = r.verbs[Update] || g.Update
	r.verbs[Delete] = r.verbs[Delete] || g.Delete
	r.assigns = r.assigns || g.AssignOwner
	for i, f := range r.Entity.Fields {
		fg := g.field(f.Name)
		r.ReadField[i] = r.ReadField[i] || fg.Read
		r.EditField[i] = r.EditField[i] || fg.Edit
	}
	if r.Entity.Name != schema.UserEntity {
		return
	}
	for _, c := range UserColumns {
		fg := g.field(c)
		r.columns[c] = FieldGrant{Read: r.columns[c].Read || fg.Read, Edit: r.columns[c].Edit || fg.Edit}
	}
}

// field returns the permissions on one field: everything when the field is not
// named. Edit implies Read.
func (g EntityGrant) field(name string) FieldGrant {
	fg, named := g.Fields[name]
	if !named {
		return FieldGrant{Read: true, Edit: true}
	}
	fg.Read = fg.Read || fg.Edit
	return fg
}
