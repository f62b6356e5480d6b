package records

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/fault"
	"gatehouse/internal/schema"
)

// Bounds of what one query may ask for (contract P7).
const (
	maxFilters  = 30
	maxOperands = 100
	maxGroups   = 10
)

// plan is a checked Query: what an index answers, and what is asked of each row
// that it gives.
type plan struct {
	entity *schema.Entity
	// filters are looked up: the first one, which is on a unique field or has one key
	// if there is such a one, drives the list. The others are on fields and have one
	// key each; they are looked up for each row of its range.
	filters []filter
	// after and before are instants between which the records were created, in
	// microseconds; 0 is no bound.
	after, before int64
	tests         []test
	// given are the conditions that the filters and instants answer.
	given []rowCondition
	// ranges are parts of the indexes of fields, in each of which everything that is selected
	// lies. None is of the field that the order begins with.
	ranges []*fieldSpan
	// terms are the parts of the index of words that a search means, in one of which
	// everything that is selected lies; none where a filter is all of the search.
	terms []*fieldSpan
	// order is nil for newest first.
	order *order
}

// fieldSpan is a range of an index in which records have rows for each way: of that of
// a field, or of the words of some.
type fieldSpan struct {
	field *schema.Field // nil for words
	names []string      // of the index rows
	schema.Span
}

// narrowed reports whether an index leaves a part of the records.
func (p *plan) narrowed() bool { return len(p.filters) > 0 || p.after != 0 || p.before != 0 }

// leaves reports whether conditions beside the order leave a part of the records, of which
// an index has the places.
func (p *plan) leaves() bool {
	byFilter := p.narrowed() && len(p.order.keys) > 0 // the index of a filter is by creation
	return byFilter || len(p.terms) > 0 || len(p.ranges) > 0
}

// tested returns a plan that asks everything of each row.
func (p *plan) tested() *plan {
	all := &plan{entity: p.entity, tests: slices.Clone(p.tests), order: p.order, ranges: p.ranges, terms: p.terms}
	for _, c := range p.given {
		all.tests = append(all.tests, test{{c}})
	}
	return all
}

// filter is a lookup by the keys of a field. The field is that of index rows, or
// byID or byOwner.
type filter struct {
	field  string
	keys   []string
	unique bool // at most one record has each key
	// or are further fields, of which any may have the key. Only the first filter has
	// such.
	or    []string
	words bool // the fields are words
}

// fields returns the names of the fields of which one has the key.
func (f *filter) fields() []string { return append([]string{f.field}, f.or...) }

// byID and byOwner are no names of fields: filters by columns of the record.
const (
	byID    = "\x00id"
	byOwner = "\x00owner"
)

// ofColumn reports whether the filter is by a column of the record, and no index row.
func (f *filter) ofColumn() bool { return f.field == byID || f.field == byOwner }

// test is asked of a row: that all conditions of at least one group hold.
type test [][]rowCondition

// rowCondition is a condition on a field, or on a column of the record, or a part of a
// search.
type rowCondition struct {
	*schema.Condition // nil for a search
	search            schema.Search
	among             []*schema.Field // that are searched
	name              string
	field             *schema.Field // nil for a column
	// indexed says that an index could answer the condition.
	indexed bool
}

// columns are what every record has beside its fields.
var columns = map[string]*schema.Field{
	"id":         {Name: "id", Type: schema.Reference, Unique: true},
	"owner_id":   {Name: "owner_id", Type: schema.Reference, Indexed: true},
	"created_at": {Name: "created_at", Type: schema.Datetime, Indexed: true},
	"updated_at": {Name: "updated_at", Type: schema.Datetime},
}

// makePlan checks a query. It returns VALIDATION where the query names what the
// viewer may not read, an operator that does not fit, or more than its bounds; and
// where it names a field that is not indexed and none that is.
func makePlan(r *access.EntityRights, q *Query) (*plan, error) {
	if len(q.Filter) == 0 && len(q.Or) == 0 && len(q.Sort) == 0 && q.Search == "" {
		return &plan{entity: r.Entity}, nil
	}
	count := len(q.Filter)
	for _, group := range q.Or {
		if count += len(group); len(group) == 0 {
			return nil, fault.New(fault.Validation, "expected at least one condition in each group")
		}
	}
	if count > maxFilters || len(q.Or) > maxGroups {
		return nil, fault.New(fault.Validation, "expected at most %d conditions, in at most %d groups", maxFilters, maxGroups)
	}
	m := planner{r: r, bad: map[string]string{}}
	all := m.conditions(q.Filter)
	var either test
	for _, group := range q.Or {
		either = append(either, m.conditions(group))
	}
	indexed := count == 0 || q.Search != "" || slices.ContainsFunc(all, isIndexed)
	indexed = indexed || len(either) > 0 && !slices.ContainsFunc(either, func(group []rowCondition) bool { return !slices.ContainsFunc(group, isIndexed) })
	if !indexed {
		for _, c := range slices.Concat(append(either, all)...) {
			if !c.indexed && m.bad[c.name] == "" {
				m.bad[c.name] = "is neither indexed nor unique: filter by a field that is as well" + m.indexes()
			}
		}
	}
	if len(m.bad) > 0 {
		return nil, fault.Fields("the filter names a field it cannot use", m.bad)
	}
	by := m.order(q.Sort)
	if len(m.bad) > 0 {
		return nil, fault.Fields("the list cannot be sorted so", m.bad)
	}
	search := m.search(q.Search)
	if len(m.bad) > 0 {
		return nil, fault.Fields("the list cannot be searched so", m.bad)
	}
	return m.plan(all, either, search, by), nil
}

func isIndexed(c rowCondition) bool { return c.indexed }

// planner collects what is wrong with a query.
type planner struct {
	r   *access.EntityRights
	bad map[string]string // reasons by field
}

func (m *planner) conditions(list []Filter) (out []rowCondition) {
	for _, f := range list {
		field := m.r.Entity.Field(f.Field)
		if field != nil && !m.r.ReadField[field.Index] {
			field = nil
		}
		of := cmp.Or(field, columns[f.Field])
		if of == nil {
			m.bad[f.Field] = "unknown field"
			continue
		}
		op, operands := cmp.Or(f.Op, schema.OpEq), f.List
		if !op.TakesList() {
			operands = []string{f.Value}
		}
		if n := len(operands); n == 0 || n > maxOperands {
			m.bad[f.Field] = fmt.Sprintf("expected 1 to %d values", maxOperands)
			continue
		}
		c, reason := of.Condition(op, operands...)
		if reason != "" {
			m.bad[f.Field] = reason
			continue
		}
		out = append(out, rowCondition{Condition: c, name: f.Field, field: field, indexed: of.Filterable()})
	}
	return out
}

// indexes names, for a message, the fields that the viewer can filter by.
func (m *planner) indexes() string {
	var names []string
	for _, f := range m.r.Entity.Fields {
		if f.Filterable() && m.r.ReadField[f.Index] {
			names = append(names, f.Name)
		}
	}
	if len(names) > 5 {
		names = append(names[:5], "…")
	}
	return " (" + strings.Join(append(names, "created_at"), ", ") + ")"
}

// plan divides the conditions, all of which must hold beside one group of either and a
// search, between the index and the tests.
func (m *planner) plan(all []rowCondition, either test, search *rowCondition, by *order) *plan {
	p := &plan{entity: m.r.Entity, order: by}
	found := p.searches(search)
	for _, c := range all {
		p.within(&c)
		if p.created(&c) {
			p.given = append(p.given, c)
			continue
		}
		if l, ok := m.lookup(c); ok {
			found = append(found, l)
		} else {
			p.tests = append(p.tests, test{{c}})
		}
	}
	slices.SortStableFunc(found, func(a, b lookup) int {
		return cmp.Or(cmp.Compare(b.rank(), a.rank()), strings.Compare(a.field, b.field))
	})
	for i, l := range found {
		if i == 0 || len(l.keys) == 1 && l.of.field != nil {
			p.filters = append(p.filters, l.filter)
			p.given = append(p.given, l.of)
		} else {
			p.tests = append(p.tests, test{{l.of}})
		}
	}
	if len(either) > 0 {
		p.tests = append(p.tests, either)
	}
	return p
}

// lookup is a filter and the condition that it answers.
type lookup struct {
	filter
	of rowCondition
}

// rank is greater for what fewer records are likely to match.
func (l *lookup) rank() int {
	switch {
	case l.unique:
		return 3
	case l.of.search != nil:
		return 2
	case len(l.keys) == 1:
		return 1
	}
	return 0
}

// within narrows the span of the order by a condition on its first key, or one of the ranges.
func (p *plan) within(c *rowCondition) {
	if c.field == nil || !ranged(c.field) {
		return
	}
	if o := p.order; o != nil && len(o.keys) > 0 && o.keys[0].field == c.field {
		if of, ok := c.Reach(); ok {
			o.span = o.span.Within(of)
		}
		return
	}
	of, ok := c.Span()
	if !ok {
		return
	}
	for _, r := range p.ranges {
		if r.field == c.field {
			r.Span = r.Within(of)
			return
		}
	}
	p.ranges = append(p.ranges, &fieldSpan{c.field, []string{c.field.StoredAs()}, of})
}

// lookup returns the filter that answers a condition, if there is one.
func (m *planner) lookup(c rowCondition) (lookup, bool) {
	if c.Op == schema.OpIsNull && c.Operand == "true" && c.field != nil && ranged(c.field) {
		return lookup{filter{field: c.field.StoredAs(), keys: []string{schema.Unset}}, c}, true
	}
	if c.Op != schema.OpEq && c.Op != schema.OpIn {
		return lookup{}, false
	}
	scope := m.r.Scope(access.Read)
	switch {
	case c.field != nil && c.field.Filterable():
		if !c.field.Unique && len(c.Keys) > 1 && (scope.ByParent() != nil || len(c.Keys)*max(armCount(scope), 1) > maxArms) {
			return lookup{}, false
		}
		return lookup{filter{field: c.field.StoredAs(), keys: c.Keys, unique: c.field.Unique}, c}, true
	case c.field == nil && c.name == "id":
		return lookup{filter{field: byID, keys: c.Keys, unique: true}, c}, true
	case c.field == nil && c.name == "owner_id" && scope.All && len(c.Keys) == 1:
		return lookup{filter{field: byOwner, keys: c.Keys}, c}, true
	}
	return lookup{}, false
}

// created narrows the instants of creation by a condition. It reports false for
// one that is about something else or names no single range.
func (p *plan) created(c *rowCondition) bool {
	if c.name != "created_at" || c.field != nil {
		return false
	}
	text := c.Operand
	if c.Op == schema.OpEq {
		text = c.Keys[0]
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil { // it has no one operand
		return false
	}
	from, to := at.UnixMicro(), at.UnixMicro() // the first microsecond at or after it, the last at or before
	if at.Nanosecond()%1000 != 0 {
		from++
	}
	switch c.Op {
	case schema.OpGt:
		p.bound(to, math.MaxInt64)
	case schema.OpGte:
		p.bound(from-1, math.MaxInt64)
	case schema.OpLt:
		p.bound(0, from)
	case schema.OpLte:
		p.bound(0, to+1)
	case schema.OpEq:
		p.bound(from-1, to+1)
	default:
		return false
	}
	return true
}

// bound narrows the plan to what was created after one instant and before another.
func (p *plan) bound(after, before int64) {
	p.after = max(p.after, after)
	if before = max(before, 1); before != math.MaxInt64 && (p.before == 0 || before < p.before) {
		p.before = before
	}
}

// narrow returns the part of a window within which the plan selects.
func (p *plan) narrow(w window) window {
	w.after = max(w.after, p.after)
	if p.before != 0 && (w.before == 0 || w.before > p.before) {
		w.before = p.before
	}
	return w
}

// holds reports whether a row passes the tests; values are those of its fields.
func (p *plan) holds(rec *row, values []jsontext.Value) bool {
	for _, t := range p.tests {
		if !slices.ContainsFunc(t, func(group []rowCondition) bool {
			return !slices.ContainsFunc(group, func(c rowCondition) bool { return !c.of(rec, values) })
		}) {
			return false
		}
	}
	return true
}

// of reports whether the condition holds for a row.
func (c *rowCondition) of(rec *row, values []jsontext.Value) bool {
	if c.search != nil {
		return c.search.Holds(c.among, values)
	}
	return c.Holds(c.value(rec, values))
}

// value returns what the condition is about.
func (c *rowCondition) value(rec *row, values []jsontext.Value) jsontext.Value {
	if c.field != nil {
		return values[c.field.Index]
	}
	switch c.name {
	case "id":
		return jsontext.Value(`"` + rec.id + `"`)
	case "owner_id":
		return jsontext.Value(`"` + string(rec.owner) + `"`)
	case "created_at":
		return instantJSON(rec.createdAt)
	default:
		return instantJSON(rec.updatedAt)
	}
}

func instantJSON(micros int64) jsontext.Value {
	return append(clock.AppendRFC3339Micro([]byte{'"'}, micros), '"')
}

// unanswered says of the conditions that are tests what would help.
func (p *plan) unanswered() map[string]string {
	reasons := map[string]string{}
	for _, t := range p.tests {
		for _, c := range slices.Concat(t...) {
			if c.search != nil {
				reasons[c.name] = "the words are in too many records: add one that is in fewer, or more of one with * behind it"
				continue
			}
			_, spans := c.Span()
			equality := c.Op == schema.OpEq || c.Op == schema.OpIn
			switch {
			case c.field != nil && ranged(c.field) && spans:
				reasons[c.name] = "too many records are in this range: narrow it, or sort by it"
			case c.field != nil && !c.field.Filterable() && (equality || spans):
				reasons[c.name] = "an index on it would answer this"
			case reasons[c.name] == "":
				reasons[c.name] = "no index answers this"
			}
		}
	}
	return reasons
}
