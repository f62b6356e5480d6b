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
	texts := []struct {
		sql  string
		keep time.Duration
	}{
		{`DELETE FROM refresh_tokens WHERE tenant_id = $1 AND token_id IN (SELECT token_id FROM refresh_tokens
			WHERE tenant_id = $1 AND expires_at < ` + now + ` ORDER BY expires_at LIMIT 500)`, keepRefresh},
		{`DELETE FROM refresh_chains WHERE tenant_id = $1 AND chain_id IN (SELECT chain_id FROM refresh_chains
			WHERE tenant_id = $1 AND expires_at < ` + now + ` ORDER BY expires_at LIMIT 500)`, keepRefresh},
		{`DELETE FROM one_time_tokens WHERE tenant_id = $1 AND token_hash IN (SELECT token_hash FROM one_time_tokens
			WHERE tenant_id = $1 AND expires_at < ` + now + ` ORDER BY expires_at LIMIT 500)`, keepOneTime},
	}
	for _, text := range texts {
		for gone := int64(1); gone > 0; {
			begun := time.Now()
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
		}
	}
	return s.dropKeys(ctx, tenantID)
}
