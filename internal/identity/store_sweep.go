package identity

import (
	"context"
	"time"

	"gatehouse/internal/background"
	"gatehouse/internal/db"
	"gatehouse/internal/session"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// How long expired tokens are kept. While a one-time token is kept, it is reported as
// expired and not as unknown.
const (
	keepRefresh = 24 * time.Hour
	keepOneTime = 30 * 24 * time.Hour
)

func (s store) tenants(ctx context.Context) ([]tenant.ID, error) { return tenant.List(ctx, s.d) }

func (s store) clashes(ctx context.Context, tenantID tenant.ID) (map[string][]user.ID, error) {
	return user.Clashes(ctx, s.d.For(tenantID))
}

// sweep deletes expired tokens, sessions and keys, up to 500 rows at a time.
func (s store) sweep(ctx context.Context, tenantID tenant.ID) error {
	refresh, oneTime := micros(keepRefresh)-s.offset(), micros(keepOneTime)-s.offset()
	for _, group := range [][]deletion{
		{ // tokens first, then their chains
			func(ctx context.Context, tx db.Tx) (int64, error) { return session.DropTokens(ctx, tx, refresh) },
			func(ctx context.Context, tx db.Tx) (int64, error) { return session.DropChains(ctx, tx, refresh) },
		},
		{func(ctx context.Context, tx db.Tx) (int64, error) { return dropOneTime(ctx, tx, oneTime) }},
	} {
		if err := s.exhaust(ctx, tenantID, group); err != nil {
			return err
		}
	}
	return s.dropKeys(ctx, tenantID)
}

// deletion deletes up to 500 rows and returns how many it deleted.
type deletion func(ctx context.Context, tx db.Tx) (gone int64, err error)

// exhaust repeats the deletions, each in a transaction of its own, until none finds a row.
// After each deletion it pauses for as long as the deletion took.
func (s store) exhaust(ctx context.Context, tenantID tenant.ID, group []deletion) error {
	for left := int64(1); left > 0; {
		left = 0
		for _, some := range group {
			begun := time.Now()
			var gone int64
			err := s.d.For(tenantID).Write(ctx, func(tx db.Tx) (err error) {
				gone, err = some(ctx, tx)
				return err
			})
			if err == nil {
				err = background.Rest(ctx, time.Since(begun))
			}
			if err != nil {
				return err
			}
			left += gone
		}
	}
	return nil
}

// dropOneTime deletes up to 500 one-time tokens that expired longer ago than keep, in
// microseconds.
func dropOneTime(ctx context.Context, tx db.Tx, keep int64) (gone int64, err error) {
	return tx.Exec(ctx, `DELETE FROM one_time_tokens WHERE tenant_id = $1 AND token_hash IN (SELECT token_hash FROM one_time_tokens
		WHERE tenant_id = $1 AND expires_at < `+tx.Dialect().Now+` - $2 ORDER BY expires_at LIMIT 500)`, keep)
}
