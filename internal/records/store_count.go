package records

import (
	"context"

	"gatehouse/internal/access"
)

// Count counts the records of an entity type that the viewer may see and that some
// filters match, up to MaxCount: it looks at the newest 20,000 that match. Its errors
// are List's, and OVERLOADED when too much is counted at once.
func (s *Session) Count(ctx context.Context, entity string, list []Filter) (Count, error) {
	r, err := s.on(entity, access.Read)
	if err != nil {
		return Count{}, err
	}
	filters, err := checkFilters(r, list)
	if err != nil {
		return Count{}, err
	}
	bounded, _, leave, err := s.question(ctx)
	if err != nil {
		return Count{}, err
	}
	defer leave()
	st := newStatement(`SELECT CASE WHEN `, r.Entity.StoredAs(), int64(everAfter), int64(0))
	st.reached(r.Scope(access.Read))
	st.WriteString(" THEN 1 ELSE 0 END AS seen")
	s.candidates(st, filters)
	st.rest(filters)
	if len(filters) == 0 {
		st.WriteString(" ORDER BY r.created_at DESC")
	} else {
		st.WriteString(" ORDER BY s.record_created_at DESC")
	}
	n, err := s.count(bounded, st)
	return n, tooLong(ctx, err)
}
