package records_test

import (
	"slices"
	"sort"
	"strings"
)

// The oracle answers every question of the matrix (contract A1–A11, R12, R13)
// by walking the whole world each time, without SQL and without precomputed
// scopes. It was written from the rules, not from the product's code.

// world is one tenant as plain data: the oracle judges it, and provision writes
// it into a database.
type world struct {
	tenant   string
	parentOf map[string]string // every role; "" at a root
	sets     map[string]*permSet
	types    map[string]*recordType
	rules    []*rule
	people   []*person
	agents   []string // the people whom records refer to
	things   []*thing // in the order they were created
	near     string   // the type that people's field near refers to; the chain is below it
}

type person struct {
	id              string
	tenant          string
	external, owner bool
	role            string // "" for none
	sets            []string
	managed         map[string]string // JSON texts of managed fields, absent when unset
}

// address is the person's e-mail address, as it was entered.
func (p *person) address() string { return p.id + "@Example.com" }

type permSet struct {
	system   []string
	all      bool // all_entity_access
	entities map[string]*grant
}

type grant struct {
	verbs   map[verb]bool
	fields  map[string]fieldGrant
	assigns bool // assign_owner
}

type fieldGrant struct{ read, edit bool }

type recordType struct {
	name    string
	sharing string
	fields  []field
	// parent is the type that the field parent refers to, "" for none. It
	// decides who reaches the records if the type is controlled.
	parent     string
	controlled bool
}

type field struct {
	name, kind                    string
	required, indexed, searchable bool
	values                        []string // JSON texts it may take
}

type rule struct {
	entity      string
	ownedByRole string            // or:
	where       map[string]string // JSON text by field
	viewer      map[string]string // by field, or id: id, email or a managed field
	shareWith   string            // a role, or:
	audience    string
	edit        bool
}

// thing is a record.
type thing struct {
	tenant, entity, id, at string            // at: created_at
	owner                  string            // a person's id
	data                   map[string]string // JSON texts, absent when unset
	shares                 []share
	parent                 *thing // nil where the type has no parent
}

type share struct {
	user, role string // one of them
	edit       bool
}

type verb string

const (
	toCreate verb = "create"
	toRead   verb = "read"
	toUpdate verb = "update"
	toDelete verb = "delete"
	toShare  verb = "share"
)

// verdict is the result of a call: ok, or the code of its error.
type verdict string

const (
	ok        verdict = "ok"
	forbidden verdict = "FORBIDDEN"
	notFound  verdict = "NOT_FOUND"
	invalid   verdict = "VALIDATION"
	conflict  verdict = "CONFLICT"
)

// oracle holds the rules, one function each, so that a seeded fault can misread
// exactly one of them.
type oracle struct {
	w *world

	everything    func(u *person) bool                        // owner, or all_entity_access
	entityAllows  func(u *person, entity string, v verb) bool // some set grants the verb
	sameTenant    func(u *person, r *thing) bool
	roleOf        func(id string) string // "" for none
	owns          func(u *person, r *thing) bool
	above         func(u *person, role string) bool // u's role is an ancestor of role
	reachedBy     func(u *person, role string) bool // a share with role reaches u
	shareAllows   func(s share, v verb) bool
	ruleMatches   func(q *rule, r *thing) bool
	matchesViewer func(u *person, q *rule, r *thing) bool
	ruleReaches   func(u *person, q *rule) bool
	has           func(u *person, what string) []string // JSON texts
	equal         func(what, a, b string) bool
	mayOwn        func(u *person, entity string, owner *person) verdict
	ruleAllows    func(q *rule, v verb) bool
	rules         func() []*rule
	defaultAllows func(u *person, entity string, v verb) bool
	controlled    func(entity string) bool
	parentAllows  func(u *person, parent *thing, v verb) bool // the parent of a record may be read, updated, updated
	takesChild    func(u *person, parent *thing) bool         // a record may be created below, or moved there
	readsField    func(u *person, entity, field string) bool
	editsField    func(u *person, entity, field string) bool
}

func newOracle(w *world) *oracle {
	o := &oracle{w: w}
	o.everything = func(u *person) bool {
		return u.owner || !u.external && slices.ContainsFunc(u.sets, func(s string) bool { return w.sets[s].all })
	}
	o.entityAllows = func(u *person, entity string, v verb) bool {
		for _, s := range u.sets {
			if g := w.sets[s].entities[entity]; g != nil && g.verbs[v] {
				return true
			}
		}
		return false
	}
	o.sameTenant = func(u *person, r *thing) bool { return u.tenant == r.tenant }
	o.roleOf = w.roleOf
	o.owns = func(u *person, r *thing) bool { return r.owner == u.id }
	o.above = func(u *person, role string) bool {
		for at := w.parentOf[role]; at != ""; at = w.parentOf[at] {
			if at == u.role {
				return true
			}
		}
		return false
	}
	o.reachedBy = func(u *person, role string) bool { return u.role == role || o.above(u, role) }
	o.shareAllows = func(s share, v verb) bool { return v == toRead || v == toUpdate && s.edit }
	o.ruleMatches = func(q *rule, r *thing) bool {
		if q.entity != r.entity {
			return false
		}
		if q.ownedByRole != "" {
			return o.roleOf(r.owner) == q.ownedByRole
		}
		for f, want := range q.where {
			if r.data[f] != want {
				return false
			}
		}
		return true
	}
	// A rule may ask that fields, or the record's own id, equal what the viewer has;
	// null equals nothing.
	o.matchesViewer = func(u *person, q *rule, r *thing) bool {
		for f, what := range q.viewer {
			value := r.data[f]
			if f == "id" {
				value = `"` + r.id + `"`
			}
			if value == "" || !slices.ContainsFunc(o.has(u, what), func(has string) bool { return o.equal(what, has, value) }) {
				return false
			}
		}
		return true
	}
	o.has = func(u *person, what string) []string {
		switch what {
		case "id":
			return []string{`"` + u.id + `"`}
		case "email":
			return []string{`"` + u.address() + `"`}
		case "stages", "near": // lists
			if list := strings.Trim(u.managed[what], "[]"); list != "" {
				return strings.Split(list, ",")
			}
			return nil
		}
		if value := u.managed[what]; value != "" {
			return []string{value}
		}
		return nil
	}
	o.equal = func(what, a, b string) bool {
		if what == "email" { // their canonical form, as far as the world's addresses differ
			return strings.EqualFold(strings.TrimSpace(strings.Trim(a, `"`)), strings.TrimSpace(strings.Trim(b, `"`)))
		}
		return a == b
	}
	o.ruleReaches = func(u *person, q *rule) bool {
		switch q.audience {
		case "":
			return o.reachedBy(u, q.shareWith)
		case "internal":
			return !u.external
		case "external":
			return u.external
		}
		return true
	}
	// Whom a rule of the type names may be made owner by those who may name owners.
	o.mayOwn = func(u *person, entity string, owner *person) verdict {
		switch {
		case o.everything(u):
			return ok
		case !slices.ContainsFunc(u.sets, func(s string) bool { g := w.sets[s].entities[entity]; return g != nil && g.assigns }):
			return forbidden
		case slices.ContainsFunc(w.rules, func(q *rule) bool {
			return q.entity == entity && (q.audience == "everyone" || q.audience == "external" && owner.external ||
				q.audience == "internal" && !owner.external || q.audience == "" && q.shareWith == owner.role)
		}):
			return ok
		}
		return invalid
	}
	o.rules = func() []*rule { return w.rules }
	o.ruleAllows = func(q *rule, v verb) bool { return v == toRead || v == toUpdate && q.edit }
	o.defaultAllows = func(u *person, entity string, v verb) bool {
		switch w.types[entity].sharing {
		case "public_read":
			return !u.external && v == toRead
		case "public_read_write":
			return !u.external && (v == toRead || v == toUpdate)
		}
		return false
	}
	o.controlled = func(entity string) bool { return w.types[entity].controlled }
	o.parentAllows = func(u *person, parent *thing, v verb) bool {
		return o.judge(u, parent, toRead) == ok && (v == toRead || o.judge(u, parent, toUpdate) == ok)
	}
	o.takesChild = func(u *person, parent *thing) bool { return o.parentAllows(u, parent, toUpdate) }
	// Sets are united: one that names the entity type but not the field grants
	// the whole field.
	o.readsField = func(u *person, entity, field string) bool {
		return o.someSetSays(u, entity, field, func(g fieldGrant) bool { return g.read || g.edit })
	}
	o.editsField = func(u *person, entity, field string) bool {
		return o.someSetSays(u, entity, field, func(g fieldGrant) bool { return g.edit })
	}
	return o
}

func (o *oracle) someSetSays(u *person, entity, field string, says func(fieldGrant) bool) bool {
	for _, s := range u.sets {
		g := o.w.sets[s].entities[entity]
		if g == nil {
			continue
		}
		if named, there := g.fields[field]; !there || says(named) {
			return true
		}
	}
	return false
}

func (w *world) roleOf(id string) string {
	for _, p := range w.people {
		if p.id == id {
			return p.role
		}
	}
	return ""
}

// may reports whether u has the entity permission that the verb needs. Contract
// A1 names none for sharing: a viewer who may read the type may share the
// records they own, since the recipient still needs permissions of their own.
func (o *oracle) may(u *person, entity string, v verb) bool {
	if v == toShare {
		v = toRead
	}
	return o.everything(u) || o.entityAllows(u, entity, v)
}

// reaches reports whether the record itself lets u perform v on it (2.14,
// 2.15).
func (o *oracle) reaches(u *person, r *thing, v verb) bool { return len(o.causes(u, r, v)) > 0 }

// causes returns the names of what lets u perform v on the record.
func (o *oracle) causes(u *person, r *thing, v verb) (list []string) {
	if !o.sameTenant(u, r) {
		return nil
	}
	if o.everything(u) {
		list = append(list, "everything")
	}
	if o.controlled(r.entity) {
		if o.parentAllows(u, r.parent, v) {
			list = append(list, "parent")
		}
		return list
	}
	if o.owns(u, r) {
		list = append(list, "owner")
	}
	if role := o.roleOf(r.owner); role != "" && o.above(u, role) {
		list = append(list, "hierarchy")
	}
	for _, s := range r.shares {
		cause, reached := "share_with_user", s.user == u.id
		if s.role != "" {
			cause, reached = "share_with_role", o.reachedBy(u, s.role)
		}
		if reached && o.shareAllows(s, v) {
			list = append(list, cause)
		}
	}
	for _, q := range o.rules() {
		if o.ruleMatches(q, r) && o.matchesViewer(u, q, r) && o.ruleReaches(u, q) && o.ruleAllows(q, v) {
			cause := "rule_by_value"
			switch {
			case q.ownedByRole != "":
				cause = "rule_by_owner_role"
			case len(q.viewer) > 0:
				cause = "rule_by_viewer"
			}
			list = append(list, cause)
		}
	}
	if o.defaultAllows(u, r.entity, v) {
		list = append(list, "default")
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// judge returns the result of a verb on a record of u's tenant.
func (o *oracle) judge(u *person, r *thing, v verb) verdict {
	switch {
	case !o.may(u, r.entity, v):
		return forbidden
	case v == toShare && o.controlled(r.entity):
		return conflict
	case !o.reaches(u, r, toRead):
		return notFound
	case !o.reaches(u, r, v):
		return forbidden
	}
	return ok
}

// judgePatch returns the result of a PATCH that sets one field to a value it
// may have.
func (o *oracle) judgePatch(u *person, r *thing, field string) verdict {
	if v := o.judge(u, r, toUpdate); v != ok {
		return v
	}
	return o.judgeMember(u, r.entity, field)
}

// judgeGift returns the result of a PATCH that sets the owner.
func (o *oracle) judgeGift(u *person, r *thing, to *person) verdict {
	v := o.judge(u, r, toUpdate)
	if v == ok && r.owner != to.id {
		v = o.mayOwn(u, r.entity, to)
	}
	return v
}

// judgeMove returns the result of a PATCH that sets another parent.
func (o *oracle) judgeMove(u *person, r, to *thing) verdict {
	v := o.judgePatch(u, r, "parent")
	if v == ok && to != r.parent {
		v = o.judgeParent(u, r.entity, to)
	}
	return v
}

// judgeParent returns the result of naming a parent for a record of a type.
func (o *oracle) judgeParent(u *person, entity string, to *thing) verdict {
	switch {
	case o.judge(u, to, toRead) != ok:
		return invalid
	case o.controlled(entity) && !o.takesChild(u, to):
		return forbidden
	}
	return ok
}

// judgeMember returns the result of a member that has a value which the field takes,
// and does not refer to another user.
func (o *oracle) judgeMember(u *person, entity, field string) verdict {
	switch {
	case !o.mayReadField(u, entity, field):
		return invalid
	case !o.mayEditField(u, entity, field):
		return forbidden
	}
	return ok
}

// judgeCreate returns the result of a creation whose body contains every
// required field that u may edit, and extra ("" for none).
// parent is the parent that it names, nil where the type has none.
func (o *oracle) judgeCreate(u *person, entity, extra string, parent *thing) verdict {
	if !o.may(u, entity, toCreate) {
		return forbidden
	}
	for _, f := range o.w.types[entity].fields {
		if f.required && !o.mayEditField(u, entity, f.name) {
			return forbidden
		}
	}
	member, above := ok, ok
	if extra != "" {
		member = o.judgeMember(u, entity, extra)
	}
	if member == ok && extra == "agent" && !o.everything(u) && o.w.agents[0] != u.id {
		member = invalid // a user whom u may not name
	}
	if parent != nil {
		above = o.judgeParent(u, entity, parent)
	}
	if member == forbidden || above == ok {
		return member
	}
	return above
}

func (o *oracle) mayReadField(u *person, entity, field string) bool {
	return o.w.has(entity, field) && (o.everything(u) || o.readsField(u, entity, field))
}

func (o *oracle) mayEditField(u *person, entity, field string) bool {
	return o.w.has(entity, field) && (o.everything(u) || o.editsField(u, entity, field))
}

// members returns the names in the answer to a successful verb, sorted. A user
// who may not read the type gets the id alone.
func (o *oracle) members(u *person, entity string) []string {
	if !o.may(u, entity, toRead) {
		return []string{"id"}
	}
	names := []string{"id", "owner_id", "created_at", "updated_at"}
	for _, f := range o.w.types[entity].fields {
		if o.mayReadField(u, entity, f.name) {
			names = append(names, f.name)
		}
	}
	sort.Strings(names)
	return names
}

func (w *world) has(entity, name string) bool {
	return slices.ContainsFunc(w.types[entity].fields, func(f field) bool { return f.name == name })
}

// listed returns what a full traversal of the type shows u, newest first.
func (o *oracle) listed(u *person, entity string) []*thing {
	var all []*thing
	for i := len(o.w.things) - 1; i >= 0; i-- {
		if r := o.w.things[i]; r.entity == entity && o.judge(u, r, toRead) == ok {
			all = append(all, r)
		}
	}
	return all
}
