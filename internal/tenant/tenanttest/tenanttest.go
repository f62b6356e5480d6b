// Package tenanttest changes a tenant's configuration in tests that have no
// manifest.
package tenanttest

import (
	"context"

	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/tenant"
)

// Change runs fn in tenant.Configure and keeps what it wrote, without an entry in
// the change history.
func Change(ctx context.Context, h db.Handle, fn func(tx tenant.ConfigTx) error) error {
	return tenant.Configure(ctx, h, "test", clock.System(), func(tx tenant.ConfigTx, log *tenant.History) error {
		log.Keep()
		return fn(tx)
	})
}
