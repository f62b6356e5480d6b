package config

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"gatehouse/internal/access"
	"gatehouse/internal/custom"
	"gatehouse/internal/schema"
	"gatehouse/internal/secret"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// state is the part of a tenant's configuration that a Spec can describe.
type state struct {
	tenant     *tenant.Tenant // nil when there is none
	entities   map[string]*schema.Entity
	userFields []*schema.Field
	roles      map[string]access.Role
	sets       map[string]*access.PermissionSet
	rules      map[string]*access.SharingRule // by ID
	users      map[string]*user.User          // by e-mail key; in a plan, only those it is about

	// What the tenant defined itself. Users are named by e-mail key here and by id
	// in the database, because new users of a plan have no id yet. An id that
	// belongs to no user is kept.
	modules     map[string]*custom.Module
	components  map[string]*custom.Component
	automations map[string]*custom.Automation
	endpoints   map[string]*custom.Endpoint
	// people are addresses, by e-mail key, of users that definitions name and that the
	// state does not have.
	people map[string]string
}

func (s *state) clone() *state {
	return &state{tenant: s.tenant, entities: maps.Clone(s.entities), userFields: s.userFields, roles: maps.Clone(s.roles),
		sets: maps.Clone(s.sets), rules: maps.Clone(s.rules), users: maps.Clone(s.users),
		modules: maps.Clone(s.modules), components: maps.Clone(s.components), automations: maps.Clone(s.automations), endpoints: maps.Clone(s.endpoints)}
}

func (s *state) schema() *schema.Schema {
	entities := make([]*schema.Entity, 0, len(s.entities))
	for _, e := range s.entities {
		entities = append(entities, e)
	}
	return schema.New(entities, s.userFields)
}

// plan is a Spec compared with a stored state: the state after the change, and the
// changes that lead to it.
type plan struct {
	*Problems
	m             *Spec
	prune         bool
	hash          hashing
	before, after *state
	schema        *schema.Schema // of after
	holders       holders
	// people has the stored users that definitions name, by e-mail key. They need
	// not be part of the plan.
	people  map[string]*user.User
	renames renames
	keyring *secret.Keyring
	built   map[custom.Digest]built
	// unbuildable is set when nothing can be built with the modules that there are.
	unbuildable bool
	changes     []change
	// managed are the managed fields that the Spec gives to users, by e-mail key.
	managed map[string][]managedValue
	// warnings are for the author of a Spec that can be applied.
	warnings []string

	author author
	also   *author // who acts as the author, nil for nobody; judge asks them, too
	// owns reports whether a user owns a record, and shared whether one is shared with them.
	owns, shared func(user.ID) bool
	// probed says of fields that the plan adds whether there are values of them from
	// before they were removed; unprobed are those that must be asked about.
	probed   map[fieldAt]bool
	unprobed []fieldAt
}

// person returns the user with an e-mail key as they are after the change; nil when
// neither the plan nor a definition names such a user.
func (p *plan) person(key string) *user.User { return cmp.Or(p.after.users[key], p.people[key]) }

// holders are the users outside the plan who have a role or permission set that the
// plan removes: e-mail addresses by the name of the role or set.
type holders struct{ roles, sets map[string][]string }

// change is one object that the plan creates, updates or deletes. key finds it in
// the state after, was in the state before; before and after are its views, nil
// where there is none.
type change struct {
	kind, key, was, name string
	before, after        any
}

// The kinds of objects, as the change history names them.
const (
	kindTenant     = "tenant"
	kindEntity     = "entity"
	kindUserFields = "user_fields"
	kindRole       = "role"
	kindSet        = "permission_set"
	kindRule       = "sharing_rule"
	kindUser       = "user"
	kindModule     = "module"
	kindComponent  = "logic_component"
	kindAutomation = "automation"
	kindEndpoint   = "custom_endpoint"
)

// prunes reports whether objects that a section does not name are removed.
func (p *plan) prunes(section string) bool { return p.prune && p.m.has(section) }

// drops reports whether a stored object is removed.
func (p *plan) drops(section, key string) bool {
	_, removed := p.m.removed[[2]string{section, key}]
	return removed || p.prunes(section) && !p.m.names(section, key)
}

// drop deletes from after the objects that are removed.
func drop[V any](p *plan, section string, before, after map[string]V) {
	for key := range before {
		if p.drops(section, key) {
			delete(after, key)
		}
	}
}

// removed returns the roles and permission sets that the plan removes.
func (p *plan) removed() (roles, sets map[string]bool) {
	roles, sets = map[string]bool{}, map[string]bool{}
	for name := range p.before.roles {
		if _, ok := p.after.roles[name]; !ok {
			roles[name] = true
		}
	}
	for name := range p.before.sets {
		if p.after.sets[name] == nil {
			sets[name] = true
		}
	}
	return roles, sets
}

// checkHolders adds a problem for each removed object that users outside the plan have.
func (p *plan) checkHolders(section, what string, held map[string][]string) {
	for _, name := range sortedKeys(held) {
		emails := held[name]
		slices.Sort(emails)
		if len(emails) > 3 {
			emails = append(emails[:3:3], "…")
		}
		holders := "users have it"
		if p.author.may(access.ManageUsers) {
			holders = holdersText(len(held[name]), emails)
		}
		p.add(p.m.place(section), "%s %s cannot be removed: %s", what, name, holders)
	}
}

func holdersText(n int, emails []string) string {
	if n == 1 {
		return "user " + emails[0] + " has it"
	}
	return strconv.Itoa(n) + " users have it (" + strings.Join(emails, ", ") + ")"
}

// diff computes the changes between before and after, kind by kind: created and
// updated objects in the order of the Spec, then deleted ones.
func (p *plan) diff() {
	p.changes = nil
	for _, k := range kinds {
		for _, key := range p.order(k) {
			was := key
			if k.name == kindEntity {
				if p.renames.entities[key] != "" {
					continue // listed under its new name
				}
				was = p.wasName(key)
			}
			before, after := k.view(p.before, nil, was), k.view(p.after, p.before, key)
			if before == nil && after == nil {
				continue
			}
			has := p.after
			if after == nil {
				has = p.before
			}
			p.note(change{k.name, key, was, k.titled(has, key), before, after})
		}
	}
}

// note adds a change unless the two views are the same.
func (p *plan) note(c change) {
	if encoded(c.before) != encoded(c.after) {
		p.changes = append(p.changes, c)
	}
}

func encoded(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("config: a view cannot be encoded: " + err.Error())
	}
	return string(b)
}

// order returns the keys of a kind's objects: those that the Spec names, in its
// order, then the others that stay, then those that are removed.
func (p *plan) order(k kind) []string {
	list, gone := k.keys(p.after), []string{}
	place := func(key string) int {
		if at, ok := p.m.places[strings.Join([]string{k.section, key}, "\x00")]; ok {
			return at.order
		}
		return math.MaxInt
	}
	for _, key := range k.keys(p.before) {
		if _, stays := slices.BinarySearch(list, key); !stays {
			gone = append(gone, key)
		}
	}
	slices.SortStableFunc(list, func(x, y string) int { return cmp.Compare(place(x), place(y)) })
	return append(list, gone...)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
