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

// tokens is what login and refresh hand out.
type tokens struct {
	AccessToken  string `json:"accessToken"`
	RefreshToken string `json:"refreshToken"`
	ExpiresIn    int    `json:"expiresIn"`
}

// newSecret is a fresh refresh token or one-time token: 256 random bits.
func newSecret() string {
	var random [sha256.Size]byte
	_, _ = rand.Read(random[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(random[:])
}

// successor is the one token that may follow a refresh token (contract T7):
// it can be handed out again without having been stored, by whoever holds the
// master key and is shown its predecessor, and by nobody else.
func (s *Service) successor(tenantID tenant.ID, presented string) string {
	mac := hmac.New(sha256.New, s.keyring.Derive("refresh token/"+string(tenantID), sha256.Size))
	mac.Write([]byte(presented))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// verdict is what a presented token leads to.
type verdict uint8

const (
	refuse401  verdict = iota
	rotate             // it is current: a successor takes its place
	repeat             // it was rotated a moment ago: its successor is told again
	endForUser         // refused, and the chain is marked ended because of its user
	endAsTheft         // refused, and the chain is revoked: somebody has an old token
)

// judge is the table of contract T7, row by row. Of a token
// that was rotated it does not matter how old it is: a moment ago it is told its
// successor again, later it is theft.
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

// pace bounds how often the token of a session is replaced. Nothing else that a
// token leads to is held up: an old one ends its session however busy that is.
type pace struct {
	ask   func(chainID string) error
	count func(chainID string)
}

// refresh exchanges a refresh token for its successor and a new access token.
// Whatever is wrong with the token, it is the same UNAUTHORIZED.
func (s *Service) refresh(ctx context.Context, cfg *access.Config, presented string, p pace) (*tokens, error) {
	key, err := s.signer(ctx, cfg) // before anything is changed
	if err != nil {
		return nil, err
	}
	next := s.successor(cfg.Tenant.ID, presented)
	r, err := s.store.rotate(ctx, cfg.Tenant.ID, secret.Hash(presented), secret.Hash(next), p)
	if err != nil {
		return nil, err
	}
	switch r.verdict {
	case rotate:
		s.counts.refreshes.Add(1)
		p.count(r.chainID)
	case repeat:
	case endAsTheft:
		s.counts.reuses.Add(1)
		s.emit("identity.refresh_reused", map[string]any{"tenant": cfg.Tenant.ID, "user_id": r.userID, "chain_id": r.chainID})
		return nil, errRefresh
	default:
		return nil, errRefresh
	}
	return issue(cfg, key, r.holder, next)
}

// holder is whose session a pair of tokens is issued for, and when: by the
// database's clock, in microseconds.
type holder struct {
	userID  user.ID
	chainID string
	now     int64
}

func issue(cfg *access.Config, key *signingKey, of holder, refreshToken string) (*tokens, error) {
	jwt, err := sign(cfg, key, of)
	return &tokens{AccessToken: jwt, RefreshToken: refreshToken, ExpiresIn: int(accessLifetime.Seconds())}, err
}

// logout revokes the presented token, if it is one, and no other; the grace of
// its predecessor ends with it.
func (s *Service) logout(ctx context.Context, cfg *access.Config, presented string) error {
	return s.store.logout(ctx, cfg.Tenant.ID, secret.Hash(presented))
}
