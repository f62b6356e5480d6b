package user

import (
	"context"
	"slices"

	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/tenant"
)

// Add inserts a user who has no id yet: it draws the time of creation, not before
// now, which is microseconds UTC, and the id. Its errors are Insert's.
func Add(ctx context.Context, tx tenant.ConfigTx, now int64, u *User) error {
	tick, err := tenant.Tick(ctx, tx, now)
	if err != nil {
		return err
	}
	u.ID, u.CreatedAt, u.UpdatedAt = ID(clock.NewID(clock.FromMicros(tick))), tick, tick
	return Insert(ctx, tx, u)
}

// ActiveAmong says which of the users exist and are active, by id.
func ActiveAmong(ctx context.Context, q db.Querier, ids []ID) (map[ID]bool, error) {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	active := make(map[ID]bool, len(ids))
	for chunk := range slices.Chunk(ids, 8) {
		args := make([]any, 8) // one text for any number of them
		for i := range args {
			args[i] = chunk[min(i, len(chunk)-1)]
		}
		err := q.Query(ctx, `SELECT user_id FROM users WHERE tenant_id = $1 AND active = 1
			AND user_id IN ($2, $3, $4, $5, $6, $7, $8, $9)`, func(r db.Row) error {
			active[ID(r.Text(0))] = true
			return nil
		}, args...)
		if err != nil {
			return nil, err
		}
	}
	return active, nil
}
