package identity

import (
	"context"
	"sync/atomic"

	"gatehouse/internal/access"
	"gatehouse/internal/admission"
	"gatehouse/internal/clock"
	"gatehouse/internal/ratelimit"
	"gatehouse/internal/secret"
)

// Service is External Identity of every tenant. It may be used by several
// goroutines at once. Close must be called at the end.
type Service struct {
	store     store
	dir       *access.Directory
	clock     clock.Clock
	keyring   *secret.Keyring
	limiter   *ratelimit.Limiter
	mailer    Mailer
	emit      func(event string, fields map[string]any)
	keys      keys
	gate      *admission.Gate // of hashes, by tenant
	cores     *admission.Cores
	passwords passwords
	after     *queue
	counts    counts
}

// passwords are the three costly functions; tests put cheap ones in their place.
type passwords struct {
	hash   func(password string) (string, error)
	verify func(phc, password string) bool
	dummy  func() string
}

type counts struct {
	registrations, logins, failures, blocks, refreshes, reuses, resets, changes, overloads atomic.Int64
}

// Stats counts what happened since the process started.
type Stats struct {
	Registrations int64
	Logins        int64 // that succeeded
	Failures      int64 // logins with credentials that did not hold
	Blocks        int64 // times an e-mail address was blocked
	Refreshes     int64 // rotations
	Reuses        int64 // chains ended because a rotated token came back
	Resets        int64 // passwords reset
	Changes       int64 // passwords changed by who knew the old one
	Overloads     int64 // requests shed because too many wait for a hash
}

// Stats is what happened since the process started.
func (s *Service) Stats() Stats {
	c := &s.counts
	return Stats{
		Registrations: c.registrations.Load(), Logins: c.logins.Load(), Failures: c.failures.Load(), Blocks: c.blocks.Load(),
		Refreshes: c.refreshes.Load(), Reuses: c.reuses.Load(), Resets: c.resets.Load(), Changes: c.changes.Load(), Overloads: c.overloads.Load(),
	}
}

// Settle waits until the mails asked for so far are queued or given up, or ctx
// ends.
func (s *Service) Settle(ctx context.Context) error { return s.after.settle(ctx) }

// Close takes no more mails to send and finishes those it took; when ctx ends
// first, what is left is given up. The routes must not be called any more.
func (s *Service) Close(ctx context.Context) error { return s.after.close(ctx) }
