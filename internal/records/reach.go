package records

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/schema"
	"gatehouse/internal/user"
)

// A value of a field that lists are filtered by has one index row for viewers
// who see all records, and one for each way in which the record can be reached.
// A filtered list is then a union of index ranges like an unfiltered one, and
// reads no hidden match. The column reach names the way:

// everybody is the reach of the row that every keyed value has.
const everybody = ""

func wayOfOwner(owner user.ID) string    { return "o:" + string(owner) }
func wayOfRole(role string) string       { return "r:" + role }
func wayOfShare(principal string) string { return "s:" + principal }
func wayOfRule(rule string) string       { return "m:" + rule }

// ways lists the ways of a scope that does not see everything.
func ways(scope *access.Scope) []string {
	list := make([]string, 0, armCount(scope))
	list = append(list, wayOfOwner(scope.Owner))
	list = appendWays(list, wayOfRole, scope.OwnerRoles)
	list = appendWays(list, wayOfShare, scope.SharedTo)
	return appendWays(list, wayOfRule, scope.Rules)
}

func appendWays(dst []string, way func(string) string, names []string) []string {
	for _, name := range names {
		dst = append(dst, way(name))
	}
	return dst
}

// ranged reports whether a field's values have a row for each way. A unique
// value has at most one match, whose visibility is checked as a condition.
func ranged(f *schema.Field) bool { return f.Indexed && !f.Unique }

func hasRanged(e *schema.Entity) bool { return slices.ContainsFunc(e.Fields, ranged) }

// standing is everything that the index rows of a record are derived from. The
// zero standing is that of a record that does not exist.
type standing struct {
	values    []jsontext.Value // by schema.Field.Index
	data      jsontext.Value   // all of it, including fields that were removed
	owner     user.ID
	ownerRole string
	shares    []string // the principals it is shared with
	rules     []string // the names of the sharing rules by field value that match
}

func (st *standing) ways() []string {
	list := make([]string, 0, 2+len(st.shares)+len(st.rules))
	list = append(list, wayOfOwner(st.owner))
	if st.ownerRole != "" {
		list = append(list, wayOfRole(st.ownerRole))
	}
	list = appendWays(list, wayOfShare, st.shares)
	return appendWays(list, wayOfRule, st.rules)
}

// entry is one index row of a record; field is the stored name.
type entry struct {
	field, value, reach string
	unique              bool
}

// entries returns all index rows of a record. It is the only place that derives
// them.
func (st *standing) entries(e *schema.Entity) []entry {
	if st.values == nil {
		return nil
	}
	var list []entry
	var at []string
	for i, f := range e.Fields {
		key, ok := indexKey(f, st.values[i])
		if !ok {
			continue
		}
		list = append(list, entry{f.StoredAs(), key, everybody, f.Unique})
		if ranged(f) {
			if at == nil {
				at = st.ways()
			}
			list = appendEntries(list, f.StoredAs(), key, at)
		}
	}
	return list
}

func appendEntries(dst []entry, name, key string, ways []string) []entry {
	for _, way := range ways {
		dst = append(dst, entry{name, key, way, false})
	}
	return dst
}

// wayEntries returns the index rows of some ways only, for a change that
// affects no others. filter, if not nil, selects the fields.
func wayEntries(e *schema.Entity, values []jsontext.Value, ways []string, filter func(*schema.Field) bool) []entry {
	var list []entry
	for i, f := range e.Fields {
		if !ranged(f) || filter != nil && !filter(f) {
			continue
		}
		if key, ok := indexKey(f, values[i]); ok {
			list = appendEntries(list, f.StoredAs(), key, ways)
		}
	}
	return list
}

// minus returns what is in list and not in other.
func minus(list, other []entry) []entry {
	if len(list) == 0 || len(other) == 0 {
		return list
	}
	has := make(map[entry]bool, len(other))
	for _, en := range other {
		has[en] = true
	}
	var rest []entry
	for _, en := range list {
		if !has[en] {
			rest = append(rest, en)
		}
	}
	return rest
}

// holding returns the stored names of the rules that match a record's values.
func holding(e *schema.Entity, rules []*access.SharingRule, values []jsontext.Value) []string {
	var ids []string
	for _, rule := range rules {
		if values != nil && matches(e, rule, values) {
			ids = append(ids, rule.StoredAs())
		}
	}
	return ids
}
