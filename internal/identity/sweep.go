package identity

import (
	"context"
	"time"

	"gatehouse/internal/background"
	"gatehouse/internal/tenant"
)

// sweepEvery is how often tokens that have long expired are deleted.
const sweepEvery = time.Hour

// RunRetention deletes tokens that have long expired, now and every hour, until
// ctx ends. Before that it reports accounts that share an address. Any number of
// nodes may run it at once.
func (s *Service) RunRetention(ctx context.Context) {
	failed := func(err error) { s.emit("identity.sweep_failed", map[string]any{"error": err.Error()}) }
	if err := s.reportClashes(ctx); err != nil && ctx.Err() == nil {
		failed(err)
	}
	background.Sweep(ctx, sweepEvery, s.sweep, failed)
}

// sweep deletes the long-expired tokens, sessions and keys of every tenant.
func (s *Service) sweep(ctx context.Context) error {
	tenants, err := s.store.tenants(ctx)
	if err != nil {
		return err
	}
	return background.Each(ctx, tenants, s.store.sweep)
}

// reportClashes logs accounts whose address, in another form, is also the address of
// another account.
func (s *Service) reportClashes(ctx context.Context) error {
	tenants, err := s.store.tenants(ctx)
	if err != nil {
		return err
	}
	return background.Each(ctx, tenants, func(ctx context.Context, tenantID tenant.ID) error {
		clashes, err := s.store.clashes(ctx, tenantID)
		for _, ids := range clashes {
			for _, id := range ids {
				s.emit("identity.email_clash", map[string]any{"tenant": tenantID, "user_id": id})
			}
		}
		return err
	})
}
