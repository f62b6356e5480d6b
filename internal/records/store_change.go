package records

import (
	"context"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/schema"
	"gatehouse/internal/user"
)

// Update merges members into a record (contract R4): fields that members does
// not name keep their values, null clears. Updates of one record run one after
// another, so that changes of different fields all survive. It returns the
// record as the viewer may read it, or VALIDATION, FORBIDDEN, NOT_FOUND or
// CONFLICT.
func (s *Session) Update(ctx context.Context, entity, id string, members []Member) (Record, error) {
	if entity == schema.UserEntity {
		return s.updateUser(ctx, user.ID(id), members)
	}
	var out Record
	err := s.locked(ctx, entity, id, reach{access.Update, access.Update, "change"},
		func(s *Session, tx db.Tx, r *access.EntityRights, rec *row) error {
			if err := s.merge(ctx, tx, r, rec, members); err != nil {
				return err
			}
			out = s.show(r, rec)
			return s.hold(len(out)) // here, because it is too late once the change has been made
		})
	return out, err
}

// reach is what a viewer needs to do something with one record: the entity
// permission, the verb whose scope must reach the record, and a word for it.
type reach struct {
	permission, scope access.Verb
	word              string
}

// locked runs fn on a record that is held until its transaction ends, under the
// current configuration. It returns NOT_FOUND where the viewer may not see the
// record, FORBIDDEN where they see it and to.scope does not reach it.
func (s *Session) locked(ctx context.Context, entity, id string, to reach,
	fn func(*Session, db.Tx, *access.EntityRights, *row) error) error {
	return s.current(ctx, func(s *Session) error {
		r, err := s.on(entity, to.permission)
		if err != nil {
			return err
		}
		return s.h.Write(ctx, func(tx db.Tx) error {
			if err := s.fence(ctx, tx); err != nil {
				return err
			}
			rec, err := s.lock(ctx, tx, r, id, to.scope)
			if err != nil {
				return err
			}
			if !rec.allowed {
				return errNotYours(to.word)
			}
			return fn(s, tx, r, rec)
		})
	})
}

// merge applies a patch to a locked record and writes it.
func (s *Session) merge(ctx context.Context, tx db.Tx, r *access.EntityRights, rec *row, members []Member) error {
	p, err := s.patched(ctx, r, rec, members, s.seenBy(tx))
	if err != nil || len(members) == 0 { // an empty patch changes nothing, not even updated_at
		return err
	}
	return s.rewrite(ctx, tx, r, rec, p)
}

// patch is the effect of a body on a record: values by schema.Field.Index.
type patch struct {
	owner         user.ID // "" where the body has none
	before, after []jsontext.Value
	changed       []jsontext.Value // nil where a value does not change
}

// patched computes a patch and checks it.
func (s *Session) patched(ctx context.Context, r *access.EntityRights, rec *row, members []Member, visible visibleFunc) (*patch, error) {
	in, err := check(r, members)
	if err != nil {
		return nil, err
	}
	if err := s.checkOwner(in, rec.owner); err != nil {
		return nil, err
	}
	in.checkGiven(rec)
	before := stored(r.Entity, rec.data)
	p := &patch{owner: in.owner, before: before, after: make([]jsontext.Value, len(before)), changed: make([]jsontext.Value, len(before))}
	for i := range before {
		p.after[i] = before[i]
		if in.values[i] != nil {
			p.after[i] = in.values[i]
			if !same(before[i], in.values[i]) {
				p.changed[i] = in.values[i]
			}
		}
	}
	in.weigh(r.Entity, before, p.after, rec.data)
	changed := &input{values: p.changed, reasons: in.reasons}
	if err := checkReferences(ctx, r.Entity, changed, visible); err != nil {
		return nil, err
	}
	return p, changed.err()
}

// rewrite writes a record's new values, owner and index rows.
func (s *Session) rewrite(ctx context.Context, tx db.Tx, r *access.EntityRights, rec *row, p *patch) error {
	if err := s.holdReferences(ctx, tx, r.Entity, p.changed); err != nil {
		return err
	}
	if err := s.checkUnique(ctx, tx, r, rec, p.changed); err != nil {
		return err
	}
	was := standing{values: p.before, data: rec.data, owner: rec.owner, ownerRole: rec.ownerRole}
	if rangedChanges(r.Entity, p) || s.viewer.Config().Shape(r.Entity.StoredAs()) != nil { // otherwise the index rows of the shares do not change
		var err error
		if was.shares, err = s.principals(ctx, tx, r.Entity, rec.id); err != nil {
			return err
		}
	}
	s.apply(r, rec, p)
	args := []any{r.Entity.StoredAs(), rec.id, string(rec.data), rec.updatedAt, s.viewer.UserID(), len(rec.data)}
	set := ""
	if p.owner != "" && p.owner != rec.owner {
		role, err := s.roleOf(ctx, tx, p.owner)
		if err != nil {
			return err
		}
		rec.owner, rec.ownerRole = p.owner, role
		set = ", owner_id = $8, owner_role = $9"
		args = append(args, p.owner, role)
	}
	_, err := tx.Exec(ctx, `UPDATE records SET data = $4`+tx.Dialect().JSON+`, updated_at = $5, updated_by = $6,
		data_bytes = $7, version = version + 1`+set+` WHERE tenant_id = $1 AND entity = $2 AND record_id = $3`, args...)
	if err != nil {
		return err
	}
	is := standing{values: p.after, data: rec.data, owner: rec.owner, ownerRole: rec.ownerRole, shares: was.shares}
	return s.reindex(ctx, tx, r.Entity, rec.createdAt, was, is)
}

func rangedChanges(e *schema.Entity, p *patch) bool {
	return slices.ContainsFunc(e.Fields, func(f *schema.Field) bool { return ranged(f) && p.changed[f.Index] != nil })
}

// apply applies a patch to a record in memory, except for its owner.
func (s *Session) apply(r *access.EntityRights, rec *row, p *patch) {
	rec.data = document(r.Entity, p.after, rec.data)
	// updated_at never decreases, even if the clock was set back.
	rec.updatedAt = max(clock.Micros(s.store.clock.Now()), rec.updatedAt)
}

// Delete removes a record, its shares and its index rows, and clears every
// reference to it (contract R5, R10). It returns FORBIDDEN or NOT_FOUND.
func (s *Session) Delete(ctx context.Context, entity, id string) error {
	if entity == schema.UserEntity {
		return errUsersClosed
	}
	var left []access.Leftover
	err := s.locked(ctx, entity, id, reach{access.Delete, access.Delete, "delete"},
		func(s *Session, tx db.Tx, r *access.EntityRights, rec *row) (err error) {
			left, err = s.remove(ctx, tx, r.Entity, rec)
			return err
		})
	if err == nil {
		clearLeft(ctx, s.h, left)
	}
	return err
}

// remove deletes a locked record with its shares, index rows and the references
// to it. Where many records refer to it, it returns what is left to clear.
func (s *Session) remove(ctx context.Context, tx db.Tx, e *schema.Entity, rec *row) (left []access.Leftover, err error) {
	shares, err := s.principals(ctx, tx, e, rec.id)
	if err != nil {
		return nil, err
	}
	was := standing{values: stored(e, rec.data), data: rec.data, owner: rec.owner, ownerRole: rec.ownerRole, shares: shares}
	if err := s.reindex(ctx, tx, e, rec.createdAt, was, standing{}); err != nil {
		return nil, err
	}
	_, err = tx.Exec(ctx, `DELETE FROM shares WHERE tenant_id = $1 AND entity = $2 AND record_id = $3`, e.StoredAs(), rec.id)
	if err != nil {
		return nil, err
	}
	_, err = tx.Exec(ctx, `DELETE FROM records WHERE tenant_id = $1 AND entity = $2 AND record_id = $3`, e.StoredAs(), rec.id)
	if err != nil {
		return nil, err
	}
	config := s.viewer.Config()
	for _, from := range config.Schema.Entities {
		for _, f := range from.Fields {
			if f.Type == schema.Reference && f.TargetAs() == e.StoredAs() {
				l, err := s.clearReferences(ctx, tx, config, from, f, rec.id)
				if err != nil {
					return nil, err
				}
				left = append(left, l...)
			}
		}
	}
	return left, unfitReferences(ctx, tx, config, e.StoredAs(), rec.id)
}
