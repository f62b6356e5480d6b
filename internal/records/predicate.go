package records

import (
	"math"
	"strconv"
	"strings"

	"gatehouse/internal/access"
)

// statement is an SQL text under construction; $1 is the tenant, bound by the
// handle, so the first argument here is $2.
type statement struct {
	strings.Builder
	args []any
}

func newStatement(text string, args ...any) *statement {
	s := &statement{args: make([]any, 0, 16)}
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
// one, and plans anew each time it is bound.
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

// reached writes the visibility predicate: whether a scope reaches the record
// r (an alias of the table records), whose entity is $2. It is the only
// translation of access.Scope to a condition; arms writes the same union as
// index ranges, for lists.
func (s *statement) reached(scope *access.Scope) {
	if scope.All {
		s.WriteString("1 = 1")
		return
	}
	s.WriteString("(r.owner_id = ")
	s.arg(scope.Owner)
	if len(scope.OwnerRoles) > 0 {
		s.WriteString(" OR r.owner_role IN ")
		s.list(scope.OwnerRoles)
	}
	if len(scope.SharedTo) > 0 {
		s.WriteString(` OR EXISTS (SELECT 1 FROM shares s WHERE s.tenant_id = $1 AND s.entity = r.entity
			AND s.record_id = r.record_id AND s.principal IN `)
		s.list(scope.SharedTo)
		s.level(scope)
		s.WriteByte(')')
	}
	if len(scope.Rules) > 0 {
		s.WriteString(` OR EXISTS (SELECT 1 FROM rule_matches m WHERE m.tenant_id = $1 AND m.record_created_at = r.created_at
			AND m.rule_id IN `)
		s.list(scope.Rules)
		s.WriteByte(')')
	}
	s.WriteByte(')')
}

func (s *statement) level(scope *access.Scope) {
	if scope.EditOnly {
		s.WriteString(" AND s.access = 'edit'")
	}
}

// window is the part of the order of created_at that a page is cut from: after
// < created_at < before, newest first, at most limit. 0 is no bound.
type window struct {
	after, before int64 // microseconds UTC
	limit         int
}

// everAfter is later than any record.
const everAfter = math.MaxInt64

// arms writes the created_at of the records that a scope reaches within a
// window as a union of index ranges, one for each way a record can be reached, each cut at the limit:
// what a page costs depends on the number of ways, not on how many records the
// viewer may not see. It expects $2 = entity, $3 = before, $4 = after.
func (s *statement) arms(scope *access.Scope, limit int) {
	n := 0
	arm := func(table, at string, condition func()) {
		if n > 0 {
			s.WriteString(" UNION ")
		}
		n++
		s.WriteString("SELECT at FROM (SELECT ")
		s.WriteString(at)
		s.WriteString(" AS at FROM ")
		s.WriteString(table)
		s.WriteString(" s WHERE s.tenant_id = $1 AND ")
		condition()
		s.WriteString(" AND " + at + " < $3 AND " + at + " > $4 ORDER BY " + at + " DESC")
		s.limit(limit)
		s.WriteString(") a")
		var buf [8]byte
		s.Write(strconv.AppendInt(buf[:0], int64(n), 10))
	}
	arm("records", "created_at", func() { s.WriteString("s.entity = $2 AND s.owner_id = "); s.arg(scope.Owner) })
	for _, role := range scope.OwnerRoles {
		arm("records", "created_at", func() { s.WriteString("s.entity = $2 AND s.owner_role = "); s.arg(role) })
	}
	for _, p := range scope.SharedTo {
		arm("shares", "record_created_at", func() { s.WriteString("s.entity = $2 AND s.principal = "); s.arg(p); s.level(scope) })
	}
	for _, rule := range scope.Rules {
		arm("rule_matches", "record_created_at", func() { s.WriteString("s.rule_id = "); s.arg(rule) })
	}
}

// maxArms bounds the ranges of one statement (SQLite takes at most 500 in a
// union). Who reaches records in more ways than that reaches so many that a
// walk over all of them finds a page soon.
const maxArms = 400

func armCount(scope *access.Scope) int {
	return 1 + len(scope.OwnerRoles) + len(scope.SharedTo) + len(scope.Rules)
}
