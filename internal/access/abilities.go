package access

import (
	"cmp"
	"maps"
	"slices"

	"gatehouse/internal/schema"
)

// Abilities is what the viewer may do as CASL raw rules, sorted (contract U2).
func (w Viewer) Abilities() []Ability {
	if w.v == nil {
		return []Ability{}
	}
	if w.v.owner {
		return []Ability{{Action: "manage", Subject: "all"}}
	}
	list := []Ability{}
	for _, name := range slices.Sorted(maps.Keys(w.v.entities)) {
		r := w.v.entities[name]
		for verb := Create; verb <= Delete; verb++ {
			if r.May(verb) && !(name == schema.UserEntity && (verb == Create || verb == Delete)) {
				list = append(list, Ability{Action: verb.String(), Subject: name, Fields: r.fieldsOf(verb)})
			}
		}
	}
	for _, p := range w.v.system {
		list = append(list, Ability{Action: p, Subject: "system"})
	}
	slices.SortFunc(list, compareAbilities)
	return list
}

// Ability is one CASL raw rule. Fields is set only if it leaves out some
// fields.
type Ability struct {
	Action  string   `json:"action"`
	Subject string   `json:"subject"`
	Fields  []string `json:"fields,omitempty"`
}

// fieldsOf returns the names of the fields that a verb reaches, or nil when it
// reaches all of them.
func (r *EntityRights) fieldsOf(v Verb) []string {
	mask := r.EditField
	switch v {
	case Delete:
		return nil
	case Read:
		mask = r.ReadField
	}
	names := r.columnsOf(v)
	all := len(mask)
	if r.Entity.Name == schema.UserEntity {
		all += len(UserColumns)
	}
	for i, f := range r.Entity.Fields {
		if mask[i] {
			names = append(names, f.Name)
		}
	}
	if len(names) == all {
		return nil
	}
	if names == nil {
		return []string{"id"} // CASL refuses an empty list; only the id remains
	}
	slices.Sort(names)
	return names
}

// columnsOf returns the names of the built-in members of 'user' that a verb
// reaches: for an update, at most name and locale (contract U5).
func (r *EntityRights) columnsOf(v Verb) []string {
	var names []string
	if r.Entity.Name != schema.UserEntity {
		return nil
	}
	for _, c := range UserColumns {
		g := r.Column(c)
		if v == Read && g.Read || v == Update && g.Edit && (c == "name" || c == "locale") {
			names = append(names, c)
		}
	}
	return names
}

func compareAbilities(a, b Ability) int {
	return cmp.Or(cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.Action, b.Action))
}
