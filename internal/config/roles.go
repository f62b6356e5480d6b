package config

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"gatehouse/internal/access"
)

// checkName is what roles and permission sets may be called: anything a person
// would write on one line.
func checkName(name string) error {
	if utf8.RuneCountInString(name) > 63 || strings.TrimSpace(name) != name ||
		strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fmt.Errorf("name %s: expected at most 63 printable characters, without spaces around them", show(name))
	}
	return nil
}

var roleTable = table[access.Role]{
	text("name", func(r *access.Role) *string { return &r.Name }).when(inExport).needed("at most 63 printable characters"),
	text("parent", func(r *access.Role) *string { return &r.Parent }).when(notEmpty).says("the role above, whose users see what users of this one own"),
}

func (d *decoder) roles(m *Spec, key string, n *Value) {
	d.list(n, "a list of roles", func(_ int, item *Value) {
		var r access.Role
		given := roleTable.read(d, item, "a role", &r)
		if !d.named(item, "a role", given, r.Name) || !d.nameable(m, item, subject{key, r.Name, "role"}) {
			return
		}
		if parent := given["parent"]; parent != nil {
			m.mark(parent, key, r.Name, "parent")
		}
		m.roles = append(m.roles, r)
	})
}

// nameable checks the name of a role or permission set, and marks its place.
func (d *decoder) nameable(m *Spec, n *Value, o subject) bool {
	if err := checkName(o.name); err != nil {
		d.fail(n, "%s %s", o.what, err)
		return false
	}
	return d.once(m, n, o)
}

func mergeRoles(p *plan) {
	for _, r := range p.m.roles {
		p.after.roles[r.Name] = r
	}
	drop(p, "roles", p.before.roles, p.after.roles)
}

func checkRoles(p *plan) {
	whole := true
	for _, name := range sortedKeys(p.after.roles) {
		parent := p.after.roles[name].Parent
		if _, ok := p.after.roles[parent]; ok || parent == "" {
			continue
		}
		whole = false
		if p.m.names("roles", name) {
			p.add(p.m.place("roles", name, "parent"), "role %s: there is no role %s to be its parent", name, show(parent))
		} else {
			p.add(p.m.place("roles"), "role %s cannot be removed: it is the parent of role %s", parent, name)
		}
	}
	for _, name := range sortedKeys(p.after.roles) {
		steps := 0
		for at := p.after.roles[name].Parent; whole && at != ""; at = p.after.roles[at].Parent {
			if at == name {
				p.add(p.m.place("roles", name, "parent"), "role %s is its own ancestor", name)
				break
			}
			if steps++; steps > len(p.after.roles) {
				break // below a cycle, not in it
			}
		}
	}
	p.checkHolders("roles", "role", p.holders.roles)
}

var roleKind = kind{
	name: kindRole, section: "roles", id: "name",
	changing: []string{access.ManagePermissions}, reading: AdminPermissions,
	keys: keysOf(func(s *state) map[string]access.Role { return s.roles }),
	view: func(s, _ *state, key string) any {
		if r, ok := s.roles[key]; ok {
			return roleTable.view(&r, nil)
		}
		return nil
	},
	tell: func(s *state, key string) *Value {
		r := s.roles[key]
		return flow(roleTable.export(&r, asIs)...)
	},
	write: writeRole,
}

func writeRole(w *writer, c change) error {
	if c.after == nil {
		return access.DeleteRole(w.ctx, w.tx, c.key)
	}
	return access.PutRole(w.ctx, w.tx, w.p.after.roles[c.key])
}

// exportRoles writes the tree from its roots down, siblings by name.
func exportRoles(s *state) []pair {
	children := map[string][]string{}
	for _, name := range sortedKeys(s.roles) {
		parent := s.roles[name].Parent
		children[parent] = append(children[parent], name)
	}
	var list []*Value
	next := slices.Clone(children[""])
	for len(next) > 0 {
		name := next[0]
		next = append(slices.Clone(children[name]), next[1:]...)
		list = append(list, roleKind.tell(s, name))
	}
	return []pair{{"roles", rows(list)}}
}
