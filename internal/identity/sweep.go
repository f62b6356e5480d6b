package identity

import (
	"context"

	"gatehouse/internal/background"
	"gatehouse/internal/tenant"
)

// RunRetention deletes tokens that have long expired, now and every hour, until
// ctx ends. Before that it reports accounts that share an address. Of the nodes that
// run it, one deletes.
func (s *Service) RunRetention(ctx context.Context) {
	failed := func(err error) { s.emit("identity.sweep_failed", map[string]any{"error": err.Error()}) }
	if err := s.reportClashes(ctx); err != nil && ctx.Err() == nil {
		failed(err)
	}
	s.store.runSweep(ctx, failed)
}

// reportClashes logs accounts whose address, in another form, is also the address of
// another account.
func (s *Service) reportClashes(ctx context.Context) error {
	tenants, err := s.store.clashing(ctx)
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
