package records

import (
	"context"

	"gatehouse/internal/db"
	"gatehouse/internal/schema"
)

// CountUpTo counts the records of an entity type, up to limit. Whoever is told of it must
// reach all of them.
func CountUpTo(ctx context.Context, q db.Querier, e *schema.Entity, limit int) (int64, error) {
	n, err := atMost(ctx, q, limit, `entity = $2`, e.StoredAs())
	return int64(n), err
}
