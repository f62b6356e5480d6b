package identity

import (
	"context"
	"time"

	"gatehouse/internal/session"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// sweepEvery is how often tokens that have long expired are deleted.
const sweepEvery = time.Hour

// How long expired tokens are kept. While a one-time token is kept, it is reported as
// expired and not as unknown.
const (
	keepRefresh = 24 * time.Hour
	keepOneTime = 30 * 24 * time.Hour
	keepKey     = accessLifetime + 24*time.Hour // since it was retired
)

// runSweep calls sweep, now and every hour, until ctx ends.
func (s store) runSweep(ctx context.Context, failed func(error)) {
	s.d.Housekeep(ctx, "identity", sweepEvery, s.sweep, failed)
}

// sweep deletes the long-expired tokens and sessions of every tenant, and the keys whose tokens
// have all expired.
func (s store) sweep(ctx context.Context) error {
	now, err := s.d.Now(ctx)
	if err != nil {
		return err
	}
	before := func(kept time.Duration) int64 { return now.UnixMicro() + s.offset() - micros(kept) }
	return tenant.Expire(ctx, s.d,
		session.Old(before(keepRefresh)),
		tenant.Old{
			Some: `SELECT 1 FROM one_time_tokens WHERE tenant_id = $1 AND expires_at < $2`,
			Delete: []string{`DELETE FROM one_time_tokens WHERE tenant_id = $1 AND token_hash IN (SELECT token_hash FROM one_time_tokens
				WHERE tenant_id = $1 AND expires_at < $2 ORDER BY expires_at LIMIT 500)`},
			Args: []any{before(keepOneTime)},
		},
		tenant.Old{
			Some:   `SELECT 1 FROM jwt_keys WHERE tenant_id = $1 AND retired_at < $2`,
			Delete: []string{`DELETE FROM jwt_keys WHERE tenant_id = $1 AND retired_at < $2`},
			Args:   []any{before(keepKey)},
		})
}

// clashing returns the tenants with accounts that share an address.
func (s store) clashing(ctx context.Context) ([]tenant.ID, error) { return user.Clashing(ctx, s.d) }

func (s store) clashes(ctx context.Context, tenantID tenant.ID) (map[string][]user.ID, error) {
	return user.Clashes(ctx, s.d.For(tenantID))
}
