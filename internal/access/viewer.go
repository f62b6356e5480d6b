package access

import (
	"slices"

	"gatehouse/internal/fault"
	"gatehouse/internal/schema"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// Verb is one thing to do with records of an entity type.
type Verb uint8

// The verbs.
const (
	Create Verb = iota
	Read
	Update
	Delete
)

func (v Verb) String() string { return [...]string{"create", "read", "update", "delete"}[v] }

// Viewer is a user together with everything that decides what they may do: the
// only way to ask for records. It is built from a credential by a Directory and
// never changes; the zero Viewer may do nothing.
type Viewer struct{ v *viewer }

type viewer struct {
	config   *Config
	userID   user.ID
	email    string
	external bool
	role     string
	owner    bool // of the tenant
	all      bool // every type, record and field
	system   []string
	entities map[string]*EntityRights
	// evenInactive: the credential outlives its user's deactivation.
	evenInactive bool
	// elevated: SystemAs made it.
	elevated bool
}

// Identity is what a Viewer is built from: a row of users. The Directory reads it.
type Identity struct {
	UserID   user.ID
	Email    string
	External bool
	Owner    bool
	Role     string
	Sets     []string // names of permission sets
}

// viewerOf is the one place where a Viewer is made from a user. External users
// lose ownership, system permissions and all_entity_access right here
// (contract A11).
func viewerOf(c *Config, id Identity) Viewer {
	v := &viewer{config: c, userID: id.UserID, email: id.Email, external: id.External, role: id.Role, entities: map[string]*EntityRights{}}
	v.owner = id.Owner && !id.External
	v.all = v.owner
	var sets []*PermissionSet
	for _, name := range id.Sets {
		set := c.Sets[name]
		if set == nil {
			continue // a dangling assignment grants nothing
		}
		sets = append(sets, set)
		if !id.External {
			v.all = v.all || set.AllEntityAccess
			v.system = append(v.system, set.System...)
		}
	}
	if v.owner {
		v.system = slices.Clone(SystemPermissions)
	}
	slices.Sort(v.system)
	v.system = slices.Compact(v.system)
	for _, e := range c.Schema.Entities {
		v.entities[e.Name] = v.rights(e, sets)
	}
	v.entities[schema.UserEntity] = v.rights(c.Schema.User, sets)
	return Viewer{v}
}

// UserID is who acts; "" for the zero Viewer and for system viewers.
func (w Viewer) UserID() user.ID {
	if w.v == nil {
		return ""
	}
	return w.v.userID
}

// Email is the e-mail address of who acts; "" where UserID is.
func (w Viewer) Email() string {
	if w.v == nil {
		return ""
	}
	return w.v.email
}

// Tenant is the tenant the viewer belongs to; "" for the zero Viewer.
func (w Viewer) Tenant() tenant.ID {
	if w.v == nil {
		return ""
	}
	return w.v.config.Tenant.ID
}

// Config is the tenant's configuration the viewer was built with; nil for the
// zero Viewer.
func (w Viewer) Config() *Config {
	if w.v == nil {
		return nil
	}
	return w.v.config
}

// Role is the viewer's role, "" for none.
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

// AllEntityAccess reports whether every record of every type is open to the viewer.
func (w Viewer) AllEntityAccess() bool { return w.v != nil && w.v.all }

// May reports whether the viewer holds a system permission.
func (w Viewer) May(permission string) bool {
	return w.v != nil && slices.Contains(w.v.system, permission)
}

// EntityRights is what a viewer may do with one entity type: its verbs, its
// fields, and which records. It is shared and read-only.
type EntityRights struct {
	Entity *schema.Entity
	verbs  [4]bool
	// ReadField and EditField say, by schema.Field.Index, which declared fields
	// the viewer may read and edit.
	ReadField, EditField []bool
	// columns is what the sets say of the built-in members of 'user'; it is
	// nil where nothing restricts them.
	columns map[string]FieldGrant
	scopes  [4]*Scope
}

// May reports whether the entity permission for a verb is there.
func (r *EntityRights) May(v Verb) bool { return r.verbs[v] }

// Column is what the viewer may do with a built-in member of 'user'.
func (r *EntityRights) Column(name string) FieldGrant {
	if r.columns == nil {
		return FieldGrant{Read: true, Edit: true}
	}
	return r.columns[name]
}

// Scope says which records a verb reaches. Create's scope is empty.
func (r *EntityRights) Scope(v Verb) *Scope { return r.scopes[v] }

// On is the viewer's rights on an entity type of records; NOT_FOUND when there
// is no such type. The built-in type 'user' is asked for by OnUsers.
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

// OnUsers is the viewer's rights on the built-in entity type 'user'.
func (w Viewer) OnUsers() (*EntityRights, error) {
	if w.v == nil {
		return nil, fault.New(fault.Forbidden, "nobody may do this")
	}
	return w.v.entities[schema.UserEntity], nil
}

// rights unites what the sets say of e (contract A5).
func (v *viewer) rights(e *schema.Entity, sets []*PermissionSet) *EntityRights {
	r := &EntityRights{
		Entity: e, ReadField: make([]bool, len(e.Fields)), EditField: make([]bool, len(e.Fields)),
	}
	if v.all {
		r.verbs = [4]bool{true, true, true, true}
		for i := range e.Fields {
			r.ReadField[i], r.EditField[i] = true, true
		}
	} else {
		if e.Name == schema.UserEntity {
			r.columns = map[string]FieldGrant{}
		}
		for _, set := range sets {
			if g, ok := set.Entities[e.Name]; ok {
				r.unite(g)
			}
		}
	}
	for verb := range r.scopes {
		r.scopes[verb] = v.scope(e, Verb(verb))
	}
	return r
}

func (r *EntityRights) unite(g EntityGrant) {
	r.verbs[Create] = r.verbs[Create] || g.Create
	r.verbs[Read] = r.verbs[Read] || g.Read
	r.verbs[Update] = r.verbs[Update] || g.Update
	r.verbs[Delete] = r.verbs[Delete] || g.Delete
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

// field is what the grant says of one field: all of it where it is not named,
// and reading wherever editing.
func (g EntityGrant) field(name string) FieldGrant {
	fg, named := g.Fields[name]
	if !named {
		return FieldGrant{Read: true, Edit: true}
	}
	fg.Read = fg.Read || fg.Edit
	return fg
}
