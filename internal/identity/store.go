package identity

import (
	"context"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/admission"
	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/mail"
	"gatehouse/internal/ratelimit"
	"gatehouse/internal/secret"
	"gatehouse/internal/tenant"
)

// Mailer queues mails. Put does so in the caller's transaction: the mail is
// sent if that commits. Wake tells that one did.
type Mailer interface {
	Put(ctx context.Context, tx db.Tx, m mail.Message) error
	Wake()
}

// Options is what a Service is made of. All but Emit must be set.
type Options struct {
	DB        *db.DB
	Directory *access.Directory
	Clock     clock.Clock
	Keyring   *secret.Keyring
	Limiter   *ratelimit.Limiter
	Mailer    Mailer
	Cores     *admission.Cores // that hashes are computed in, nil without bound
	// Emit takes what an operator should know of: thefts, blocks, mails that
	// could not be queued. It is told no token, password or e-mail address.
	Emit func(event string, fields map[string]any)
}

// New returns the service and starts its background work; Close ends it.
func New(o Options) *Service {
	s := &Service{
		store: store{d: o.DB, clock: o.Clock}, dir: o.Directory, clock: o.Clock, keyring: o.Keyring, limiter: o.Limiter,
		mailer: o.Mailer, emit: o.Emit, gate: newGate(), cores: o.Cores, keys: keys{tenants: map[tenant.ID]*tenantKeys{}},
		passwords: passwords{hash: secret.HashPassword, verify: secret.VerifyPassword, dummy: secret.DummyHash},
	}
	if s.emit == nil {
		s.emit = func(string, map[string]any) {}
	}
	s.after = newQueue()
	s.sweeper = startSweeper(s)
	return s
}

// store is the database; times in it are the database's own.
type store struct {
	d     *db.DB
	clock clock.Clock
}

// offset is what a test has moved the time by, in microseconds.
func (s store) offset() int64 { return clock.OffsetOf(s.clock).Microseconds() }

// micros is a lifetime as statements take it.
func micros(d time.Duration) int64 { return d.Microseconds() }
