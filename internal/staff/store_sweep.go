package staff

import (
	"context"
	"time"

	"gatehouse/internal/tenant"
)

const (
	// sweepEvery is how often sessions that have ended are deleted.
	sweepEvery = time.Hour
	// keepResets is how long the token of a link that has expired is kept. While it is, it is
	// answered as expired and not as unknown.
	keepResets = 30 * 24 * time.Hour
)

// runSweep calls sweep, now and every hour, until ctx ends.
func (s store) runSweep(ctx context.Context, failed func(error)) {
	s.d.Housekeep(ctx, "staff", sweepEvery, s.sweep, failed)
}

// sweep deletes every tenant's sessions that have ended and tokens that have long expired.
func (s store) sweep(ctx context.Context) error {
	now, err := s.d.Now(ctx)
	if err != nil {
		return err
	}
	ended := now.UnixMicro() + s.offset()
	return tenant.Expire(ctx, s.d,
		tenant.Old{
			Some: `SELECT 1 FROM staff_sessions WHERE tenant_id = $1 AND expires_at < $2`,
			Delete: []string{`DELETE FROM staff_sessions WHERE tenant_id = $1 AND session_id IN (SELECT session_id FROM staff_sessions
				WHERE tenant_id = $1 AND expires_at < $2 ORDER BY expires_at LIMIT 500)`},
			Args: []any{ended},
		},
		tenant.Old{
			Some: `SELECT 1 FROM staff_resets WHERE tenant_id = $1 AND expires_at < $2`,
			Delete: []string{`DELETE FROM staff_resets WHERE tenant_id = $1 AND token_hash IN (SELECT token_hash FROM staff_resets
				WHERE tenant_id = $1 AND expires_at < $2 ORDER BY expires_at LIMIT 500)`},
			Args: []any{ended - micros(keepResets)},
		})
}
