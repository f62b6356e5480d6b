package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gatehouse/internal/access"
	"gatehouse/internal/schema"
)

var entityTable = table[schema.Entity]{
	text("name", func(e *schema.Entity) *string { return &e.Name }).when(inExport).needed("snake_case and singular; it is the name in the API"),
	text("renamed_from", func(e *schema.Entity) *string { return &e.RenamedFrom }).when(inHistory).says("the name before, which is renamed with all data"), // by this change
	text("label", func(e *schema.Entity) *string { return &e.Label }).says("what people see; from the name when absent"),
	sharing,
	keep,
	{
		key: "fields", kind: ListMember, doc: "its fields", of: func(*schema.Entity) []MemberDescription { return fieldTable.describe(&schema.Field{}) }, read: func(*decoder, *schema.Entity, *Value) {}, // once the entity's name is known
		tell: func(e *schema.Entity, _ func(string) string) *Value { return fieldTable.exports(e.Fields) },
		past: func(e, _ *schema.Entity) *Value { return fieldTable.pasts(e.Fields) },
	},
}

// sharings are the values of sharing that are one word.
var sharings = []string{string(schema.Private), string(schema.PublicRead), string(schema.PublicReadWrite)}

// sharing is the default of an entity type, or {controlled_by: FIELD}.
var sharing = attr[schema.Entity]{
	key: "sharing", kind: SharingMember, values: sharings,
	doc: "what internal users may do with the records of others; or {controlled_by: FIELD}, a required reference whose record decides",
	read: func(d *decoder, e *schema.Entity, v *Value) {
		expected := strings.Join(sharings, ", ") + " or {controlled_by: FIELD}"
		switch before := len(d.List); {
		case v.Kind == Mapping:
			d.object(v, "sharing", member{"controlled_by", d.to(&e.ControlledBy)})
			if e.ControlledBy == "" && len(d.List) == before {
				d.bad(v, "expected %s", expected)
			}
		case v.Kind != Text:
			d.wrong(v, expected)
		default:
			s, ok := d.text(v)
			if ok && !slices.Contains(sharings, s) {
				d.bad(v, "expected %s, found %s", expected, d.found(v))
			}
			e.Sharing = schema.Sharing(s)
		}
	},
	tell: func(e *schema.Entity, _ func(string) string) *Value {
		if e.ControlledBy != "" {
			return flow(pair{"controlled_by", str(e.ControlledBy)})
		}
		return str(string(e.Sharing))
	},
}

// keep is how long records are kept, in days as 90d (contract R20).
var keep = attr[schema.Entity]{
	key: "keep", kind: TextMember, show: sparse,
	doc: "records are deleted so many days after they were created, as 90d; for ever when absent",
	read: func(d *decoder, e *schema.Entity, v *Value) {
		expected := fmt.Sprintf("a number of days as 90d, from 1d to %dd", maxRetention)
		if v.Kind != Text {
			d.wrong(v, expected)
			return
		}
		s, ok := d.text(v)
		if !ok || s == "" {
			return
		}
		days, err := strconv.Atoi(strings.TrimSuffix(s, "d"))
		if err != nil || strconv.Itoa(days)+"d" != s || days < 1 || days > maxRetention {
			d.bad(v, "expected %s, found %s", expected, d.found(v))
			return
		}
		e.KeepDays = days
	},
	copy: func(to, from *schema.Entity) { to.KeepDays = from.KeepDays },
	tell: func(e *schema.Entity, _ func(string) string) *Value {
		if e.KeepDays == 0 {
			return str("")
		}
		return str(strconv.Itoa(e.KeepDays) + "d")
	},
}

var fieldTable = table[schema.Field]{
	text("name", func(f *schema.Field) *string { return &f.Name }).needed("snake_case; it is the name in the API"),
	text("renamed_from", func(f *schema.Field) *string { return &f.RenamedFrom }).when(inHistory).says("the name before, which is renamed with all data"), // by this change
	text("type", func(f *schema.Field) *schema.Type { return &f.Type }).among(strings.Split(schema.TypeNames(true), ", ")...).needed("what values it takes"),
	flag("required", func(f *schema.Field) *bool { return &f.Required }).when(sparse).says("a record must have a value"),
	flag("unique", func(f *schema.Field) *bool { return &f.Unique }).when(sparse).says("no two records may have the same value"),
	flag("indexed", func(f *schema.Field) *bool { return &f.Indexed }).when(sparse).says("lists can be filtered by it"),
	flag("searchable", func(f *schema.Field) *bool { return &f.Searchable }).when(sparse).says("lists can be searched for its words"),
	{
		key: "options", kind: TextsMember, doc: "what a select may be",
		read: func(d *decoder, f *schema.Field, v *Value) {
			d.texts(v, "options", func(_ *Value, text string) { f.Options = append(f.Options, text) })
		},
		tell: func(f *schema.Field, _ func(string) string) *Value { return strs(f.Options) },
		show: sparse,
	},
	text("entity", func(f *schema.Field) *string { return &f.Target }).when(sparse).says("the entity that a reference leads to; user for users"),
	flag("managed", func(f *schema.Field) *bool { return &f.Managed }).when(sparse).says("of user_fields: not for users to set themselves, so that sharing rules may use it"),
}

func newEntity() *schema.Entity {
	return &schema.Entity{Sharing: schema.Private, Fields: []*schema.Field{}}
}

func (d *decoder) entities(m *Spec, key string, n *Value) {
	if key == "user_fields" {
		m.userFields = d.fields(m, n, "", key)
		return
	}
	d.list(n, "a list of entities", func(_ int, item *Value) {
		e := newEntity()
		given := entityTable.read(d, item, "an entity", e)
		if !d.named(item, "an entity", given, e.Name) {
			return
		}
		if m.names(key, e.Name) {
			d.twice(item.Place, m.place(key, e.Name), "entity %s is declared twice", e.Name)
			return
		}
		if err := e.Check(); err != nil {
			d.fail(item, "%s", err)
			return
		}
		if given["label"] == nil {
			e.Label = labelOf(e.Name)
		}
		m.mark(item, key, e.Name)
		if at := given["sharing"]; at != nil {
			m.mark(at, key, e.Name, "sharing")
		}
		if fields := given["fields"]; fields != nil {
			d.within("fields", func() { e.Fields = d.fields(m, fields, e.Name, key, e.Name) })
		}
		m.entities = append(m.entities, e)
	})
}

// named reports whether an object was given its name, and says so if not.
func (d *decoder) named(n *Value, what string, given map[string]*Value, name string) bool {
	if given["name"] == nil && n.Kind == Mapping {
		d.fail(n, "%s needs a name", what)
	}
	if given["name"] != nil && name == "" && !d.has(n.Member("name").Place.Path) {
		d.fail(n, "%s needs a name that is not empty", what)
	}
	return name != ""
}

// fields reads a list of fields: of an entity, or, when entity is "", of users.
func (d *decoder) fields(m *Spec, n *Value, entity string, path ...string) []*schema.Field {
	list := []*schema.Field{}
	d.list(n, "a list of fields", func(_ int, item *Value) {
		f, before := &schema.Field{}, len(d.List)
		given := fieldTable.read(d, item, "a field", f)
		if !d.named(item, "a field", given, f.Name) {
			return
		}
		at := append(slices.Clone(path), "field", f.Name)
		if m.names(at...) {
			d.twice(item.Place, m.place(at...), "field %s is declared twice", f.Name)
			return
		}
		m.mark(item, at...)
		if target := given["entity"]; target != nil {
			m.mark(target, append(at, "entity")...)
		}
		if given["type"] == nil && len(d.List) == before {
			d.fail(item, "field %s needs a type: expected one of %s", f.Name, schema.TypeNames(entity == ""))
		}
		if len(d.List) == before {
			d.checkField(item, entity, f)
		}
		list = append(list, f)
	})
	return list
}

// checkField asks schema about one field alone, so that each is told of at its line.
func (d *decoder) checkField(n *Value, entity string, f *schema.Field) {
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
	drop(p, "entities", p.before.entities, p.after.entities)
	p.schema = p.after.schema()
}

// checkEach finds entities whose parent cannot control them, and those with too many
// searchable fields.
func checkEach(p *plan) {
	for _, e := range p.schema.Entities {
		if err := e.CheckSearchable(); err != nil {
			at := p.m.place("entities")
			if p.m.names("entities", e.Name) {
				at = p.m.place("entities", e.Name)
			}
			p.add(at, "%s", err)
		}
		err := p.schema.CheckControl(e)
		switch {
		case err == nil:
		case p.m.names("entities", e.Name, "sharing"):
			p.add(p.m.place("entities", e.Name, "sharing"), "%s", err)
		case p.m.names("entities", e.Name):
			p.add(p.m.place("entities", e.Name), "%s", err)
		default:
			p.add(p.m.place("entities"), "%s", err)
		}
	}
}

// checkEntities finds references to entities that are not, or no longer, there.
func checkEntities(p *plan) {
	checkEach(p)
	for _, f := range p.schema.User.Fields {
		if !f.Refers() || f.Target == "" || f.Target == schema.UserEntity || p.schema.Entity(f.Target) != nil {
			continue // user is refused by schema
		}
		if p.m.names("user_fields", "field", f.Name) {
			p.add(p.m.place("user_fields", "field", f.Name, "entity"), "user_fields: field %s: there is no entity %s", f.Name, show(f.Target))
		} else {
			p.add(p.m.place("entities"), "entity %s %s: field %s of user_fields refers to it", f.Target, p.cannotGo(f.Target, ""), f.Name)
		}
	}
	for _, e := range p.schema.Entities {
		for _, f := range e.Fields {
			if !f.Refers() || f.Target == "" || f.Target == schema.UserEntity || p.schema.Entity(f.Target) != nil {
				continue
			}
			if p.m.names("entities", e.Name) {
				p.add(p.m.place("entities", e.Name, "field", f.Name, "entity"),
					"entity %s: field %s: there is no entity %s", e.Name, f.Name, show(f.Target))
			} else {
				p.add(p.m.place("entities"), "entity %s %s: field %s of entity %s refers to it", f.Target, p.cannotGo(f.Target, ""), f.Name, e.Name)
			}
		}
	}
}

var entityKind = kind{
	name: kindEntity, section: "entities", id: "name",
	changing: []string{access.ManageEntities}, reading: AdminPermissions,
	keys:  keysOf(func(s *state) map[string]*schema.Entity { return s.entities }),
	view:  func(s, _ *state, key string) any { return entityTable.view(s.entities[key], nil) },
	tell:  func(s *state, key string) *Value { return block(entityTable.export(s.entities[key], asIs)...) },
	write: writeEntity,
}

func writeEntity(w *writer, c change) error {
	if c.after == nil {
		return schema.DeleteEntity(w.ctx, w.tx, c.key)
	}
	return schema.PutEntity(w.ctx, w.tx, w.p.after.entities[c.key])
}

var userFieldsKind = kind{
	name: kindUserFields, section: "user_fields",
	changing: []string{access.ManageEntities}, reading: AdminPermissions,
	keys:  func(*state) []string { return []string{""} },
	title: func(*state, string) string { return kindUserFields },
	view: func(s, _ *state, _ string) any {
		if len(s.userFields) == 0 {
			return nil
		}
		return block(pair{"fields", fieldTable.pasts(s.userFields)}).json()
	},
	tell:  func(s *state, _ string) *Value { return fieldTable.exports(s.userFields) },
	write: func(w *writer, _ change) error { return schema.PutUserFields(w.ctx, w.tx, w.p.after.userFields) },
}

func exportEntities(s *state) []pair {
	return append(entityKind.export(s), pair{"user_fields", userFieldsKind.tell(s, "")})
}
