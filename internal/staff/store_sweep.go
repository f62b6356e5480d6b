package staff

import (
	"context"
	"time"

	"gatehouse/internal/background"
	"gatehouse/internal/db"
	"gatehouse/internal/tenant"
)

// keepResets is how long the token of a link that has expired is kept. While it is, it is
// answered as expired and not as unknown.
const keepResets = 30 * 24 * time.Hour

func (s store) tenants(ctx context.Context) ([]tenant.ID, error) { return tenant.List(ctx, s.d) }

// sweep deletes sessions that have ended and tokens that have long expired, up to 500 rows
// at a time.
func (s store) sweep(ctx context.Context, tenantID tenant.ID) error {
	for _, some := range []func(tx db.Tx) (int64, error){
		func(tx db.Tx) (int64, error) {
			return tx.Exec(ctx, `DELETE FROM staff_sessions WHERE tenant_id = $1 AND session_id IN (SELECT session_id FROM staff_sessions
				WHERE tenant_id = $1 AND expires_at < `+tx.Dialect().Now+` + $2 ORDER BY expires_at LIMIT 500)`, s.offset())
		},
		func(tx db.Tx) (int64, error) {
			return tx.Exec(ctx, `DELETE FROM staff_resets WHERE tenant_id = $1 AND token_hash IN (SELECT token_hash FROM staff_resets
				WHERE tenant_id = $1 AND expires_at < `+tx.Dialect().Now+` + $2 ORDER BY expires_at LIMIT 500)`, s.offset()-micros(keepResets))
		},
	} {
		for gone := int64(1); gone > 0; {
			begun := time.Now()
			err := s.d.For(tenantID).Write(ctx, func(tx db.Tx) (err error) {
				gone, err = some(tx)
				return err
			})
			if err == nil {
				err = background.Rest(ctx, time.Since(begun))
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
