package config

import (
	"slices"

	"gatehouse/internal/access"
	"gatehouse/internal/schema"
)

var setTable = table[access.PermissionSet]{
	text("name", func(s *access.PermissionSet) *string { return &s.Name }).when(inExport).needed("at most 63 printable characters"),
	{
		key: "system", kind: TextsMember, values: access.SystemPermissions, doc: "system permissions; never for external users",
		read: func(d *decoder, s *access.PermissionSet, v *Value) {
			d.texts(v, "system permissions", func(item *Value, name string) {
				if !slices.Contains(access.SystemPermissions, name) {
					d.bad(item, "there is no system permission %s: expected %s", d.found(item), orList(access.SystemPermissions))
					return
				}
				s.System = append(s.System, name)
			})
		},
		tell: func(s *access.PermissionSet, _ func(string) string) *Value {
			return strs(inOrder(slices.Clone(s.System)))
		},
	},
	flag("all_entity_access", func(s *access.PermissionSet) *bool { return &s.AllEntityAccess }).says("every record of every entity; never for external users"),
	{
		key: "entities", kind: MapMember, doc: "permissions by entity type", of: func(*access.PermissionSet) []MemberDescription { return grantTable.describe(&access.EntityGrant{}) }, read: func(*decoder, *access.PermissionSet, *Value) {}, // once the set's name is known
		tell: func(s *access.PermissionSet, _ func(string) string) *Value {
			var list []pair
			for _, entity := range sortedKeys(s.Entities) {
				g := s.Entities[entity]
				list = append(list, pair{entity, flow(grantTable.export(&g, asIs)...)})
			}
			return block(list...)
		},
	},
}

var grantTable = table[access.EntityGrant]{
	flag("create", func(g *access.EntityGrant) *bool { return &g.Create }).says("records may be created"),
	flag("read", func(g *access.EntityGrant) *bool { return &g.Read }).says("records may be read"),
	flag("update", func(g *access.EntityGrant) *bool { return &g.Update }).says("records may be changed"),
	flag("delete", func(g *access.EntityGrant) *bool { return &g.Delete }).says("records may be deleted"),
	flag("assign_owner", func(g *access.EntityGrant) *bool { return &g.AssignOwner }).when(sparse).says("owner_id may name users whom a sharing rule of the entity names"),
	{
		key: "fields", kind: MapMember, doc: "permissions by field; a field that is not named may be read and changed", of: func(*access.EntityGrant) []MemberDescription { return fieldGrantTable.describe(&access.FieldGrant{}) }, show: sparse, read: func(*decoder, *access.EntityGrant, *Value) {}, // where its place is known
		tell: func(g *access.EntityGrant, _ func(string) string) *Value {
			var list []pair
			for _, field := range sortedKeys(g.Fields) {
				f := g.Fields[field]
				f.Read = f.Read || f.Edit
				list = append(list, pair{field, flow(fieldGrantTable.export(&f, asIs)...)})
			}
			return flow(list...)
		},
	},
}

var fieldGrantTable = table[access.FieldGrant]{
	flag("read", func(f *access.FieldGrant) *bool { return &f.Read }).says("the field may be read"),
	flag("edit", func(f *access.FieldGrant) *bool { return &f.Edit }).says("the field may be read and changed"),
}

func newSet() *access.PermissionSet {
	return &access.PermissionSet{System: []string{}, Entities: map[string]access.EntityGrant{}}
}

func (d *decoder) sets(m *Spec, key string, n *Value) {
	d.list(n, "a list of permission sets", func(_ int, item *Value) {
		set := newSet()
		given := setTable.read(d, item, "a permission set", set)
		if !d.named(item, "a permission set", given, set.Name) || !d.nameable(m, item, subject{key, set.Name, "permission set"}) {
			return
		}
		set.System = inOrder(set.System)
		if entities := given["entities"]; entities != nil {
			d.within("entities", func() {
				d.mapping(entities, "the entities of a permission set", func(k, v *Value) {
					m.mark(k, key, set.Name, k.Text)
					set.Entities[k.Text] = d.grant(m, v, key, set.Name, k.Text)
				})
			})
		}
		m.sets = append(m.sets, set)
	})
}

// inOrder sorts system permissions as the reference lists them.
func inOrder(names []string) []string {
	slices.SortFunc(names, func(a, b string) int {
		return slices.Index(access.SystemPermissions, a) - slices.Index(access.SystemPermissions, b)
	})
	return names
}

func (d *decoder) grant(m *Spec, n *Value, path ...string) access.EntityGrant {
	var g access.EntityGrant
	fields := grantTable.read(d, n, "an entity's permissions", &g)["fields"]
	if fields == nil {
		return g
	}
	d.within("fields", func() {
		d.mapping(fields, "the fields of a permission set", func(k, v *Value) {
			m.mark(k, append(slices.Clone(path), k.Text)...)
			var f access.FieldGrant
			fieldGrantTable.read(d, v, "a field's permissions", &f)
			if g.Fields == nil {
				g.Fields = map[string]access.FieldGrant{}
			}
			g.Fields[k.Text] = access.FieldGrant{Read: f.Read || f.Edit, Edit: f.Edit}
		})
	})
	return g
}

func mergeSets(p *plan) {
	for _, s := range p.m.sets {
		p.after.sets[s.Name] = s
	}
	drop(p, "permission_sets", p.before.sets, p.after.sets)
}

// checkSets asks access about each entity and field alone, so that each
// dangling name is told of at its line.
func checkSets(p *plan) {
	for _, name := range sortedKeys(p.after.sets) {
		for _, entity := range sortedKeys(p.after.sets[name].Entities) {
			grants := p.after.sets[name].Entities[entity]
			if !p.checkGrant(name, schema.FieldName{Entity: entity}) {
				continue
			}
			for _, field := range sortedKeys(grants.Fields) {
				p.checkGrant(name, schema.FieldName{Entity: entity, Field: field})
			}
		}
	}
	p.checkHolders("permission_sets", "permission set", p.holders.sets)
}

// checkGrant reports whether a permission set may name a field or, if at has none,
// an entity type.
func (p *plan) checkGrant(set string, at schema.FieldName) bool {
	entity, field := at.Entity, at.Field
	var g access.EntityGrant
	if field != "" {
		g.Fields = map[string]access.FieldGrant{field: {}}
	}
	piece := &access.PermissionSet{Name: set, Entities: map[string]access.EntityGrant{entity: g}}
	err := piece.Check(p.schema)
	switch {
	case err == nil:
	case p.m.names("permission_sets", set):
		p.add(p.m.place("permission_sets", set, entity, field), "%s", err)
	case p.schema.Entity(entity) == nil && entity != schema.UserEntity:
		p.add(p.m.place("entities"), "entity %s %s: permission set %s names it", entity, p.cannotGo(entity, ""), set)
	default:
		section := "entities"
		if entity == schema.UserEntity {
			section = "user_fields"
		}
		p.add(p.m.place(section, entity), "field %s of %s %s: permission set %s names it", field, entity, p.cannotGo(entity, field), set)
	}
	return err == nil
}

var setKind = kind{
	name: kindSet, section: "permission_sets", id: "name",
	changing: []string{access.ManagePermissions}, reading: []string{access.ManagePermissions, access.ManageUsers, access.TenantSettings},
	keys:  keysOf(func(s *state) map[string]*access.PermissionSet { return s.sets }),
	view:  func(s, _ *state, key string) any { return setTable.view(s.sets[key], nil) },
	tell:  func(s *state, key string) *Value { return block(setTable.export(s.sets[key], asIs)...) },
	write: writeSet,
}

func writeSet(w *writer, c change) error {
	if c.after == nil {
		return access.DeletePermissionSet(w.ctx, w.tx, c.key)
	}
	return access.PutPermissionSet(w.ctx, w.tx, w.p.after.sets[c.key])
}
