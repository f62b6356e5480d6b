package identity

import (
	"context"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/mail"
	"gatehouse/internal/ratelimit"
	"gatehouse/internal/secret"
	"gatehouse/internal/signin"
	"gatehouse/internal/tenant"
)

// Mailer sends mails. Put adds one in the caller's transaction: it is sent if that
// commits. Wake must be called after the commit.
type Mailer interface {
	Put(ctx context.Context, tx db.Tx, m mail.Message) error
	Wake()
}

// Options configures a Service. All fields but Emit must be set.
type Options struct {
	DB        *db.DB
	Directory *access.Directory
	Clock     clock.Clock
	Keyring   *secret.Keyring
	Limiter   *ratelimit.Limiter
	Mailer    Mailer
	Hasher    *signin.Hasher // shared by all that hashes passwords
	// Emit logs events for the operator: stolen tokens, blocks, mails that could not
	// be queued. No event contains a token, password or e-mail address.
	Emit func(event string, fields map[string]any)
}

// New returns a service. It sends the mails that are requested until Close, and deletes
// nothing until RunRetention is called.
func New(o Options) *Service {
	s := &Service{
		store: store{d: o.DB, clock: o.Clock}, dir: o.Directory, clock: o.Clock, keyring: o.Keyring,
		mailer: o.Mailer, emit: o.Emit, hasher: o.Hasher, keys: keys{tenants: map[tenant.ID]*tenantKeys{}},
	}
	if s.emit == nil {
		s.emit = func(string, map[string]any) {}
	}
	s.limits = &signin.Limits{Limiter: o.Limiter, Clock: o.Clock, Name: "identity", Blocked: s.blocked}
	s.mails = signin.NewLater()
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

// enqueue adds a job that runs after the answer was sent, and again if it fails. It
// returns OVERLOADED if too many jobs wait.
func (s *Service) enqueue(tenantID tenant.ID, what string, do func(ctx context.Context) error) error {
	return s.mails.Do(tenantID, do, func(err error) {
		s.emit("identity.mail_failed", map[string]any{"tenant": tenantID, "what": what, "error": err.Error()})
	})
}
