package records

import (
	"context"
	"errors"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/fault"
	"gatehouse/internal/schema"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// Create adds a record, owned by the viewer unless the body names another owner
// (contract R7), and returns it as the viewer may read it: `{"id": …}` only
// when they may not read the entity type (contract R12). It returns VALIDATION,
// FORBIDDEN, NOT_FOUND or CONFLICT as contract section R says.
func (s *Session) Create(ctx context.Context, entity string, members []Member) (Record, error) {
	if entity == schema.UserEntity {
		return nil, errUsersClosed
	}
	var out Record
	err := s.current(ctx, func(s *Session) error {
		r, err := s.on(entity, access.Create)
		if err != nil {
			return err
		}
		in, err := checkCreate(r, members)
		if err != nil {
			return err
		}
		if err := s.checkOwner(in, s.viewer.UserID()); err != nil {
			return err
		}
		if err := checkReferences(ctx, r.Entity, in, s.seenBy(s.h)); err != nil {
			return err
		}
		if err := in.err(); err != nil {
			return err
		}
		return s.h.WriteOrdered(ctx, func(tx db.Tx) error {
			if err := s.fence(ctx, tx); err != nil {
				return err
			}
			rec, err := s.insert(ctx, tx, r, in, "")
			if err != nil {
				return err
			}
			out = s.show(r, rec)
			return s.hold(len(out)) // here, because it is too late once the change has been made
		})
	})
	return out, err
}

// fence holds the configuration unchanged for tx. It returns errStale when it
// is not the viewer's.
func (s *Session) fence(ctx context.Context, tx db.Tx) error {
	version, err := tenant.Fence(ctx, tx)
	if err == nil && version != s.viewer.Config().Tenant.Version {
		err = errStale
	}
	return err
}

// show returns what the viewer may see of a record they wrote.
func (s *Session) show(r *access.EntityRights, rec *row) Record {
	if !r.May(access.Read) {
		return renderID(rec.id)
	}
	return render(nil, r, rec)
}

// checkOwner allows only the tenant owner and viewers with all_entity_access to
// name an owner other than the present one (contract R7). It returns FORBIDDEN
// otherwise.
func (s *Session) checkOwner(in *input, present user.ID) error {
	if in.owner == "" || in.owner == present {
		return nil
	}
	if !s.viewer.AllEntityAccess() {
		return fault.New(fault.Forbidden, "only the tenant owner or a user with all_entity_access may set owner_id").
			With("fields", map[string]string{"owner_id": "you may not set another owner"})
	}
	return nil
}

// visibleFunc reports whether a record exists and the viewer may see it.
type visibleFunc func(ctx context.Context, entity, id string) (bool, error)

// seenBy returns the visibility of records to the viewer, read through q.
func (s *Session) seenBy(q db.Querier) visibleFunc {
	return func(ctx context.Context, entity, id string) (bool, error) { return s.visible(ctx, q, entity, id) }
}

// checkReferences fails each reference to a record that does not exist or that
// the viewer may not see, both with the same reason (contract R10).
func checkReferences(ctx context.Context, e *schema.Entity, in *input, visible visibleFunc) error {
	for i, f := range e.Fields {
		if f.Type != schema.Reference || in.values[i] == nil || schema.IsNull(in.values[i]) {
			continue
		}
		ok, err := visible(ctx, f.Target, schema.Unquote(in.values[i]))
		if err != nil {
			return err
		}
		if !ok {
			in.fail(f.Name, "there is no such record of "+f.Target)
		}
	}
	return nil
}

// insert writes a checked new record inside tx, which must be fenced. id is the
// record's id, or "" to make one.
func (s *Session) insert(ctx context.Context, tx db.Tx, r *access.EntityRights, in *input, id string) (*row, error) {
	now := clock.Micros(s.store.clock.Now())
	tick, err := tenant.Tick(ctx, tx, now)
	if err != nil {
		return nil, err
	}
	acting := s.viewer.UserID()
	rec := &row{
		id: id, owner: acting, createdAt: tick, updatedAt: tick, version: 1, data: document(r.Entity, in.values, nil),
	}
	if id == "" {
		rec.id = clock.NewID(clock.FromMicros(tick))
	}
	if in.owner != "" {
		rec.owner = in.owner
	}
	if rec.ownerRole, err = s.roleOf(ctx, tx, rec.owner); err != nil {
		return nil, err
	}
	if err := s.holdReferences(ctx, tx, r.Entity, in.values); err != nil {
		return nil, err
	}
	if err := s.checkUnique(ctx, tx, r, rec, in.values); err != nil {
		return nil, err
	}
	_, err = tx.Exec(ctx, `INSERT INTO records (tenant_id, entity, record_id, owner_id, owner_role, created_at, updated_at,
		created_by, updated_by, version, data, data_bytes) VALUES ($1, $2, $3, $4, $5, $6, $6, $7, $7, 1, $8`+tx.Dialect().JSON+`, $9)`,
		r.Entity.StoredAs(), rec.id, rec.owner, rec.ownerRole, tick, acting, string(rec.data), len(rec.data))
	if err != nil {
		return nil, err
	}
	is := standing{values: in.values, data: rec.data, owner: rec.owner, ownerRole: rec.ownerRole}
	return rec, s.reindex(ctx, tx, r.Entity, rec.createdAt, standing{}, is)
}

// roleOf returns the stored role of a record's owner, which holds as long as tx
// is fenced. An unknown owner is VALIDATION.
func (s *Session) roleOf(ctx context.Context, q db.Querier, owner user.ID) (string, error) {
	role, err := s.viewer.Role(), error(nil)
	if owner != s.viewer.UserID() {
		role, err = user.RoleOf(ctx, q, owner)
	}
	if errors.Is(err, user.ErrUnknown) {
		return "", fault.Fields("some fields are not valid", map[string]string{"owner_id": "there is no such user"})
	}
	return s.viewer.Config().OwnerRole(owner, role), err
}

// holdReferences locks the records that values refer to, so that none can be
// deleted before tx ends. One that was deleted meanwhile is VALIDATION.
func (s *Session) holdReferences(ctx context.Context, tx db.Tx, e *schema.Entity, values []jsontext.Value) error {
	for i, f := range e.Fields {
		if f.Type != schema.Reference || values[i] == nil || schema.IsNull(values[i]) {
			continue
		}
		found := false
		err := tx.Query(ctx, `SELECT 1 FROM records WHERE tenant_id = $1 AND entity = $2 AND record_id = $3`+tx.Dialect().ForShare,
			func(db.Row) error { found = true; return nil }, f.TargetAs(), schema.Unquote(values[i]))
		if err != nil {
			return err
		}
		if !found {
			return fault.Fields("some fields are not valid", map[string]string{f.Name: "there is no such record of " + f.Target})
		}
	}
	return nil
}

// checkUnique returns a CONFLICT that names every field whose value another
// record has (contract R11). The unique index decides in the end: reindex finds
// a value that another transaction takes at the same time.
func (s *Session) checkUnique(ctx context.Context, tx db.Tx, r *access.EntityRights, rec *row, values []jsontext.Value) error {
	taken := map[string]string{}
	for i, f := range r.Entity.Fields {
		key, ok := indexKey(f, values[i])
		if !ok || !f.Unique {
			continue
		}
		err := tx.Query(ctx, `SELECT 1 FROM field_values WHERE tenant_id = $1 AND entity = $2 AND field = $3 AND value = $4
			AND reach = '' AND is_unique = 1 AND record_created_at <> $5`, func(db.Row) error {
			taken[f.Name] = "the value is taken"
			return nil
		}, r.Entity.StoredAs(), f.StoredAs(), key, rec.createdAt)
		if err != nil {
			return err
		}
	}
	if len(taken) > 0 {
		return conflict(taken)
	}
	return nil
}

func conflict(fields map[string]string) error {
	return fault.New(fault.Conflict, "a unique field's value is taken").With("fields", fields)
}

// reindex replaces the index rows and rule matches that before implies with
// those of after. It computes the matching rules of both.
func (s *Session) reindex(ctx context.Context, tx db.Tx, e *schema.Entity, createdAt int64, before, after standing) error {
	rules := valueRules(s.viewer.Config(), e.Name)
	before.rules, after.rules = holding(e, rules, before.values), holding(e, rules, after.values)
	for _, rule := range rules {
		was, is := slices.Contains(before.rules, rule.StoredAs()), slices.Contains(after.rules, rule.StoredAs())
		if was == is {
			continue
		}
		if err := setMatch(ctx, tx, rule.StoredAs(), createdAt, is); err != nil {
			return err
		}
	}
	if err := replaceEntries(ctx, tx, e, createdAt, before.entries(e), after.entries(e)); err != nil {
		return err
	}
	if shape := s.viewer.Config().Shape(e.StoredAs()); shape != nil {
		return followShape(ctx, tx, shape, createdAt, before, after)
	}
	return nil
}

func setMatch(ctx context.Context, tx db.Tx, rule string, createdAt int64, is bool) error {
	if !is {
		_, err := tx.Exec(ctx, `DELETE FROM rule_matches WHERE tenant_id = $1 AND rule_id = $2 AND record_created_at = $3`, rule, createdAt)
		return err
	}
	_, err := tx.Exec(ctx, `INSERT INTO rule_matches (tenant_id, rule_id, record_created_at) VALUES ($1, $2, $3)
		ON CONFLICT (tenant_id, rule_id, record_created_at) DO NOTHING`, rule, createdAt)
	return err
}

// lock reads a record that the viewer may see and holds it until tx ends;
// row.allowed reports whether verb reaches it, too.
//
// On PostgreSQL a statement that waited for the row gets the row as it is then,
// but shares and rule matches as they were when the statement began. So what
// does not follow from the row itself is checked again, by a statement that
// begins when the row is held. No transaction waits for a record that its
// viewer could not see.
func (s *Session) lock(ctx context.Context, tx db.Tx, r *access.EntityRights, id string, verb access.Verb) (*row, error) {
	suffix := tx.Dialect().ForUpdate
	rec, err := find(ctx, tx, r, id, verb, suffix)
	sees, reaches := r.Scope(access.Read), r.Scope(verb)
	switch {
	case suffix == "" || sees.All && reaches.All:
		return rec, err
	case err == nil && sees.OfOwner(rec.owner, rec.ownerRole) && reaches.OfOwner(rec.owner, rec.ownerRole):
		return rec, nil
	case errors.Is(err, errUnseen): // perhaps only by the old shares and matches
		if _, err := find(ctx, tx, r, id, verb, ""); err != nil {
			return nil, err
		}
		if _, err := exists(ctx, tx, r.Entity.StoredAs(), id, suffix); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, err
	}
	return find(ctx, tx, r, id, verb, "")
}

// find reads a record that the viewer may see; suffix is the locking clause.
func find(ctx context.Context, q db.Querier, r *access.EntityRights, id string, verb access.Verb, suffix string) (*row, error) {
	st := newStatement(`SELECT `+rowColumns(q)+`, r.version, CASE WHEN `, r.Entity.StoredAs(), id)
	st.reached(r.Scope(verb))
	st.WriteString(` THEN 1 ELSE 0 END, r.owner_role FROM records r WHERE r.tenant_id = $1 AND r.entity = $2 AND r.record_id = $3 AND `)
	st.reached(r.Scope(access.Read))
	st.WriteString(suffix)
	var rec *row
	err := q.Query(ctx, st.String(), func(dbRow db.Row) error {
		rec = &row{}
		scanRow(dbRow, rec)
		rec.data = append(jsontext.Value(nil), rec.data...)
		rec.version, rec.allowed, rec.ownerRole = dbRow.Int(5), dbRow.Bool(6), dbRow.Text(7)
		return nil
	}, st.args...)
	if err == nil && rec == nil {
		err = errUnseen
	}
	return rec, err
}
