package records

import (
	"context"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/user"
)

// Owns reports whether a user owns any record of a tenant with the configuration c.
func Owns(ctx context.Context, q db.Querier, c *access.Config, id user.ID) (bool, error) {
	for _, e := range c.Schema.Entities {
		n, err := atMost(ctx, q, 1, `entity = $2 AND owner_id = $3`, e.StoredAs(), id)
		if n > 0 || err != nil {
			return n > 0, err
		}
	}
	return false, nil
}

// Shared reports whether any record of a tenant with the configuration c is shared with a
// user by name.
func Shared(ctx context.Context, q db.Querier, c *access.Config, id user.ID) (shared bool, err error) {
	for _, e := range c.Schema.Entities {
		err := q.Query(ctx, `SELECT 1 FROM shares WHERE tenant_id = $1 AND entity = $2 AND principal = $3 LIMIT 1`, func(db.Row) error {
			shared = true
			return nil
		}, e.StoredAs(), access.UserPrincipal(id))
		if shared || err != nil {
			return shared, err
		}
	}
	return false, nil
}
