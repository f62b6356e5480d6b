package access

import (
	"slices"

	"gatehouse/internal/schema"
)

// Loses reports whether a user who was one Identity under the configuration
// before may do less as another under the one after: in a system permission, an
// entity permission, a field, or the records that a permission reaches. Entity
// types and fields that are gone do not count.
func Loses(before *Config, was Identity, after *Config, is Identity) bool {
	b, a := viewerOf(before, was), viewerOf(after, is)
	if b.v.owner && !a.v.owner || slices.ContainsFunc(b.v.system, func(p string) bool { return !a.May(p) }) {
		return true
	}
	for _, had := range b.v.entities {
		has := a.v.entities[had.Entity.Name]
		if had.Entity != before.Schema.User {
			has = nil
			if e := after.Schema.StoredAs(had.Entity.StoredAs()); e != nil {
				has = a.v.entities[e.Name]
			}
		}
		if has != nil && had.exceeds(has) {
			return true
		}
	}
	return false
}

// Exceeds reports whether a viewer has a right that another viewer of the same
// configuration lacks: ownership of the tenant, all_entity_access, a system permission, a
// permission on an entity type or on a field, or a role above the other's. Which records
// they reach by their own role, records and shares is not compared: these are theirs.
func (w Viewer) Exceeds(other Viewer) bool {
	switch {
	case w.v == nil:
		return false
	case other.v == nil:
		return true
	case w.v.owner && !other.v.owner, w.v.all && !other.v.all:
		return true
	case slices.ContainsFunc(w.v.system, func(p string) bool { return !other.May(p) }):
		return true
	case !other.v.all && w.v.role != "" && w.v.role != other.v.role && w.v.config.Roles.within(other.v.role, w.v.role):
		return true
	}
	for name, r := range w.v.entities {
		if r.permits(other.v.entities[name]) {
			return true
		}
	}
	return false
}

// permits reports whether r has a permission that other, on the same entity type, lacks.
func (r *EntityRights) permits(other *EntityRights) bool {
	for verb := Create; verb <= Delete; verb++ {
		if r.May(verb) && !other.May(verb) {
			return true
		}
	}
	for i := range r.Entity.Fields {
		if r.May(Read) && r.ReadField[i] && !other.ReadField[i] ||
			(r.May(Create) || r.May(Update)) && r.EditField[i] && !other.EditField[i] {
			return true
		}
	}
	return r.assigns && !other.assigns || r.columnExceeds(other)
}

// exceeds reports whether r has a right that other does not have.
func (r *EntityRights) exceeds(other *EntityRights) bool {
	for verb := Create; verb <= Delete; verb++ {
		if r.May(verb) && (!other.May(verb) || r.scopes[verb].exceeds(other.scopes[verb])) {
			return true
		}
	}
	if r.assigns && (r.May(Create) || r.May(Update)) && !other.assigns {
		return true
	}
	for i, f := range r.Entity.Fields {
		is := other.Entity.OfMember(f.MemberName())
		if is == nil {
			continue
		}
		if r.May(Read) && r.ReadField[i] && !other.ReadField[is.Index] ||
			(r.May(Create) || r.May(Update)) && r.EditField[i] && !other.EditField[is.Index] {
			return true
		}
	}
	return r.columnExceeds(other)
}

func (r *EntityRights) columnExceeds(other *EntityRights) bool {
	return r.Entity.Name == schema.UserEntity && slices.ContainsFunc(UserColumns, func(name string) bool {
		had, has := r.Column(name), other.Column(name)
		return r.May(Read) && had.Read && !has.Read || r.May(Update) && had.Edit && !has.Edit
	})
}

// exceeds reports whether s reaches records in a way that other does not.
func (s *Scope) exceeds(other *Scope) bool {
	if s.All || other.All {
		return !other.All
	}
	return slices.ContainsFunc(s.Ways, func(w Way) bool { return !slices.ContainsFunc(other.Ways, w.within) })
}

// within reports whether o reaches all that w reaches.
func (w Way) within(o Way) bool {
	if w.Parent != nil && o.Parent != nil {
		return w.Parent.Field.MemberName() == o.Parent.Field.MemberName() && w.Parent.Entity.StoredAs() == o.Parent.Entity.StoredAs() &&
			!w.Parent.Scope.exceeds(o.Parent.Scope)
	}
	return w.Kind == o.Kind && (w.EditOnly || !o.EditOnly) &&
		!slices.ContainsFunc(w.Names, func(name string) bool { return !slices.Contains(o.Names, name) })
}
