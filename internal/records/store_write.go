package records

import (
	"context"

	"gatehouse/internal/access"
	"gatehouse/internal/admission"
	"gatehouse/internal/db"
	"gatehouse/internal/schema"
	"gatehouse/internal/tenant"
)

// Create adds a record, owned by the viewer unless the body names another owner
// (contract R7), and returns it as the viewer may read it: `{"id": …}` only
// when they may not read the entity type (contract R12). It returns NOT_FOUND
// for an unknown entity type, FORBIDDEN for a verb, field or owner that is not
// open to the viewer and for the type user, VALIDATION for a body that does not
// fit, and CONFLICT for a unique value that is taken.
func (s *Session) Create(ctx context.Context, entity string, members []Member) (Record, error) {
	var out Record
	err := s.current(ctx, func(s *Session) error {
		// Outside of the transaction, which all creations of the tenant wait for.
		r, err := s.rights(entity, "", access.Create)
		if err != nil {
			return err
		}
		var in *input
		err = s.inTurn(ctx, members, func() (err error) {
			in, err = checkCreate(r, members)
			return err
		})
		if err != nil {
			return err
		}
		if err := s.draft(ctx, r, in, s.reachedBy(s.h)); err != nil {
			return err
		}
		return s.h.WriteOrdered(ctx, func(tx db.Tx) error {
			if err := s.fence(ctx, tx); err != nil {
				return err
			}
			out, err = s.create(ctx, &txView{s: s, tx: tx}, r, in)
			return err
		})
	})
	return out, err
}

// Update merges members into a record (contract R4): fields that members does
// not name keep their values, null clears. Updates of one record run one after
// another, so that changes of different fields all survive. It returns the
// record as the viewer may read it, or NOT_FOUND for a record that they may not
// see, and FORBIDDEN, VALIDATION and CONFLICT as Create does. Of a user it
// changes name, locale and custom fields (contract U5).
func (s *Session) Update(ctx context.Context, entity, id string, members []Member) (Record, error) {
	var out Record
	managed := false
	err := s.current(ctx, func(s *Session) error {
		r, err := s.rights(entity, id, access.Update)
		if err != nil {
			return err
		}
		var in *input
		err = s.inTurn(ctx, members, func() error {
			in = checkUpdate(r, members)
			return nil
		})
		if err != nil {
			return err
		}
		managed = r.Entity.Name == schema.UserEntity && managing(r.Entity, members)
		return s.fenced(ctx, func(v *txView) error {
			out, err = s.update(ctx, v, r, id, members, in)
			return err
		})
	})
	if err == nil && managed {
		s.store.dir.Forget() // the user's viewer
	}
	return out, err
}

// Delete removes a record, its shares and its index rows, and clears every
// reference to it (contract R5, R10). It returns NOT_FOUND for a record that
// the viewer may not see, and FORBIDDEN for one that they may not delete and
// for the type user.
func (s *Session) Delete(ctx context.Context, entity, id string) error {
	var left []access.Leftover
	err := s.within(ctx, entity, id, access.Delete, func(v *txView, r *access.EntityRights) error {
		err := v.s.remove(ctx, v, r, id)
		left = v.left
		return err
	})
	if err == nil {
		clearLeft(ctx, s.h, left)
	}
	return err
}

// inTurn runs fn, which goes through members, in a turn at the cores if they are large. It
// must not be called by who has a core.
func (s *Session) inTurn(ctx context.Context, members []Member, fn func() error) error {
	size := 0
	for i := range members {
		size += len(members[i].Value)
	}
	if size < admission.Heavy {
		return fn()
	}
	work, err := s.store.cores.Start(ctx, string(s.viewer.Tenant()))
	if err != nil {
		return err
	}
	defer work.Stop()
	return fn()
}

// within runs fn in a transaction under the current configuration, with the
// viewer's rights on an entity type. It returns NOT_FOUND or FORBIDDEN where
// these do not include the permission.
func (s *Session) within(ctx context.Context, entity, id string, permission access.Verb,
	fn func(*txView, *access.EntityRights) error) error {
	return s.current(ctx, func(s *Session) error {
		r, err := s.rights(entity, id, permission)
		if err != nil {
			return err
		}
		return s.fenced(ctx, func(v *txView) error { return fn(v, r) })
	})
}

// fenced runs fn in a transaction under the viewer's configuration. It returns errStale
// when that is not the current one.
func (s *Session) fenced(ctx context.Context, fn func(*txView) error) error {
	return s.h.Write(ctx, func(tx db.Tx) error {
		if err := s.fence(ctx, tx); err != nil {
			return err
		}
		return fn(&txView{s: s, tx: tx})
	})
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

// reachedBy returns what the viewer may do with records, read through q.
func (s *Session) reachedBy(q db.Querier) reachesFunc {
	return func(ctx context.Context, entity, id string, verb access.Verb) (bool, error) {
		return s.reaches(ctx, q, entity, id, verb)
	}
}
