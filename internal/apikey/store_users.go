package apikey

import (
	"context"

	"gatehouse/internal/db"
)

// OfUsers returns the keys that act for one of the users, by id, and are valid at
// the instant now, oldest first.
func OfUsers(ctx context.Context, q db.Querier, now int64, users map[string]bool) ([]Key, error) {
	var list []Key
	err := q.Query(ctx, `SELECT `+columns+` FROM api_keys WHERE tenant_id = $1 ORDER BY key_id`, func(r db.Row) error {
		k, err := scan(r)
		if err == nil && users[k.UserID] && !k.expired(now) {
			list = append(list, *k)
		}
		return err
	})
	return list, err
}
