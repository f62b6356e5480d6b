package staff

import (
	"context"
	"errors"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/mail"
	"gatehouse/internal/ratelimit"
	"gatehouse/internal/secret"
	"gatehouse/internal/signin"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// Mailer sends mails. Put adds one in the caller's transaction: it is sent if that
// commits. Wake must be called after the commit.
type Mailer interface {
	Put(ctx context.Context, tx db.Tx, m mail.Message) error
	Wake()
}

// Options configure a Service. All fields but Emit must be set.
type Options struct {
	DB        *db.DB
	Directory *access.Directory
	Clock     clock.Clock
	Keyring   *secret.Keyring
	Limiter   *ratelimit.Limiter
	Mailer    Mailer
	Hasher    *signin.Hasher // shared by all that hashes passwords
	// Emit logs events for the operator. No event contains a token, password or e-mail
	// address.
	Emit func(event string, fields map[string]any)
}

// New returns a service. It sends the mails that are requested until Close, and deletes
// nothing until RunRetention is called.
func New(o Options) *Service {
	s := &Service{
		store: store{d: o.DB, clock: o.Clock}, dir: o.Directory, clock: o.Clock, keyring: o.Keyring, mailer: o.Mailer,
		cursors: newCursors(o.Keyring.Derive("cursor of staff sessions", 32)), hasher: o.Hasher, emit: o.Emit, mails: signin.NewLater(),
	}
	if s.emit == nil {
		s.emit = func(string, map[string]any) {}
	}
	s.limits = &signin.Limits{Limiter: o.Limiter, Clock: o.Clock, Name: "staff", Blocked: s.blocked}
	return s
}

// store reads and writes the database. It uses the database's time.
type store struct {
	d     *db.DB
	clock clock.Clock
}

// offset returns how far a test has moved the clock, in microseconds.
func (s store) offset() int64 { return clock.OffsetOf(s.clock).Microseconds() }

// micros returns a duration in microseconds, as statements take it.
func micros(d time.Duration) int64 { return d.Microseconds() }

// account returns a user's account, the zero Account if there is none.
func (s store) account(ctx context.Context, tenantID tenant.ID, id user.ID) (user.Account, error) {
	acc, err := user.AccountByID(ctx, s.d.For(tenantID), id)
	if errors.Is(err, user.ErrUnknown) {
		return user.Account{}, nil
	}
	return acc, err
}

// byEmail returns the account with an e-mail address, the zero Account if there is none.
func (s store) byEmail(ctx context.Context, tenantID tenant.ID, email string) (user.Account, error) {
	acc, err := user.AccountByEmail(ctx, s.d.For(tenantID), email)
	if errors.Is(err, user.ErrUnknown) {
		return user.Account{}, nil
	}
	return acc, err
}

// lockSame locks the row of an account and reports whether the account is as it was seen:
// a transaction that ends the user's sessions either comes before the caller's or sees what
// it writes.
func lockSame(ctx context.Context, tx db.Tx, seen user.Account) (bool, error) {
	acc, err := user.LockAccount(ctx, tx, seen.ID)
	if errors.Is(err, user.ErrUnknown) {
		return false, nil
	}
	same := err == nil && acc.Type == user.Internal && acc.Active && acc.Epoch == seen.Epoch && acc.PasswordHash == seen.PasswordHash
	return same, err
}
