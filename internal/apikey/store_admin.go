package apikey

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// page returns keys of a tenant, newest first: those of one user, or of all for
// "", below an id unless that is "".
func (s store) page(ctx context.Context, t tenant.ID, of user.ID, below string, limit int) ([]*Key, error) {
	if below == "" {
		below = "~" // greater than every id
	}
	var list []*Key
	add := func(r db.Row) error {
		k, err := scan(r)
		list = append(list, k)
		return err
	}
	if of != "" {
		err := s.d.For(t).Query(ctx, `SELECT `+columns+` FROM api_keys WHERE tenant_id = $1 AND user_id = $2 AND key_id < $3
			ORDER BY key_id DESC LIMIT $4`, add, of, below, limit)
		return list, err
	}
	err := s.d.For(t).Query(ctx, `SELECT `+columns+` FROM api_keys WHERE tenant_id = $1 AND key_id < $2 ORDER BY key_id DESC LIMIT $3`, add, below, limit)
	return list, err
}

// byID returns a key, nil if there is none.
func (s store) byID(ctx context.Context, t tenant.ID, id string) (*Key, error) {
	return byID(ctx, s.d.For(t), id)
}

func byID(ctx context.Context, q db.Querier, id string) (k *Key, err error) {
	err = q.Query(ctx, `SELECT `+columns+` FROM api_keys WHERE tenant_id = $1 AND key_id = $2`, func(r db.Row) error {
		var err error
		k, err = scan(r)
		return err
	}, id)
	return k, err
}

// users returns the users of keys.
func (s store) users(ctx context.Context, t tenant.ID, keys []*Key) (map[user.ID]*user.User, error) {
	h, found := s.d.For(t), map[user.ID]*user.User{}
	for _, k := range keys {
		if _, known := found[k.UserID]; known {
			continue
		}
		u, err := user.ByID(ctx, h, k.UserID)
		if err != nil && !errors.Is(err, user.ErrUnknown) {
			return nil, err
		}
		found[k.UserID] = u
	}
	return found, nil
}

// change lets fn change a key in memory and stores it. fn gets nil if there is
// none, and may run more than once; its error ends change.
func (s store) change(ctx context.Context, clk clock.Clock, actor string, t tenant.ID, id string, fn func(*Key) error) (changed *Key, err error) {
	err = tenant.Configure(ctx, s.d.For(t), actor, clk, func(tx tenant.ConfigTx, log *tenant.History) error {
		k, err := byID(ctx, tx, id)
		if err != nil {
			return err
		}
		if k == nil {
			return fn(nil)
		}
		before := *k
		if err := fn(k); err != nil {
			return err
		}
		if changed = k; k.version() == before.version() {
			return nil
		}
		origins, err := json.Marshal(slices.Concat([]string{}, k.Origins)) // never null
		if err != nil {
			return err
		}
		ranges, err := json.Marshal(k.Allowlist.Strings())
		if err != nil {
			return err
		}
		var expires any
		if k.ExpiresAt != 0 {
			expires = k.ExpiresAt
		}
		_, err = tx.Exec(ctx, `UPDATE api_keys SET name = $3, rate_limit_per_minute = $4, cors_allowed_origins = $5, ip_allowlist = $6, expires_at = $7
			WHERE tenant_id = $1 AND key_id = $2`, id, k.Name, k.RateLimitPerMinute, string(origins), string(ranges), expires)
		if err != nil {
			return err
		}
		email := string(k.UserID)
		if u, err := user.ByID(ctx, tx, k.UserID); err == nil {
			email = u.Email
		} else if !errors.Is(err, user.ErrUnknown) {
			return err
		}
		log.Record("api_key", k.Name+" ("+k.Prefix+")", renamed(history(&before, email), before.Name, k.Name), renamed(history(k, email), k.Name, before.Name))
		return nil
	})
	return changed, err
}

// renamed adds a key's name to its form in the change history where the name
// changes.
func renamed(p *past, name, other string) *past {
	if name != other {
		p.Name = name
	}
	return p
}

// Names returns the names of keys of a tenant, by id, without those that do not
// exist.
func (s *Service) Names(ctx context.Context, t tenant.ID, ids []string) (map[string]string, error) {
	names := map[string]string{}
	for _, id := range ids {
		if _, known := names[id]; known {
			continue
		}
		err := s.store.d.For(t).Query(ctx, `SELECT name FROM api_keys WHERE tenant_id = $1 AND key_id = $2`, func(r db.Row) error {
			names[id] = r.Text(0)
			return nil
		}, id)
		if err != nil {
			return nil, err
		}
	}
	return names, nil
}

// Any reports whether a tenant has an API key.
func (s *Service) Any(ctx context.Context, t tenant.ID) (some bool, err error) {
	err = s.store.d.For(t).Query(ctx, `SELECT 1 FROM api_keys WHERE tenant_id = $1 LIMIT 1`, func(db.Row) error {
		some = true
		return nil
	})
	return some, err
}
