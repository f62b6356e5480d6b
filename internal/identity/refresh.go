package identity

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/fault"
	"gatehouse/internal/secret"
	"gatehouse/internal/session"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// grace is how long after its rotation a token may be presented again.
const grace = 30 * time.Second

var errRefresh = fault.New(fault.Unauthorized, "the refresh token is not valid; log in again")

// tokens is the answer of login and refresh.
type tokens struct {
	AccessToken  string `json:"accessToken"`
	RefreshToken string `json:"refreshToken"`
	ExpiresIn    int    `json:"expiresIn"`
}

// newSecret returns a new refresh token or one-time token: 256 random bits.
func newSecret() string {
	var random [sha256.Size]byte
	_, _ = rand.Read(random[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(random[:])
}

// successor returns the only token that may follow a refresh token (contract T7). It is
// derived from the master key and the token, so that it can be returned again
// although only its hash is stored.
func (s *Service) successor(tenantID tenant.ID, presented string) string {
	mac := hmac.New(sha256.New, s.keyring.Derive("refresh token/"+string(tenantID), sha256.Size))
	mac.Write([]byte(presented))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// verdict says what is done with a presented token.
type verdict uint8

const (
	refuse401  verdict = iota
	rotate             // it is current: its successor replaces it
	repeat             // it was rotated within grace: its successor is returned again
	endForUser         // refused, and the chain ends because of its user
	endAsTheft         // refused, and the chain ends: an old token was presented
)

// judge implements the table of contract T7, row by row. Whether a rotated token has
// expired does not matter: within grace its successor is returned again, and later it
// counts as stolen.
func judge(is session.State, userLost bool) verdict {
	switch {
	case is.ChainEnded:
		return refuse401
	case userLost:
		return endForUser
	case is.RotatedAt != 0 && is.Now-is.RotatedAt > micros(grace):
		return endAsTheft
	case is.RevokedAt != 0 || is.SuccessorRevoked:
		return refuse401
	case is.RotatedAt != 0:
		return repeat
	case is.Now >= is.ExpiresAt:
		return refuse401
	}
	return rotate
}

// sessionLimit bounds how often the token of a session is rotated. It bounds nothing else:
// a stolen token ends its session even if the limit is used up.
type sessionLimit struct {
	check func(chainID string) error
	count func(chainID string)
}

// refresh exchanges a refresh token for its successor and a new access token. It returns
// the same UNAUTHORIZED for every invalid token, and the error of l.
func (s *Service) refresh(ctx context.Context, cfg *access.Config, presented string, l sessionLimit) (*tokens, error) {
	key, err := s.signer(ctx, cfg) // before anything is changed
	if err != nil {
		return nil, err
	}
	next := s.successor(cfg.Tenant.ID, presented)
	r, err := s.store.rotate(ctx, cfg.Tenant.ID, secret.Hash(presented), secret.Hash(next), l)
	if err != nil {
		return nil, err
	}
	switch r.verdict {
	case rotate:
		s.counts.refreshes.Add(1)
		l.count(r.chainID)
	case repeat:
	case endAsTheft:
		s.counts.reuses.Add(1)
		s.emit("identity.refresh_reused", map[string]any{"tenant": cfg.Tenant.ID, "user_id": r.userID, "chain_id": r.chainID})
		return nil, errRefresh
	default:
		return nil, errRefresh
	}
	return issue(cfg, key, r.grant, next)
}

// grant is the user, the session and the time for which a pair of tokens is issued. now is
// the database's time in microseconds.
type grant struct {
	userID  user.ID
	chainID string
	now     int64
}

func issue(cfg *access.Config, key *signingKey, g grant, refreshToken string) (*tokens, error) {
	jwt, err := sign(cfg, key, g)
	return &tokens{AccessToken: jwt, RefreshToken: refreshToken, ExpiresIn: int(accessLifetime.Seconds())}, err
}

// logout revokes the presented token, if it exists, and no other. The grace period of its
// predecessor ends, too.
func (s *Service) logout(ctx context.Context, cfg *access.Config, presented string) error {
	return s.store.logout(ctx, cfg.Tenant.ID, secret.Hash(presented))
}
