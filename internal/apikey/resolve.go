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

// Resolved is what a token stands for. It is shared and read-only.
type Resolved struct {
	Key    *Key
	Viewer access.Viewer
}

// ErrUnauthorized is the one answer to every token that does not let its
// bearer in, and to none at all.
var ErrUnauthorized = fault.New(fault.Unauthorized, "a valid API key or access token is required")

// resolved keeps what a token resolved to, by the token's SHA-256.
var resolved access.Derived[access.Cache[*Resolved]]

const tokenLength = len(secret.APITokenPrefix) + 2*sha256.Size

// IsToken reports whether a bearer credential has the form of an API key's
// token, valid or not.
func IsToken(token string) bool { return strings.HasPrefix(token, secret.APITokenPrefix) }

// Resolve finds the key of a token and the viewer it acts as, at the version
// of the configuration that cfg is. Whatever is wrong with the token, the error
// is ErrUnauthorized. With a token that exists but is expired, or whose user is
// not active, it comes with a Resolved that names the key, for the logs; its
// Viewer is the zero one, which may do nothing.
//
// A token that cfg has not seen costs one read by an index, an unknown one at
// each attempt; one that cannot be ours costs none.
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
	return r, nil
}

// lookUp asks the database for a token that cfg has not seen.
func (s *Service) lookUp(ctx context.Context, cfg *access.Config, token string, sum [sha256.Size]byte) (*Resolved, error) {
	if !hexDigits(token[len(secret.APITokenPrefix):]) {
		return nil, ErrUnauthorized
	}
	hash := secret.TokenHash(hex.EncodeToString(sum[:]))
	key, stored, err := s.store.byHash(ctx, cfg.Tenant.ID, hash)
	if err != nil {
		return nil, err
	}
	// The index found the row by the hash, and a hash tells nothing of the
	// token; the comparison holds whatever an index or collation may do.
	if key == nil || subtle.ConstantTimeCompare([]byte(stored), []byte(hash)) != 1 {
		return nil, ErrUnauthorized
	}
	key.use = s.useOf(cfg.Tenant.ID, key)
	if key.expired(clock.Micros(s.clock.Now())) {
		return &Resolved{Key: key}, ErrUnauthorized
	}
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
