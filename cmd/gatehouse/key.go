package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"gatehouse/internal/apikey"
	"gatehouse/internal/clock"
)

// keyCreate prints the token of a new API key, alone, because it cannot be shown
// again.
func keyCreate(f *flags) action {
	f.forTenant()
	var spec apikey.CreateSpec
	f.StringVar(&spec.Email, "user", "", "e-mail `address` of the user that the key acts for")
	f.StringVar(&spec.Name, "name", "", "`name` of the key in lists")
	f.mustHave = append(f.mustHave, "user", "name")
	f.IntVar(&spec.RateLimitPerMinute, "rate-limit", apikey.DefaultRateLimit, "at most `N` requests per minute")
	f.StringArrayVar(&spec.Origins, "cors-origin", nil, "`origin` whose pages may use the key; may be repeated (none: servers only)")
	f.StringArrayVar(&spec.Allowlist, "ip-allow", nil, "IPv4 address or `CIDR` that may use the key; may be repeated (none: any)")
	expires := f.Duration("expires", 0, "how long the key is valid (not given: until it is deleted)")
	return func(ctx context.Context) error {
		return f.onTenant(ctx, func(t *tenantDB) error {
			clk := clock.System()
			if f.Changed("expires") {
				spec.ExpiresAt = clock.Micros(clk.Now().Add(*expires))
			}
			key, token, err := apikey.New(t.DB, clk, nil).Create(ctx, actor, t.config.Tenant.ID, spec)
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintln(f.stdout, token.Reveal()); err != nil {
				return err
			}
			f.say("API key %s (%s) acts for %s. Its token is shown only this once.", key.ID, key.Name, strings.TrimSpace(spec.Email))
			return nil
		})
	}
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

func keyList(f *flags) action {
	f.forTenant()
	f.listing("")
	return func(ctx context.Context) error {
		return f.onTenant(ctx, func(t *tenantDB) error {
			keys, err := apikey.New(t.DB, clock.System(), nil).List(ctx, t.config.Tenant.ID)
			if err != nil {
				return err
			}
			emailOf := t.emails(ctx)
			l := &list{header: []string{"ID", "NAME", "USER", "PREFIX", "RATE/MIN", "ORIGINS", "ALLOWED IPS", "CREATED", "LAST USED", "EXPIRES"}}
			for _, k := range keys {
				owner, err := emailOf(k.UserID)
				if err != nil {
					return err
				}
				line := keyLine{
					ID: k.ID, Name: k.Name, User: owner, Prefix: k.Prefix, RateLimit: k.RateLimitPerMinute,
					Origins: append([]string{}, k.Origins...), Allowlist: k.Allowlist.Strings(),
					CreatedAt: instant(k.CreatedAt), LastUsedAt: instant(k.LastUsedAt), ExpiresAt: instant(k.ExpiresAt),
				}
				l.add(line, line.ID, line.Name, line.User, line.Prefix, strconv.Itoa(line.RateLimit), strings.Join(line.Origins, ","),
					strings.Join(line.Allowlist, ","), orEmpty(line.CreatedAt), orEmpty(line.LastUsedAt), orEmpty(line.ExpiresAt))
			}
			return l.print(f.stdout, f.asJSON)
		})
	}
}

func keyDelete(f *flags) action {
	f.forTenant()
	id := f.required("id", "`id` of the API key, as key list shows it")
	return func(ctx context.Context) error {
		return f.onTenant(ctx, func(t *tenantDB) error {
			if err := apikey.New(t.DB, clock.System(), nil).Delete(ctx, actor, t.config.Tenant.ID, *id); err != nil {
				return err
			}
			f.say("API key %s is deleted.", *id)
			return nil
		})
	}
}
