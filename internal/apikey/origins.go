package apikey

import (
	"context"
	"math"
	"slices"
	"sync/atomic"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/httpapi"
)

// union is every origin that an active key or External Identity lists, each
// with the instant at which the last of them that lists it expires.
type union struct{ until map[string]int64 }

const never = math.MaxInt64

// origins keeps the union that answers preflights.
var origins access.Derived[atomic.Pointer[union]]

// AllowsOrigin reports whether any active key of the tenant, or External
// Identity while it is enabled, lists the origin. It answers a preflight, which
// carries no credential (contract O4). The union is cached with cfg; the expiry
// of a key is checked at each call.
func (s *Service) AllowsOrigin(ctx context.Context, cfg *access.Config, origin string) (bool, error) {
	u, err := s.union(ctx, cfg)
	if err != nil {
		return false, err
	}
	until, listed := u.until[origin]
	if !listed {
		canonical, _ := httpapi.CanonicalOrigin(origin)
		until, listed = u.until[canonical]
	}
	return listed && (until == never || clock.Micros(s.clock.Now()) < until), nil
}

// UnionOrigins lists the origins that AllowsOrigin allows now, sorted.
func (s *Service) UnionOrigins(ctx context.Context, cfg *access.Config) ([]string, error) {
	u, err := s.union(ctx, cfg)
	if err != nil {
		return nil, err
	}
	now := clock.Micros(s.clock.Now())
	list := []string{}
	for origin, until := range u.until {
		if now < until {
			list = append(list, origin)
		}
	}
	slices.Sort(list)
	return list, nil
}

func (s *Service) union(ctx context.Context, cfg *access.Config) (*union, error) {
	if kept := origins.Of(cfg).Load(); kept != nil {
		return kept, nil
	}
	u := &union{until: map[string]int64{}}
	if cfg.Tenant.Settings.ExternalIdentity.Enabled {
		for _, origin := range cfg.Tenant.IdentityOrigins() {
			if canonical, ok := httpapi.CanonicalOrigin(origin); ok {
				u.until[canonical] = never
			}
		}
	}
	keys, err := s.store.withOrigins(ctx, cfg.Tenant.ID)
	if err != nil {
		return nil, err
	}
	for _, k := range keys {
		until := k.ExpiresAt
		if until == 0 {
			until = never
		}
		for _, origin := range k.Origins {
			u.until[origin] = max(u.until[origin], until)
		}
	}
	origins.Of(cfg).Store(u)
	return u, nil
}
