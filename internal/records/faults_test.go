package records_test

import (
	"maps"
	"slices"
	"strings"
)

// seededFault misreads one rule of the oracle. The product and the oracle agree
// on every cell, so a cell on which the misread oracle and the product differ
// is one in which the matrix would catch a product that misreads the rule in
// the same way.
type seededFault struct {
	name    string
	misread func(o *oracle)
}

var seededFaults = []seededFault{
	{"the tenant condition is dropped", func(o *oracle) {
		o.sameTenant = func(*person, *thing) bool { return true }
	}},
	{"peers of the same role see", func(o *oracle) {
		was := o.above
		o.above = func(u *person, role string) bool { return role != "" && u.role == role || was(u, role) }
	}},
	{"ancestors of the owner are missing", func(o *oracle) {
		was := o.above
		o.reachedBy = func(u *person, role string) bool { return u.role == role || was(u, role) }
		o.above = func(*person, string) bool { return false }
	}},
	{"descendants see instead of ancestors", func(o *oracle) {
		o.above = func(u *person, role string) bool { return below(o.w, u.role, role) }
	}},
	{"only the parent role sees, not its ancestors", func(o *oracle) {
		o.above = func(u *person, role string) bool { return u.role != "" && o.w.parentOf[role] == u.role }
	}},
	{"shares with a role do not reach its ancestors", func(o *oracle) {
		o.reachedBy = func(u *person, role string) bool { return u.role == role }
	}},
	{"shares with a role reach its descendants", func(o *oracle) {
		was := o.reachedBy
		o.reachedBy = func(u *person, role string) bool { return was(u, role) || below(o.w, u.role, role) }
	}},
	{"external users get no shares with their role", func(o *oracle) {
		was := o.reachedBy
		o.reachedBy = func(u *person, role string) bool { return !u.external && was(u, role) }
	}},
	{"the default applies to external users", func(o *oracle) {
		was := o.defaultAllows
		o.defaultAllows = func(u *person, entity string, v verb) bool {
			return was(&person{tenant: u.tenant}, entity, v)
		}
	}},
	{"the default public_read lets update", func(o *oracle) {
		was := o.defaultAllows
		o.defaultAllows = func(u *person, entity string, v verb) bool {
			return was(u, entity, v) || v == toUpdate && was(u, entity, toRead)
		}
	}},
	{"the default public_read_write lets delete", func(o *oracle) {
		was := o.defaultAllows
		o.defaultAllows = func(u *person, entity string, v verb) bool {
			return was(u, entity, v) || v == toDelete && was(u, entity, toUpdate)
		}
	}},
	{"the default is forgotten", func(o *oracle) {
		o.defaultAllows = func(*person, string, verb) bool { return false }
	}},
	{"a share of level edit lets delete", func(o *oracle) {
		o.shareAllows = func(s share, v verb) bool { return v == toRead || s.edit }
	}},
	{"a share of level read lets update (EditOnly is ignored)", func(o *oracle) {
		o.shareAllows = func(_ share, v verb) bool { return v == toRead || v == toUpdate }
	}},
	{"a rule of level read lets update", func(o *oracle) {
		o.ruleAllows = func(_ *rule, v verb) bool { return v == toRead || v == toUpdate }
	}},
	{"a rule of level edit lets delete", func(o *oracle) {
		o.ruleAllows = func(q *rule, v verb) bool { return v == toRead || q.edit }
	}},
	{"owned_by_role reaches descendants of the role", func(o *oracle) {
		was := o.ruleMatches
		o.ruleMatches = func(q *rule, r *thing) bool {
			return was(q, r) || q.entity == r.entity && q.ownedByRole != "" && below(o.w, o.roleOf(r.owner), q.ownedByRole)
		}
	}},
	{"one condition of a rule is enough", func(o *oracle) {
		was := o.ruleMatches
		o.ruleMatches = func(q *rule, r *thing) bool {
			for f, v := range q.where {
				if q.entity == r.entity && r.data[f] == v {
					return true
				}
			}
			return was(q, r)
		}
	}},
	{"rules ask for no entity type", func(o *oracle) {
		was := o.ruleMatches
		o.ruleMatches = func(q *rule, r *thing) bool {
			any := *q
			any.entity = r.entity
			return was(&any, r)
		}
	}},
	{"rule matches are not updated when a record is", func(o *oracle) {
		was, then := o.ruleMatches, map[*thing]map[string]string{}
		for _, r := range o.w.things {
			then[r] = maps.Clone(r.data)
		}
		o.ruleMatches = func(q *rule, r *thing) bool {
			old := *r
			old.data = then[r]
			return was(q, &old)
		}
	}},
	{"a rule asks nothing of the viewer", func(o *oracle) {
		o.matchesViewer = func(*person, *rule, *thing) bool { return true }
	}},
	{"a record's own id does not count", func(o *oracle) {
		was := o.matchesViewer
		o.matchesViewer = func(u *person, q *rule, r *thing) bool {
			rest := &rule{viewer: maps.Clone(q.viewer)}
			delete(rest.viewer, "id")
			return was(u, rest, r)
		}
	}},
	{"no record has an id", func(o *oracle) {
		was := o.matchesViewer
		o.matchesViewer = func(u *person, q *rule, r *thing) bool { return q.viewer["id"] == "" && was(u, q, r) }
	}},
	{"one condition about the viewer is enough", func(o *oracle) {
		was := o.matchesViewer
		o.matchesViewer = func(u *person, q *rule, r *thing) bool {
			for f, what := range q.viewer {
				if was(u, &rule{viewer: map[string]string{f: what}}, r) {
					return true
				}
			}
			return len(q.viewer) == 0
		}
	}},
	{"constants do not matter beside the viewer", func(o *oracle) {
		was := o.ruleMatches
		o.ruleMatches = func(q *rule, r *thing) bool {
			return was(q, r) || len(q.viewer) > 0 && q.entity == r.entity
		}
	}},
	{"nothing equals nothing", func(o *oracle) {
		was := o.matchesViewer
		o.matchesViewer = func(u *person, q *rule, r *thing) bool {
			rest := &rule{viewer: map[string]string{}}
			for f, what := range q.viewer {
				if r.data[f] != "" || len(o.has(u, what)) > 0 {
					rest.viewer[f] = what
				}
			}
			return was(u, rest, r)
		}
	}},
	{"the first element of a list counts", func(o *oracle) {
		was := o.has
		o.has = func(u *person, what string) []string { list := was(u, what); return list[:min(1, len(list))] }
	}},
	{"a list counts as a whole", func(o *oracle) {
		was := o.has
		o.has = func(u *person, what string) []string {
			list := was(u, what)
			if len(list) > 1 {
				return nil
			}
			return list
		}
	}},
	{"e-mail addresses are compared as they were entered", func(o *oracle) {
		o.equal = func(_, a, b string) bool { return a == b }
	}},
	{"other texts are compared without case", func(o *oracle) {
		o.equal = func(_, a, b string) bool {
			return strings.EqualFold(strings.TrimSpace(strings.Trim(a, `"`)), strings.TrimSpace(strings.Trim(b, `"`)))
		}
	}},
	{"rules for external users reach staff", func(o *oracle) {
		was := o.ruleReaches
		o.ruleReaches = func(u *person, q *rule) bool { return q.audience == "external" || was(u, q) }
	}},
	{"rules for staff reach external users", func(o *oracle) {
		was := o.ruleReaches
		o.ruleReaches = func(u *person, q *rule) bool { return q.audience == "internal" || was(u, q) }
	}},
	{"rules for everyone reach staff alone", func(o *oracle) {
		was := o.ruleReaches
		o.ruleReaches = func(u *person, q *rule) bool { return was(u, q) && !(q.audience == "everyone" && u.external) }
	}},
	{"who has no role gets no rule", func(o *oracle) {
		was := o.ruleReaches
		o.ruleReaches = func(u *person, q *rule) bool { return u.role != "" && was(u, q) }
	}},
	{"external users get no rule that matches the viewer", func(o *oracle) {
		was := o.matchesViewer
		o.matchesViewer = func(u *person, q *rule, r *thing) bool {
			return (len(q.viewer) == 0 || !u.external) && was(u, q, r)
		}
	}},
	{"a change of what a user has is not followed", func(o *oracle) {
		then := map[string]map[string]string{}
		for _, p := range o.w.people {
			then[p.id] = p.managed
		}
		was := o.has
		o.has = func(u *person, what string) []string {
			old := *u
			old.managed = then[u.id]
			return was(&old, what)
		}
	}},
	{"the field owner_id takes any user of those who may name owners", func(o *oracle) {
		was := o.mayOwn
		o.mayOwn = func(u *person, entity string, owner *person) verdict {
			if v := was(u, entity, owner); v != invalid {
				return v
			}
			return ok
		}
	}},
	{"the field owner_id takes whom a rule names of everybody", func(o *oracle) {
		was := o.mayOwn
		o.mayOwn = func(u *person, entity string, owner *person) verdict {
			if v := was(u, entity, owner); v != forbidden {
				return v
			}
			for _, q := range o.w.rules {
				if q.entity == entity && (q.audience == "everyone" || q.audience == "external" && owner.external || q.audience == "internal" && !owner.external) {
					return ok
				}
			}
			return forbidden
		}
	}},
	{"the field owner_id takes whom a rule of another type names", func(o *oracle) {
		was := o.mayOwn
		o.mayOwn = func(u *person, entity string, owner *person) verdict {
			v := was(u, entity, owner)
			for _, other := range typeNames {
				if v == invalid && was(u, other, owner) == ok {
					return ok
				}
			}
			return v
		}
	}},
	{"a change of rules is not followed", func(o *oracle) {
		then := slices.Clone(o.w.rules)
		o.rules = func() []*rule { return then }
	}},
	{"the records do not follow their owner's change of role", func(o *oracle) {
		then := map[string]string{}
		for _, p := range o.w.people {
			then[p.id] = p.role
		}
		o.roleOf = func(id string) string { return then[id] }
	}},
	{"who may read a parent updates what is below", func(o *oracle) {
		o.parentAllows = func(u *person, parent *thing, _ verb) bool { return o.judge(u, parent, toRead) == ok }
	}},
	{"what is below a parent that may be updated cannot be deleted", func(o *oracle) {
		was := o.parentAllows
		o.parentAllows = func(u *person, parent *thing, v verb) bool {
			return was(u, parent, v) && (v != toDelete || o.judge(u, parent, toDelete) == ok)
		}
	}},
	{"the parent needs no entity permission", func(o *oracle) {
		was := o.parentAllows
		o.parentAllows = func(u *person, parent *thing, v verb) bool {
			if v == toDelete {
				v = toUpdate
			}
			return was(u, parent, v) || o.reaches(u, parent, v)
		}
	}},
	{"the owner of a record below a parent sees it", func(o *oracle) {
		was := o.parentAllows
		o.parentAllows = func(u *person, parent *thing, v verb) bool {
			return was(u, parent, v) || slices.ContainsFunc(o.w.things, func(r *thing) bool { return r.parent == parent && o.owns(u, r) })
		}
	}},
	{"only the parent decides, not those above it", func(o *oracle) {
		was := o.parentAllows
		o.parentAllows = func(u *person, parent *thing, v verb) bool {
			return was(u, parent, v) && (parent.parent == nil || !o.controlled(parent.entity) || o.everything(u))
		}
	}},
	{"a record that was moved stays where it was", func(o *oracle) {
		was, then := o.parentAllows, map[*thing]*thing{}
		for _, r := range o.w.things {
			then[r] = r.parent
		}
		o.parentAllows = func(u *person, parent *thing, v verb) bool {
			old := *parent
			old.parent = then[parent]
			return was(u, &old, v)
		}
	}},
	{"a type stays controlled, or not", func(o *oracle) {
		then := map[string]bool{}
		for name, e := range o.w.types {
			then[name] = e.controlled
		}
		o.controlled = func(entity string) bool { return then[entity] }
	}},
	{"the field parent takes one that may only be read", func(o *oracle) {
		o.takesChild = func(*person, *thing) bool { return true }
	}},
	{"external users keep all_entity_access", func(o *oracle) {
		was := o.everything
		o.everything = func(u *person) bool {
			staff := *u
			staff.external = false
			return was(&staff)
		}
	}},
	{"a system permission opens every record", func(o *oracle) {
		was := o.everything
		o.everything = func(u *person) bool {
			return was(u) || slices.ContainsFunc(u.sets, func(s string) bool { return len(o.w.sets[s].system) > 0 })
		}
	}},
	{"the owner of a record needs no entity permission", func(o *oracle) {
		was := o.entityAllows
		o.entityAllows = func(u *person, entity string, v verb) bool {
			return was(u, entity, v) || v == toRead && slices.ContainsFunc(o.w.things, func(r *thing) bool { return r.owner == u.id })
		}
	}},
	{"read permission is enough to update", func(o *oracle) {
		was := o.entityAllows
		o.entityAllows = func(u *person, entity string, v verb) bool {
			return was(u, entity, v) || v == toUpdate && was(u, entity, toRead)
		}
	}},
	{"edit of a field does not imply read", func(o *oracle) {
		o.readsField = func(u *person, entity, field string) bool {
			return o.someSetSays(u, entity, field, func(g fieldGrant) bool { return g.read })
		}
	}},
	{"read of a field implies edit", func(o *oracle) { o.editsField = o.readsField }},
	{"a field not named cannot be read", func(o *oracle) {
		o.readsField = func(u *person, entity, field string) bool {
			return namedAndSays(o.w, u, entity, field, func(g fieldGrant) bool { return g.read || g.edit })
		}
	}},
	{"a field not named cannot be edited", func(o *oracle) {
		o.editsField = func(u *person, entity, field string) bool {
			return namedAndSays(o.w, u, entity, field, func(g fieldGrant) bool { return g.edit })
		}
	}},
	{"a set that closes a field closes it in every set", func(o *oracle) {
		was := o.readsField
		o.readsField = func(u *person, entity, field string) bool {
			return was(u, entity, field) && !slices.ContainsFunc(u.sets, func(s string) bool {
				g := o.w.sets[s].entities[entity]
				if g == nil {
					return false
				}
				named, there := g.fields[field]
				return there && !named.read && !named.edit
			})
		}
	}},
}

// below reports whether role a is below role b in the tree.
func below(w *world, a, b string) bool {
	for at := w.parentOf[a]; at != ""; at = w.parentOf[at] {
		if at == b {
			return true
		}
	}
	return false
}

func namedAndSays(w *world, u *person, entity, field string, says func(fieldGrant) bool) bool {
	return slices.ContainsFunc(u.sets, func(s string) bool {
		g := w.sets[s].entities[entity]
		if g == nil {
			return false
		}
		named, there := g.fields[field]
		return there && says(named)
	})
}
