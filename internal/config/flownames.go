package config

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/automation"
	"gatehouse/internal/custom"
	"gatehouse/internal/inputs"
	"gatehouse/internal/records"
	"gatehouse/internal/schema"
)

// flowNames says which names of a schema flows may use. What flows write is checked by
// the functions of package records that refuse it in a run.
type flowNames struct{ *schema.Schema }

// FlowNames returns the names that a flow may use (contract F7): what the schema
// has, and the components that component returns, nil for one that there is not.
func FlowNames(sc *schema.Schema, component func(name string) *custom.Component) automation.Names {
	n := flowNames{sc}
	return automation.Names{
		Entity: func(entity string) bool { return n.entity(entity) != nil },
		Field:  n.settable, Filter: n.filterable, Unique: n.unique,
		Required: n.required, Value: n.value, Where: n.where, Sort: n.sort, Search: n.search,
		TakesList: func(operator string) bool { return schema.Operator(operator).TakesList() },
		Member:    n.member, Members: n.members,
		Component: func(name string) bool { return component(name) != nil },
		Inputs: func(name string) []inputs.Declaration {
			if c := component(name); c != nil {
				return c.Inputs
			}
			return nil
		},
	}
}

// entity returns an entity type, user included, or nil.
func (n flowNames) entity(name string) *schema.Entity {
	if name == schema.UserEntity {
		return n.User
	}
	return n.Entity(name)
}

// field returns a declared field, or nil.
func (n flowNames) field(entity, name string) *schema.Field {
	if e := n.entity(entity); e != nil {
		return e.Field(name)
	}
	return nil
}

func (n flowNames) settable(entity, name string) bool {
	if n.field(entity, name) != nil {
		return true
	}
	if entity == schema.UserEntity {
		return name == "name" || name == "locale"
	}
	return name == "owner_id"
}

func (n flowNames) filterable(entity, name string) bool {
	if entity == schema.UserEntity {
		return name == "email"
	}
	f := n.field(entity, name)
	return f != nil && f.Filterable() && f.Scalar()
}

func (n flowNames) unique(entity, name string) bool {
	f := n.field(entity, name)
	return f != nil && f.Unique
}

func (n flowNames) required(entity string) (names []string) {
	for _, f := range n.entity(entity).Fields {
		if f.Required {
			names = append(names, f.Name)
		}
	}
	return names
}

func (n flowNames) value(entity, field string, v jsontext.Value) string {
	return records.CheckValue(n.entity(entity), records.Member{Name: field, Value: v})
}

func (n flowNames) where(entity string, c automation.Condition) string {
	f := records.Filter{Field: c.Field, Op: schema.Operator(c.Operator)}
	for _, v := range c.Operands {
		f.List = append(f.List, schema.Unquote(v))
	}
	if !f.Op.TakesList() && c.Known {
		f.Value, f.List = f.List[0], nil
	}
	return records.CheckFilter(n.entity(entity), f, c.Known)
}

func (n flowNames) sort(entity, text string) string {
	by, ok := records.ParseSort(strings.Split(text, ","))
	if !ok {
		return records.SortExpected
	}
	reason := records.CheckSort(n.entity(entity), by)
	if reason == "" || strings.Contains(reason, "expected") {
		return reason
	}
	return reason + ": expected " + orList(n.sortable(entity))
}

// sortable returns what lists are sorted by, for a message.
func (n flowNames) sortable(entity string) (names []string) {
	for _, f := range n.entity(entity).Fields {
		if f.Sortable() && len(names) < 20 {
			names = append(names, f.Name)
		}
	}
	return append(names, "created_at", "updated_at")
}

func (n flowNames) search(entity, words string) string {
	return records.CheckSearch(n.entity(entity), words)
}

func (n flowNames) member(entity, name string) (automation.Holds, bool) {
	f := n.field(entity, name)
	switch {
	case f == nil:
		return automation.HoldsOne, slices.Contains(fixedMembers(entity), name)
	case f.Scalar():
		return automation.HoldsOne, true
	case f.Type == schema.JSON:
		return automation.HoldsAnything, true
	}
	return automation.HoldsList, true
}

func (n flowNames) members(entity string) []string {
	names := slices.Clone(fixedMembers(entity))
	for _, f := range n.entity(entity).Fields {
		names = append(names, f.Name)
	}
	return names
}

// fixedMembers are the members that records have beside their fields (contract R2, U3).
func fixedMembers(entity string) []string {
	if entity == schema.UserEntity {
		return slices.Concat([]string{"id"}, access.UserColumns, []string{"created_at", "updated_at"})
	}
	return []string{"id", "owner_id", "created_at", "updated_at"}
}
