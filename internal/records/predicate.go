package records

import (
	"math"
	"strconv"
	"strings"

	"gatehouse/internal/access"
)

// statement is an SQL text under construction. $1 is the tenant, which the
// handle binds, so the first argument here is $2.
type statement struct {
	strings.Builder
	args []any
	// record is the alias of the table records whose row the conditions of
	// ways are about.
	record string
}

func newStatement(text string, args ...any) *statement {
	s := &statement{args: make([]any, 0, 16), record: "r"}
	s.Grow(1024)
	s.args = append(s.args, args...)
	s.WriteString(text)
	return s
}

// arg adds an argument and writes its placeholder.
func (s *statement) arg(v any) {
	s.args = append(s.args, v)
	s.placeholder(len(s.args) + 1)
}

func (s *statement) placeholder(n int) {
	s.WriteByte('$')
	var buf [8]byte
	s.Write(strconv.AppendInt(buf[:0], int64(n), 10))
}

// limit writes the limit as a literal: SQLite plans with the value of a bound
// limit, and plans again each time it is bound.
func (s *statement) limit(n int) {
	s.WriteString(" LIMIT ")
	s.WriteString(strconv.Itoa(n))
}

func (s *statement) list(values []string) {
	s.WriteByte('(')
	for i, v := range values {
		if i > 0 {
			s.WriteByte(',')
		}
		s.arg(v)
	}
	s.WriteByte(')')
}

// oneOf writes that what stands before it is one of some values.
func (s *statement) oneOf(values []string) {
	if len(values) == 1 {
		s.WriteString(" = ")
		s.arg(values[0])
		return
	}
	s.WriteString(" IN ")
	s.list(values)
}

// column writes a column of the record that the conditions of ways are about.
func (s *statement) column(name string) {
	s.WriteString(s.record)
	s.WriteByte('.')
	s.WriteString(name)
}

// reached writes the visibility predicate: whether a scope reaches the record
// s.record (r, an alias of the table records). It is the only
// translation of access.Scope to a condition; arms writes the same union as
// index ranges, for lists.
func (s *statement) reached(scope *access.Scope) {
	switch {
	case scope.All && len(scope.Ways) > 0:
		s.parented(&scope.Ways[0])
		return
	case scope.All:
		s.WriteString("1 = 1")
		return
	case len(scope.Ways) == 0:
		s.WriteString("1 = 0")
		return
	}
	for i := range scope.Ways {
		if i == 0 {
			s.WriteByte('(')
		} else {
			s.WriteString(" OR ")
		}
		w := &scope.Ways[i]
		ways[w.Kind].condition(s, w)
	}
	s.WriteByte(')')
}

// window is a part of the created_at order: after < created_at < before, newest
// first, at most limit. 0 is no bound.
type window struct {
	after, before int64 // microseconds UTC
	limit         int
	// behind makes it a part of another order (see order): what follows the place with
	// these keys whose record was created at before; nil with before 0 is the beginning.
	behind []string
	oldest bool // first, in the place of newest first
}

// direction returns the order of created_at.
func (w *window) direction() string {
	if w.oldest {
		return " ASC"
	}
	return " DESC"
}

// follow moves the window behind a record.
func (w *window) follow(rec *row) { w.before, w.behind = rec.createdAt, rec.keys }

// everAfter is later than the creation of any record.
const everAfter = math.MaxInt64

// rest writes that every filter but the first matches the record of the index
// row s, or the record r where the first filter is by a column of it. Each is a scalar
// subquery by the whole key: PostgreSQL would turn EXISTS into a join, which may read all
// matches of the filter.
func (s *statement) rest(filters []filter) {
	if len(filters) == 0 {
		return
	}
	at := "s.record_created_at"
	if filters[0].ofColumn() {
		at = "r.created_at"
	}
	for _, f := range filters[1:] {
		s.WriteString(" AND ")
		s.matches(&f, at)
	}
}

// matches writes that the record that was created at an instant has the one key of a filter.
func (s *statement) matches(f *filter, at string) {
	s.WriteString(`(SELECT 1 FROM field_values x WHERE x.tenant_id = $1 AND x.entity = $2 AND x.reach = ''
			AND x.record_created_at = ` + at + ` AND x.field = `)
	s.arg(f.field)
	s.WriteString(" AND x.value = ")
	s.arg(f.keys[0])
	s.WriteString(") = 1")
}

// arms writes the created_at of the records in a window that a scope reaches
// and the filters match, as a union of index ranges: one for each way in which
// a record can be reached, each cut at the limit. So the cost of a page depends
// on the number of ways, not on how many records the viewer may not see
// (contract P9). It expects $2 = entity, $3 = before, $4 = after; lateral
// reports whether the engine has LATERAL.
func (s *statement) arms(scope *access.Scope, filters []filter, w window, lateral bool) {
	a := armWriter{statement: s, limit: w.limit, direction: w.direction(), wide: isWide(scope, filters), lateral: lateral}
	if len(filters) > 0 {
		p := scope.ByParent()
		for _, field := range filters[0].fields() {
			for _, key := range filters[0].keys {
				switch {
				case p != nil && !scope.All:
					a.descend(p, s.given(" AND ", filters, field, key), filters)
				case p != nil:
					a.write(span{"field_values", "s.record_created_at", s.given("s.entity = $2 AND ", filters, field, key) + s.kept(scope) + " AND s.reach"}, reachesFor(scope), nil)
				default:
					a.write(span{"field_values", "s.record_created_at", s.given("s.entity = $2 AND ", filters, field, key) + " AND s.reach"}, reachesFor(scope), nil)
				}
			}
		}
		return
	}
	for i := range scope.Ways {
		w := &scope.Ways[i]
		ways[w.Kind].ranges(&a, w)
	}
}

// isWide reports whether a union has more ranges than one statement: one for each way,
// and each field of the filter that drives.
func isWide(scope *access.Scope, filters []filter) bool {
	n := armCount(scope)
	if len(filters) > 0 {
		n *= 1 + len(filters[0].or)
	}
	return n > maxArms
}

// kept returns the condition that a scope that is all records of a type that is
// controlled by a parent reaches the record of the index row s.
func (s *statement) kept(scope *access.Scope) string {
	g := &statement{args: s.args, record: s.record}
	g.WriteString(" AND (SELECT 1 FROM records r WHERE r.tenant_id = $1 AND r.entity = $2 AND r.created_at = s.record_created_at AND ")
	g.reached(scope)
	g.WriteString(") = 1")
	s.args = g.args
	return g.String()
}

// given returns the condition on index rows s that a field, one of the first filter's,
// has a key and the other filters match.
func (s *statement) given(before string, filters []filter, field, key string) string {
	g := &statement{args: s.args, record: s.record}
	g.WriteString(before + "s.field = ")
	g.arg(field)
	g.WriteString(" AND s.value = ")
	g.arg(key)
	g.rest(filters)
	s.args = g.args
	return g.String()
}

// armWriter writes the arms of one union.
type armWriter struct {
	*statement
	limit         int
	direction     string
	wide, lateral bool
	n             int
}

// span is a part of an index: the rows s of a table in the order of a time, the column
// at, whose column at the end of condition has some value.
type span struct{ table, at, condition string }

// write adds the ranges of a span in which the column at the end of its condition is
// one of values. In a wide union they are one arm. PostgreSQL reads the ranges
// one after another there, too. SQLite sorts their content, so that a page
// costs as much as all that the viewer may see; the unary + keeps SQLite from
// reading the table in the order of created_at instead, hidden records
// included.
func (a *armWriter) write(of span, values []string, also func()) {
	switch {
	case !a.wide:
		for _, v := range values {
			a.arm("", of, func() { a.WriteString(" = "); a.statement.arg(v) }, also)
		}
	case len(values) == 0:
	case a.lateral:
		a.begin("SELECT at FROM (SELECT DISTINCT l.at FROM (VALUES ")
		for i, v := range values {
			if i > 0 {
				a.WriteByte(',')
			}
			a.list([]string{v})
		}
		a.WriteString(") w(v) CROSS JOIN LATERAL (")
		a.ranged("", of, func() { a.WriteString(" = w.v") }, also)
		a.end(") l")
	default: // a record may match several values
		of.at = "+" + of.at
		a.arm("DISTINCT ", of, func() { a.WriteString(" IN "); a.list(values) }, also)
	}
}

func (a *armWriter) arm(distinct string, of span, values, also func()) {
	a.begin("SELECT at FROM (")
	a.ranged(distinct, of, values, also)
	a.end("")
}

func (a *armWriter) begin(text string) {
	if a.n > 0 {
		a.WriteString(" UNION ")
	}
	a.n++
	a.WriteString(text)
}

func (a *armWriter) end(text string) {
	a.WriteString(text)
	a.WriteString(") a")
	a.WriteString(strconv.Itoa(a.n))
}

// ranged writes the select of the newest records of one range.
func (a *armWriter) ranged(distinct string, of span, values, also func()) {
	for _, part := range [...]string{"SELECT ", distinct, of.at, " AS at FROM ", of.table, " s WHERE s.tenant_id = $1 AND ", of.condition} {
		a.WriteString(part)
	}
	values()
	if also != nil {
		also()
	}
	for _, part := range [...]string{" AND ", of.at, " < $3 AND ", of.at, " > $4 ORDER BY at", a.direction} {
		a.WriteString(part)
	}
	a.statement.limit(a.limit)
}

// maxArms bounds the ranges of one statement (SQLite takes at most 500 in a
// union). A viewer who reaches records in more ways sees so many records that
// walk fills most pages.
const maxArms = 400
