// Package staff lets a tenant's staff sign in to the administration, by e-mail address
// and password, and keeps their sessions.
//
// A session is a row with the hash of a random token, which the browser has in a cookie.
// Each request reads the row and the user's account: a session that was ended, a
// deactivated user and a changed password take effect at once on every node. The rights
// come from the tenant's configuration, as everywhere.
package staff

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/credential"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/secret"
	"gatehouse/internal/signin"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// How long a session lives, in database time (contract Y4).
const (
	idleLife     = 12 * time.Hour
	absoluteLife = 7 * 24 * time.Hour
	// touchEvery is how often the time of the last request is written.
	touchEvery = time.Minute
)

// Service is the sign-in of all tenants' staff. It may be used by several goroutines at
// once.
type Service struct {
	store  store
	dir    *access.Directory
	clock  clock.Clock
	hasher *signin.Hasher
}

// newToken returns a new session token: 256 random bits.
func newToken() string {
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(random[:])
}

var errUnauthorized = fault.New(fault.Unauthorized, "the session is unknown or has ended: sign in")

// Authenticate returns the viewer of the request's session cookie and the session. The
// viewer of a session that is not Full may do nothing. It returns UNAUTHORIZED unless there
// is a session that has not ended, of an internal user who is active and has the password
// that they signed in with.
func (s *Service) Authenticate(ctx context.Context, c *httpapi.Call) (access.Viewer, *httpapi.StaffSession, error) {
	token := cookie(c)
	if token == "" {
		return access.Viewer{}, nil, errUnauthorized
	}
	row, err := s.store.session(ctx, c.Config.Tenant.ID, secret.Hash(token))
	if err != nil {
		return access.Viewer{}, nil, err
	}
	acc, err := s.store.account(ctx, c.Config.Tenant.ID, row.userID)
	if err != nil {
		return access.Viewer{}, nil, err
	}
	if acc.Type != user.Internal || !acc.Active || acc.Epoch != row.epoch {
		return access.Viewer{}, nil, errUnauthorized
	}
	if row.now-row.usedAt >= touchEvery.Microseconds() {
		if err := s.store.touch(ctx, c.Config.Tenant.ID, row); err != nil {
			return access.Viewer{}, nil, err
		}
	}
	session := &httpapi.StaffSession{
		ID: row.id, UserID: acc.ID, Email: acc.Email, Stage: row.stage,
		SignedInAt: clock.FromMicros(row.startedAt), ExpiresAt: clock.FromMicros(row.expiresAt),
	}
	if row.stage != credential.Full {
		return access.Viewer{}, session, nil
	}
	viewer, err := s.dir.Viewer(ctx, c.Config, acc.ID, false)
	return viewer, session, err
}

var errCredentials = fault.New(fault.InvalidCredentials, "the e-mail address or the password is wrong")

// begun is a session that has just begun.
type begun struct {
	token   string
	session *httpapi.StaffSession
	viewer  access.Viewer
}

// signIn checks an e-mail address and a password and begins a session. It returns the same
// INVALID_CREDENTIALS for an external user, an address without an account, one without a
// password, a wrong password and a deactivated user, after the same work. The caller must
// hold a place to hash.
func (s *Service) signIn(ctx context.Context, c *httpapi.Call, email, password string) (*begun, error) {
	tenantID := c.Config.Tenant.ID
	acc, known, err := s.store.byEmail(ctx, tenantID, email)
	if err != nil {
		return nil, err
	}
	hash := s.hasher.Dummy()
	if known = known && acc.Type == user.Internal && acc.PasswordHash != ""; known {
		hash = acc.PasswordHash
	}
	right, err := s.hasher.Verify(ctx, tenantID, hash, password)
	if err != nil {
		return nil, err
	}
	if !right || !known || !acc.Active {
		return nil, errCredentials
	}
	return s.begin(ctx, c, acc, credential.Full)
}

// begin begins a session of an account. It returns INVALID_CREDENTIALS if the account
// has changed since it was read.
func (s *Service) begin(ctx context.Context, c *httpapi.Call, acc user.Account, stage credential.Stage) (*begun, error) {
	token := newToken()
	row, ok, err := s.store.begin(ctx, c.Config.Tenant.ID, acc, newSession{
		hash: secret.Hash(token), stage: stage, ip: c.IP.String(), agent: shortAgent(c.Request.UserAgent()),
	})
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, errCredentials
	}
	b := &begun{token: token, session: &httpapi.StaffSession{
		ID: row.id, UserID: acc.ID, Email: acc.Email, Stage: stage,
		SignedInAt: clock.FromMicros(row.startedAt), ExpiresAt: clock.FromMicros(row.expiresAt),
	}}
	if stage == credential.Full {
		b.viewer, err = s.dir.Viewer(ctx, c.Config, acc.ID, false)
	}
	return b, err
}

// signOut ends a session.
func (s *Service) signOut(ctx context.Context, tenantID tenant.ID, sessionID string) error {
	return s.store.end(ctx, tenantID, sessionID)
}
