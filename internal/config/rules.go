package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/schema"
	"gatehouse/internal/wtf8"
)

// ruleDecl is a sharing rule as the file has it: what a condition's value
// means is known once its field is.
type ruleDecl struct {
	rule  access.SharingRule // without Where
	where []whereDecl
	path  []string
	// bad is set when the rule was not as expected: it is known, and no more is said of it.
	bad bool
}

type whereDecl struct {
	field string
	value jsontext.Value
	env   bool // value is the JSON of a text taken from the environment
	// viewer is what the field is compared with instead of value; see
	// access.Condition.
	viewer string
}

var ruleTable = table[access.SharingRule]{
	text("entity", func(r *access.SharingRule) *string { return &r.Entity }).needed("the entity type whose records are shared"),
	text("owned_by_role", func(r *access.SharingRule) *string { return &r.OwnedByRole }).when(sparse).says("records whose owner has the role; in the place of where"),
	{
		key: "where", kind: MapMember, doc: "records whose fields have these values, by field, or those of the viewer: {{user.id}}, {{user.email}}, {{user.FIELD}} of a managed field; id is the record itself; in the place of owned_by_role", show: sparse, read: func(*decoder, *access.SharingRule, *Value) {}, // see conditions
		tell: func(r *access.SharingRule, _ func(string) string) *Value {
			var where []pair
			for _, c := range r.Where {
				where = append(where, pair{c.Field, conditionOf(c)})
			}
			return flow(where...)
		},
	},
	text("share_with_role", func(r *access.SharingRule) *string { return &r.ShareWithRole }).when(sparse).says("the role that they are shared with, and the roles above it; or share_with"),
	choice("share_with", func(r *access.SharingRule) *access.Audience { return &r.ShareWith }, access.Audiences...).when(sparse).says("whom they are shared with; in the place of share_with_role"),
	choice("access", func(r *access.SharingRule) *access.Level { return &r.Access }, access.ReadOnly, access.Edit).needed("what it gives"),
}

func (d *decoder) rules(m *Spec, key string, n *Value) {
	d.list(n, "a list of sharing rules", func(i int, item *Value) {
		decl, before := &ruleDecl{path: []string{key, strconv.Itoa(i)}}, len(d.List)
		m.mark(item, decl.path...)
		given := ruleTable.read(d, item, "a sharing rule", &decl.rule)
		for name, v := range given {
			m.mark(v, key, strconv.Itoa(i), name)
		}
		if where := given["where"]; where != nil {
			d.within("where", func() { decl.where = d.where(m, where, decl.path) })
		}
		if len(d.List) == before {
			for _, name := range []string{"entity", "access"} {
				if given[name] == nil {
					d.fail(item, "a sharing rule needs %s", name)
				}
			}
			if (given["owned_by_role"] == nil) == (given["where"] == nil) {
				d.fail(item, "a sharing rule needs exactly one of owned_by_role and where")
			}
			if (given["share_with_role"] == nil) == (given["share_with"] == nil) {
				d.fail(item, "a sharing rule needs exactly one of share_with_role and share_with")
			}
		}
		decl.bad = len(d.List) > before
		m.rules = append(m.rules, decl)
	})
}

func (d *decoder) where(m *Spec, n *Value, path []string) []whereDecl {
	var list []whereDecl
	d.mapping(n, "where", func(k, v *Value) {
		m.mark(k, append(slices.Clone(path), "where", k.Text)...)
		s, ok := d.scalar(v, "a value to compare the field with")
		if !ok {
			return
		}
		value := jsontext.Value(wtf8.AppendUTF8(nil, s.text))
		if s.kind == Number || s.kind == Bool {
			value = v.JSON
		}
		switch {
		case value == nil && v.endless():
			d.bad(v, "expected a finite number to compare the field with")
			return
		case value == nil:
			d.bad(v, "expected a value to compare the field with")
			return
		}
		if s.kind == Text && !s.env {
			viewer, isViewer, ok := d.ofViewer(v, s.text)
			if !ok {
				return
			}
			if isViewer {
				list = append(list, whereDecl{field: k.Text, viewer: viewer})
				return
			}
		}
		list = append(list, whereDecl{field: k.Text, value: value, env: s.env})
	})
	if n.Kind == Mapping && len(n.Members) == 0 {
		d.fail(n, "where needs at least one field and its value")
	}
	slices.SortFunc(list, func(a, b whereDecl) int { return strings.Compare(a.field, b.field) })
	return list
}

func mergeRules(p *plan) {
	named := map[string]*ruleDecl{}
	for _, decl := range p.m.rules {
		if decl.bad || !p.checkRuleDecl(decl) {
			continue
		}
		rule := decl.rule
		rule.Where = p.conditions(decl)
		if len(rule.Where) != len(decl.where) {
			continue
		}
		id := rule.ID()
		if first := named[id]; first != nil {
			p.twice(p.m.place(decl.path...), p.m.place(first.path...), "the sharing rule is declared twice")
			continue
		}
		named[id] = decl
		p.after.rules[id] = &rule
	}
	for id, rule := range p.before.rules {
		if is := p.renamedRule(rule).ID(); is != id && named[is] != nil {
			delete(p.after.rules, id) // the manifest's is the same rule, with the new names
		}
	}
	for id := range p.before.rules {
		if named[id] == nil && p.drops("sharing_rules", id) {
			delete(p.after.rules, id)
		}
	}
	p.boundMembers()
}

// checkRuleDecl finds the dangling names of a rule of the manifest.
func (p *plan) checkRuleDecl(decl *ruleDecl) bool {
	r, before := &decl.rule, len(p.List)
	entity := p.schema.Entity(r.Entity)
	if entity == nil {
		p.add(p.m.place(append(decl.path, "entity")...), "sharing rule: there is no entity %s", show(r.Entity))
	}
	if entity != nil && entity.ControlledBy != "" {
		p.add(p.m.place(append(decl.path, "entity")...), "sharing rule: %s", controlledText(entity))
	}
	for _, role := range []struct{ key, name string }{{"owned_by_role", r.OwnedByRole}, {"share_with_role", r.ShareWithRole}} {
		if role.name == "" && (role.key == "owned_by_role" && decl.where != nil || role.key == "share_with_role" && r.ShareWith != "") {
			continue
		}
		if _, ok := p.after.roles[role.name]; !ok {
			p.add(p.m.place(append(decl.path, role.key)...), "sharing rule: %s: there is no role %s", role.key, show(role.name))
		}
	}
	for _, w := range decl.where {
		if entity == nil {
			break
		}
		if f := entity.Comparand(w.field); f == nil {
			p.add(p.m.place(append(decl.path, "where", w.field)...), "sharing rule: entity %s has no field %s", entity.Name, show(w.field))
		} else if f.Name == schema.IDField && w.viewer == "" {
			p.add(p.m.place(append(decl.path, "where", w.field)...), "sharing rule: %s", access.IDExpected)
		} else if !f.Scalar() {
			p.add(p.m.place(append(decl.path, "where", w.field)...),
				"sharing rule: field %s is a %s, which cannot be compared", f.Name, f.Type)
		} else if w.viewer != "" {
			c := access.Condition{Field: w.field, Viewer: w.viewer}
			if err := c.Comparable(p.schema, f); err != nil {
				p.add(p.m.place(append(decl.path, "where", w.field)...), "sharing rule: %s", err)
			}
		}
	}
	return len(p.List) == before
}

// controlledText says why records of an entity type have no rules.
func controlledText(e *schema.Entity) string {
	return fmt.Sprintf("records of %s are reached as the record of field %s may be: share that entity instead", e.Name, e.ControlledBy)
}

// conditions brings the values of a rule into their canonical form.
func (p *plan) conditions(decl *ruleDecl) []access.Condition {
	var list []access.Condition
	for _, w := range decl.where {
		if w.viewer != "" {
			list = append(list, access.Condition{Field: w.field, Viewer: w.viewer})
			continue
		}
		f := p.schema.Entity(decl.rule.Entity).Field(w.field)
		value, reason := f.Canonical(w.value)
		if w.env {
			value, reason = f.ParseText(schema.Unquote(w.value))
		}
		if reason != "" {
			p.add(p.m.place(append(decl.path, "where", w.field)...), "sharing rule: field %s: %s", f.Name, reason)
			continue
		}
		list = append(list, access.Condition{Field: w.field, Value: value})
	}
	return list
}

// checkRules finds stored rules, which the manifest does not name, that its
// changes would leave dangling.
func checkRules(p *plan) {
	p.warnOfAddresses()
	for _, id := range sortedKeys(p.after.rules) {
		r := p.after.rules[id]
		if p.before.rules[id] == nil {
			continue
		}
		entity := p.schema.Entity(r.Entity)
		if entity == nil {
			p.add(p.m.place("entities"), "entity %s %s: sharing rule %s needs it", r.Entity, p.cannotGo(r.Entity, ""), ruleName(r))
			continue
		}
		if entity.ControlledBy != "" {
			p.add(p.m.place("entities", r.Entity), "sharing rule %s must go: %s", ruleName(r), controlledText(entity))
		}
		for _, role := range []string{r.OwnedByRole, r.ShareWithRole} {
			if _, ok := p.after.roles[role]; !ok && role != "" {
				p.add(p.m.place("roles"), "role %s cannot be removed: sharing rule %s needs it", role, ruleName(r))
			}
		}
		for _, c := range r.Where {
			f := entity.Comparand(c.Field)
			if f == nil {
				p.add(p.m.place("entities", r.Entity), "field %s of %s %s: sharing rule %s needs it",
					c.Field, r.Entity, p.cannotGo(r.Entity, c.Field), ruleName(r))
			} else if c.Viewer != "" {
				p.checkViewed(r, c, f)
			} else if value, reason := f.Canonical(c.Value); reason != "" || !f.Scalar() || string(value) != string(c.Value) {
				p.add(p.m.place("entities", r.Entity, "field", c.Field), "field %s of %s cannot be changed so: sharing rule %s needs its value",
					c.Field, r.Entity, ruleName(r))
			}
		}
	}
}

// ruleName is a sharing rule in a few words.
func ruleName(r *access.SharingRule) string {
	with := r.ShareWithRole
	switch r.ShareWith {
	case access.InternalUsers, access.ExternalUsers:
		with = string(r.ShareWith) + " users"
	case access.Everyone:
		with = "everyone"
	}
	if r.OwnedByRole != "" {
		return fmt.Sprintf("%s owned by %s → %s", r.Entity, r.OwnedByRole, with)
	}
	var where []string
	for _, c := range r.Where {
		where = append(where, c.Field+"="+conditionOf(c).Text)
	}
	return fmt.Sprintf("%s where %s → %s", r.Entity, strings.Join(where, ", "), with)
}

func exportRules(s *state) []pair {
	rules := make([]*access.SharingRule, 0, len(s.rules))
	for _, r := range s.rules {
		rules = append(rules, r)
	}
	slices.SortFunc(rules, func(a, b *access.SharingRule) int { return strings.Compare(ruleName(a)+a.ID(), ruleName(b)+b.ID()) })
	var list []*Value
	for _, r := range rules {
		list = append(list, ruleKind.tell(s, r.ID()))
	}
	return []pair{{"sharing_rules", rows(list)}}
}

var ruleKind = kind{
	name: kindRule, section: "sharing_rules",
	changing: []string{access.ManagePermissions}, reading: []string{access.ManagePermissions, access.ManageEntities},
	keys:  keysOf(func(s *state) map[string]*access.SharingRule { return s.rules }),
	title: func(s *state, id string) string { return ruleName(s.rules[id]) },
	view:  func(s, _ *state, id string) any { return ruleTable.view(s.rules[id], nil) },
	tell:  func(s *state, id string) *Value { return flow(ruleTable.export(s.rules[id], asIs)...) },
	write: writeRule,
}

func writeRule(w *writer, c change) error {
	if c.after == nil {
		return access.DeleteRule(w.ctx, w.tx, c.key)
	}
	return access.PutRule(w.ctx, w.tx, w.p.after.rules[c.key])
}
