package manifest

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"gatehouse/internal/access"
	"gatehouse/internal/schema"
)

func (d *decoder) sets(m *manifest, key string, n *yaml.Node) {
	d.list(n, "a list of permission sets", func(_ int, item *yaml.Node) {
		set := &access.PermissionSet{System: []string{}, Entities: map[string]access.EntityGrant{}}
		var entities *yaml.Node
		given := d.object(item, "a permission set",
			member{"name", d.to(&set.Name)},
			member{"system", func(v *yaml.Node) {
				d.texts(v, "system permissions", func(item *yaml.Node, name string) {
					if !slices.Contains(access.SystemPermissions, name) {
						d.bad(item, "there is no system permission %s: expected %s", d.found(item), orList(access.SystemPermissions))
						return
					}
					set.System = append(set.System, name)
				})
			}},
			member{"all_entity_access", d.flag(&set.AllEntityAccess)},
			member{"entities", func(v *yaml.Node) { entities = v }})
		if !d.named(item, "a permission set", given, set.Name) || !d.nameable(m, item, "permission set", key, set.Name) {
			return
		}
		set.System = inOrder(set.System)
		if entities != nil {
			d.within("entities", func() {
				d.mapping(entities, "the entities of a permission set", func(k, v *yaml.Node) {
					m.mark(k, key, set.Name, k.Value)
					set.Entities[k.Value] = d.grant(m, v, key, set.Name, k.Value)
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

func (d *decoder) grant(m *manifest, n *yaml.Node, path ...string) access.EntityGrant {
	var g access.EntityGrant
	d.object(n, "an entity's permissions",
		member{"create", d.flag(&g.Create)},
		member{"read", d.flag(&g.Read)},
		member{"update", d.flag(&g.Update)},
		member{"delete", d.flag(&g.Delete)},
		member{"fields", func(v *yaml.Node) {
			d.mapping(v, "the fields of a permission set", func(k, v *yaml.Node) {
				m.mark(k, append(slices.Clone(path), k.Value)...)
				var f access.FieldGrant
				d.object(v, "a field's permissions", member{"read", d.flag(&f.Read)}, member{"edit", d.flag(&f.Edit)})
				if g.Fields == nil {
					g.Fields = map[string]access.FieldGrant{}
				}
				g.Fields[k.Value] = access.FieldGrant{Read: f.Read || f.Edit, Edit: f.Edit}
			})
		}})
	return g
}

func mergeSets(p *plan) {
	for _, s := range p.m.sets {
		p.after.sets[s.Name] = s
	}
	if p.prunes("permission_sets") {
		for name := range p.before.sets {
			if !p.m.names("permission_sets", name) {
				delete(p.after.sets, name)
			}
		}
	}
}

// checkSets asks access about each entity and field alone, so that each
// dangling name is told of at its line.
func checkSets(p *plan) {
	for _, name := range sortedKeys(p.after.sets) {
		for _, entity := range sortedKeys(p.after.sets[name].Entities) {
			grants := p.after.sets[name].Entities[entity]
			if !p.checkGrant(name, entity, "") {
				continue
			}
			for _, field := range sortedKeys(grants.Fields) {
				p.checkGrant(name, entity, field)
			}
		}
	}
	p.checkHolders("permission_sets", "permission set", p.holders.sets)
}

func (p *plan) checkGrant(set, entity, field string) bool {
	var g access.EntityGrant
	if field != "" {
		g.Fields = map[string]access.FieldGrant{field: {}}
	}
	piece := &access.PermissionSet{Name: set, Entities: map[string]access.EntityGrant{entity: g}}
	err := piece.Check(p.schema)
	switch {
	case err == nil:
	case p.m.names("permission_sets", set):
		p.add(p.m.line("permission_sets", set, entity, field), "%s", err)
	case p.schema.Entity(entity) == nil && entity != schema.UserEntity:
		p.add(p.m.line("entities"), "entity %s %s: permission set %s names it", entity, p.cannotGo(entity, ""), set)
	default:
		section := "entities"
		if entity == schema.UserEntity {
			section = "user_fields"
		}
		p.add(p.m.line(section, entity), "field %s of %s %s: permission set %s names it", field, entity, p.cannotGo(entity, field), set)
	}
	return err == nil
}

func viewSet(s *access.PermissionSet) any {
	if s == nil {
		return nil
	}
	copied := *s
	copied.System = inOrder(append([]string{}, s.System...))
	if copied.Entities == nil {
		copied.Entities = map[string]access.EntityGrant{}
	}
	return copied
}

func exportSets(s *state) []pair {
	var list []*yaml.Node
	for _, name := range sortedKeys(s.sets) {
		set := s.sets[name]
		var entities []pair
		for _, entity := range sortedKeys(set.Entities) {
			g := set.Entities[entity]
			pairs := []pair{{"create", yes(g.Create)}, {"read", yes(g.Read)}, {"update", yes(g.Update)}, {"delete", yes(g.Delete)}}
			var fields []pair
			for _, field := range sortedKeys(g.Fields) {
				f := g.Fields[field]
				fields = append(fields, pair{field, flow(pair{"read", yes(f.Read || f.Edit)}, pair{"edit", yes(f.Edit)})})
			}
			if len(fields) > 0 {
				pairs = append(pairs, pair{"fields", flow(fields...)})
			}
			entities = append(entities, pair{entity, flow(pairs...)})
		}
		list = append(list, block(
			pair{"name", str(name)},
			pair{"system", strs(inOrder(slices.Clone(set.System)))},
			pair{"all_entity_access", yes(set.AllEntityAccess)},
			pair{"entities", block(entities...)}))
	}
	return []pair{{"permission_sets", rows(list)}}
}
