package identity

import (
	"context"

	"gatehouse/internal/db"
	"gatehouse/internal/fault"
	"gatehouse/internal/secret"
	"gatehouse/internal/tenant"
)

// sealedKey is a signing key in its stored form.
type sealedKey struct {
	signingKey
	sealed string
}

// signingKeys returns the tenant's keys with their secrets sealed.
func (s store) signingKeys(ctx context.Context, tenantID tenant.ID) ([]*sealedKey, error) {
	var list []*sealedKey
	err := s.d.For(tenantID).Query(ctx, `SELECT kid, sealed, retired_at FROM jwt_keys WHERE tenant_id = $1`, func(r db.Row) error {
		k := &sealedKey{signingKey: signingKey{kid: r.Text(0)}, sealed: r.Text(1)}
		if !r.Null(2) {
			k.retiredAt = r.Int(2)
		}
		list = append(list, k)
		return nil
	})
	return list, err
}

// CheckKeys returns secret.ErrOpen if a signing key of the tenant of h was sealed with
// another master key.
func CheckKeys(ctx context.Context, h db.Handle, keyring *secret.Keyring) error {
	var sealed []string
	err := h.Query(ctx, `SELECT sealed FROM jwt_keys WHERE tenant_id = $1`, func(r db.Row) error {
		sealed = append(sealed, r.Text(0))
		return nil
	})
	for _, s := range sealed {
		if err == nil {
			_, err = keyring.Open(keyPurpose(h.Tenant()), s)
		}
	}
	return err
}

// firstKey stores the tenant's first key unless it has one already.
func (s store) firstKey(ctx context.Context, tenantID tenant.ID, k sealedKey) error {
	return s.d.For(tenantID).Write(ctx, func(tx db.Tx) error {
		if _, err := tenant.Fence(ctx, tx); err != nil { // so that no rotation can intervene
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO jwt_keys (tenant_id, kid, sealed, created_at, retired_at)
			VALUES ($1, $2, $3, `+tx.Dialect().Now+` + $4, NULL) ON CONFLICT DO NOTHING`, k.kid, k.sealed, s.offset())
		return err
	})
}

// pastKey is a signing key in the change history.
type pastKey struct {
	Signs bool `json:"signs"`
}

// rotateKey retires the current key and stores the next one. It returns NOT_FOUND if the
// tenant does not exist.
func (s store) rotateKey(ctx context.Context, actor string, tenantID tenant.ID, k sealedKey) error {
	h, err := s.handle(tenantID)
	if err != nil {
		return err
	}
	return tenant.Configure(ctx, h, actor, s.clock, func(tx tenant.ConfigTx, log *tenant.History) error {
		if _, ok, err := tenant.Version(ctx, tx); err != nil {
			return err
		} else if !ok {
			return errNoTenant(tenantID)
		}
		err := tx.Query(ctx, `UPDATE jwt_keys SET retired_at = `+tx.Dialect().Now+` + $2
			WHERE tenant_id = $1 AND retired_at IS NULL RETURNING kid`, func(r db.Row) error {
			log.Record("jwt_key", r.Text(0), pastKey{Signs: true}, pastKey{Signs: false})
			return nil
		}, s.offset())
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO jwt_keys (tenant_id, kid, sealed, created_at, retired_at)
			VALUES ($1, $2, $3, `+tx.Dialect().Now+` + $4, NULL)`, k.kid, k.sealed, s.offset())
		log.Record("jwt_key", k.kid, nil, pastKey{Signs: true})
		return err
	})
}

// handle returns the database bound to a tenant. It returns NOT_FOUND for "".
func (s store) handle(tenantID tenant.ID) (db.Handle, error) {
	if tenantID == "" {
		return nil, errNoTenant(tenantID)
	}
	return s.d.For(tenantID), nil
}

func errNoTenant(tenantID tenant.ID) error {
	return fault.New(fault.NotFound, "there is no tenant %q", tenantID)
}
