package records

import (
	"context"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/schema"
)

const rowColumns = "r.record_id, r.owner_id, r.created_at, r.updated_at, r.data"

// scanRow reads rowColumns; the data is valid only inside the callback.
func scanRow(r db.Row, rec *row) {
	*rec = row{id: r.Text(0), owner: r.Text(1), createdAt: r.Int(2), updatedAt: r.Int(3), data: r.Bytes(4)}
}

// Get reads one record; NOT_FOUND when there is none or the viewer may not see it.
func (s *Session) Get(ctx context.Context, entity, id string) (Record, error) {
	if entity == schema.UserEntity {
		return s.getUser(ctx, id)
	}
	r, err := s.on(entity, access.Read)
	if err != nil {
		return nil, err
	}
	st := newStatement(`SELECT `+rowColumns+` FROM records r WHERE r.tenant_id = $1 AND r.entity = $2 AND r.record_id = $3 AND `, entity, id)
	st.reached(r.Scope(access.Read))
	var out Record
	var rec row
	err = s.h.Query(ctx, st.String(), func(dbRow db.Row) error {
		scanRow(dbRow, &rec)
		out = render(make([]byte, 0, 256+2*len(rec.data)), r, &rec)
		return nil
	}, st.args...)
	if err != nil {
		return nil, err
	}
	if out == nil {
		return nil, errUnseen
	}
	return out, nil
}

// fetch reads the rows of a window that the viewer may see and the filters
// match, newest first.
func (s *Session) fetch(ctx context.Context, r *access.EntityRights, w window, filters []filter, each func(*row) error) error {
	before := w.before
	if before == "" {
		before = everAfter
	}
	scope := r.Scope(access.Read)
	var st *statement
	switch {
	case len(filters) > 0:
		st = filtered(scope, filters, r.Entity.Name, before, w)
	case scope.All || armCount(scope) > maxArms:
		st = newStatement(`SELECT `+rowColumns+` FROM records r WHERE r.tenant_id = $1 AND r.entity = $2
			AND r.record_id < $3 AND r.record_id > $4 AND `, r.Entity.Name, before, w.after, w.limit)
		st.reached(scope)
		st.WriteString(` ORDER BY r.record_id DESC LIMIT $5`)
	default:
		// CROSS JOIN keeps SQLite from starting at records; PostgreSQL needs no telling.
		st = newStatement(`SELECT `+rowColumns+` FROM (SELECT record_id FROM (`, r.Entity.Name, before, w.after, w.limit)
		st.arms(scope)
		st.WriteString(`) u ORDER BY record_id DESC LIMIT $5) k CROSS JOIN records r
			WHERE r.tenant_id = $1 AND r.entity = $2 AND r.record_id = k.record_id ORDER BY k.record_id DESC`)
	}
	var rec row
	return s.h.Query(ctx, st.String(), func(dbRow db.Row) error {
		scanRow(dbRow, &rec)
		return each(&rec)
	}, st.args...)
}

// filtered walks the index entries of the first filter's value and keeps what
// the scope reaches and every other filter matches.
func filtered(scope *access.Scope, filters []filter, entity, before string, w window) *statement {
	st := newStatement(`SELECT `+rowColumns+` FROM field_values f CROSS JOIN records r
		WHERE f.tenant_id = $1 AND f.entity = $2 AND f.record_id < $3 AND f.record_id > $4
		AND r.tenant_id = $1 AND r.entity = $2 AND r.record_id = f.record_id AND f.field = `, entity, before, w.after, w.limit)
	st.arg(filters[0].field)
	st.WriteString(" AND f.value = ")
	st.arg(filters[0].key)
	for _, f := range filters[1:] {
		st.WriteString(` AND EXISTS (SELECT 1 FROM field_values x WHERE x.tenant_id = $1 AND x.entity = $2
			AND x.record_id = r.record_id AND x.field = `)
		st.arg(f.field)
		st.WriteString(" AND x.value = ")
		st.arg(f.key)
		st.WriteString(")")
	}
	st.WriteString(" AND ")
	st.reached(scope)
	st.WriteString(" ORDER BY f.record_id DESC LIMIT $5")
	return st
}

// visible reports whether a record exists and the viewer may see it.
func (s *Session) visible(ctx context.Context, q db.Querier, entity, id string) (bool, error) {
	r, err := s.viewer.On(entity)
	if err != nil || !r.May(access.Read) {
		return false, nil //nolint:nilerr // an entity type the viewer may not read holds nothing they may see
	}
	st := newStatement(`SELECT 1 FROM records r WHERE r.tenant_id = $1 AND r.entity = $2 AND r.record_id = $3 AND `, entity, id)
	st.reached(r.Scope(access.Read))
	found := false
	err = q.Query(ctx, st.String(), func(db.Row) error { found = true; return nil }, st.args...)
	return found, err
}
