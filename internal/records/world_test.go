package records_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"gatehouse/internal/clock"
)

// kinds are the fields that a generated type draws from.
var kinds = []field{
	{name: "title", kind: "text", searchable: true, values: []string{`"red"`, `"green"`, `"O'Hara \"x\""`}},
	{name: "amount", kind: "number", indexed: true, values: []string{`1`, `2.5`, `-7`}},
	{name: "open", kind: "boolean", values: []string{`true`, `false`}},
	{name: "stage", kind: "select", indexed: true, values: []string{`"new"`, `"won"`, `"lost"`}},
	{name: "due", kind: "date", values: []string{`"2026-01-31"`, `"2024-02-29"`}},
	{name: "desk", kind: "text", indexed: true, searchable: true, values: []string{`"north"`, `"North"`}},
	{name: "mail", kind: "text", indexed: true}, // values are the tenant's
	{name: "agent", kind: "reference"},          // to user; values are the tenant's
}

// comparisons are what rules may compare with the viewer: field, or the record's own
// id, and what of the viewer. desk, stages and near are managed fields.
var comparisons = [][2]string{{"desk", "desk"}, {"stage", "stages"}, {"mail", "email"}, {"agent", "id"}, {"id", "near"}}

var typeNames = []string{"asset", "case_file", "deal"}

// chainNames are types each of which has a reference to the one before, the
// first to one of typeNames, and may be controlled by it.
var chainNames = []string{"k1", "k2", "k3", "k4", "k5"}

func (w *world) entityNames() []string {
	return slices.DeleteFunc(slices.Concat(typeNames, chainNames), func(name string) bool { return w.types[name] == nil })
}

// generate makes two tenants from one seed. They have the same names of users,
// roles, sets and types, so only the tenant distinguishes them.
func generate(seed uint64) (here, there *world) {
	rnd := rand.New(rand.NewPCG(seed, 2))
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var ids []string
	for i := range 14 {
		ids = append(ids, clock.NewID(at.Add(time.Duration(i)*time.Second)))
	}
	chain := chainNames[:2+3*(seed%2)]
	return generateTenant(rnd, fmt.Sprintf("w%da", seed), ids, chain), generateTenant(rnd, fmt.Sprintf("w%db", seed), ids, chain)
}

func generateTenant(rnd *rand.Rand, tenant string, ids, chain []string) *world {
	w := &world{tenant: tenant, agents: []string{ids[5], ids[11], ids[someoneExternal]}, parentOf: map[string]string{}, sets: map[string]*permSet{}, types: map[string]*recordType{}}
	depth := map[string]int{"": 0}
	for i := range 6 + rnd.IntN(4) {
		name, parent := fmt.Sprintf("r%d", i), ""
		if i > 0 && chance(rnd, 80) {
			for parent = fmt.Sprintf("r%d", rnd.IntN(i)); depth[parent] == 4; {
				parent = w.parentOf[parent]
			}
		}
		w.parentOf[name], depth[name] = parent, depth[parent]+1
	}
	sharings := []string{"private", "public_read", "public_read_write"}
	rnd.Shuffle(3, func(i, j int) { sharings[i], sharings[j] = sharings[j], sharings[i] })
	for i, name := range typeNames {
		e := &recordType{name: name, sharing: sharings[i]}
		for _, f := range kinds {
			f.required = chance(rnd, 15) && f.name != "agent"
			e.fields = append(e.fields, w.filled(f))
		}
		w.types[name] = e
	}
	above := pick(rnd, typeNames)
	w.near = above
	for _, name := range chain {
		w.types[name] = &recordType{
			name: name, sharing: "private", parent: above, controlled: true,
			fields: []field{kinds[1], kinds[3], {name: "parent", kind: "reference", required: true, indexed: chance(rnd, 50)}, kinds[0], kinds[5]},
		}
		above = name
	}
	for i := range 6 {
		w.sets[fmt.Sprintf("s%d", i)] = generateSet(rnd, i == 0 || chance(rnd, 10))
	}
	for i, id := range ids {
		p := &person{id: id, tenant: tenant, owner: i == 0, external: i > 9, role: w.anyRole(rnd)}
		if i == witness {
			p.role = ""
		} else {
			for range rnd.IntN(4) {
				p.sets = append(p.sets, fmt.Sprintf("s%d", rnd.IntN(6)))
			}
			if i == len(ids)-1 { // an external user with every privilege forged
				p.sets = append(p.sets, "s0")
			}
			slices.Sort(p.sets)
			p.sets = slices.Compact(p.sets)
			p.managed = generateManaged(rnd)
		}
		w.people = append(w.people, p)
	}
	for range 9 {
		w.addRule(generateRule(rnd, w))
	}
	near := map[string]string{"id": "near"}
	w.addRule(&rule{entity: w.near, where: map[string]string{}, viewer: near, audience: "everyone"})
	w.addRule(&rule{entity: w.near, where: map[string]string{"stage": `"won"`}, viewer: near, audience: "everyone", edit: true})
	for range 27 {
		w.things = append(w.things, generateThing(rnd, w, pick(rnd, typeNames)))
	}
	for _, name := range w.entityNames()[len(typeNames):] {
		for range 3 {
			w.things = append(w.things, generateThing(rnd, w, name))
		}
	}
	return w
}

// witness is the index of a user without any rights. Records are shared with
// this user to check whether sharing is allowed, which changes nothing for
// other users.
const witness = 1

// someoneExternal is the index of an external user.
const someoneExternal = 12

// filled returns a field with its values.
func (w *world) filled(f field) field {
	for _, id := range w.agents {
		switch f.name {
		case "agent":
			f.values = append(f.values, `"`+id+`"`)
		case "mail": // as another writes it
			f.values = append(f.values, `" `+strings.ToUpper(id)+`@example.com"`)
		}
	}
	return f
}

func generateManaged(rnd *rand.Rand) map[string]string {
	m := map[string]string{}
	if chance(rnd, 60) {
		m["desk"] = pick(rnd, kinds[5].values)
	}
	if chance(rnd, 60) {
		list := slices.Clone(kinds[3].values)
		rnd.Shuffle(3, func(i, j int) { list[i], list[j] = list[j], list[i] })
		m["stages"] = "[" + strings.Join(list[:rnd.IntN(3)], ",") + "]"
	}
	return m
}

// acquaint returns what people may have in near, as JSON: up to two of the records to
// which it may refer.
func (w *world) acquaint(rnd *rand.Rand) string {
	all := w.of(w.near)
	rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	var list []string
	for _, r := range all[:min(rnd.IntN(3), len(all))] {
		list = append(list, `"`+r.id+`"`)
	}
	return "[" + strings.Join(list, ",") + "]"
}

func (w *world) viewers() []*person { return slices.Delete(slices.Clone(w.people), witness, witness+1) }

func chance(rnd *rand.Rand, percent int) bool { return rnd.IntN(100) < percent }

func pick[T any](rnd *rand.Rand, list []T) T { return list[rnd.IntN(len(list))] }

func (w *world) roleNames() []string { return slices.Sorted(maps.Keys(w.parentOf)) }

func (w *world) anyRole(rnd *rand.Rand) string {
	if chance(rnd, 15) {
		return ""
	}
	return pick(rnd, w.roleNames())
}

func generateSet(rnd *rand.Rand, all bool) *permSet {
	s := &permSet{all: all, entities: map[string]*grant{}}
	for _, p := range []string{"manage_users", "tenant_settings", "login_as"} {
		if chance(rnd, 40) {
			s.system = append(s.system, p)
		}
	}
	for _, name := range typeNames {
		if chance(rnd, 75) {
			s.entities[name] = generateGrant(rnd)
		}
	}
	for _, name := range chainNames {
		if chance(rnd, 85) { // otherwise few would reach the end of the chain
			g := generateGrant(rnd)
			g.verbs[toRead] = g.verbs[toRead] || chance(rnd, 70)
			if chance(rnd, 10) {
				g.fields["parent"] = fieldGrant{read: chance(rnd, 50)}
			}
			s.entities[name] = g
		}
	}
	return s
}

func generateGrant(rnd *rand.Rand) *grant {
	g := &grant{verbs: map[verb]bool{}, fields: map[string]fieldGrant{}, assigns: chance(rnd, 30)}
	for _, v := range []verb{toCreate, toRead, toUpdate, toDelete} { // in this order, so that a seed means one world
		g.verbs[v] = chance(rnd, map[verb]int{toCreate: 60, toRead: 80, toUpdate: 70, toDelete: 60}[v])
	}
	for _, f := range kinds {
		if chance(rnd, 50) {
			g.fields[f.name] = fieldGrant{read: chance(rnd, 50), edit: chance(rnd, 35)}
		}
	}
	return g
}

func generateRule(rnd *rand.Rand, w *world) *rule {
	q := &rule{entity: pick(rnd, typeNames), shareWith: pick(rnd, w.roleNames()), edit: chance(rnd, 50)}
	if chance(rnd, 50) {
		q.shareWith, q.audience = "", pick(rnd, []string{"internal", "external", "everyone"})
	}
	if chance(rnd, 30) {
		q.ownedByRole = pick(rnd, w.roleNames())
		return q
	}
	q.where, q.viewer = map[string]string{}, map[string]string{}
	if chance(rnd, 60) {
		for range 1 + rnd.IntN(2) {
			c := pick(rnd, comparisons)
			q.viewer[c[0]] = c[1]
			if c[0] == "id" {
				q.entity = w.near
			}
		}
	}
	for n := 1 + rnd.IntN(2); len(q.where)+len(q.viewer) < n; {
		f := w.filled(pick(rnd, kinds))
		if q.viewer[f.name] == "" {
			q.where[f.name] = pick(rnd, f.values)
		}
	}
	return q
}

// sameRule reports whether two rules are the same apart from their level.
func sameRule(a, b *rule) bool {
	return a.entity == b.entity && a.ownedByRole == b.ownedByRole && a.shareWith == b.shareWith && a.audience == b.audience &&
		maps.Equal(a.where, b.where) && maps.Equal(a.viewer, b.viewer)
}

func (w *world) addRule(q *rule) {
	w.rules = slices.DeleteFunc(w.rules, func(had *rule) bool { return sameRule(had, q) })
	w.rules = append(w.rules, q)
}

func generateThing(rnd *rand.Rand, w *world, entity string) *thing {
	r := &thing{tenant: w.tenant, entity: entity, data: map[string]string{}}
	for r.owner == "" || r.owner == w.people[witness].id {
		r.owner = pick(rnd, w.people).id
	}
	for _, f := range w.types[r.entity].fields {
		if f.name != "parent" && (f.required || chance(rnd, 80)) {
			r.data[f.name] = pick(rnd, f.values)
		}
	}
	if r.parent = w.anyParent(rnd, r.entity); r.parent != nil {
		return r
	}
	for range rnd.IntN(3) {
		r.addShare(generateShare(rnd, w))
	}
	return r
}

// anyParent returns a record that one of the type may refer to, nil where the
// type has no parent.
func (w *world) anyParent(rnd *rand.Rand, entity string) *thing {
	if w.types[entity].parent == "" {
		return nil
	}
	return pick(rnd, w.of(w.types[entity].parent))
}

func (w *world) of(entity string) []*thing {
	return slices.DeleteFunc(slices.Clone(w.things), func(r *thing) bool { return r.entity != entity })
}

// moveTo sets the parent of a record.
func (r *thing) moveTo(parent *thing) {
	r.parent = parent
	r.data["parent"] = `"` + parent.id + `"`
}

func generateShare(rnd *rand.Rand, w *world) share {
	if chance(rnd, 50) {
		return share{user: pick(rnd, w.viewers()).id, edit: chance(rnd, 50)}
	}
	return share{role: pick(rnd, w.roleNames()), edit: chance(rnd, 50)}
}

func (r *thing) addShare(s share) {
	r.shares = slices.DeleteFunc(r.shares, func(had share) bool { return had.user == s.user && had.role == s.role })
	r.shares = append(r.shares, s)
}

// mutate draws a change of the world, makes it, and describes it; the first two
// changes of a stage are of a given kind. apply says what to change in a
// database.
func (w *world) mutate(rnd *rand.Rand, i int) (what string, apply change) {
	kind := rnd.IntN(16)
	switch i {
	case 0:
		kind = 5
	case 1:
		kind = 12
	case 3:
		kind = 14
	case 11: // the last: no change of configuration follows
		kind = 11
	}
	switch kind {
	case 0:
		e := w.types[pick(rnd, typeNames)]
		e.sharing = pick(rnd, []string{"private", "public_read", "public_read_write"})
		return fmt.Sprintf("the default of %s becomes %s", e.name, e.sharing), change{types: true}
	case 1, 2:
		q := generateRule(rnd, w)
		w.addRule(q)
		return fmt.Sprintf("a rule %+v", *q), change{rules: true}
	case 3:
		i := rnd.IntN(len(w.rules))
		gone := w.rules[i]
		w.rules = append(w.rules[:i:i], w.rules[i+1:]...)
		return fmt.Sprintf("no rule %+v any more", *gone), change{rules: true, noRule: gone}
	case 4:
		name, parent := pick(rnd, w.roleNames()), w.anyRole(rnd)
		for at := parent; at != ""; at = w.parentOf[at] {
			if at == name {
				parent = ""
				break
			}
		}
		w.parentOf[name] = parent
		return fmt.Sprintf("role %s goes under %q", name, parent), change{roles: true}
	case 5:
		p := pick(rnd, w.viewers())
		p.role = w.anyRole(rnd)
		return fmt.Sprintf("user %s has role %q now", p.id, p.role), change{user: p}
	case 6:
		name := fmt.Sprintf("s%d", 1+rnd.IntN(5))
		w.sets[name] = generateSet(rnd, false)
		return "another set " + name, change{sets: true}
	case 7:
		r, s := pick(rnd, w.rootThings()), generateShare(rnd, w)
		if len(r.shares) > 0 && chance(rnd, 40) {
			gone := r.shares[0]
			r.shares = r.shares[1:]
			return fmt.Sprintf("record %s is shared no more: %+v", r.id, gone), change{shared: r, noShare: &gone}
		}
		r.addShare(s)
		return fmt.Sprintf("record %s is shared: %+v", r.id, s), change{shared: r}
	case 11:
		p := w.opened(rnd)
		p.managed["near"] = w.acquaint(rnd)
		return fmt.Sprintf("user %s has %v now", p.id, p.managed), change{managed: p}
	case 13:
		e := w.types[pick(rnd, w.entityNames()[len(typeNames):])]
		e.controlled = !e.controlled
		return fmt.Sprintf("%s is controlled by %s: %v", e.name, e.parent, e.controlled), change{types: true}
	case 14:
		r := pick(rnd, w.of(pick(rnd, w.entityNames()[len(typeNames):])))
		r.moveTo(w.anyParent(rnd, r.entity))
		return fmt.Sprintf("record %s goes under %s", r.id, r.parent.id), change{record: r, fields: []string{"parent"}}
	default:
		r := pick(rnd, w.rootThings())
		names := []string{pick(rnd, w.types[r.entity].fields).name}
		value := func(f field) string { return pick(rnd, f.values) }
		if q := w.valueRule(rnd, r.entity); q != nil && chance(rnd, 80) { // make the rule match, or no longer match
			names = slices.Sorted(maps.Keys(q.where))
			names = slices.AppendSeq(names, maps.Keys(q.viewer))
			names = slices.DeleteFunc(names, func(name string) bool { return name == "id" })
			meet := chance(rnd, 60)
			value = func(f field) string {
				if meet && q.viewer[f.name] == "" {
					return q.where[f.name]
				}
				return pick(rnd, f.values)
			}
		}
		for _, f := range w.types[r.entity].fields {
			if !slices.Contains(names, f.name) {
				continue
			}
			if r.data[f.name] = value(f); !f.required && chance(rnd, 10) {
				delete(r.data, f.name)
			}
		}
		if chance(rnd, 30) {
			r.owner = pick(rnd, w.viewers()).id
		}
		return fmt.Sprintf("record %s holds %v and is of %s", r.id, r.data, r.owner), change{record: r, fields: names}
	}
}

// opened gives a viewer other values of managed fields: if any would do so, ones
// that open a record to them which they do not see.
func (w *world) opened(rnd *rand.Rand) *person {
	o := newOracle(w)
	for _, i := range rnd.Perm(len(w.people)) {
		p := w.people[i]
		was := p.managed
		for _, r := range w.rootThings() {
			if i == witness || o.judge(p, r, toRead) != notFound || r.data["desk"] == "" || r.data["stage"] == "" {
				continue
			}
			p.managed = map[string]string{"desk": r.data["desk"], "stages": "[" + r.data["stage"] + "]"}
			if o.judge(p, r, toRead) == ok {
				return p
			}
			p.managed = was
		}
	}
	p := pick(rnd, w.viewers())
	p.managed = generateManaged(rnd)
	return p
}

func (w *world) rootThings() []*thing {
	return slices.DeleteFunc(slices.Clone(w.things), func(r *thing) bool { return r.parent != nil })
}

// valueRule returns a rule by field value of the type, or nil if there is none.
func (w *world) valueRule(rnd *rand.Rand, entity string) *rule {
	for _, i := range rnd.Perm(len(w.rules)) {
		if q := w.rules[i]; q.entity == entity && q.where != nil {
			return q
		}
	}
	return nil
}

// change says which part of a world must be written again.
type change struct {
	types, rules, roles, sets bool
	noRule                    *rule
	user, managed             *person
	shared, record            *thing
	noShare                   *share   // of shared
	fields                    []string // of the record, that changed
}
