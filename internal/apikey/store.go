package apikey

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/secret"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// New returns a service over a database. dir may be nil in a command that resolves
// no tokens.
func New(d *db.DB, clk clock.Clock, dir *access.Directory) *Service {
	return &Service{store: store{d}, clock: clk, dir: dir}
}

type store struct{ d *db.DB }

const columns = `key_id, user_id, name, prefix, rate_limit_per_minute, cors_allowed_origins, ip_allowlist,
	expires_at, last_used_at, created_at`

// scan reads a key from columns, the first ones of r.
func scan(r db.Row) (*Key, error) {
	k := &Key{
		ID: r.Text(0), UserID: user.ID(r.Text(1)), Name: r.Text(2), Prefix: r.Text(3), RateLimitPerMinute: int(r.Int(4)),
		CreatedAt: r.Int(9),
	}
	if !r.Null(7) {
		k.ExpiresAt = r.Int(7)
	}
	if !r.Null(8) {
		k.LastUsedAt = r.Int(8)
	}
	var ranges []string
	err := errors.Join(json.Unmarshal(r.Bytes(5), &k.Origins), json.Unmarshal(r.Bytes(6), &ranges))
	if err == nil {
		k.Allowlist, err = httpapi.ParseAllowlist(ranges)
	}
	return k, err
}

// handle returns the database of a tenant, or NOT_FOUND for "".
func (s store) handle(tenantID tenant.ID) (db.Handle, error) {
	if tenantID == "" {
		return nil, fault.New(fault.NotFound, "there is no tenant %q", tenantID)
	}
	return s.d.For(tenantID), nil
}

// create inserts a key for the user that spec names. verdict is called in the
// transaction with what is wrong with the user, or ""; its error ends create.
func (s store) create(ctx context.Context, clk clock.Clock, actor string, tenantID tenant.ID, k *Key, hash secret.TokenHash,
	verdict func(userReason string) error, spec CreateSpec) error {
	h, err := s.handle(tenantID)
	if err != nil {
		return err
	}
	return tenant.Configure(ctx, h, actor, clk, func(tx tenant.ConfigTx, log *tenant.History) error {
		if _, ok, err := tenant.Version(ctx, tx); err != nil {
			return err
		} else if !ok {
			return fault.New(fault.NotFound, "there is no tenant %q", tenantID)
		}
		owner, reason, err := findOwner(ctx, tx, spec)
		if err != nil {
			return err
		}
		if err := verdict(reason); err != nil {
			return err
		}
		k.UserID = owner.ID
		if err := insert(ctx, tx, k, hash); err != nil {
			return err
		}
		log.Record("api_key", k.Name+" ("+k.Prefix+")", nil, history(k, owner.Email))
		return nil
	})
}

// findOwner returns the user that a key should act for, or the reason why there is
// none.
func findOwner(ctx context.Context, q db.Querier, spec CreateSpec) (u *user.User, reason string, err error) {
	switch {
	case spec.UserID != "":
		u, err = user.ByID(ctx, q, spec.UserID)
	case strings.TrimSpace(spec.Email) != "":
		u, err = user.ByEmail(ctx, q, spec.Email)
	default:
		return nil, "is required", nil
	}
	switch {
	case errors.Is(err, user.ErrUnknown):
		if spec.UserID != "" {
			return nil, "there is no such user", nil
		}
		return nil, "there is no user with the e-mail address " + strings.TrimSpace(spec.Email), nil
	case err != nil:
		return nil, "", err
	case !u.Active:
		return nil, "the user is not active", nil
	}
	return u, "", nil
}

func insert(ctx context.Context, tx tenant.ConfigTx, k *Key, hash secret.TokenHash) error {
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
	_, err = tx.Exec(ctx, `INSERT INTO api_keys (tenant_id, key_id, user_id, name, token_hash, prefix, rate_limit_per_minute,
		cors_allowed_origins, ip_allowlist, expires_at, last_used_at, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, NULL, $11)`,
		k.ID, k.UserID, k.Name, hash, k.Prefix, k.RateLimitPerMinute, string(origins), string(ranges), expires, k.CreatedAt)
	return err
}

// past is the form of a key in the change history.
type past struct {
	ID        string   `json:"id"`
	Name      string   `json:"name,omitempty"` // where it changes
	User      string   `json:"user"`
	Prefix    string   `json:"prefix"`
	RateLimit int      `json:"rate_limit_per_minute"`
	Origins   []string `json:"cors_allowed_origins"`
	Allowlist []string `json:"ip_allowlist"`
	ExpiresAt *string  `json:"expires_at"`
}

func history(k *Key, email string) *past {
	p := &past{
		ID: k.ID, User: email, Prefix: k.Prefix, RateLimit: k.RateLimitPerMinute, Origins: k.Origins, Allowlist: k.Allowlist.Strings(),
	}
	if k.ExpiresAt != 0 {
		text := string(clock.AppendRFC3339Micro(nil, k.ExpiresAt))
		p.ExpiresAt = &text
	}
	return p
}

// list returns the keys of the tenant, oldest first.
func (s store) list(ctx context.Context, tenantID tenant.ID) ([]Key, error) {
	h, err := s.handle(tenantID)
	if err != nil {
		return nil, err
	}
	list := []Key{}
	err = h.Query(ctx, `SELECT `+columns+` FROM api_keys WHERE tenant_id = $1 ORDER BY key_id`, func(r db.Row) error {
		k, err := scan(r)
		if err == nil {
			list = append(list, *k)
		}
		return err
	})
	return list, err
}

// delete deletes a key. It returns NOT_FOUND if there is none.
func (s store) delete(ctx context.Context, clk clock.Clock, actor string, tenantID tenant.ID, id string) error {
	h, err := s.handle(tenantID)
	if err != nil {
		return err
	}
	return tenant.Configure(ctx, h, actor, clk, func(tx tenant.ConfigTx, log *tenant.History) error {
		var k *Key
		err := tx.Query(ctx, `DELETE FROM api_keys WHERE tenant_id = $1 AND key_id = $2 RETURNING `+columns, func(r db.Row) error {
			var err error
			k, err = scan(r)
			return err
		}, id)
		if err != nil {
			return err
		}
		if k == nil {
			return fault.New(fault.NotFound, "there is no API key with the id %q", id)
		}
		email := string(k.UserID)
		if u, err := user.ByID(ctx, tx, k.UserID); err == nil {
			email = u.Email
		} else if !errors.Is(err, user.ErrUnknown) {
			return err
		}
		log.Record("api_key", k.Name+" ("+k.Prefix+")", history(k, email), nil)
		return nil
	})
}

// byHash returns the key with a token's hash, and the hash as it is stored. The key
// is nil if there is none.
func (s store) byHash(ctx context.Context, tenantID tenant.ID, hash secret.TokenHash) (k *Key, stored secret.TokenHash, err error) {
	err = s.d.For(tenantID).Query(ctx, `SELECT `+columns+`, token_hash FROM api_keys
		WHERE tenant_id = $1 AND token_hash = $2`, func(r db.Row) error {
		var err error
		k, err = scan(r)
		stored = secret.TokenHash(r.Text(10))
		return err
	}, hash)
	return k, stored, err
}

// withOrigins returns the keys that list origins and whose users are active.
func (s store) withOrigins(ctx context.Context, tenantID tenant.ID) ([]*Key, error) {
	h := s.d.For(tenantID)
	var list []*Key
	err := h.Query(ctx, `SELECT `+columns+` FROM api_keys WHERE tenant_id = $1 AND cors_allowed_origins <> '[]'`,
		func(r db.Row) error {
			k, err := scan(r)
			list = append(list, k)
			return err
		})
	if err != nil || len(list) == 0 {
		return nil, err
	}
	ids := make([]user.ID, len(list))
	for i, k := range list {
		ids[i] = k.UserID
	}
	active, err := user.ActiveAmong(ctx, h, ids)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list, func(k *Key) bool { return !active[k.UserID] }), nil
}

// touch writes when keys of one tenant were last used. The time never goes
// backwards.
func (s store) touch(ctx context.Context, batch []*use) error {
	return s.d.For(batch[0].tenant).Write(ctx, func(tx db.Tx) error {
		for _, u := range batch {
			_, err := tx.Exec(ctx, `UPDATE api_keys SET last_used_at = $3
				WHERE tenant_id = $1 AND key_id = $2 AND coalesce(last_used_at, 0) < $3`, u.key, u.at.Load())
			if err != nil {
				return err
			}
		}
		return nil
	})
}
