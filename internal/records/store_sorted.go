package records

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/fault"
	"gatehouse/internal/schema"
)

// sorter gives a page its rows in an order. Where an index has the viewer's records in
// the order of the first key, it walks there. Otherwise, and where the filters leave
// few, it looks at all rows that the plan leaves, within the bounds of a sieve, and
// picks those that the page begins with. It reads no row that the viewer may not see.
type sorter struct {
	ctx   context.Context //nolint:containedctx // of the call that builds the page
	s     *Session
	r     *access.EntityRights
	plan  *plan
	cut   *cut
	fetch fetchFunc // of the plan's filters, newest first

	walks  bool      // by the index
	after  fetchFunc // what gives the rows once that is decided
	picked []place   // the page, where it was picked
	// again picks what follows, nil where nothing does. bound is the place up to which
	// everything was looked at where a sieve ended before the page was full.
	again  func(w window) error
	bound  *place
	looked *sieve // of the last pick
}

// arranged returns fetch with what a plan asks for beyond its filters: tests and an
// order.
func (s *Session) arranged(ctx context.Context, r *access.EntityRights, p *plan, c *cut, fetch fetchFunc) (fetchFunc, error) {
	if p.order != nil {
		x := &sorter{ctx: ctx, s: s, r: r, plan: p, cut: c, fetch: fetch}
		return x.rows, nil
	}
	if len(p.tests) == 0 {
		return fetch, nil
	}
	rows, _, err := s.spanned(ctx, r, p, fetch)
	c.sieve = &sieve{plan: p, cut: c}
	return c.sieve.over(rows), err
}

// rows is the fetchFunc of a page.
func (x *sorter) rows(w window, each func(*row) error) error {
	if x.after == nil {
		if err := x.decide(w); err != nil {
			return err
		}
	}
	return x.after(w, each)
}

// decide chooses the way for this page.
func (x *sorter) decide(w window) error {
	scope, o, few, from := x.r.Scope(access.Read), x.plan.order, false, x.fetch
	indexed := o.byIndex(scope)
	byCreation := indexed && len(o.keys) == 0
	if !byCreation || len(x.plan.terms) > 0 {
		var err error
		if from, few, err = x.s.spanned(x.ctx, x.r, x.plan, x.fetch); err != nil {
			return err
		}
	}
	if !indexed || few || !byCreation && x.plan.narrowed() {
		err := x.pick(w, x.plan, from, false)
		if err == nil || !errors.Is(err, errLooked) {
			return err
		}
		if !indexed {
			return x.tooBroad()
		}
	}
	if byCreation {
		x.after = x.sieved(x.plan, x.oldest)
		return nil
	}
	all := x.plan.tested()
	x.walks = true
	if !o.inIndex() {
		err := x.pick(w, all, x.walk, true)
		if errors.Is(err, errLooked) {
			return x.tooBroad()
		}
		return err
	}
	x.after = x.sieved(all, x.walk)
	return nil
}

// sieved returns rows that pass a plan's tests, if it has any.
func (x *sorter) sieved(p *plan, rows fetchFunc) fetchFunc {
	if len(p.tests) == 0 {
		return rows
	}
	x.cut.sieve = &sieve{plan: p, cut: x.cut}
	return x.cut.sieve.over(rows)
}

// pick looks at rows and picks those that a window begins with. With groups, the rows
// come in the order of the first key, and it ends with the group that fills the page,
// or with the last whole one within the bounds of a sieve. Otherwise it returns
// errLooked past these.
func (x *sorter) pick(w window, p *plan, from fetchFunc, groups bool) error {
	o := x.plan.order
	begin, begun := o.behind(&w)
	v := &sieve{plan: p, cut: x.cut}
	x.cut.sieve, x.looked, x.picked, x.again, x.bound = v, v, nil, nil, nil
	defer func() { x.cut.sieve = nil }()
	most := x.cut.limit + 1
	look := window{limit: math.MaxInt}
	if groups && begun {
		look.behind = begin.keys[:1]
	}
	var last, whole *place // the greatest of the present group, and of the one before
	err := v.over(func(w window, each func(*row) error) error {
		return from(w, func(rec *row) error { // of every row, also of those that do not pass
			if groups && (last == nil || rec.keys[0] != last.keys[0]) {
				if whole = last; len(x.picked) >= most {
					return errEnough
				}
				if begun && last != nil && last.keys[0] == begin.keys[0] {
					v.rows, v.bytes = 0, 0 // what was looked at anew of the group that the page before ended in
				}
				last = nil
			}
			if groups {
				if at := o.place(rec, x.values(rec)); last == nil || o.compare(at, *last) > 0 {
					last = &at
				}
			}
			return each(rec)
		})
	})(look, func(rec *row) error {
		at := o.place(rec, v.values)
		if !begun || o.compare(at, begin) > 0 {
			if x.picked = append(x.picked, at); len(x.picked) >= 2*most+patient {
				x.trim(most)
			}
		}
		return nil
	})
	switch {
	case errors.Is(err, errLooked) && whole != nil && (!begun || o.compare(*whole, begin) > 0):
		x.picked = slices.DeleteFunc(x.picked, func(at place) bool { return o.compare(at, *whole) > 0 })
		x.bound = whole
	case err != nil && !errors.Is(err, errEnough):
		return err
	}
	if full := len(x.picked) >= most; full {
		x.again = func(w window) error { return x.pick(w, p, from, groups) }
	}
	x.trim(most)
	x.after = x.fromPicked
	return nil
}

// values returns those of a row's fields.
func (x *sorter) values(rec *row) []jsontext.Value {
	values := make([]jsontext.Value, len(x.r.Entity.Fields))
	split(x.r.Entity, rec.data, values)
	return values
}

// trim keeps the first places.
func (x *sorter) trim(most int) {
	slices.SortFunc(x.picked, x.plan.order.compare)
	x.picked = x.picked[:min(most, len(x.picked))]
}

// fromPicked gives the rows of the places that were picked. Where some have gone
// since, it picks on behind them, so that fewer rows than asked for are the last.
func (x *sorter) fromPicked(w window, each func(*row) error) error {
	o := x.plan.order
	for w.limit > 0 {
		list := x.picked
		if begin, ok := o.behind(&w); ok {
			n, there := slices.BinarySearchFunc(list, begin, o.compare)
			if there {
				n++
			}
			list = list[n:]
		}
		if len(list) == 0 {
			if x.bound != nil {
				return x.ended()
			}
			if x.again == nil {
				return nil
			}
			if err := x.again(w); err != nil {
				return err
			}
			if len(x.picked) == 0 && x.bound == nil {
				return nil
			}
			continue
		}
		list = list[:min(w.limit, len(list))]
		given, err := x.s.rowsAt(x.ctx, x.r, list, each)
		if err != nil {
			return err
		}
		last := list[len(list)-1]
		w.before, w.behind, w.limit = last.at, last.keys, w.limit-given
	}
	return nil
}

// ended ends the page at the place up to which everything was looked at.
func (x *sorter) ended() error {
	x.looked.last = row{id: x.cut.last.id, createdAt: x.bound.at, keys: x.bound.keys}
	x.cut.sieve = x.looked
	return errLooked
}

// walk gives rows in the order of the first key, by the index. It goes on where a record
// has gone since its place was read, so that fewer rows than asked for are the last.
func (x *sorter) walk(w window, each func(*row) error) error {
	for w.limit > 0 {
		list, err := x.places(w)
		if err != nil || len(list) == 0 {
			return err
		}
		given, err := x.s.rowsAt(x.ctx, x.r, list, each)
		if err != nil || len(list) < w.limit {
			return err
		}
		last := list[len(list)-1]
		w.before, w.behind, w.limit = last.at, last.keys, w.limit-given
	}
	return nil
}

// oldest gives rows in the order of their creation.
func (x *sorter) oldest(w window, each func(*row) error) error {
	return x.s.fetch(x.ctx, x.r, x.plan.narrow(window{after: w.before, limit: w.limit, oldest: true}), x.plan.filters, each)
}

// places reads a part of the index of the order's first key: the union of one range
// for each way in which the viewer reaches records.
func (x *sorter) places(w window) (list []place, err error) {
	key := x.plan.order.keys[0]
	reaches := reachesFor(x.r.Scope(access.Read))
	span := schema.Span{To: schema.Unset + " "}
	if x.plan.span.of(x.plan.order) {
		span = x.plan.span.Span
	}
	for part := range slices.Chunk(reaches, maxArms) {
		st := newStatement(`SELECT v, at FROM (`, x.r.Entity.StoredAs())
		for i, reach := range part {
			if i > 0 {
				st.WriteString(" UNION ")
			}
			st.WriteString("SELECT v, at FROM (SELECT s.value AS v, s.record_created_at AS at")
			st.inSpan(key.field.StoredAs(), reach, span, w, key.desc)
			st.sorted("s.value", "s.record_created_at", key.desc)
			st.limit(w.limit)
			st.WriteString(") a" + strconv.Itoa(i))
		}
		st.WriteString(") u")
		st.sorted("v", "at", key.desc)
		st.limit(w.limit)
		err := x.s.h.Query(x.ctx, st.String(), func(r db.Row) error {
			list = append(list, place{[]string{r.Text(0)}, r.Int(1)})
			return nil
		}, st.args...)
		if err != nil {
			return nil, err
		}
	}
	if len(reaches) > maxArms {
		by := &order{keys: []orderKey{key}, desc: key.desc}
		slices.SortFunc(list, by.compare)
		list = slices.CompactFunc(list, func(a, b place) bool { return a.at == b.at })
		list = list[:min(w.limit, len(list))]
	}
	return list, nil
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

// rowsAt reads the rows at some places, in their order, as far as the viewer sees them.
func (s *Session) rowsAt(ctx context.Context, r *access.EntityRights, list []place, each func(*row) error) (given int, err error) {
	st := newStatement(`SELECT `+rowColumns(s.h)+`, k.column1 FROM (VALUES `, r.Entity.StoredAs())
	for i, p := range list {
		if i > 0 {
			st.WriteString(", ")
		}
		st.WriteString("(" + strconv.Itoa(i) + ", CAST(")
		st.arg(p.at)
		st.WriteString(" AS BIGINT))")
	}
	st.WriteString(") k" + s.lookUp("k.column2") + " WHERE ")
	st.reached(r.Scope(access.Read))
	st.WriteString(" ORDER BY k.column1")
	var rec row
	err = s.h.Query(ctx, st.String(), func(dbRow db.Row) error {
		scanRow(dbRow, &rec)
		rec.keys = list[dbRow.Int(5)].keys
		given++
		return each(&rec)
	}, st.args...)
	return given, err
}

// tooBroad returns the error of a list that is too long to be sorted.
func (x *sorter) tooBroad() error {
	o := x.plan.order
	what, help := o.String(), "index it"
	if x.walks {
		what, help = o.String()+" after the first", "sort by the first alone"
	} else if x.r.Scope(access.Read).ByParent() != nil {
		help = "filter by the parent"
	}
	return fault.New(fault.QueryTooBroad, "more than %d records, or %d MiB, would be sorted by %s: add a filter that an index answers, or %s", x.s.store.sifts, maxSiftedBytes>>20, what, help)
}

// spanned returns fetch over the records in a span of the plan, where these are so few
// that they are found and put in order at once; few is false where they are not. A walk
// by the index of an order stays in its span anyway.
func (s *Session) spanned(ctx context.Context, r *access.EntityRights, p *plan, fetch fetchFunc) (rows fetchFunc, few bool, err error) {
	scope := r.Scope(access.Read)
	others := len(p.filters) > 1 || len(p.filters) == 1 && !p.filters[0].words
	if others || !scope.All && scope.ByParent() != nil {
		return fetch, false, nil
	}
	var list []place
	for _, span := range p.terms {
		if err == nil && !few {
			list, few, err = s.fewIn(ctx, r, span)
		}
	}
	if err == nil && !few && p.span != nil && !p.narrowed() && (p.order == nil || !p.order.byIndex(scope) || !p.span.of(p.order)) {
		list, few, err = s.fewIn(ctx, r, p.span)
	}
	if err != nil || !few {
		return fetch, false, err
	}
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
	}, true, nil
}

// fewIn returns the places of a viewer's records in a span, newest first; few is false
// where there are more than a sieve looks at. A record has many words, so rows of words
// are counted in the place of records.
func (s *Session) fewIn(ctx context.Context, r *access.EntityRights, span *fieldSpan) (list []place, few bool, err error) {
	most, union := s.store.sifts+1, " UNION "
	if span.field == nil {
		union = " UNION ALL "
	}
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
				st.WriteString(union)
			}
			st.WriteString("SELECT at FROM (SELECT s.record_created_at AS at")
			st.inSpan(arm[0], arm[1], span.Span, window{}, false)
			st.limit(most)
			st.WriteString(") a" + strconv.Itoa(i))
		}
		st.WriteString(") u")
		st.limit(most)
		err := s.h.Query(ctx, st.String(), func(r db.Row) error { list = append(list, place{at: r.Int(0)}); return nil }, st.args...)
		if err != nil || len(list) >= most {
			return nil, false, err
		}
	}
	slices.SortFunc(list, func(a, b place) int { return cmp.Compare(b.at, a.at) })
	return slices.CompactFunc(list, func(a, b place) bool { return a.at == b.at }), true, nil
}

// reachesFor returns the reaches under which the index has all records of a scope.
func reachesFor(scope *access.Scope) []string {
	if scope.All {
		return []string{everybody}
	}
	return reachesOf(scope)
}
