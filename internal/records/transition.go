package records

import (
	"reflect"
	"slices"
	"strings"

	"gatehouse/internal/access"
	"gatehouse/internal/schema"
	"gatehouse/internal/user"
)

// Transition is what a change of configuration means for records. It keeps
// data: the values of a removed field remain in its records and are visible
// again when the field is restored (contract D6). A change that stored data
// does not permit returns CONFLICT, which says how many records conflict with
// it (details: entity, field, records).
type Transition struct {
	Before, After *access.Config
	Roles         []RoleChange
	// Inline is how many records may be visited in the transaction that makes
	// the change. A change that visits more must be prepared first (Prepare).
	Inline int
}

// RoleChange is a user whose role changes.
type RoleChange struct {
	User     user.ID
	From, To string
}

// work returns what must be done to records, without the names of the rows.
func (t *Transition) work() *access.Work {
	w := &access.Work{}
	for _, e := range t.After.Schema.Entities {
		if s := t.shape(e); s != nil {
			w.Shapes = append(w.Shapes, s)
		}
		if links := t.After.Schema.Chain(e); len(links) > 0 && !slices.Equal(links, t.linksBefore(e)) {
			w.Lineages = append(w.Lineages, &access.Lineage{Entity: e.StoredAs(), Links: links})
		}
	}
	moves := map[[2]string]*access.Move{}
	for _, r := range t.Roles {
		at := [2]string{r.From, r.To}
		if r.From == r.To {
			continue
		}
		if moves[at] == nil {
			moves[at] = &access.Move{From: r.From, To: r.To}
			w.Moves = append(w.Moves, moves[at])
		}
		moves[at].Users = append(moves[at].Users, r.User)
	}
	for _, m := range w.Moves {
		slices.Sort(m.Users)
	}
	slices.SortFunc(w.Moves, func(a, b *access.Move) int { return strings.Compare(a.From+"\x00"+a.To, b.From+"\x00"+b.To) })
	if len(w.Moves) > 0 {
		for _, e := range t.Before.Schema.Entities {
			w.Entities = append(w.Entities, e.StoredAs())
		}
	}
	return w
}

// shape returns the work on one entity type, nil for none. A field that is new
// may have stored values from before it was removed.
func (t *Transition) shape(e *schema.Entity) *access.Shape {
	s := &access.Shape{Entity: &schema.Entity{Name: e.Name, Stored: e.Stored, Fields: e.Fields, ControlledBy: e.ControlledBy}}
	s.Entity.Index()
	before := t.Before.Schema.StoredAs(e.StoredAs())
	was, is := t.controlled(before), t.controlled(e)
	for _, f := range e.Fields {
		var old *schema.Field
		if before != nil {
			old = before.OfMember(f.MemberName())
		}
		x := &access.Index{Field: f.Name, Back: old == nil}
		x.Check = old == nil || old.Type != f.Type || old.TargetAs() != f.TargetAs() || !reflect.DeepEqual(old.Options, f.Options)
		x.Needed = is != "" && is != was && f == e.Controller()
		x.Check = x.Check || x.Needed
		x.Rows = f.Keyed() && (x.Check || !old.Keyed() || old.Unique != f.Unique || ranged(old) != ranged(f) || ranged(f) && is != was)
		x.Rows = x.Rows || f.Searchable && (x.Check || !old.Searchable || is != was)
		if x.Check || x.Rows {
			s.Fields = append(s.Fields, x)
		}
	}
	had, fresh := ruleIDs(t.Before, e.Name), false
	for _, r := range valueRules(t.After, e.Name) {
		s.Rules = append(s.Rules, &access.ShapeRule{Rule: r, New: !had[r.ID()]})
		fresh = fresh || !had[r.ID()]
	}
	if len(s.Fields) == 0 && !fresh {
		return nil
	}
	return s
}

// controlled returns what controls an entity type, "" for nothing: the member
// that refers to the parent, and the parent's type.
func (t *Transition) controlled(e *schema.Entity) string {
	if e == nil || e.Controller() == nil {
		return ""
	}
	return e.Controller().MemberName() + "=" + e.Controller().TargetAs()
}

// linksBefore returns the ancestors of an entity type before the change.
func (t *Transition) linksBefore(e *schema.Entity) []schema.Link {
	if before := t.Before.Schema.StoredAs(e.StoredAs()); before != nil {
		return t.Before.Schema.Chain(before)
	}
	return nil
}

// writing returns the configuration that writers have while the work is made
// ready.
func (t *Transition) writing(w *access.Work) *access.Config {
	return &access.Config{
		Tenant: t.Before.Tenant, Schema: t.Before.Schema, Roles: t.Before.Roles, Rules: t.Before.Rules, Build: &access.Build{Work: w},
	}
}

func ruleIDs(c *access.Config, entity string) map[string]bool {
	ids := map[string]bool{}
	for _, r := range valueRules(c, entity) {
		ids[r.ID()] = true
	}
	return ids
}
