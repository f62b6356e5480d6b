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

// CreateSpec describes a key to create. The comments begin with the names of the
// fields in a VALIDATION error.
type CreateSpec struct {
	UserID             user.ID  // user: the owner, by id
	Email              string   // user: the owner, by e-mail address, where UserID is ""
	Name               string   // name
	RateLimitPerMinute int      // rate_limit_per_minute: 1 to MaxRateLimit; 0 is not replaced by the default
	Origins            []string // cors_allowed_origins
	Allowlist          []string // ip_allowlist: IPv4 CIDRs and addresses
	ExpiresAt          int64    // expires_at: microseconds UTC, 0 for never
}

// Create creates a key and returns it with its token, which cannot be read again.
// actor is recorded in the change history. Create does not check whether actor may
// create a key for the user; MayCreateFor does. It returns VALIDATION, with every
// invalid field, and NOT_FOUND if the tenant does not exist.
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

// check does the checks that do not need the database. It returns the key, and the
// reason for each invalid field.
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

// checkName returns why a name is invalid, or "".
func checkName(name string) string {
	switch n := utf8.RuneCountInString(name); {
	case n < 1 || n > MaxName:
		return fmt.Sprintf("expected 1 to %d characters", MaxName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return "expected text without control characters"
	}
	return ""
}

// List returns the keys of the tenant, oldest first. It returns NOT_FOUND for the
// tenant "", and no keys for one that does not exist.
func (s *Service) List(ctx context.Context, tenantID tenant.ID) ([]Key, error) {
	return s.store.list(ctx, tenantID)
}

// UserOf returns the user whom a key acts for. It returns NOT_FOUND when the tenant
// has no such key.
func (s *Service) UserOf(ctx context.Context, tenantID tenant.ID, id string) (user.ID, error) {
	list, err := s.List(ctx, tenantID)
	if err != nil {
		return "", err
	}
	for i := range list {
		if list[i].ID == id {
			return list[i].UserID, nil
		}
	}
	return "", fault.New(fault.NotFound, "there is no such key")
}

// Delete deletes a key, which stops working at once. It returns NOT_FOUND if the
// tenant or the key does not exist.
func (s *Service) Delete(ctx context.Context, actor string, tenantID tenant.ID, id string) error {
	if err := s.store.delete(ctx, s.clock, actor, tenantID, id); err != nil {
		return err
	}
	s.forget()
	return nil
}

// forget makes the directory check for a new version of the configuration.
func (s *Service) forget() {
	if s.dir != nil {
		s.dir.Forget()
	}
}
