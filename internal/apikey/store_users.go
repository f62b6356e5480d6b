package apikey

import (
	"context"

	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/user"
)

// OfUsers names the keys of the tenant of q that act for one of the users, by id,
// and have not expired, oldest first. It is config.Options.Keys.
func (s *Service) OfUsers(ctx context.Context, q db.Querier, users map[user.ID]bool) ([]string, error) {
	var list []string
	now := clock.Micros(s.clock.Now())
	err := q.Query(ctx, `SELECT `+columns+` FROM api_keys WHERE tenant_id = $1 ORDER BY key_id`, func(r db.Row) error {
		k, err := scan(r)
		if err == nil && users[k.UserID] && !k.expired(now) {
			list = append(list, k.Name+" ("+k.Prefix+")")
		}
		return err
	})
	return list, err
}
