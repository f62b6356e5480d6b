package records

import (
	"context"
	"errors"
	"strings"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/fault"
	"gatehouse/internal/schema"
	"gatehouse/internal/user"
)

// Share shares a record, or changes the access of an existing share. Only the
// record's owner, users with an ancestor role, all_entity_access and the tenant
// owner may (contract A1). It accepts any user and role of the tenant;
// ShareWith is for a principal that a viewer names. It returns VALIDATION for
// an unknown access or principal, NOT_FOUND for a record that the viewer may
// not see, FORBIDDEN for one that they may not share, and CONFLICT beyond
// MaxShares.
func (s *Session) Share(ctx context.Context, entity, id string, share Share) error {
	if err := checkLevel(share.Access); err != nil {
		return err
	}
	return s.shared(ctx, entity, id, func(v *txView, r *access.EntityRights, rec *row) error {
		to, err := v.s.anyPrincipal(ctx, v.tx, share.Principal)
		if err == nil {
			_, _, err = v.s.share(ctx, v, r, rec, to, share.Access)
		}
		return err
	})
}

// Unshare removes a share. It returns NOT_FOUND when there is none with the
// principal, and NOT_FOUND and FORBIDDEN as Share does.
func (s *Session) Unshare(ctx context.Context, entity, id string, principal access.Principal) error {
	return s.shared(ctx, entity, id, func(v *txView, r *access.EntityRights, rec *row) error {
		to, _ := v.s.viewer.Config().Roles.Stored(principal) // "" for an unknown role, which no share has
		return v.s.unshare(ctx, v, r, rec, to)
	})
}

// shared runs fn on a record whose shares the viewer may change: they must be
// allowed to read the entity type and to delete the record (contract A1).
func (s *Session) shared(ctx context.Context, entity, id string, fn func(*txView, *access.EntityRights, *row) error) error {
	if err := s.MayShare(entity); err != nil {
		return err
	}
	return s.within(ctx, entity, id, access.Read, func(v *txView, r *access.EntityRights) error {
		rec, err := findFor(ctx, v, r, id, access.Delete, "share")
		if err != nil {
			return err
		}
		return fn(v, r, rec)
	})
}

// ShareWith shares a record as Share does, with a principal that the viewer may
// name (contract A17). It returns the share and whether it is new. Besides
// Share's errors, it returns VALIDATION for a principal that the viewer may not
// name, the same as for one that does not exist.
func (s *Session) ShareWith(ctx context.Context, entity, id string, with With, level access.Level) (share Share, isNew bool, err error) {
	if err := s.MayShare(entity); err != nil {
		return Share{}, false, err
	}
	if err := checkGiven(with, level); err != nil {
		return Share{}, false, err
	}
	err = s.within(ctx, entity, id, access.Read, func(v *txView, r *access.EntityRights) (err error) {
		share, isNew, err = v.s.shareNamed(ctx, v, r, id, with, level)
		return err
	})
	return share, isNew, err
}

// UnshareWith removes a share with a principal that the viewer may name, and
// returns {"user", "role", "deleted": true}. It returns NOT_FOUND when there is
// no such share, VALIDATION for a With of the wrong form, and NOT_FOUND and
// FORBIDDEN as Share does.
func (s *Session) UnshareWith(ctx context.Context, entity, id string, with With) (out Record, err error) {
	if err := s.MayShare(entity); err != nil {
		return nil, err
	}
	if err := checkWith(with); err != nil {
		return nil, err
	}
	err = s.within(ctx, entity, id, access.Read, func(v *txView, r *access.EntityRights) (err error) {
		out, err = v.s.unshareNamed(ctx, v, r, id, with)
		return err
	})
	return out, err
}

// Shares returns the shares of a record whose principals the viewer may name
// (contract A17). It returns NOT_FOUND for a record that they may not see, and
// FORBIDDEN when they may not read the entity type.
func (s *Session) Shares(ctx context.Context, entity, id string) ([]Share, error) {
	rights, err := s.sharable(entity)
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
		if principal, ok := s.viewer.Config().Roles.Principal(r.Text(0)); ok && s.mayName(principal) {
			list = append(list, Share{Principal: principal, Access: access.Level(r.Text(1)), CreatedAt: r.Int(2), CreatedBy: r.Text(3)})
			return s.hold(maxShareBytes * len(list))
		}
		return nil
	}, rights.Entity.StoredAs(), id)
	return list, err
}

// mayName reports whether the viewer may name a principal that exists.
func (s *Session) mayName(principal access.Principal) bool {
	if role, ok := principal.Role(); ok {
		return s.viewer.MayNameRole(role)
	}
	id, _ := principal.User()
	return s.viewer.MayNameUsers() || id == s.viewer.UserID()
}

var (
	errNoRole = fault.Fields("there is no such role", map[string]string{"role": "there is no such role"})
	errNoUser = fault.Fields("there is no such user", map[string]string{"user": "there is no such user"})
)

// principalOf returns the stored form of a principal that the viewer names. One
// that does not exist, and one that they may not name, is VALIDATION. Nothing
// is looked up for a principal that the viewer may not name, so that the
// response time does not reveal whether it exists.
func (s *Session) principalOf(ctx context.Context, q db.Querier, with With) (stored string, err error) {
	if with.Role != "" {
		if !s.viewer.MayNameRole(with.Role) {
			return "", errNoRole
		}
		return s.anyPrincipal(ctx, q, access.RolePrincipal(with.Role))
	}
	own, isAddress := s.viewer.UserID(), strings.Contains(with.User, "@")
	switch {
	case strings.IndexByte(with.User, 0) >= 0:
		return "", errNoUser // PostgreSQL texts cannot contain U+0000
	case !isAddress && (with.User == string(own) || s.viewer.MayNameUsers()):
		return s.anyPrincipal(ctx, q, access.UserPrincipal(user.ID(with.User)))
	case isAddress && s.viewer.MayNameByAddress():
		u, err := user.ByEmail(ctx, q, with.User)
		if errors.Is(err, user.ErrUnknown) {
			return "", errNoUser
		}
		if err != nil {
			return "", err
		}
		return string(access.UserPrincipal(u.ID)), nil
	case isAddress && own != "" && user.EmailKey(with.User) == user.EmailKey(s.viewer.Email()):
		return string(access.UserPrincipal(own)), nil
	}
	return "", errNoUser
}

// anyPrincipal returns the stored form of a principal that exists. It returns
// VALIDATION for any other.
func (s *Session) anyPrincipal(ctx context.Context, q db.Querier, principal access.Principal) (stored string, err error) {
	stored, known := s.viewer.Config().Roles.Stored(principal)
	if role, ok := principal.Role(); ok {
		if !known {
			return "", fault.Fields("there is no such role", map[string]string{"role": "there is no role " + role})
		}
		return stored, nil
	}
	if id, ok := principal.User(); ok {
		_, err := user.RoleOf(ctx, q, id)
		if errors.Is(err, user.ErrUnknown) {
			return "", errNoUser
		}
		return stored, err
	}
	return "", fault.Fields("expected a user or a role to share with", map[string]string{"principal": "expected a user or a role"})
}

// shareWith returns the share of a record with a principal in its stored form,
// without access where there is none, and how many shares the record has.
func shareWith(ctx context.Context, q db.Querier, c *access.Config, e *schema.Entity, id, to string) (share Share, n int, err error) {
	err = q.Query(ctx, `SELECT count(*), COALESCE(max(CASE WHEN s.principal = $4 THEN s.access END), ''),
		COALESCE(max(CASE WHEN s.principal = $4 THEN s.created_at END), 0),
		COALESCE(max(CASE WHEN s.principal = $4 THEN s.created_by END), '')
		FROM shares s WHERE s.tenant_id = $1 AND s.entity = $2 AND s.record_id = $3`, func(r db.Row) error {
		n = int(r.Int(0))
		share = Share{Access: access.Level(r.Text(1)), CreatedAt: r.Int(2), CreatedBy: r.Text(3)}
		return nil
	}, e.StoredAs(), id, to)
	share.Principal, _ = c.Roles.Principal(to)
	return share, n, err
}

// ---- view ----

func (v *txView) principal(ctx context.Context, with With) (string, error) {
	return v.s.principalOf(ctx, v.tx, with)
}

func (v *txView) shareWith(ctx context.Context, e *schema.Entity, rec *row, to string) (Share, int, error) {
	return shareWith(ctx, v.tx, v.s.viewer.Config(), e, rec.id, to)
}

func (v *txView) putShare(ctx context.Context, r *access.EntityRights, rec *row, to string, share Share) error {
	e := r.Entity
	_, err := v.tx.Exec(ctx, `INSERT INTO shares
		(tenant_id, entity, record_id, principal, access, record_created_at, created_at, created_by)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT (tenant_id, entity, record_id, principal) DO UPDATE SET access = excluded.access`,
		e.StoredAs(), rec.id, to, string(share.Access), rec.createdAt, share.CreatedAt, share.CreatedBy)
	if err != nil {
		return err
	}
	list, err := v.s.shareEntries(ctx, v.tx, e, rec, to)
	if err != nil {
		return err
	}
	if err := v.indexing.add(len(list)); err != nil {
		return err
	}
	return insertEntries(ctx, v.tx, e, rec.createdAt, list)
}

func (v *txView) dropShare(ctx context.Context, r *access.EntityRights, rec *row, to string) error {
	e := r.Entity
	_, err := v.tx.Exec(ctx, `DELETE FROM shares WHERE tenant_id = $1 AND entity = $2 AND record_id = $3 AND principal = $4`,
		e.StoredAs(), rec.id, to)
	if err != nil {
		return err
	}
	list, err := v.s.shareEntries(ctx, v.tx, e, rec, to)
	if err != nil {
		return err
	}
	if err := v.indexing.add(len(list)); err != nil {
		return err
	}
	return deleteEntries(ctx, v.tx, e.StoredAs(), rec.createdAt, list)
}

// shareEntries returns the index rows of a record for a principal.
func (s *Session) shareEntries(ctx context.Context, q db.Querier, e *schema.Entity, rec *row, to string) ([]entry, error) {
	below, err := families(ctx, q, s.viewer.Config(), e, rec.createdAt)
	return entriesOf(s.viewer.Config(), e, rec.data, below, access.ByShare, to), err
}
