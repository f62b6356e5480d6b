package identity

import (
	"context"
	"sync/atomic"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/secret"
	"gatehouse/internal/signin"
)

// Service is the External Identity of all tenants. It may be used by several goroutines
// at once. Close must be called at the end.
type Service struct {
	store   store
	dir     *access.Directory
	clock   clock.Clock
	keyring *secret.Keyring
	limits  *signin.Limits
	mailer  Mailer
	emit    func(event string, fields map[string]any)
	keys    keys
	hasher  *signin.Hasher
	mails   *signin.Later
	counts  counts
}

type counts struct {
	registrations, logins, failures, blocks, refreshes, reuses, resets, changes atomic.Int64
}

// Stats counts events since the process started.
type Stats struct {
	Registrations int64
	Logins        int64 // that succeeded
	Failures      int64 // logins that failed
	Blocks        int64 // blocks of an e-mail address
	Refreshes     int64 // rotations
	Reuses        int64 // chains that ended because a rotated token was presented
	Resets        int64 // passwords reset
	Changes       int64 // passwords changed by users who know the old one
	Overloads     int64 // requests refused because too many wait for a hash
}

// Stats returns the counts.
func (s *Service) Stats() Stats {
	c := &s.counts
	return Stats{
		Registrations: c.registrations.Load(), Logins: c.logins.Load(), Failures: c.failures.Load(), Blocks: c.blocks.Load(),
		Refreshes: c.refreshes.Load(), Reuses: c.reuses.Load(), Resets: c.resets.Load(), Changes: c.changes.Load(), Overloads: s.hasher.Overloads(),
	}
}

// Settle waits until every mail requested so far is in the outbox or has failed. It
// returns the error of ctx if ctx ends first.
func (s *Service) Settle(ctx context.Context) error { return s.mails.Settle(ctx) }

// Close finishes the mails that were requested. It returns an error if ctx ends first; the
// remaining mails are then dropped. The routes must not be used after Close was called.
func (s *Service) Close(ctx context.Context) error { return s.mails.Close(ctx) }
