package config

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/custom"
	"gatehouse/internal/db"
	"gatehouse/internal/fault"
	"gatehouse/internal/schema"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// load reads the stored state with which the manifest is compared: the whole
// configuration, and those users that the manifest concerns.
func (w *writer) load() (err error) {
	w.config, err = access.Load(w.ctx, w.tx)
	switch {
	case errors.Is(err, fault.New(fault.NotFound, "")):
		if w.p.m.edits != nil && !slices.ContainsFunc(w.p.m.edits, func(e Edit) bool { return e.Kind == kindTenant }) {
			return fault.New(fault.NotFound, "there is no tenant %q", w.p.m.tenant)
		}
		w.fresh = true
		w.config = &access.Config{Schema: schema.New(nil, nil), Sets: map[string]*access.PermissionSet{}}
		if w.config.Roles, err = access.NewRoles(nil); err != nil {
			return err
		}
	case err != nil:
		return err
	}
	p := w.p
	p.before = stateOf(w.config)
	if err := w.loadDefinitions(); err != nil {
		return err
	}
	clashes, err := user.Clashes(w.ctx, w.tx)
	if err != nil {
		return err
	}
	p.refuseClashes(clashes)
	for key, address := range p.m.addresses() {
		u, err := user.ByEmail(w.ctx, w.tx, address)
		if errors.Is(err, user.ErrUnknown) {
			continue
		}
		if err != nil {
			return err
		}
		// The row again, held: the user may be changing their profile.
		held, err := user.Lock(w.ctx, w.tx, u.ID)
		if err != nil {
			return err
		}
		held.Sets = u.Sets
		p.before.users[key] = held
	}
	if p.prunes("users") {
		return w.loadStaff(clashes)
	}
	return nil
}

// addresses are the e-mail addresses, by key, of the users that the Spec is about.
func (m *Spec) addresses() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, decl := range m.users {
			if !yield(decl.Key, decl.Email) {
				return
			}
		}
		for at, name := range m.removed {
			if at[0] == "users" && !m.names(at[0], at[1]) && !yield(at[1], name) {
				return
			}
		}
		for key, name := range m.activated {
			if !m.names("users", key) && !yield(key, name) {
				return
			}
		}
	}
}

// refuseClashes refuses to name an address that two accounts have: by it nobody
// can tell which of them is meant.
func (p *plan) refuseClashes(clashes map[string][]user.ID) {
	refuse := func(key string, at ...string) {
		if len(clashes[key]) > 0 {
			p.add(p.m.place(at...), "two users have the e-mail address %s, each in a form of its own: leave it out of the manifest", show(key))
		}
	}
	for _, decl := range p.m.users {
		refuse(decl.Key, "users", decl.Key)
	}
	for _, c := range p.m.components {
		refuse(c.Context.UserID, "logic_components", c.Name, "execution_context")
	}
	for _, a := range p.m.automations {
		refuse(a.Context.UserID, "automations", a.Name, "execution_context")
	}
	for _, e := range p.m.endpoints {
		refuse(e.RunAs, "custom_endpoints", e.Slug, "run_as")
	}
}

// loadStaff adds every internal user. Those that the manifest does not name are
// pruned, except those that it cannot name.
func (w *writer) loadStaff(clashes map[string][]user.ID) error {
	sets, err := user.Assignments(w.ctx, w.tx)
	if err != nil {
		return err
	}
	return user.Each(w.ctx, w.tx, func(u *user.User) error {
		clash := len(clashes[user.EmailKey(u.Email)]) > 0
		if u.Type == user.Internal && w.p.before.users[u.Key] == nil && !clash {
			u.Sets = sets[u.ID]
			w.p.before.users[u.Key] = u
		}
		return nil
	})
}

// loadHolders finds the users, outside the plan, who have what it removes.
func (w *writer) loadHolders() error {
	p := w.p
	roles, sets := p.removed()
	if len(roles) == 0 && len(sets) == 0 {
		return nil
	}
	assigned, err := user.Assignments(w.ctx, w.tx)
	if err != nil {
		return err
	}
	p.holders = holders{roles: map[string][]string{}, sets: map[string][]string{}}
	return user.Each(w.ctx, w.tx, func(u *user.User) error {
		if p.after.users[u.Key] != nil {
			return nil
		}
		if roles[u.Role] {
			p.holders.roles[u.Role] = append(p.holders.roles[u.Role], u.Email)
		}
		for _, set := range assigned[u.ID] {
			if sets[set] {
				p.holders.sets[set] = append(p.holders.sets[set], u.Email)
			}
		}
		return nil
	})
}

// checkUserData refuses a new type of a custom field of users while stored values
// fit the old type and not the new one, and says how many. Values that registration
// stored unchecked fit neither type, and do not prevent the change.
func (w *writer) checkUserData() error {
	p := w.p
	type pair struct{ was, is *schema.Field }
	var changed []pair
	for _, was := range p.before.userFields {
		is := p.schema.User.OfMember(was.MemberName())
		if is != nil && (is.Type != was.Type || !slices.Equal(is.Options, was.Options)) && len(p.List) == 0 {
			changed = append(changed, pair{was, is})
		}
	}
	if len(changed) == 0 {
		return nil
	}
	broken := map[string]int{}
	err := user.Each(w.ctx, w.tx, func(u *user.User) error {
		var values map[string]jsontext.Value
		if err := json.Unmarshal(u.Custom, &values); err != nil {
			return err
		}
		for _, c := range changed {
			value := values[c.was.MemberName()]
			_, unfit := c.was.Canonical(value)
			if _, reason := c.is.Canonical(value); unfit == "" && reason != "" {
				broken[c.is.Name]++
			}
		}
		return nil
	})
	for _, name := range sortedKeys(broken) {
		p.add(p.m.place("user_fields", "field", name), "user_fields: field %s cannot become %s: %d user(s) hold a value that does not fit",
			name, p.schema.User.Field(name).Type, broken[name])
	}
	return err
}

// errFound ends a search.
var errFound = errors.New("found")

// owned reports whether the tenant has an active owner once it is as the plan
// left it. It reads past the plan's users, who may be stored otherwise yet.
func owned(ctx context.Context, q db.Querier, after *state) (bool, error) {
	for _, u := range after.users {
		if u.Owner && u.Active {
			return true, nil
		}
	}
	err := user.Each(ctx, q, func(u *user.User) error {
		if u.Owner && u.Active && after.users[u.Key] == nil {
			return errFound
		}
		return nil
	})
	if errors.Is(err, errFound) {
		return true, nil
	}
	return false, err
}

func stateOf(c *access.Config) *state {
	s := &state{
		tenant: c.Tenant, userFields: c.Schema.User.Fields, sets: c.Sets, entities: map[string]*schema.Entity{},
		roles: map[string]access.Role{}, rules: map[string]*access.SharingRule{}, users: map[string]*user.User{},
		modules: map[string]*custom.Module{}, components: map[string]*custom.Component{}, automations: map[string]*custom.Automation{},
		endpoints: map[string]*custom.Endpoint{}, people: map[string]string{},
	}
	for _, e := range c.Schema.Entities {
		s.entities[e.Name] = e
	}
	for _, r := range c.Roles.List {
		s.roles[r.Name] = r
	}
	for _, r := range c.Rules {
		s.rules[r.ID()] = r
	}
	return s
}

func (s *state) loadUsers(ctx context.Context, q db.Querier) error {
	sets, err := user.Assignments(ctx, q)
	if err != nil {
		return err
	}
	return user.Each(ctx, q, func(u *user.User) error {
		u.Sets = slices.Clone(sets[u.ID])
		s.users[u.Key] = u
		return nil
	})
}

// exported reads a tenant's whole state at one version of its configuration; without
// users if so asked.
func exported(ctx context.Context, h db.Handle, withUsers bool) (*state, error) {
	for range 20 {
		c, err := access.Load(ctx, h)
		if errors.Is(err, fault.New(fault.NotFound, "")) {
			return nil, fault.New(fault.NotFound, "there is no tenant %q", h.Tenant())
		}
		if err != nil {
			return nil, err
		}
		s := stateOf(c)
		if withUsers {
			if err := s.loadUsers(ctx, h); err != nil {
				return nil, err
			}
		}
		if err := s.loadDefinitions(ctx, h); err != nil {
			return nil, err
		}
		version, ok, err := tenant.Version(ctx, h)
		if err != nil {
			return nil, err
		}
		if ok && version == c.Tenant.Version {
			return s, nil
		}
	}
	return nil, fault.New(fault.Overloaded, "the configuration changes too fast to be read")
}
