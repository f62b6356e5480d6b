package records

import (
	"context"
	"errors"
	"sync"

	"gatehouse/internal/access"
	"gatehouse/internal/admission"
	"gatehouse/internal/db"
	"gatehouse/internal/schema"
	"gatehouse/internal/user"
)

// rowColumns returns the columns of a record r that scanRow reads.
func rowColumns(q db.Querier) string {
	dialect := q.Dialect()
	if text, ok := columnsOf.Load(dialect.Engine); ok {
		return text.(string)
	}
	text := "r.record_id, r.owner_id, r.created_at, r.updated_at, " + dialect.JSONText("r.data", "r.data_bytes")
	columnsOf.Store(dialect.Engine, text)
	return text
}

// columnsOf caches rowColumns by engine.
var columnsOf sync.Map

// scanRow reads rowColumns into rec. rec.data is valid only inside the
// callback.
func scanRow(r db.Row, rec *row) {
	owner := rec.owner
	if b := r.Bytes(1); user.ID(b) != owner { // adjacent records in a list often have the same owner
		owner = user.ID(b)
	}
	*rec = row{id: r.Text(0), owner: owner, createdAt: r.Int(2), updatedAt: r.Int(3), data: r.Bytes(4)}
}

// Get reads one record. It returns NOT_FOUND when there is none or the viewer
// may not see it, FORBIDDEN when they may not read the entity type, and
// OVERLOADED when too many large records are being read.
func (s *Session) Get(ctx context.Context, entity, id string) (Record, error) {
	r, err := s.rights(entity, id, access.Read)
	if err != nil {
		return nil, err
	}
	if entity == schema.UserEntity {
		u, err := user.ByID(ctx, s.h, user.ID(id))
		if err != nil {
			return nil, unseen(err)
		}
		return s.held(renderUser(nil, r, u))
	}
	scope := r.Scope(access.Read)
	if scope.RowSize.Load() > admission.Free {
		leave, err := s.heavyRead(ctx)
		if err != nil {
			return nil, err
		}
		defer leave()
	}
	st := pointRead(s.h, scope)
	var fixed [8]any
	args := append(append(fixed[:0], r.Entity.StoredAs(), id), st.Args...)
	var out Record
	err = s.h.Query(ctx, st.SQL, func(dbRow db.Row) error {
		var rec row
		scanRow(dbRow, &rec)
		out = render(make([]byte, 0, 192+32*len(r.Entity.Fields)+len(rec.data)), r, &rec)
		return nil
	}, args...)
	if err != nil {
		return nil, err
	}
	if out == nil {
		return nil, errUnseen
	}
	return s.held(out)
}

// pointRead returns the statement that reads one record within a scope; $2 is
// its entity type, $3 its id. It is built once per scope.
func pointRead(q db.Querier, scope *access.Scope) *access.Statement {
	if st := scope.PointRead.Load(); st != nil {
		return st
	}
	const before = 2
	st := newStatement(`SELECT `+rowColumns(q)+` FROM records r WHERE r.tenant_id = $1 AND r.entity = $2 AND r.record_id = $3 AND `,
		make([]any, before)...)
	st.reached(scope)
	made := &access.Statement{SQL: st.String(), Args: st.args[before:]}
	scope.PointRead.Store(made)
	return made
}

// fetch reads the rows of a window that the viewer may see and the filters
// match, newest first. Its cost does not depend on how many records the viewer
// may not see (contract P9), except for a number of rows that the limit bounds.
func (s *Session) fetch(ctx context.Context, r *access.EntityRights, w window, filters []filter, each func(*row) error) error {
	if w.before == 0 {
		w.before = everAfter
	}
	scope := r.Scope(access.Read)
	if !scope.All && armCount(scope) == 0 { // the viewer may not read the parents
		return nil
	}
	if byCondition(scope, filters) {
		st := newStatement(`SELECT `+rowColumns(s.h), r.Entity.StoredAs(), w.before, w.after)
		s.candidates(st, filters)
		st.rest(filters)
		st.WriteString(" AND ")
		st.reached(scope)
		inOrder(st, filters, w)
		return s.rows(ctx, st, each)
	}
	wide := isWide(scope, filters)
	if !w.oldest && (wide && (len(filters) == 0 || len(filters[0].or) == 0) || len(filters) == 0 && scope.Dense.Load()) {
		done, err := s.walk(ctx, r, &w, filters, each)
		if done || err != nil {
			return err
		}
		if !wide {
			scope.Dense.Store(false)
		}
	}
	return s.gather(ctx, r, w, filters, each)
}

// byCondition reports whether the visibility of each match is checked as a condition:
// there are few matches, or the viewer sees all of them.
func byCondition(scope *access.Scope, filters []filter) bool {
	return scope.All && (len(filters) == 0 || len(filters[0].keys) == 1 && len(filters[0].or) == 0) || len(filters) > 0 && filters[0].unique
}

func (s *Session) rows(ctx context.Context, st *statement, each func(*row) error) error {
	var rec row
	return s.h.Query(ctx, st.String(), func(dbRow db.Row) error {
		scanRow(dbRow, &rec)
		return each(&rec)
	}, st.args...)
}

// gather reads a window as a union of index ranges (arms): its cost does not
// depend on how many records the viewer may not see.
func (s *Session) gather(ctx context.Context, r *access.EntityRights, w window, filters []filter, each func(*row) error) error {
	scope := r.Scope(access.Read)
	st := newStatement(`SELECT `+rowColumns(s.h)+` FROM (SELECT at FROM (`, r.Entity.StoredAs(), w.before, w.after)
	st.arms(scope, filters, w, s.h.Dialect().Engine == db.Postgres)
	st.WriteString(") u ORDER BY at" + w.direction())
	st.limit(w.limit)
	st.WriteString(") k")
	st.WriteString(s.lookUp("k.at"))
	st.WriteString(" ORDER BY k.at" + w.direction())
	n, first, last := 0, int64(0), int64(0)
	err := s.rows(ctx, st, func(rec *row) error {
		if n++; n == 1 {
			first = rec.createdAt
		}
		last = rec.createdAt
		return each(rec)
	})
	if err != nil || n < w.limit || len(filters) > 0 || w.oldest || scope.Lists.Add(1)%recheck != 1 {
		return err
	}
	return s.weigh(ctx, r, first, last, w.limit)
}

// lookUp joins each row with the record that was created at an instant, by one
// look-up each: CROSS JOIN keeps SQLite from starting with records, and LIMIT
// keeps PostgreSQL from a merge join, which reads all records in between. $2 is
// the entity.
func (s *Session) lookUp(at string) string { return lookUp(s.h, at) }

func lookUp(q db.Querier, at string) string {
	if q.Dialect().Engine == db.Postgres {
		return ` CROSS JOIN LATERAL (SELECT r.* FROM records r
			WHERE r.tenant_id = $1 AND r.entity = $2 AND r.created_at = ` + at + ` LIMIT 1) r`
	}
	return ` CROSS JOIN records r ON r.tenant_id = $1 AND r.entity = $2 AND r.created_at = ` + at
}

// candidates writes the FROM and WHERE of the records of a window that match
// the first filter, visible or not. It expects $2 = entity, $3 = before, $4 =
// after.
func (s *Session) candidates(st *statement, filters []filter) {
	if len(filters) == 0 {
		st.WriteString(` FROM records r WHERE r.tenant_id = $1 AND r.entity = $2 AND r.created_at < $3 AND r.created_at > $4`)
		return
	}
	switch first := filters[0]; first.field {
	case byID:
		st.WriteString(` FROM records r WHERE r.tenant_id = $1 AND r.entity = $2 AND r.created_at < $3 AND r.created_at > $4 AND r.record_id`)
		st.oneOf(first.keys)
	case byOwner:
		st.WriteString(` FROM records r WHERE r.tenant_id = $1 AND r.entity = $2 AND r.created_at < $3 AND r.created_at > $4 AND r.owner_id = `)
		st.arg(first.keys[0])
	default:
		st.WriteString(` FROM field_values s` + s.lookUp("s.record_created_at") + ` WHERE s.tenant_id = $1 AND s.entity = $2 AND s.reach = ''
			AND s.record_created_at < $3 AND s.record_created_at > $4 AND s.field = `)
		st.arg(first.field)
		st.WriteString(" AND s.value")
		st.oneOf(first.keys)
	}
}

// inOrder writes the ORDER BY and LIMIT of a window that belong to candidates.
func inOrder(st *statement, filters []filter, w window) {
	switch {
	case len(filters) == 0 || filters[0].field == byOwner:
		st.WriteString(" ORDER BY r.created_at")
	case filters[0].field == byID: // not the index of created_at, of which it would read all
		st.WriteString(" ORDER BY +r.created_at")
	default:
		st.WriteString(" ORDER BY s.record_created_at")
	}
	st.WriteString(w.direction())
	st.limit(w.limit)
}

// recheck is the number of full pages after which a scope is measured again.
const recheck = 128

// weigh stores whether the viewer sees at least half of the records between two
// that they saw. If so, walk reads the next pages.
func (s *Session) weigh(ctx context.Context, r *access.EntityRights, first, last int64, limit int) error {
	st := newStatement(`SELECT count(*) FROM (SELECT 1 FROM records r WHERE r.tenant_id = $1 AND r.entity = $2
		AND r.created_at <= $3 AND r.created_at >= $4 ORDER BY r.created_at DESC`, r.Entity.StoredAs(), first, last)
	st.limit(2*limit + 1)
	st.WriteString(") n")
	return s.h.Query(ctx, st.String(), func(row db.Row) error {
		r.Scope(access.Read).Dense.Store(row.Int(0) <= int64(2*limit))
		return nil
	}, st.args...)
}

// walk reads a window for a viewer who sees most of it: it reads the records in
// order, at most twice as many as asked for, and checks for each whether the
// scope reaches it. Where that fills the page, it costs a third of gather.
// Otherwise it reduces w to the part that gather must still read.
func (s *Session) walk(ctx context.Context, r *access.EntityRights, w *window, filters []filter, each func(*row) error) (done bool, err error) {
	st := newStatement(`SELECT `+rowColumns(s.h)+`, CASE WHEN `, r.Entity.StoredAs(), w.before, w.after)
	st.reached(r.Scope(access.Read))
	st.rest(filters)
	st.WriteString(" THEN 1 ELSE 0 END")
	s.candidates(st, filters)
	most := 2 * w.limit
	inOrder(st, filters, window{limit: most})
	var rec row
	walked, full := 0, false
	err = s.h.Query(ctx, st.String(), func(dbRow db.Row) error {
		walked++
		scanRow(dbRow, &rec)
		if !dbRow.Bool(5) {
			return nil
		}
		if err := each(&rec); err != nil {
			return err
		}
		if w.limit--; w.limit == 0 {
			full = true
			return errEnough
		}
		return nil
	}, st.args...)
	if full && errors.Is(err, errEnough) {
		return true, nil
	}
	w.before = rec.createdAt
	return err == nil && walked < most, err
}

// visible reports whether a record exists and the viewer may see it. A user is
// visible to those who may name them (contract A17).
func (s *Session) visible(ctx context.Context, q db.Querier, entity, id string) (bool, error) {
	return s.reaches(ctx, q, entity, id, access.Read)
}

// reaches reports whether a record exists and the viewer may perform verb on it.
func (s *Session) reaches(ctx context.Context, q db.Querier, entity, id string, verb access.Verb) (bool, error) {
	if entity == schema.UserEntity {
		if id == string(s.viewer.UserID()) {
			return id != "", nil
		}
		if !s.viewer.MayNameUsers() {
			return false, nil
		}
		return exists(ctx, q, named{entity, id}, "")
	}
	r, err := s.viewer.On(entity)
	if err != nil || !r.May(access.Read) || !r.May(verb) {
		return false, nil //nolint:nilerr // an entity type the viewer may not read holds nothing they may see
	}
	return inScope(ctx, q, r.Scope(verb), r.Entity, id)
}

// inScope reports whether a record is stored and a scope reaches it.
func inScope(ctx context.Context, q db.Querier, scope *access.Scope, e *schema.Entity, id string) (found bool, err error) {
	st := newStatement(`SELECT 1 FROM records r WHERE r.tenant_id = $1 AND r.entity = $2 AND r.record_id = $3 AND `, e.StoredAs(), id)
	st.reached(scope)
	err = q.Query(ctx, st.String(), func(db.Row) error { found = true; return nil }, st.args...)
	return found, err
}
