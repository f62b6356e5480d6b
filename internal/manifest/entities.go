package manifest

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"gatehouse/internal/schema"
)

func (d *decoder) entities(m *manifest, key string, n *yaml.Node) {
	if key == "user_fields" {
		m.userFields = d.fields(m, n, "", key)
		return
	}
	d.list(n, "a list of entities", func(_ int, item *yaml.Node) {
		e := &schema.Entity{Sharing: schema.Private, Fields: []*schema.Field{}}
		var fields *yaml.Node
		label := false
		given := d.object(item, "an entity",
			member{"name", d.to(&e.Name)},
			member{"renamed_from", d.to(&e.RenamedFrom)},
			member{"label", func(v *yaml.Node) { e.Label, label = d.text(v) }},
			member{"sharing", func(v *yaml.Node) {
				if s, ok := d.oneOf(v, string(schema.Private), string(schema.PublicRead), string(schema.PublicReadWrite)); ok {
					e.Sharing = schema.Sharing(s)
				}
			}},
			member{"fields", func(v *yaml.Node) { fields = v }})
		if !d.named(item, "an entity", given, e.Name) {
			return
		}
		if m.names(key, e.Name) {
			d.fail(item, "entity %s is declared twice, first on line %d", e.Name, m.line(key, e.Name))
			return
		}
		if err := e.Check(); err != nil {
			d.fail(item, "%s", err)
			return
		}
		if !label {
			e.Label = labelOf(e.Name)
		}
		m.mark(item, key, e.Name)
		if fields != nil {
			d.within("fields", func() { e.Fields = d.fields(m, fields, e.Name, key, e.Name) })
		}
		m.entities = append(m.entities, e)
	})
}

// named reports whether an object was given its name, and says so if not.
func (d *decoder) named(n *yaml.Node, what string, given map[string]bool, name string) bool {
	if !given["name"] && n.Kind == yaml.MappingNode {
		d.fail(n, "%s needs a name", what)
	}
	if given["name"] && name == "" && !d.at(n.Line) {
		d.fail(n, "%s needs a name that is not empty", what)
	}
	return name != ""
}

// fields reads a list of fields: of an entity, or, when entity is "", of users.
func (d *decoder) fields(m *manifest, n *yaml.Node, entity string, path ...string) []*schema.Field {
	list := []*schema.Field{}
	d.list(n, "a list of fields", func(_ int, item *yaml.Node) {
		f, before := &schema.Field{}, len(d.List)
		var kind string
		given := d.object(item, "a field",
			member{"name", d.to(&f.Name)},
			member{"renamed_from", d.to(&f.RenamedFrom)},
			member{"type", d.to(&kind)},
			member{"required", d.flag(&f.Required)},
			member{"unique", d.flag(&f.Unique)},
			member{"indexed", d.flag(&f.Indexed)},
			member{"options", func(v *yaml.Node) {
				d.texts(v, "options", func(_ *yaml.Node, text string) { f.Options = append(f.Options, text) })
			}},
			member{"entity", func(v *yaml.Node) {
				d.to(&f.Target)(v)
				m.mark(v, append(slices.Clone(path), "field", f.Name, "entity")...)
			}})
		f.Type = schema.Type(kind)
		if !d.named(item, "a field", given, f.Name) {
			return
		}
		at := append(slices.Clone(path), "field", f.Name)
		if m.names(at...) {
			d.fail(item, "field %s is declared twice, first on line %d", f.Name, m.line(at...))
			return
		}
		m.mark(item, at...)
		if !given["type"] && len(d.List) == before {
			d.fail(item, "field %s needs a type: expected one of %s", f.Name, typeNames())
		}
		if len(d.List) == before {
			d.checkField(item, entity, f)
		}
		list = append(list, f)
	})
	return list
}

// checkField asks schema about one field alone, so that each is told of at its line.
func (d *decoder) checkField(n *yaml.Node, entity string, f *schema.Field) {
	var err error
	if entity == "" {
		err = schema.CheckUserFields([]*schema.Field{f})
	} else {
		err = (&schema.Entity{Name: entity, Sharing: schema.Private, Fields: []*schema.Field{f}}).Check()
	}
	if err != nil {
		d.fail(n, "%s", err)
	}
}

func typeNames() string {
	names := make([]string, len(schema.Types))
	for i, t := range schema.Types {
		names[i] = string(t)
	}
	return strings.Join(names, ", ")
}

// labelOf is the label of an entity that declares none: "order_line" is "Order line".
func labelOf(name string) string {
	words := strings.ReplaceAll(name, "_", " ")
	return strings.ToUpper(words[:1]) + words[1:]
}

func mergeEntities(p *plan) {
	if p.m.has("user_fields") {
		p.after.userFields = p.mergeFields("user_fields", "", p.m.userFields, p.before.userFields)
	}
	for _, e := range p.m.entities {
		p.after.entities[e.Name] = p.mergeEntity(e)
	}
	if p.prunes("entities") {
		for name := range p.before.entities {
			if !p.m.names("entities", name) {
				delete(p.after.entities, name)
			}
		}
	}
	p.schema = p.after.schema()
}

// checkEntities finds references to entities that are not, or no longer, there.
func checkEntities(p *plan) {
	for _, e := range p.schema.Entities {
		for _, f := range e.Fields {
			if f.Type != schema.Reference || f.Target == "" || p.schema.Entity(f.Target) != nil {
				continue
			}
			if p.m.names("entities", e.Name) {
				p.add(p.m.line("entities", e.Name, "field", f.Name, "entity"),
					"entity %s: field %s: there is no entity %s", e.Name, f.Name, show(f.Target))
			} else {
				p.add(p.m.line("entities"), "entity %s %s: field %s of entity %s refers to it", f.Target, p.cannotGo(f.Target, ""), f.Name, e.Name)
			}
		}
	}
}

// entityView is an entity type in the change history, in the manifest's words.
type entityView struct {
	RenamedFrom string      `json:"renamed_from,omitempty"` // by this change
	Label       string      `json:"label"`
	Sharing     string      `json:"sharing"`
	Fields      []fieldView `json:"fields"`
}

type fieldView struct {
	Name        string   `json:"name"`
	RenamedFrom string   `json:"renamed_from,omitempty"` // by this change
	Type        string   `json:"type"`
	Required    bool     `json:"required,omitempty"`
	Unique      bool     `json:"unique,omitempty"`
	Indexed     bool     `json:"indexed,omitempty"`
	Options     []string `json:"options,omitempty"`
	Entity      string   `json:"entity,omitempty"`
}

func viewFields(fields []*schema.Field) []fieldView {
	list := make([]fieldView, len(fields))
	for i, f := range fields {
		list[i] = fieldView{f.Name, f.RenamedFrom, string(f.Type), f.Required, f.Unique, f.Indexed, f.Options, f.Target}
	}
	return list
}

func viewEntity(e *schema.Entity) any {
	if e == nil {
		return nil
	}
	return entityView{e.RenamedFrom, e.Label, string(e.Sharing), viewFields(e.Fields)}
}

func viewUserFields(fields []*schema.Field) any {
	if len(fields) == 0 {
		return nil
	}
	return map[string]any{"fields": viewFields(fields)}
}

func exportEntities(s *state) []pair {
	var entities []*yaml.Node
	for _, name := range sortedKeys(s.entities) {
		e := s.entities[name]
		entities = append(entities, block(
			pair{"name", str(e.Name)},
			pair{"label", str(e.Label)},
			pair{"sharing", str(string(e.Sharing))},
			pair{"fields", exportFields(e.Fields)}))
	}
	return []pair{{"entities", rows(entities)}, {"user_fields", exportFields(s.userFields)}}
}

func exportFields(fields []*schema.Field) *yaml.Node {
	var list []*yaml.Node
	for _, f := range fields {
		pairs := []pair{{"name", str(f.Name)}, {"type", str(string(f.Type))}}
		for _, flag := range []struct {
			key string
			on  bool
		}{{"required", f.Required}, {"unique", f.Unique}, {"indexed", f.Indexed}} {
			if flag.on {
				pairs = append(pairs, pair{flag.key, yes(true)})
			}
		}
		if len(f.Options) > 0 {
			pairs = append(pairs, pair{"options", strs(f.Options)})
		}
		if f.Target != "" {
			pairs = append(pairs, pair{"entity", str(f.Target)})
		}
		list = append(list, flow(pairs...))
	}
	return rows(list)
}
