package apikey

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"strings"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/fault"
	"gatehouse/internal/secret"
)

// Resolved is the key of a token and the viewer it acts as. It is shared by
// requests and must not be changed.
type Resolved struct {
	Key    *Key
	Viewer access.Viewer
}

// ErrUnauthorized is the error for a missing credential and for every token that is
// not valid, whatever the reason (contract K4).
var ErrUnauthorized = fault.New(fault.Unauthorized, "a valid API key or access token is required")

// resolved keeps what a token resolved to, by the token's SHA-256.
var resolved access.Derived[access.Cache[*Resolved]]

const tokenLength = len(secret.APITokenPrefix) + 2*sha256.Size

// IsToken reports whether a bearer credential has the form of an API key's
// token, valid or not.
func IsToken(token string) bool { return strings.HasPrefix(token, secret.APITokenPrefix) }

// Resolve returns the key of a token and the viewer it acts as, in the
// configuration cfg. It returns ErrUnauthorized if the token is not valid for any
// reason. If the key exists but is expired, or its user is not active,
// ErrUnauthorized comes with a Resolved that has the key, for the logs, and the
// zero Viewer, which may do nothing. Other errors are those of the database.
//
// The first use of a token with cfg costs one read by an index, and so does each
// use of an unknown token. A token of another form costs none.
func (s *Service) Resolve(ctx context.Context, cfg *access.Config, token string) (*Resolved, error) {
	if len(token) != tokenLength || !IsToken(token) {
		return nil, ErrUnauthorized
	}
	var text [tokenLength]byte
	copy(text[:], token)
	sum := sha256.Sum256(text[:])
	r, ok := resolved.Of(cfg).Get(string(sum[:]))
	if !ok {
		return s.lookUp(ctx, cfg, token, sum)
	}
	if r.Key.ExpiresAt != 0 && r.Key.expired(clock.Micros(s.clock.Now())) {
		return &Resolved{Key: r.Key}, ErrUnauthorized
	}
	if !r.Viewer.Current() {
		return s.keep(ctx, cfg, sum, r.Key)
	}
	return r, nil
}

// lookUp reads the key of a token that is not cached.
func (s *Service) lookUp(ctx context.Context, cfg *access.Config, token string, sum [sha256.Size]byte) (*Resolved, error) {
	if !hexDigits(token[len(secret.APITokenPrefix):]) {
		return nil, ErrUnauthorized
	}
	hash := secret.TokenHash(hex.EncodeToString(sum[:]))
	key, stored, err := s.store.byHash(ctx, cfg.Tenant.ID, hash)
	if err != nil {
		return nil, err
	}
	// The row was found by the hash. It is compared again because an index or
	// collation might match other values.
	if key == nil || subtle.ConstantTimeCompare([]byte(stored), []byte(hash)) != 1 {
		return nil, ErrUnauthorized
	}
	key.use = s.useOf(cfg.Tenant.ID, key)
	if key.expired(clock.Micros(s.clock.Now())) {
		return &Resolved{Key: key}, ErrUnauthorized
	}
	return s.keep(ctx, cfg, sum, key)
}

// keep finds the viewer of a key and caches both. Its errors are those of Resolve.
func (s *Service) keep(ctx context.Context, cfg *access.Config, sum [sha256.Size]byte, key *Key) (*Resolved, error) {
	viewer, err := s.dir.Viewer(ctx, cfg, key.UserID, false)
	if fault.CodeOf(err) == fault.Unauthorized {
		return &Resolved{Key: key}, ErrUnauthorized
	}
	if err != nil {
		return nil, err
	}
	r := &Resolved{Key: key, Viewer: viewer}
	resolved.Of(cfg).Put(string(sum[:]), r)
	return r, nil
}

func hexDigits(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
