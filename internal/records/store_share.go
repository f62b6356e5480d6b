package records

import (
	"context"
	"errors"
	"strings"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/fault"
	"gatehouse/internal/schema"
	"gatehouse/internal/user"
)

// Share is one record shared with one principal (access.UserPrincipal,
// access.RolePrincipal).
type Share struct {
	Principal string
	Access    access.Level
	CreatedAt int64 // microseconds UTC
	CreatedBy string
}

// Share shares a record, or changes the access of an existing share. Only the
// record's owner, users with an ancestor role, all_entity_access and the tenant
// owner may (contract A1). It returns VALIDATION for an unknown access or
// principal, NOT_FOUND for a record that the viewer may not see, and FORBIDDEN
// for one that they may not share.
func (s *Session) Share(ctx context.Context, entity, id string, share Share) error {
	if share.Access != access.ReadOnly && share.Access != access.Edit {
		return fault.Fields("access: expected read or edit", map[string]string{"access": "expected read or edit"})
	}
	return s.shared(ctx, entity, id, func(s *Session, tx db.Tx, e *schema.Entity, rec *row) error {
		principal, err := s.principal(ctx, tx, share.Principal)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO shares
			(tenant_id, entity, record_id, principal, access, record_created_at, created_at, created_by)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
			ON CONFLICT (tenant_id, entity, record_id, principal) DO UPDATE SET access = excluded.access`,
			e.StoredAs(), id, principal, string(share.Access), rec.createdAt, clock.Micros(s.store.clock.Now()), s.viewer.UserID())
		if err != nil {
			return err
		}
		return insertEntries(ctx, tx, e, rec.createdAt, entriesOf(s.viewer.Config(), e, rec.data, access.ByShare, principal))
	})
}

// Unshare removes a share. It returns NOT_FOUND when there is none with the
// principal, and NOT_FOUND and FORBIDDEN as Share does.
func (s *Session) Unshare(ctx context.Context, entity, id, principal string) error {
	return s.shared(ctx, entity, id, func(s *Session, tx db.Tx, e *schema.Entity, rec *row) error {
		name, _ := s.viewer.Config().Roles.Stored(principal) // "" for an unknown role, which no share has
		n, err := tx.Exec(ctx, `DELETE FROM shares WHERE tenant_id = $1 AND entity = $2 AND record_id = $3 AND principal = $4`,
			e.StoredAs(), id, name)
		if err == nil && n == 0 {
			err = fault.New(fault.NotFound, "the record is not shared with %s", principal)
		}
		if err != nil {
			return err
		}
		return deleteEntries(ctx, tx, e.StoredAs(), rec.createdAt, entriesOf(s.viewer.Config(), e, rec.data, access.ByShare, name))
	})
}

// shared runs fn on a record whose shares the viewer may change: they must be
// allowed to read the entity type and to delete the record (contract A1).
func (s *Session) shared(ctx context.Context, entity, id string, fn func(*Session, db.Tx, *schema.Entity, *row) error) error {
	if _, err := s.viewer.On(entity); err != nil { // users are not shared
		return err
	}
	return s.within(ctx, entity, id, access.Read, func(v *txView, r *access.EntityRights) error {
		rec, err := findFor(ctx, v, r, id, access.Delete, "share")
		if err != nil {
			return err
		}
		return fn(v.s, v.tx, r.Entity, rec)
	})
}

// Shares returns the explicit shares of a record that the viewer may see. It
// returns NOT_FOUND when they may not, and FORBIDDEN when they may not read the
// entity type.
func (s *Session) Shares(ctx context.Context, entity, id string) ([]Share, error) {
	rights, err := s.on(entity, access.Read)
	if err != nil {
		return nil, err
	}
	ok, err := s.visible(ctx, s.h, entity, id)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, errUnseen
	}
	var list []Share
	err = s.h.Query(ctx, `SELECT principal, access, created_at, created_by FROM shares
		WHERE tenant_id = $1 AND entity = $2 AND record_id = $3 ORDER BY principal`, func(r db.Row) error {
		if principal, ok := s.viewer.Config().Roles.Principal(r.Text(0)); ok {
			list = append(list, Share{Principal: principal, Access: access.Level(r.Text(1)), CreatedAt: r.Int(2), CreatedBy: r.Text(3)})
		}
		return nil
	}, rights.Entity.StoredAs(), id)
	return list, err
}

// principal returns the stored form of the principal of a new share. An unknown
// one is VALIDATION.
func (s *Session) principal(ctx context.Context, q db.Querier, principal string) (stored string, err error) {
	kind, name, _ := strings.Cut(principal, ":")
	switch kind {
	case "role":
		if stored, ok := s.viewer.Config().Roles.Stored(principal); ok {
			return stored, nil
		}
		return "", fault.Fields("there is no such role", map[string]string{"role": "there is no role " + name})
	case "user":
		_, err := user.RoleOf(ctx, q, user.ID(name))
		if errors.Is(err, user.ErrUnknown) {
			return "", fault.Fields("there is no such user", map[string]string{"user": "there is no such user"})
		}
		return principal, err
	}
	return "", fault.Fields("expected a user or a role to share with", map[string]string{"principal": "expected a user or a role"})
}
