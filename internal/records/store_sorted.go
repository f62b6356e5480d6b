package records

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/fault"
)

// fewWays is in how many ways a viewer reaches records at most where these are counted before
// they are read: each way is counted up to the bound.
const fewWays = 8

// sorter gives a page its rows in an order. Where an index has the viewer's records in
// the order of the first key, it walks there. Without one, and where the conditions leave
// few, it looks at all rows that they leave, within the bounds of a sieve, and picks those
// that the page begins with. It reads no row that the viewer may not see.
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
	spans := p.spans(r.Scope(access.Read))
	if len(spans) == 0 {
		return c.sieved(p, fetch), nil
	}
	within := func(of part) (fetchFunc, bool, error) {
		list, few, err := s.fewIn(ctx, r, spans, c.most(of))
		return c.sieved(p.tested(), s.among(ctx, r, p, list)), few, err
	}
	if rows, few, err := within(handful); few || err != nil {
		return rows, err
	}
	return c.tried(p, fetch, func(window) (fetchFunc, error) {
		rows, few, err := within(entire)
		if !few {
			rows = c.sieved(p, fetch)
		}
		return rows, err
	}), nil
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

// decide chooses the way for this page. Where an index has the order and conditions leave
// a part of the records, it is not known which of the two is shorter: from a handful it
// picks; where there are more it tries the first rows of the order, and picks from what is
// left where they were not enough and that is not too much.
func (x *sorter) decide(w window) error {
	if !x.plan.order.byIndex(x.r.Scope(access.Read)) {
		err := x.pickFew(w, entire)
		if errors.Is(err, errLooked) {
			return x.tooBroad()
		}
		return err
	}
	if !x.plan.leaves() {
		return x.inOrder(w)
	}
	if err := x.pickFew(w, handful); !errors.Is(err, errLooked) {
		return err
	}
	p, rows := x.byOrder()
	if !x.plan.order.inIndex() {
		err := x.pick(w, x.cut.sift(p, trial), rows, true)
		if err == nil && x.bound == nil || err != nil && !errors.Is(err, errLooked) {
			return err
		}
		return x.afterTrial(w)
	}
	x.after = x.cut.tried(p, rows, func(w window) (fetchFunc, error) {
		err := x.afterTrial(w)
		return x.after, err
	})
	return nil
}

// afterTrial chooses the way where the first rows of the order were not enough.
func (x *sorter) afterTrial(w window) error {
	if err := x.pickFew(w, entire); !errors.Is(err, errLooked) {
		return err
	}
	return x.inOrder(w)
}

// pickFew picks the page from what the plan's filters or spans leave. It returns errLooked
// where that is more than a part of what may be looked at.
func (x *sorter) pickFew(w window, of part) error {
	scope, p, from, most := x.r.Scope(access.Read), x.plan, x.fetch, x.cut.most(of)
	list, few, err := x.s.fewIn(x.ctx, x.r, p.spans(scope), most)
	switch {
	case err != nil:
		return err
	case few:
		from, p = x.s.among(x.ctx, x.r, p, list), p.tested()
	case !p.order.byIndex(scope): // there is no other way
	case !p.narrowed():
		return errLooked
	case armCount(scope) <= fewWays && (len(p.filters) == 0 || !p.filters[0].unique): // to count costs less than to read
		n, err := x.s.countRange(x.ctx, x.r, p, most+1)
		if err != nil {
			return err
		}
		if n > most {
			return errLooked
		}
	}
	return x.pick(w, x.cut.sift(p, of), from, false)
}

// byOrder returns the rows in the order of the first key, and what is asked of them.
func (x *sorter) byOrder() (*plan, fetchFunc) {
	if len(x.plan.order.keys) == 0 {
		return x.plan, x.oldest
	}
	return x.plan.tested(), x.walk
}

// inOrder goes by the index of the order.
func (x *sorter) inOrder(w window) error {
	p, rows := x.byOrder()
	x.walks = len(x.plan.order.keys) > 0
	if x.plan.order.inIndex() {
		x.after = x.cut.sieved(p, rows)
		return nil
	}
	err := x.pick(w, x.cut.sift(p, entire), rows, true)
	if errors.Is(err, errLooked) {
		return x.tooBroad()
	}
	return err
}

// pick looks at the rows that a sieve lets through and picks those that a window begins
// with. With groups, the rows come in the order of the first key, and it ends with the
// group that fills the page, or with the last complete one within the bounds of the sieve.
// Otherwise it returns errLooked past these.
func (x *sorter) pick(w window, v *sieve, from fetchFunc, groups bool) error {
	o := x.plan.order
	begin, begun := o.behind(&w)
	x.cut.sieve, x.looked, x.picked, x.again, x.bound = v, v, nil, nil, nil
	defer func() { x.cut.sieve = nil }()
	most := x.cut.limit + 1
	look := window{limit: math.MaxInt}
	if groups && begun {
		look.behind = begin.keys[:1]
	}
	var group string          // the key under which the index has the present group
	var last, complete *place // the greatest of that group, and of the one before
	err := v.over(func(w window, each func(*row) error) error {
		return from(w, func(rec *row) error { // of every row, also of those that do not pass
			if groups && (last == nil || rec.keys[0] != group) {
				if complete = last; len(x.picked) >= most {
					return errEnough
				}
				if begun && last != nil && group == begin.keys[0] {
					v.rows, v.bytes = 0, 0 // what was looked at anew of the group that the page before ended in
				}
				last, group = nil, rec.keys[0]
			}
			if groups {
				at := o.place(rec, x.values(rec))
				at.keys[0] = group // the record may have changed since its place was read
				if last == nil || o.compare(at, *last) > 0 {
					last = &at
				}
			}
			return each(rec)
		})
	})(look, func(rec *row) error {
		at := o.place(rec, v.values)
		if groups {
			at.keys[0] = rec.keys[0]
		}
		if !begun || o.compare(at, begin) > 0 {
			if x.picked = append(x.picked, at); len(x.picked) >= 2*most+patient {
				x.trim(most)
			}
		}
		return nil
	})
	switch {
	case errors.Is(err, errLooked) && complete != nil && (!begun || o.compare(*complete, begin) > 0):
		x.picked = slices.DeleteFunc(x.picked, func(at place) bool { return o.compare(at, *complete) > 0 })
		x.bound = complete
	case err != nil && !errors.Is(err, errEnough):
		return err
	}
	if full := len(x.picked) >= most; full {
		x.again = func(w window) error {
			err := x.pick(w, x.cut.sift(v.plan, entire), from, groups)
			if errors.Is(err, errLooked) {
				return x.tooBroad()
			}
			return err
		}
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

// step is a place on a walk, and whether the record there has what the filters ask.
type step struct {
	place
	kept bool
}

// walk gives rows in the order of the first key, by the index. It goes on where a record
// has gone since its place was read, so that fewer rows than asked for are the last.
func (x *sorter) walk(w window, each func(*row) error) error {
	for w.limit > 0 {
		list, err := x.steps(w)
		if err != nil || len(list) == 0 {
			return err
		}
		given, err := x.rowsOf(list, each)
		if err != nil || len(list) < w.limit {
			return err
		}
		last := list[len(list)-1]
		w.before, w.behind, w.limit = last.at, last.keys, w.limit-given
	}
	return nil
}

// rowsOf gives the rows at the places that the filters keep, and the places of the others.
func (x *sorter) rowsOf(list []step, each func(*row) error) (given int, err error) {
	var kept []place
	for _, st := range list {
		if st.kept {
			kept = append(kept, st.place)
		}
	}
	passOver := func(until int64) error { // the others before a row, everAfter for all that is left
		for len(list) > 0 && list[0].at != until {
			if st := list[0]; !st.kept {
				given++
				if err := each(&row{createdAt: st.at, keys: st.keys, missed: true}); err != nil {
					return err
				}
			}
			list = list[1:]
		}
		return nil
	}
	if len(kept) > 0 {
		_, err = x.s.rowsAt(x.ctx, x.r, kept, func(rec *row) error {
			if err := passOver(rec.createdAt); err != nil {
				return err
			}
			given, list = given+1, list[1:]
			return each(rec)
		})
	}
	if err == nil {
		err = passOver(everAfter)
	}
	return given, err
}

// oldest gives rows in the order of their creation.
func (x *sorter) oldest(w window, each func(*row) error) error {
	return x.s.fetch(x.ctx, x.r, x.plan.narrow(window{after: w.before, limit: w.limit, oldest: true}), x.plan.filters, each)
}

// steps reads a part of the index of the order's first key: the union of one range
// for each way in which the viewer reaches records. Where that is the whole order, it asks the
// index of each filter that has one key, which costs less than to read the record.
func (x *sorter) steps(w window) (list []step, err error) {
	key := x.plan.order.keys[0]
	reaches := reachesFor(x.r.Scope(access.Read))
	for part := range slices.Chunk(reaches, maxArms) {
		st := newStatement(`SELECT w.v, w.at, `, x.r.Entity.StoredAs())
		x.kept(st, "w.at")
		st.WriteString(" FROM (SELECT v, at FROM (")
		for i, reach := range part {
			if i > 0 {
				st.WriteString(" UNION ")
			}
			st.WriteString("SELECT v, at FROM (SELECT s.value AS v, s.record_created_at AS at")
			st.inSpan(key.field.StoredAs(), reach, x.plan.order.span, w, key.desc)
			st.sorted("s.value", "s.record_created_at", key.desc)
			st.limit(w.limit)
			st.WriteString(") a" + strconv.Itoa(i))
		}
		st.WriteString(") u")
		st.sorted("v", "at", key.desc)
		st.limit(w.limit)
		st.WriteString(") w")
		st.sorted("w.v", "w.at", key.desc)
		err := x.s.h.Query(x.ctx, st.String(), func(r db.Row) error {
			list = append(list, step{place{[]string{r.Text(0)}, r.Int(1)}, r.Bool(2)})
			return nil
		}, st.args...)
		if err != nil {
			return nil, err
		}
	}
	if len(reaches) > maxArms {
		by := &order{keys: []orderKey{key}, desc: key.desc}
		slices.SortFunc(list, func(a, b step) int { return by.compare(a.place, b.place) })
		list = slices.CompactFunc(list, func(a, b step) bool { return a.at == b.at })
		list = list[:min(w.limit, len(list))]
	}
	return list, nil
}

// kept writes whether the record that was created at an instant has what the filters ask, as
// far as an index tells; 1 where the order needs the records of all.
func (x *sorter) kept(st *statement, at string) {
	sep, end := "CASE WHEN ", "1"
	for _, f := range x.plan.filters {
		if x.plan.order.inIndex() && len(f.keys) == 1 && !f.ofColumn() && !f.words {
			st.WriteString(sep)
			st.matches(&f, at)
			sep, end = " AND ", " THEN 1 ELSE 0 END"
		}
	}
	st.WriteString(end)
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
	switch {
	case x.walks:
		what, help = o.String()+" after the first", "sort by the first alone"
	case x.r.Scope(access.Read).ByParent() != nil:
		help = "filter by the parent"
	case len(o.keys) > 0 && o.keys[0].field == nil: // updated_at
		help = "narrow created_at"
	}
	return fault.New(fault.QueryTooBroad, "more than %d records, or %d MiB, would be sorted by %s: add a filter that an index answers, or %s", x.s.store.sifts, maxSiftedBytes>>20, what, help)
}

// reachesFor returns the reaches under which the index has all records of a scope.
func reachesFor(scope *access.Scope) []string {
	if scope.All {
		return []string{everybody}
	}
	return reachesOf(scope)
}
