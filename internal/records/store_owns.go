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
