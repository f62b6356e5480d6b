// Package staff lets a tenant's staff sign in to the administration, by e-mail address
// and password, and keeps their sessions.
//
// A session is a row with the hash of a random token, which the browser has in a cookie.
// Each request reads the row and the user's account: a session that was ended, a
// deactivated user and a changed password take effect at once on every node. The rights
// come from the tenant's configuration, as everywhere.
//
// A user may have a second factor, one-time codes by time (TOTP), and a tenant may demand
// one. Then the session begins before the second factor, at a stage where it may do
// nothing else, and gets a new token when it has passed.
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
	"gatehouse/internal/user"
)

// How long a session lives, in database time (contract Y4).
const (
	idleLife     = 12 * time.Hour
	absoluteLife = 7 * 24 * time.Hour
	// unfinishedLife is how long a sign-in may wait for its second factor.
	unfinishedLife = 15 * time.Minute
	// touchEvery is how often the time of the last request is written.
	touchEvery = time.Minute
	// maxSessions is how many sessions a user may have. One more ends the oldest.
	maxSessions = 20
)

func lifeOf(stage credential.Stage) time.Duration {
	if stage == credential.Full {
		return absoluteLife
	}
	return unfinishedLife
}

// Service is the sign-in of all tenants' staff. It may be used by several goroutines at
// once. Close must be called at the end.
type Service struct {
	store   store
	dir     *access.Directory
	clock   clock.Clock
	keyring *secret.Keyring
	cursors httpapi.Cursors
	mailer  Mailer
	hasher  *signin.Hasher
	limits  *signin.Limits
	mails   *signin.Later
	emit    func(event string, fields map[string]any)
}

// newCursors makes the cursors of the lists; the files of the storage know no HTTP.
func newCursors(key []byte) httpapi.Cursors { return httpapi.NewCursors(key) }

// Settle waits until every mail requested so far is in the outbox or has failed. It
// returns the error of ctx if ctx ends first.
func (s *Service) Settle(ctx context.Context) error { return s.mails.Settle(ctx) }

// Close finishes the mails that were requested. It returns an error if ctx ends first; the
// remaining mails are then dropped. The routes must not be used after Close was called.
func (s *Service) Close(ctx context.Context) error { return s.mails.Close(ctx) }

// RunRetention deletes sessions that have ended and tokens that have long expired, now and
// every hour, until ctx ends. Of the nodes that run it, one deletes.
func (s *Service) RunRetention(ctx context.Context) {
	s.store.runSweep(ctx, func(err error) { s.emit("staff.sweep_failed", map[string]any{"error": err.Error()}) })
}

// blocked logs that an e-mail address was blocked.
func (s *Service) blocked(c *httpapi.Call, minutes int) {
	s.emit("staff.sign_in_blocked", map[string]any{"tenant": c.Config.Tenant.ID, "ip": c.IP.String(), "minutes": minutes})
}

// newToken returns a new session or reset token: 256 random bits.
func newToken() string {
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(random[:])
}

var errUnauthorized = fault.New(fault.Unauthorized, "the session is unknown or has ended: sign in")

// Authenticate returns the viewer of the request's session cookie and the session. The
// viewer is that of the user acted as, if any. The viewer of a session that is not Full may
// do nothing. It returns UNAUTHORIZED unless there is a session that has not ended, of an
// internal user who is active and has the password that they signed in with; and FORBIDDEN,
// after it has ended the acting, if the user may no longer act as the other one.
func (s *Service) Authenticate(ctx context.Context, c *httpapi.Call) (access.Viewer, *httpapi.StaffSession, error) {
	token := cookie(c)
	if token == "" {
		return access.Viewer{}, nil, errUnauthorized
	}
	tenantID := c.Config.Tenant.ID
	row, err := s.store.session(ctx, tenantID, secret.Hash(token))
	if err != nil {
		return access.Viewer{}, nil, err
	}
	acc, err := s.store.account(ctx, tenantID, row.userID)
	if err != nil {
		return access.Viewer{}, nil, err
	}
	if acc.Type != user.Internal || !acc.Active || acc.Epoch != row.epoch {
		return access.Viewer{}, nil, errUnauthorized
	}
	if row.now-row.usedAt >= micros(touchEvery) {
		if err := s.store.touch(ctx, tenantID, row); err != nil {
			return access.Viewer{}, nil, err
		}
	}
	return s.open(ctx, c.Config, row, acc)
}

// open returns the viewer of a session that was found good, and the session as handlers
// have it.
func (s *Service) open(ctx context.Context, cfg *access.Config, row session, acc user.Account) (access.Viewer, *httpapi.StaffSession, error) {
	is := &httpapi.StaffSession{
		ID: row.id, UserID: acc.ID, Email: acc.Email, Stage: row.stage,
		SignedInAt: clock.FromMicros(row.startedAt), ExpiresAt: clock.FromMicros(row.expiresAt),
	}
	if row.stage != credential.Full {
		return access.Viewer{}, is, nil
	}
	viewer, err := s.dir.Viewer(ctx, cfg, acc.ID, false)
	if err != nil {
		return access.Viewer{}, nil, err
	}
	is.Real = viewer
	if row.actingAs == "" {
		return viewer, is, nil
	}
	other, err := s.mayActAs(ctx, cfg, viewer, row.actingAs)
	if err != nil {
		if fault.CodeOf(err) != fault.Forbidden && fault.CodeOf(err) != fault.NotFound {
			return access.Viewer{}, nil, err
		}
		if err := s.store.act(ctx, cfg.Tenant.ID, row.id, ""); err != nil {
			return access.Viewer{}, nil, err
		}
		return access.Viewer{}, nil, fault.New(fault.Forbidden, "you may no longer act as that user: you act as yourself again").With("reason", reasonActingEnded)
	}
	is.ActingAs = other.Email()
	return other, is, nil
}

var errCredentials = fault.New(fault.InvalidCredentials, "the e-mail address or the password is wrong")

// begun is a session that has just begun, or was completed.
type begun struct {
	token   string
	session *httpapi.StaffSession
	viewer  access.Viewer
}

// signIn checks an e-mail address and a password and begins a session. It returns the same
// INVALID_CREDENTIALS for an external user, an address without an account, one without a
// password, a wrong password and a deactivated user, after the same work. The caller must
// hold a place to hash.
func (s *Service) signIn(ctx context.Context, c *httpapi.Call, login SignIn) (*begun, error) {
	tenantID := c.Config.Tenant.ID
	acc, err := s.store.byEmail(ctx, tenantID, login.Email)
	if err != nil {
		return nil, err
	}
	hash := s.hasher.Dummy()
	known := acc.Type == user.Internal && acc.PasswordHash != ""
	if known {
		hash = acc.PasswordHash
	}
	right, err := s.hasher.Verify(ctx, tenantID, hash, login.Password)
	if err != nil {
		return nil, err
	}
	if !right || !known || !acc.Active {
		return nil, errCredentials
	}
	token := newToken()
	row, ok, err := s.store.begin(ctx, tenantID, acc, newSession{
		hash: secret.Hash(token), demanded: c.Config.Tenant.Settings.Staff.FactorRequired(), ip: c.IP.String(), agent: shortAgent(c.Request.UserAgent()),
	})
	if err != nil {
		return nil, err
	}
	if !ok { // the account changed while the password was checked
		return nil, errCredentials
	}
	viewer, is, err := s.open(ctx, c.Config, row, acc)
	return &begun{token, is, viewer}, err
}
