package access

import (
	"slices"

	"gatehouse/internal/schema"
)

// The functions in this file say whether a viewer holds what a change of
// configuration gives to somebody (contract A13). They compare with the rights that
// the viewer has under the configuration before the change.

// LacksOf returns, in words, something that a permission set gives under the schema s
// and that neither the viewer nor the set before the change, had, gives; "" for
// nothing. had is nil for a set that is new, or for one that a user has not had.
// Permissions on fields are compared on their own, because permission sets unite.
func (w Viewer) LacksOf(set, had *PermissionSet, s *schema.Schema) string {
	if w.TenantOwner() {
		return ""
	}
	if had == nil {
		had = &PermissionSet{}
	}
	for _, p := range set.System {
		if !w.May(p) && !slices.Contains(had.System, p) {
			return "the permission " + p
		}
	}
	if w.AllEntityAccess() || had.AllEntityAccess {
		return ""
	}
	if set.AllEntityAccess {
		return "all_entity_access"
	}
	for _, e := range append(slices.Clone(s.Entities), s.User) {
		g, named := set.Entities[e.Name]
		if !named {
			continue
		}
		if lacks := w.lacksGrant(e, g, had); lacks != "" {
			return lacks
		}
	}
	return ""
}

// lacksGrant is LacksOf for one entity type.
func (w Viewer) lacksGrant(e *schema.Entity, g EntityGrant, had *PermissionSet) string {
	gives := noRights(e)
	gives.unite(g)
	own, before := w.rightsBefore(e), noRights(e)
	if own != nil {
		before = noRights(own.Entity)
		if g, named := had.Entities[own.Entity.Name]; named {
			before.unite(g)
		}
	} else {
		own = noRights(e)
	}
	for verb := Create; verb <= Delete; verb++ {
		if gives.May(verb) && !own.May(verb) && !before.May(verb) {
			return verb.String() + " on " + e.Name
		}
	}
	if gives.assigns && !own.assigns && !before.assigns {
		return "assign_owner on " + e.Name
	}
	for i, f := range e.Fields {
		at := own.Entity.OfMember(f.MemberName())
		if at == nil {
			continue // the field is new: there is nothing in it
		}
		if gives.ReadField[i] && !own.ReadField[at.Index] && !before.ReadField[at.Index] ||
			gives.EditField[i] && !own.EditField[at.Index] && !before.EditField[at.Index] {
			return "the field " + f.Name + " of " + e.Name
		}
	}
	for _, f := range own.Entity.Fields { // one that goes could not be closed when it is back
		if e.OfMember(f.MemberName()) == nil && (!own.ReadField[f.Index] && !before.ReadField[f.Index] || !own.EditField[f.Index] && !before.EditField[f.Index]) {
			return "the field " + f.Name + " of " + e.Name
		}
	}
	if e.Name != schema.UserEntity {
		return ""
	}
	for _, c := range UserColumns {
		is, has, was := gives.Column(c), own.Column(c), before.Column(c)
		if is.Read && !has.Read && !was.Read || is.Edit && !has.Edit && !was.Edit {
			return "the field " + c + " of " + e.Name
		}
	}
	return ""
}

// rightsBefore returns the viewer's rights on an entity type that may have another
// name by now; nil when the viewer's configuration does not have it.
func (w Viewer) rightsBefore(e *schema.Entity) *EntityRights {
	if w.v == nil {
		return nil
	}
	if e.Name == schema.UserEntity {
		return w.v.entities[schema.UserEntity]
	}
	if was := w.v.config.Schema.StoredAs(e.StoredAs()); was != nil {
		return w.v.entities[was.Name]
	}
	return nil
}

// ReachesAll reports whether the viewer has a verb on every record of an entity type,
// which may have another name by now. Nobody but a viewer of everything has it on a
// new one.
func (w Viewer) ReachesAll(e *schema.Entity, verb Verb) bool {
	if w.AllEntityAccess() {
		return true
	}
	own := w.rightsBefore(e)
	return own != nil && own.May(verb) && own.scopes[verb].All
}

// MayReadAll reports whether the viewer reads every record of an entity type and
// every field of it, so that counts of its records tell them nothing new.
func (w Viewer) MayReadAll(e *schema.Entity) bool {
	own := w.rightsBefore(e)
	return w.ReachesAll(e, Read) && (own == nil || !slices.Contains(own.ReadField, false))
}

// Reaches reports whether the viewer reaches the records that a sharing rule shares,
// with what it gives. e is the rule's entity type, which may have another name by now.
func (w Viewer) Reaches(rule *SharingRule, e *schema.Entity) bool {
	verbs := []Verb{Read}
	if rule.Access == Edit {
		verbs = append(verbs, Update)
	}
	for _, verb := range verbs {
		if !w.ReachesAll(e, verb) && !w.reachesByRole(rule, e, verb) {
			return false
		}
	}
	return true
}

func (w Viewer) reachesByRole(rule *SharingRule, e *schema.Entity, verb Verb) bool {
	own := w.rightsBefore(e)
	if own == nil || !own.May(verb) || rule.OwnedByRole == "" {
		return false
	}
	reaches := true
	w.v.config.ownedBy(rule.OwnedByRole, Source{}, func(src Source) {
		src.Kind = ByOwnerRole
		reaches = reaches && slices.ContainsFunc(own.scopes[verb].Ways, src.Way().within)
	})
	return reaches
}

// Above reports whether the viewer's role is a proper ancestor of a role, so that they
// have all that the records' owners with it have.
func (w Viewer) Above(role string) bool {
	return w.v != nil && role != "" && role != w.v.role && w.v.config.Roles.within(role, w.v.role)
}

// HasRole reports whether the viewer has all that a role gives: it is theirs, or below
// theirs.
func (w Viewer) HasRole(role string) bool {
	return w.v != nil && role != "" && (role == w.v.role || w.Above(role))
}
