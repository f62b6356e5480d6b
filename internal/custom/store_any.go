package custom

import (
	"context"

	"gatehouse/internal/db"
)

// Any reports whether a tenant has a custom endpoint.
func Any(ctx context.Context, q db.Querier) (some bool, err error) {
	err = q.Query(ctx, `SELECT 1 FROM custom_endpoints WHERE tenant_id = $1 LIMIT 1`, func(db.Row) error {
		some = true
		return nil
	})
	return some, err
}
