package records

import (
	"cmp"
	"errors"
	"slices"

	"gatehouse/internal/access"
	"gatehouse/internal/fault"
	"gatehouse/internal/schema"
)

// The checks here are of the parts of a call that are written down before it is made,
// as in a flow. Each returns the reason why the call is refused for every viewer, by the
// function that refuses it, and "" if it may be accepted.

// everything returns rights on all fields of an entity type, for a check without a viewer.
func everything(e *schema.Entity) *access.EntityRights {
	all := slices.Repeat([]bool{true}, len(e.Fields))
	return &access.EntityRights{Entity: e, ReadField: all, EditField: all}
}

// CheckFilter checks a condition of a list, without operands (known is false) its
// operator alone. It does not check whether an index answers the condition.
func CheckFilter(e *schema.Entity, f Filter, known bool) (reason string) {
	if e.Name == schema.UserEntity {
		_, _, err := emailFilter(everything(e), &Query{Filter: []Filter{f}})
		return reasonOf(err, f.Field)
	}
	m := planner{r: everything(e), bad: map[string]string{}}
	if of := e.Field(f.Field); of != nil && !known {
		return of.CheckOperator(cmp.Or(f.Op, schema.OpEq))
	}
	m.conditions([]Filter{f})
	return m.bad[f.Field]
}

// CheckSort checks the order of a list.
func CheckSort(e *schema.Entity, by []Sort) (reason string) {
	if e.Name == schema.UserEntity {
		return reasonOf(unsortedUsers(by), "sort")
	}
	m := planner{r: everything(e), bad: map[string]string{}}
	m.order(by)
	return m.bad["sort"]
}

// CheckSearch checks the words of a list's search. "" stands for words that are not
// known yet.
func CheckSearch(e *schema.Entity, words string) (reason string) {
	if e.Name == schema.UserEntity {
		return reasonOf(unsearchedUsers("x"), "search")
	}
	m := planner{r: everything(e), bad: map[string]string{}}
	if words == "" {
		_, reason = m.searched()
		return reason
	}
	m.search(words)
	return m.bad["search"]
}

// CheckValue checks a value that a body gives to a field.
func CheckValue(e *schema.Entity, m Member) (reason string) {
	if e.Name == schema.UserEntity && e.Field(m.Name) == nil {
		return ""
	}
	return checkFields(everything(e), []Member{m}).reasons[m.Name]
}

// reasonOf returns the reason that a VALIDATION has for a field.
func reasonOf(err error, field string) string {
	var f *fault.Error
	if !errors.As(err, &f) {
		return ""
	}
	reasons, _ := f.Details["fields"].(map[string]string)
	return reasons[field]
}
