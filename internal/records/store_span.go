package records

import (
	"cmp"
	"context"
	"slices"
	"sort"
	"strconv"
	"strings"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/schema"
)

// spans returns the parts of indexes in which everything lies that a plan selects of a
// scope, where to read one may leave fewer rows than its filters. A walk by the index of an
// order stays in its span anyway.
func (p *plan) spans(scope *access.Scope) []*fieldSpan {
	if len(p.filters) > 0 && p.filters[0].unique || !scope.All && scope.ByParent() != nil {
		return nil
	}
	return slices.Concat(p.terms, p.ranges)
}

// fewIn returns the places of a viewer's records in the first span in which there are at
// most some, newest first; few is false where there is none. Rows are counted in the place of
// records: a record has one for each way in which the viewer reaches it, and for each of its words.
func (s *Session) fewIn(ctx context.Context, r *access.EntityRights, spans []*fieldSpan, most int) (list []place, few bool, err error) {
	for _, span := range spans {
		if list, few, err = s.fewInSpan(ctx, r, span, most); few || err != nil {
			return list, few, err
		}
	}
	return nil, false, nil
}

func (s *Session) fewInSpan(ctx context.Context, r *access.EntityRights, span *fieldSpan, most int) (list []place, few bool, err error) {
	var arms [][2]string // names and reaches
	for _, name := range span.names {
		for _, reach := range reachesFor(r.Scope(access.Read)) {
			arms = append(arms, [2]string{name, reach})
		}
	}
	for part := range slices.Chunk(arms, maxArms) {
		st := newStatement(`SELECT at FROM (`, r.Entity.StoredAs())
		for i, arm := range part {
			if i > 0 {
				st.WriteString(" UNION ALL ") // ends at the limit, unlike UNION
			}
			st.WriteString("SELECT at FROM (SELECT s.record_created_at AS at")
			st.inSpan(arm[0], arm[1], span.Span, window{}, false)
			st.limit(most + 1)
			st.WriteString(") a" + strconv.Itoa(i))
		}
		st.WriteString(") u")
		st.limit(most + 1)
		err := s.h.Query(ctx, st.String(), func(r db.Row) error { list = append(list, place{at: r.Int(0)}); return nil }, st.args...)
		if err != nil || len(list) > most {
			return nil, false, err
		}
	}
	slices.SortFunc(list, func(a, b place) int { return cmp.Compare(b.at, a.at) })
	return slices.CompactFunc(list, func(a, b place) bool { return a.at == b.at }), true, nil
}

// among gives the rows at some places, newest first.
func (s *Session) among(ctx context.Context, r *access.EntityRights, p *plan, list []place) fetchFunc {
	return func(w window, each func(*row) error) error {
		rest := list
		w = p.narrow(w)
		if w.before != 0 {
			rest = list[sort.Search(len(list), func(i int) bool { return list[i].at < w.before }):]
		}
		rest = rest[:sort.Search(len(rest), func(i int) bool { return rest[i].at <= w.after })]
		for w.limit > 0 && len(rest) > 0 {
			n := min(w.limit, len(rest), lookAtOnce)
			given, err := s.rowsAt(ctx, r, rest[:n], each)
			if err != nil {
				return err
			}
			w.limit, rest = w.limit-given, rest[n:]
		}
		return nil
	}
}

// inSpan writes the FROM and WHERE of the index rows s of one reach within a span, and
// behind the window's place, if it has one. It expects $2 = entity.
func (s *statement) inSpan(field, reach string, span schema.Span, w window, desc bool) {
	s.WriteString(" FROM field_values s WHERE s.tenant_id = $1 AND s.entity = $2 AND s.field = ")
	s.arg(field)
	s.WriteString(" AND s.reach = ")
	s.arg(reach)
	begun := len(w.behind) > 0
	// SQLite would use a bound of the value instead of the place, and read all of one value.
	if !begun || desc {
		s.WriteString(" AND s.value >= ")
		s.arg(span.From)
	}
	if !begun || !desc {
		s.WriteString(" AND s.value < ")
		s.arg(span.To)
	}
	if begun {
		s.beyond(desc, w)
	}
}

// beyond writes that an index row s is behind the window's place. A window with no
// created_at begins with the records that have its key.
func (s *statement) beyond(desc bool, w window) {
	sign := " > "
	if desc {
		sign = " < "
	}
	if w.before == 0 {
		s.WriteString(" AND s.value" + strings.TrimRight(sign, " ") + "= ")
		s.arg(w.behind[0])
		return
	}
	s.WriteString(" AND (s.value, s.record_created_at)" + sign + "(")
	s.arg(w.behind[0])
	s.WriteString(", ")
	s.arg(w.before)
	s.WriteByte(')')
}

func (s *statement) sorted(value, at string, desc bool) {
	to := map[bool]string{true: " DESC"}[desc]
	s.WriteString(" ORDER BY " + value + to + ", " + at + to)
}
