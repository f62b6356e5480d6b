package config

import (
	"cmp"
	"fmt"
	"slices"

	"gatehouse/internal/access"
	"gatehouse/internal/schema"
)

// renames are what the plan renames: stored entity types by their old names, and
// fields by the new name of their entity type ("" for users) and their old one.
type renames struct {
	entities map[string]string
	fields   map[[2]string]string
}

// was is an entity type as it is stored, by the name that it is going to have; nil
// when it is new.
func (p *plan) was(name string) *schema.Entity { return p.before.entities[p.wasName(name)] }

func (p *plan) wasName(name string) string {
	for from, to := range p.renames.entities {
		if to == name {
			return from
		}
	}
	return name
}

// mergeEntity is an entity type of the manifest, and what it is stored as.
// renamed_from says that it was called otherwise: once it was renamed, or where
// there is nothing of the old name, it says nothing more; the latter is told of, as
// the name may be mistyped.
func (p *plan) mergeEntity(e *schema.Entity) *schema.Entity {
	is, from := *e, e.RenamedFrom
	is.RenamedFrom = ""
	_, old := p.before.entities[from]
	_, there := p.before.entities[e.Name]
	switch {
	case from == "":
	case from == e.Name, p.m.names("entities", from):
		p.add(p.m.place("entities", e.Name), "entity %s: renamed_from: entity %s stands in the manifest too: a renamed one stands in it under its new name alone",
			e.Name, from)
	case old && there:
		p.add(p.m.place("entities", e.Name), "entity %s: renamed_from: there are both an entity %s and an entity %s, so that nothing can be renamed: leave renamed_from out",
			e.Name, from, e.Name)
	case old && p.renames.entities[from] != "":
		p.add(p.m.place("entities", e.Name), "entity %s: renamed_from: entity %s becomes %s already", e.Name, from, p.renames.entities[from])
	case old:
		if p.renames.entities == nil {
			p.renames.entities = map[string]string{}
		}
		p.renames.entities[from] = e.Name
		is.RenamedFrom = from
		delete(p.after.entities, from)
	case !there && p.before.tenant != nil:
		p.warn("entity %s: renamed_from names %s, and there is no such entity: nothing was renamed", e.Name, printable(from))
	}
	var had []*schema.Field
	if was := p.was(e.Name); was != nil {
		is.Stored, had = was.StoredAs(), was.Fields
	}
	is.Fields = p.mergeFields("entities", e.Name, e.Fields, had)
	return &is
}

// warn notes what is not wrong, and perhaps not what the author means.
func (p *plan) warn(format string, args ...any) {
	p.warnings = append(p.warnings, fmt.Sprintf(format, args...))
}

// mergeFields is mergeEntity for the fields of an entity type, or of users.
func (p *plan) mergeFields(section, entity string, fields, had []*schema.Field) []*schema.Field {
	find := func(list []*schema.Field, name string) *schema.Field {
		if i := slices.IndexFunc(list, func(f *schema.Field) bool { return f.Name == name }); i >= 0 {
			return list[i]
		}
		return nil
	}
	path := []string{section}
	if entity != "" {
		path = append(path, entity)
	}
	list := make([]*schema.Field, len(fields))
	for i, f := range fields {
		is, from := *f, f.RenamedFrom
		is.RenamedFrom = ""
		was, old := find(had, f.Name), find(had, from)
		line := p.m.place(append(slices.Clone(path), "field", f.Name)...)
		switch {
		case from == "":
		case find(fields, from) != nil:
			p.add(line, "field %s: renamed_from: field %s stands in the manifest too: a renamed one stands in it under its new name alone", f.Name, from)
		case old != nil && was != nil:
			p.add(line, "field %s: renamed_from: there are both a field %s and a field %s, so that nothing can be renamed: leave renamed_from out",
				f.Name, from, f.Name)
		case old != nil && p.renames.fields[[2]string{entity, from}] != "":
			p.add(line, "field %s: renamed_from: field %s becomes %s already", f.Name, from, p.renames.fields[[2]string{entity, from}])
		case old != nil:
			if p.renames.fields == nil {
				p.renames.fields = map[[2]string]string{}
			}
			p.renames.fields[[2]string{entity, from}] = f.Name
			is.RenamedFrom, was = from, old
		case was == nil && len(had) > 0:
			p.warn("%s: field %s: renamed_from names %s, and there is no such field: nothing was renamed", cmp.Or(entity, section), f.Name, printable(from))
		}
		if was != nil {
			is.Member = was.PlainMember()
		}
		list[i] = &is
	}
	return list
}

// cannotGo says what cannot be done to an entity type, or to its field, that
// something else still names by its old name.
func (p *plan) cannotGo(entity, field string) string {
	to := p.renames.entities[entity]
	if field != "" {
		if entity == schema.UserEntity {
			entity = ""
		}
		to = p.renames.fields[[2]string{entity, field}]
	}
	if to == "" {
		return "cannot be removed"
	}
	return "cannot be renamed to " + to
}

// renamedRule is a stored sharing rule with the names that the plan gives.
func (p *plan) renamedRule(r *access.SharingRule) *access.SharingRule {
	is := *r
	is.Entity = cmp.Or(p.renames.entities[r.Entity], r.Entity)
	is.Where = slices.Clone(r.Where)
	for i, c := range is.Where {
		is.Where[i].Field = cmp.Or(p.renames.fields[[2]string{is.Entity, c.Field}], c.Field)
		is.Where[i].Viewer = cmp.Or(p.renames.fields[[2]string{"", c.Viewer}], c.Viewer)
	}
	slices.SortFunc(is.Where, func(a, b access.Condition) int { return cmp.Compare(a.Field, b.Field) })
	return &is
}
