package identity

import (
	"context"
	"time"

	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// What is kept after it is worth nothing: a one-time token for as long as it
// had better be called old than unknown.
const (
	keepRefresh = 24 * time.Hour
	keepOneTime = 30 * 24 * time.Hour
)

func (s store) tenants(ctx context.Context) ([]string, error) { return tenant.List(ctx, s.d) }

func (s store) clashes(ctx context.Context, tenantID string) (map[string][]string, error) {
	return user.Clashes(ctx, s.d.For(tenantID))
}

// sweep deletes what can answer nothing any more, some hundreds of rows at a time.
func (s store) sweep(ctx context.Context, tenantID string) error {
	h := s.d.For(tenantID)
	now := h.Dialect().Now + ` - $2`
	type deletion struct {
		sql  string
		keep time.Duration
	}
	// A token stays as long as its chain: whenever an old one comes back, it ends
	// the chain. A chain goes after its tokens.
	const oldChains = `SELECT chain_id FROM refresh_chains WHERE tenant_id = $1 AND expires_at < `
	for _, group := range [][]deletion{
		{
			{`DELETE FROM refresh_tokens WHERE tenant_id = $1 AND token_id IN (SELECT token_id FROM refresh_tokens
				WHERE tenant_id = $1 AND chain_id IN (` + oldChains + now + ` ORDER BY expires_at LIMIT 500) LIMIT 500)`, keepRefresh},
			{`DELETE FROM refresh_chains WHERE tenant_id = $1 AND chain_id IN (` + oldChains + now + ` ORDER BY expires_at LIMIT 500)
				AND chain_id NOT IN (SELECT chain_id FROM refresh_tokens WHERE tenant_id = $1 AND chain_id IN (
				` + oldChains + now + ` ORDER BY expires_at LIMIT 500))`, keepRefresh},
		},
		{{`DELETE FROM one_time_tokens WHERE tenant_id = $1 AND token_hash IN (SELECT token_hash FROM one_time_tokens
			WHERE tenant_id = $1 AND expires_at < ` + now + ` ORDER BY expires_at LIMIT 500)`, keepOneTime}},
	} {
		for left := int64(1); left > 0; {
			left = 0
			for _, text := range group {
				begun := time.Now()
				var gone int64
				err := h.Write(ctx, func(tx db.Tx) (err error) {
					gone, err = tx.Exec(ctx, text.sql, micros(text.keep)-s.offset())
					return err
				})
				if err == nil {
					err = clock.Rest(ctx, time.Since(begun))
				}
				if err != nil {
					return err
				}
				left += gone
			}
		}
	}
	return s.dropKeys(ctx, tenantID)
}
