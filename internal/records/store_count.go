package records

import (
	"context"
	"errors"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/fault"
	"gatehouse/internal/schema"
)

// Count counts the records of an entity type that the viewer may see and a query
// selects, whatever its limit and cursor, up to MaxCount. It looks at no others. Where
// rows must be looked at one by one, More is also true when as many were looked
// at as are for one page. Its errors are List's, VALIDATION for users (contract P12),
// and OVERLOADED when too much is counted at once.
func (s *Session) Count(ctx context.Context, entity string, q Query) (n Count, err error) {
	if entity == schema.UserEntity {
		return Count{}, fault.Fields("users have no total", map[string]string{"count": "expected none for user"})
	}
	r, err := s.on(entity, access.Read)
	if err != nil {
		return Count{}, err
	}
	p, err := makePlan(r, &q)
	if err == nil && p.order != nil { // a range of its first key is one like any other
		q.Sort = nil
		p, err = makePlan(r, &q)
	}
	if err != nil {
		return Count{}, err
	}
	bounded, s, leave, err := s.admit(ctx, s.store.counting)
	if err != nil {
		return Count{}, err
	}
	defer leave()
	if len(p.tests) > 0 || isWide(r.Scope(access.Read), p.filters) { // PostgreSQL reads all records for many ranges with a high limit
		n, err = s.countRows(bounded, r, &cut{ctx: bounded, s: s, scope: r.Scope(access.Read), work: s.work, sieve: &sieve{plan: p}})
	} else {
		var seen int
		seen, err = s.countRange(bounded, r, p, MaxCount+1)
		n = Count{min(seen, MaxCount), seen > MaxCount}
	}
	return n, tooLong(ctx, err)
}

// countRows counts the rows that pass a sieve.
func (s *Session) countRows(ctx context.Context, r *access.EntityRights, c *cut) (n Count, err error) {
	c.sieve.cut = c
	p := c.sieve.plan
	defer func() {
		if c.leave != nil {
			c.leave()
		}
	}()
	rows := func(w window, each func(*row) error) error { return s.fetch(ctx, r, p.narrow(w), p.filters, each) }
	list, few, err := s.fewIn(ctx, r, p.spans(c.scope), s.store.sifts)
	if err != nil {
		return Count{}, err
	}
	if few {
		rows, c.sieve.plan = s.among(ctx, r, p, list), p.tested()
	}
	seen := 0
	err = c.sieve.over(rows)(window{limit: MaxCount + 1}, func(*row) error { seen++; return nil })
	over := errors.Is(err, errLooked)
	if over {
		err = nil
	}
	return Count{min(seen, MaxCount), over || seen > MaxCount}, err
}

// countRange counts the rows that the indexes give for a plan without its tests, up to some.
func (s *Session) countRange(ctx context.Context, r *access.EntityRights, p *plan, most int) (n int, err error) {
	scope, w := r.Scope(access.Read), p.narrow(window{before: everAfter})
	if !scope.All && armCount(scope) == 0 {
		return 0, nil
	}
	st := newStatement(`SELECT count(*) FROM (`, r.Entity.StoredAs(), w.before, w.after)
	if byCondition(scope, p.filters) {
		st.WriteString("SELECT 1")
		s.candidates(st, p.filters)
		st.rest(p.filters)
		st.WriteString(" AND ")
		st.reached(scope)
		st.limit(most)
	} else {
		st.WriteString("SELECT at FROM (")
		st.arms(scope, p.filters, window{limit: most}, s.h.Dialect().Engine == db.Postgres)
		st.WriteString(") u")
		st.limit(most)
	}
	st.WriteString(") n")
	err = s.h.Query(ctx, st.String(), func(row db.Row) error { n = int(row.Int(0)); return nil }, st.args...)
	return n, err
}
