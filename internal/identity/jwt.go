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
	// maxToken bounds what is looked at of a presented token.
	maxToken = 4 << 10
	audience = "public-api"
	// tokenType is what keeps these tokens out of the tenant's own web
	// application (contract I1, T1).
	tokenType = "external"
	// clockSkew is how far ahead of this node's clock a token may have been issued.
	clockSkew = time.Minute
)

// claims are those of contract T1, and nothing else.
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

// GetExpirationTime is exp.
func (c *claims) GetExpirationTime() (*jwt.NumericDate, error) { return c.ExpiresAt, nil }

// GetIssuedAt is iat.
func (c *claims) GetIssuedAt() (*jwt.NumericDate, error) { return c.IssuedAt, nil }

// GetNotBefore is nbf.
func (c *claims) GetNotBefore() (*jwt.NumericDate, error) { return c.NotBefore, nil }

// GetIssuer is iss.
func (c *claims) GetIssuer() (string, error) { return c.Issuer, nil }

// GetSubject is sub.
func (c *claims) GetSubject() (string, error) { return c.Subject, nil }

// GetAudience is aud.
func (c *claims) GetAudience() (jwt.ClaimStrings, error) { return jwt.ClaimStrings{c.Audience}, nil }

var (
	errUnauthorized = fault.New(fault.Unauthorized, "a valid API key or access token is required")
	errNoKey        = errors.New("identity: the tenant has no signing key")
	errBadToken     = errors.New("identity: the token does not hold")
)

// sign makes the access token of a session, issued at an instant of the
// database. Its jti is the id of the session's chain, a slash, and an id of the
// token's own.
func sign(cfg *access.Config, key *signingKey, of holder) (string, error) {
	now := clock.FromMicros(of.now)
	token := jwt.NewWithClaims(jwt.SigningMethodHS256, &claims{
		Issuer: cfg.Tenant.BaseURL, Audience: audience, Subject: string(of.userID), Tenant: string(cfg.Tenant.ID), Type: tokenType,
		IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Truncate(time.Second).Add(accessLifetime)),
		ID: of.chainID + "/" + clock.NewID(now),
	})
	token.Header["kid"] = key.kid
	return token.SignedString(key.secret)
}

// parser checks form, algorithm and signature; holds checks the claims.
var parser = jwt.NewParser(jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}), jwt.WithStrictDecoding(), jwt.WithoutClaimsValidation())

// Authenticate finds the viewer of an access token: an external user of the
// tenant, deactivated or not, with the rights they have now (contract T3, A15).
// Whatever is wrong with the token, it is the same UNAUTHORIZED.
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

// subject is the user whom a token names, if it holds. What held before under
// the same configuration is asked only whether it still lives: the key that
// signed it, and the token itself.
func (s *Service) subject(ctx context.Context, cfg *access.Config, token string) (string, error) {
	t := s.keys.of(cfg.Tenant.ID)
	sum := sha256.Sum256([]byte(token))
	now := s.clock.Now()
	if set := t.set.Load(); set != nil && set.version == cfg.Tenant.Version {
		if v, ok := set.verified.Get(string(sum[:])); ok && now.Before(v.expires) && v.key.usable(now) {
			return v.subject, nil
		}
	}
	c, key, err := s.parse(ctx, cfg, token)
	if err != nil {
		return "", err
	}
	if !c.hold(cfg, now) {
		return "", errUnauthorized
	}
	if set := t.set.Load(); set.version == cfg.Tenant.Version {
		set.verified.Put(string(sum[:]), verified{c.Subject, c.ExpiresAt.Time, key})
	}
	return c.Subject, nil
}

// parse checks the form of a token, its header and its signature.
func (s *Service) parse(ctx context.Context, cfg *access.Config, token string) (*claims, *signingKey, error) {
	var c claims
	var key *signingKey
	var trouble error // ours, not the token's
	_, err := parser.ParseWithClaims(token, &c, func(t *jwt.Token) (any, error) {
		kid, _ := t.Header["kid"].(string)
		_, critical := t.Header["crit"]
		if kid == "" || critical || t.Header["typ"] != "JWT" {
			return nil, errBadToken
		}
		var err error
		if key, err = s.verifier(ctx, cfg, kid); err != nil {
			if !errors.Is(err, errBadToken) {
				trouble = err
			}
			return nil, err
		}
		return key.secret, nil
	})
	switch {
	case trouble != nil:
		return nil, nil, trouble
	case err != nil:
		return nil, nil, errUnauthorized
	}
	return &c, key, nil
}

// chainOf is the chain of the session that an access token was issued in, "" for
// a token from before they named it. The token has been let in already.
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

// hold reports whether the claims are those of a token of the tenant that is
// valid now. To its end a token gets no leeway.
func (c *claims) hold(cfg *access.Config, now time.Time) bool {
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
