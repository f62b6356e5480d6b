package manifest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"

	"gatehouse/internal/access"
	"gatehouse/internal/schema"
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
}

func (d *decoder) rules(m *manifest, key string, n *yaml.Node) {
	d.list(n, "a list of sharing rules", func(i int, item *yaml.Node) {
		decl, before := &ruleDecl{path: []string{key, strconv.Itoa(i)}}, len(d.List)
		r := &decl.rule
		place := func(name string, p *string) func(*yaml.Node) {
			return func(v *yaml.Node) {
				m.mark(v, key, strconv.Itoa(i), name)
				d.to(p)(v)
			}
		}
		m.mark(item, decl.path...)
		given := d.object(item, "a sharing rule",
			member{"entity", place("entity", &r.Entity)},
			member{"owned_by_role", place("owned_by_role", &r.OwnedByRole)},
			member{"where", func(v *yaml.Node) { decl.where = d.where(m, v, decl.path) }},
			member{"share_with_role", place("share_with_role", &r.ShareWithRole)},
			member{"access", func(v *yaml.Node) {
				if s, ok := d.oneOf(v, string(access.ReadOnly), string(access.Edit)); ok {
					r.Access = access.Level(s)
				}
			}})
		if len(d.List) == before {
			for _, name := range []string{"entity", "share_with_role", "access"} {
				if !given[name] {
					d.fail(item, "a sharing rule needs %s", name)
				}
			}
			if given["owned_by_role"] == given["where"] {
				d.fail(item, "a sharing rule needs exactly one of owned_by_role and where")
			}
		}
		decl.bad = len(d.List) > before
		m.rules = append(m.rules, decl)
	})
}

func (d *decoder) where(m *manifest, n *yaml.Node, path []string) []whereDecl {
	var list []whereDecl
	d.mapping(n, "where", func(k, v *yaml.Node) {
		m.mark(k, append(slices.Clone(path), "where", k.Value)...)
		s, ok := d.scalar(v, "a value to compare the field with")
		if !ok {
			return
		}
		var value any = s.text
		if s.tag == "!!int" || s.tag == "!!float" || s.tag == "!!bool" {
			value = nil
			if err := v.Decode(&value); err != nil {
				d.bad(v, "expected a value to compare the field with")
				return
			}
		}
		b, err := json.Marshal(value)
		if err != nil {
			d.bad(v, "expected a finite number to compare the field with")
			return
		}
		list = append(list, whereDecl{field: k.Value, value: b, env: s.env})
	})
	if n.Kind == yaml.MappingNode && len(n.Content) == 0 {
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
			p.add(p.m.line(decl.path...), "the sharing rule is declared twice, first on line %d", p.m.line(first.path...))
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
	if p.prunes("sharing_rules") {
		for id := range p.before.rules {
			if named[id] == nil {
				delete(p.after.rules, id)
			}
		}
	}
}

// checkRuleDecl finds the dangling names of a rule of the manifest.
func (p *plan) checkRuleDecl(decl *ruleDecl) bool {
	r, before := &decl.rule, len(p.List)
	entity := p.schema.Entity(r.Entity)
	if entity == nil {
		p.add(p.m.line(append(decl.path, "entity")...), "sharing rule: there is no entity %s", show(r.Entity))
	}
	for _, role := range []struct{ key, name string }{{"owned_by_role", r.OwnedByRole}, {"share_with_role", r.ShareWithRole}} {
		if role.name == "" && role.key == "owned_by_role" && decl.where != nil {
			continue
		}
		if _, ok := p.after.roles[role.name]; !ok {
			p.add(p.m.line(append(decl.path, role.key)...), "sharing rule: %s: there is no role %s", role.key, show(role.name))
		}
	}
	for _, w := range decl.where {
		if entity == nil {
			break
		}
		if f := entity.Field(w.field); f == nil {
			p.add(p.m.line(append(decl.path, "where", w.field)...), "sharing rule: entity %s has no field %s", entity.Name, show(w.field))
		} else if !f.Scalar() {
			p.add(p.m.line(append(decl.path, "where", w.field)...),
				"sharing rule: field %s is a %s, which cannot be compared", f.Name, f.Type)
		}
	}
	return len(p.List) == before
}

// conditions brings the values of a rule into their canonical form.
func (p *plan) conditions(decl *ruleDecl) []access.Condition {
	var list []access.Condition
	for _, w := range decl.where {
		f := p.schema.Entity(decl.rule.Entity).Field(w.field)
		value, reason := f.Canonical(w.value)
		if w.env {
			value, reason = f.ParseText(schema.Unquote(w.value))
		}
		if reason != "" {
			p.add(p.m.line(append(decl.path, "where", w.field)...), "sharing rule: field %s: %s", f.Name, reason)
			continue
		}
		list = append(list, access.Condition{Field: w.field, Value: value})
	}
	return list
}

// checkRules finds stored rules, which the manifest does not name, that its
// changes would leave dangling.
func checkRules(p *plan) {
	for _, id := range sortedKeys(p.after.rules) {
		r := p.after.rules[id]
		if p.before.rules[id] == nil {
			continue
		}
		entity := p.schema.Entity(r.Entity)
		if entity == nil {
			p.add(p.m.line("entities"), "entity %s %s: sharing rule %s needs it", r.Entity, p.cannotGo(r.Entity, ""), ruleName(r))
			continue
		}
		for _, role := range []string{r.OwnedByRole, r.ShareWithRole} {
			if _, ok := p.after.roles[role]; !ok && role != "" {
				p.add(p.m.line("roles"), "role %s cannot be removed: sharing rule %s needs it", role, ruleName(r))
			}
		}
		for _, c := range r.Where {
			f := entity.Field(c.Field)
			if f == nil {
				p.add(p.m.line("entities", r.Entity), "field %s of %s %s: sharing rule %s needs it",
					c.Field, r.Entity, p.cannotGo(r.Entity, c.Field), ruleName(r))
			} else if value, reason := f.Canonical(c.Value); reason != "" || !f.Scalar() || string(value) != string(c.Value) {
				p.add(p.m.line("entities", r.Entity, "field", c.Field), "field %s of %s cannot be changed so: sharing rule %s needs its value",
					c.Field, r.Entity, ruleName(r))
			}
		}
	}
}

// ruleName is a sharing rule in a few words.
func ruleName(r *access.SharingRule) string {
	if r.OwnedByRole != "" {
		return fmt.Sprintf("%s owned by %s → %s", r.Entity, r.OwnedByRole, r.ShareWithRole)
	}
	var where []string
	for _, c := range r.Where {
		where = append(where, c.Field+"="+schema.Unquote(c.Value))
	}
	return fmt.Sprintf("%s where %s → %s", r.Entity, strings.Join(where, ", "), r.ShareWithRole)
}

// ruleView is a sharing rule in the change history, in the manifest's words.
type ruleView struct {
	Entity        string                     `json:"entity"`
	OwnedByRole   string                     `json:"owned_by_role,omitempty"`
	Where         map[string]json.RawMessage `json:"where,omitempty"`
	ShareWithRole string                     `json:"share_with_role"`
	Access        string                     `json:"access"`
}

func viewRule(r *access.SharingRule) any {
	if r == nil {
		return nil
	}
	v := ruleView{Entity: r.Entity, OwnedByRole: r.OwnedByRole, ShareWithRole: r.ShareWithRole, Access: string(r.Access)}
	for _, c := range r.Where {
		if v.Where == nil {
			v.Where = map[string]json.RawMessage{}
		}
		v.Where[c.Field] = json.RawMessage(c.Value)
	}
	return v
}

func exportRules(s *state) []pair {
	rules := make([]*access.SharingRule, 0, len(s.rules))
	for _, r := range s.rules {
		rules = append(rules, r)
	}
	slices.SortFunc(rules, func(a, b *access.SharingRule) int { return strings.Compare(ruleName(a)+a.ID(), ruleName(b)+b.ID()) })
	var list []*yaml.Node
	for _, r := range rules {
		pairs := []pair{{"entity", str(r.Entity)}}
		if r.OwnedByRole != "" {
			pairs = append(pairs, pair{"owned_by_role", str(r.OwnedByRole)})
		} else {
			var where []pair
			for _, c := range r.Where {
				where = append(where, pair{c.Field, jsonScalar(c.Value)})
			}
			pairs = append(pairs, pair{"where", flow(where...)})
		}
		pairs = append(pairs, pair{"share_with_role", str(r.ShareWithRole)}, pair{"access", str(string(r.Access))})
		list = append(list, flow(pairs...))
	}
	return []pair{{"sharing_rules", rows(list)}}
}
