package identity

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/fault"
	"gatehouse/internal/user"
)

const (
	accessLifetime = time.Hour
	// maxToken bounds the length of a token that is parsed.
	maxToken = 4 << 10
	audience = "public-api"
	// tokenType distinguishes these tokens from those of the tenant's own web
	// application (contract I1, T1).
	tokenType = "external"
	// clockSkew is how far ahead of this node's clock a token's iat may be.
	clockSkew = time.Minute
)

// claims are the claims of contract T1.
type claims struct {
	Issuer    string           `json:"iss"`
	Audience  string           `json:"aud"`
	Subject   string           `json:"sub"`
	Tenant    string           `json:"tid"`
	Type      string           `json:"typ"`
	IssuedAt  *jwt.NumericDate `json:"iat"`
	ExpiresAt *jwt.NumericDate `json:"exp"`
	NotBefore *jwt.NumericDate `json:"nbf,omitempty"`
	ID        string           `json:"jti"`
}

var _ jwt.Claims = (*claims)(nil)

// GetExpirationTime returns exp.
func (c *claims) GetExpirationTime() (*jwt.NumericDate, error) { return c.ExpiresAt, nil }

// GetIssuedAt returns iat.
func (c *claims) GetIssuedAt() (*jwt.NumericDate, error) { return c.IssuedAt, nil }

// GetNotBefore returns nbf.
func (c *claims) GetNotBefore() (*jwt.NumericDate, error) { return c.NotBefore, nil }

// GetIssuer returns iss.
func (c *claims) GetIssuer() (string, error) { return c.Issuer, nil }

// GetSubject returns sub.
func (c *claims) GetSubject() (string, error) { return c.Subject, nil }

// GetAudience returns aud.
func (c *claims) GetAudience() (jwt.ClaimStrings, error) { return jwt.ClaimStrings{c.Audience}, nil }

var (
	errUnauthorized = fault.New(fault.Unauthorized, "a valid API key or access token is required")
	errNoKey        = errors.New("identity: the tenant has no signing key")
	errBadToken     = errors.New("identity: the token is not valid")
)

// sign returns the access token of a grant. Its jti is the id of the session's chain, a
// slash, and an id of its own.
func sign(cfg *access.Config, key *signingKey, g grant) (string, error) {
	now := clock.FromMicros(g.now)
	token := jwt.NewWithClaims(jwt.SigningMethodHS256, &claims{
		Issuer: cfg.Tenant.BaseURL, Audience: audience, Subject: string(g.userID), Tenant: string(cfg.Tenant.ID), Type: tokenType,
		IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Truncate(time.Second).Add(accessLifetime)),
		ID: g.chainID + "/" + clock.NewID(now),
	})
	token.Header["kid"] = key.kid
	return token.SignedString(key.secret)
}

// parser checks form, algorithm and signature; claims.valid checks the claims.
var parser = jwt.NewParser(jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}), jwt.WithStrictDecoding(), jwt.WithoutClaimsValidation())

// Authenticate returns the viewer of an access token: an external user of the tenant,
// deactivated or not, with the user's current rights (contract T3, A15). It returns the
// same UNAUTHORIZED for every invalid token.
func (s *Service) Authenticate(ctx context.Context, cfg *access.Config, token string) (access.Viewer, error) {
	if len(token) > maxToken || strings.Count(token, ".") != 2 {
		return access.Viewer{}, errUnauthorized
	}
	subject, err := s.subject(ctx, cfg, token)
	if err != nil {
		return access.Viewer{}, err
	}
	v, err := s.dir.Viewer(ctx, cfg, user.ID(subject), true)
	switch {
	case fault.CodeOf(err) == fault.Unauthorized:
		return access.Viewer{}, errUnauthorized
	case err != nil:
		return access.Viewer{}, err
	case !v.External():
		return access.Viewer{}, errUnauthorized
	}
	return v, nil
}

// subject returns the user that a valid token names. If the token was verified before
// under the same configuration, subject checks only that the token and its key have not
// expired.
func (s *Service) subject(ctx context.Context, cfg *access.Config, token string) (string, error) {
	held := verifiedTokens.Of(cfg)
	sum := sha256.Sum256([]byte(token))
	now := s.clock.Now()
	if v, ok := held.Get(string(sum[:])); ok && now.Before(v.expires) && v.key.usable(now) {
		return v.subject, nil
	}
	c, key, err := s.parse(ctx, cfg, token)
	if err != nil {
		return "", err
	}
	if !c.valid(cfg, now) {
		return "", errUnauthorized
	}
	held.Put(string(sum[:]), verified{c.Subject, c.ExpiresAt.Time, key})
	return c.Subject, nil
}

// parse checks the form, header and signature of a token.
func (s *Service) parse(ctx context.Context, cfg *access.Config, token string) (*claims, *signingKey, error) {
	var c claims
	var key *signingKey
	var failure error // an error that the token did not cause
	_, err := parser.ParseWithClaims(token, &c, func(t *jwt.Token) (any, error) {
		kid, _ := t.Header["kid"].(string)
		_, critical := t.Header["crit"]
		if kid == "" || critical || t.Header["typ"] != "JWT" {
			return nil, errBadToken
		}
		var err error
		if key, err = s.verifier(ctx, cfg, kid); err != nil {
			if !errors.Is(err, errBadToken) {
				failure = err
			}
			return nil, err
		}
		return key.secret, nil
	})
	switch {
	case failure != nil:
		return nil, nil, failure
	case err != nil:
		return nil, nil, errUnauthorized
	}
	return &c, key, nil
}

// chainOf returns the chain of the session in which an access token was issued, or "" for
// an old token that does not name it. The token must have been authenticated.
func (s *Service) chainOf(ctx context.Context, cfg *access.Config, token string) (string, error) {
	c, _, err := s.parse(ctx, cfg, token)
	if err != nil {
		return "", err
	}
	chain, _, ok := strings.Cut(c.ID, "/")
	if !ok {
		return "", nil
	}
	return chain, nil
}

// valid reports whether the claims belong to a token of the tenant that is valid now.
// There is no leeway for exp.
func (c *claims) valid(cfg *access.Config, now time.Time) bool {
	if c.Issuer != cfg.Tenant.BaseURL || c.Audience != audience || c.Tenant != string(cfg.Tenant.ID) || c.Type != tokenType || c.Subject == "" {
		return false
	}
	if c.IssuedAt == nil || c.ExpiresAt == nil || c.ExpiresAt.Sub(c.IssuedAt.Time) > accessLifetime {
		return false
	}
	if c.NotBefore != nil && c.NotBefore.After(now.Add(clockSkew)) {
		return false
	}
	return now.Before(c.ExpiresAt.Time) && !c.IssuedAt.After(now.Add(clockSkew))
}
