package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"gatehouse/internal/access"
	"gatehouse/internal/apikey"
	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/user"
)

// keyCreate prints the token of a new API key, alone: nothing shows it again.
func keyCreate(ctx context.Context, e *env, args []string) (err error) {
	f := e.flags("key create")
	tenantID := f.tenant()
	email := f.String("user", "", "e-mail `address` of the user whom the key acts for")
	name := f.String("name", "", "`name` of the key in lists")
	limit := f.Int("rate-limit", apikey.DefaultRateLimit, "at most `N` requests per minute")
	origins := f.StringArray("cors-origin", nil, "`origin` whose pages may use the key; may be repeated (none: servers only)")
	ranges := f.StringArray("ip-allow", nil, "IPv4 address or `CIDR` that may use the key; may be repeated (none: any)")
	expires := f.Duration("expires", 0, "how long the key is valid (not given: until it is deleted)")
	if err := f.Parse(args, "tenant", "user", "name"); err != nil {
		return err
	}
	d, err := e.open(ctx, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	clk := clock.System()
	spec := apikey.CreateSpec{
		Email: *email, Name: *name, RateLimitPerMinute: *limit, Origins: *origins, Allowlist: *ranges,
	}
	if f.Changed("expires") {
		spec.ExpiresAt = clock.Micros(clk.Now().Add(*expires))
	}
	key, token, err := apikey.New(d, clk, nil).Create(ctx, actor, *tenantID, spec)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(e.stdout, token.Reveal()); err != nil {
		return err
	}
	e.say("API key %s (%s) acts for %s. Its token is shown only this once.", key.ID, key.Name, strings.TrimSpace(*email))
	return nil
}

// keyLine is an API key in a list.
type keyLine struct {
	ID         string   `json:"id"`
	Name       string   `json:"name"`
	User       string   `json:"user"`
	Prefix     string   `json:"prefix"`
	RateLimit  int      `json:"rate_limit_per_minute"`
	Origins    []string `json:"cors_allowed_origins"`
	Allowlist  []string `json:"ip_allowlist"`
	CreatedAt  *string  `json:"created_at"`
	LastUsedAt *string  `json:"last_used_at"`
	ExpiresAt  *string  `json:"expires_at"`
}

func keyList(ctx context.Context, e *env, args []string) error {
	f := e.flags("key list")
	tenantID := f.tenant()
	asJSON := f.Bool("json", false, "print one JSON object a line")
	if err := f.Parse(args, "tenant"); err != nil {
		return err
	}
	return e.onTenant(ctx, f, *tenantID, func(d *db.DB, _ *access.Config) error {
		keys, err := apikey.New(d, clock.System(), nil).List(ctx, *tenantID)
		if err != nil {
			return err
		}
		l := &list{header: []string{"ID", "NAME", "USER", "PREFIX", "RATE/MIN", "ORIGINS", "ALLOWED IPS", "CREATED", "LAST USED", "EXPIRES"}}
		for _, k := range keys {
			owner := string(k.UserID)
			if u, err := user.ByID(ctx, d.For(*tenantID), k.UserID); err == nil {
				owner = u.Email
			} else if !errors.Is(err, user.ErrUnknown) {
				return err
			}
			line := keyLine{
				ID: k.ID, Name: k.Name, User: owner, Prefix: k.Prefix, RateLimit: k.RateLimitPerMinute,
				Origins: k.Origins, Allowlist: k.Allowlist.Strings(),
				CreatedAt: instant(k.CreatedAt), LastUsedAt: instant(k.LastUsedAt), ExpiresAt: instant(k.ExpiresAt),
			}
			l.add(line, line.ID, line.Name, line.User, line.Prefix, strconv.Itoa(line.RateLimit), strings.Join(line.Origins, ","),
				strings.Join(line.Allowlist, ","), textOf(line.CreatedAt), textOf(line.LastUsedAt), textOf(line.ExpiresAt))
		}
		return l.print(e.stdout, *asJSON)
	})
}

func keyDelete(ctx context.Context, e *env, args []string) error {
	f := e.flags("key delete")
	tenantID := f.tenant()
	id := f.String("id", "", "`id` of the API key, as key list shows it")
	if err := f.Parse(args, "tenant", "id"); err != nil {
		return err
	}
	return e.onTenant(ctx, f, *tenantID, func(d *db.DB, _ *access.Config) error {
		if err := apikey.New(d, clock.System(), nil).Delete(ctx, actor, *tenantID, *id); err != nil {
			return err
		}
		e.say("API key %s is deleted.", *id)
		return nil
	})
}
