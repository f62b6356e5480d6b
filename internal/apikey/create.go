package apikey

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"unicode"
	"unicode/utf8"

	"gatehouse/internal/clock"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/secret"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// CreateSpec says what key to make. The names in the comments are those of the
// fields in a VALIDATION error.
type CreateSpec struct {
	UserID             user.ID  // user: the owner, by id
	Email              string   // user: the owner, by e-mail address, where UserID is ""
	Name               string   // name
	RateLimitPerMinute int      // rate_limit_per_minute: 1 to MaxRateLimit; there is no default here
	Origins            []string // cors_allowed_origins
	Allowlist          []string // ip_allowlist: IPv4 CIDRs and addresses
	ExpiresAt          int64    // expires_at: microseconds UTC, 0 for never
}

// Create makes a key and returns it with its token, which nobody can ask for
// again. It fails with VALIDATION, naming every failing field at once, or with
// NOT_FOUND when there is no such tenant. Whether the caller may make a key for
// that user is MayCreateFor's question; actor is who the change history names.
func (s *Service) Create(ctx context.Context, actor string, tenantID tenant.ID, spec CreateSpec) (Key, secret.Token, error) {
	now := s.clock.Now()
	key, reasons := spec.check(clock.Micros(now))
	key.ID = clock.NewID(now)
	key.CreatedAt = clock.Micros(now)
	token := secret.NewAPIToken()
	key.Prefix = secret.Prefix(token.Reveal())
	err := s.store.create(ctx, s.clock, actor, tenantID, &key, secret.Hash(token.Reveal()), func(userReason string) error {
		all := maps.Clone(reasons)
		if userReason != "" {
			all["user"] = userReason
		}
		if len(all) == 0 {
			return nil
		}
		return fault.Fields("the API key is not valid", all)
	}, spec)
	if err != nil {
		return Key{}, "", err
	}
	s.forget()
	return key, token, nil
}

// check is everything about a key that can be said without the database:
// the key as it will be, and why each failing field fails.
func (spec CreateSpec) check(now int64) (Key, map[string]string) {
	reasons := map[string]string{}
	k := Key{
		Name: strings.TrimSpace(spec.Name), RateLimitPerMinute: spec.RateLimitPerMinute, ExpiresAt: spec.ExpiresAt,
	}
	if reason := checkName(k.Name); reason != "" {
		reasons["name"] = reason
	}
	if k.RateLimitPerMinute < 1 || k.RateLimitPerMinute > MaxRateLimit {
		reasons["rate_limit_per_minute"] = fmt.Sprintf("expected 1 to %d", MaxRateLimit)
	}
	if k.ExpiresAt != 0 && k.ExpiresAt <= now {
		reasons["expires_at"] = "expected a time in the future"
	}
	var err error
	if len(spec.Origins) > maxEntries {
		reasons["cors_allowed_origins"] = fmt.Sprintf("expected at most %d origins", maxEntries)
	} else if k.Origins, err = httpapi.ParseOrigins(spec.Origins); err != nil {
		reasons["cors_allowed_origins"] = err.Error()
	}
	if len(spec.Allowlist) > maxEntries {
		reasons["ip_allowlist"] = fmt.Sprintf("expected at most %d ranges", maxEntries)
	} else if k.Allowlist, err = httpapi.ParseAllowlist(spec.Allowlist); err != nil {
		reasons["ip_allowlist"] = err.Error()
	}
	return k, reasons
}

func checkName(name string) string {
	switch n := utf8.RuneCountInString(name); {
	case n < 1 || n > MaxName:
		return fmt.Sprintf("expected 1 to %d characters", MaxName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return "expected text without control characters"
	}
	return ""
}

// List is every key of the tenant, oldest first.
func (s *Service) List(ctx context.Context, tenantID tenant.ID) ([]Key, error) {
	return s.store.list(ctx, tenantID)
}

// Delete ends a key at once; NOT_FOUND when there is none of that id.
func (s *Service) Delete(ctx context.Context, actor string, tenantID tenant.ID, id string) error {
	if err := s.store.delete(ctx, s.clock, actor, tenantID, id); err != nil {
		return err
	}
	s.forget()
	return nil
}

func (s *Service) forget() {
	if s.dir != nil {
		s.dir.Forget()
	}
}
