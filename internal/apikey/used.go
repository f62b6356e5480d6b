package apikey

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"gatehouse/internal/background"
	"gatehouse/internal/clock"
	"gatehouse/internal/tenant"
)

const (
	// flushEvery is how soon the first use of a key is written at the latest.
	flushEvery = time.Second
	// writeEvery is the shortest time between two writes of the same key.
	writeEvery = 30 * time.Second
	// flushTimeout bounds the writes of one flush; the rest is written later.
	flushTimeout = 10 * time.Second
	// flushBatch is how many keys are written in one transaction.
	flushBatch = 500
	// maxUses bounds for how many keys the last write is remembered; when it is
	// forgotten, the key is written once more than needed.
	maxUses = 100_000
)

// use is the last use of one key.
type use struct {
	tenant  tenant.ID
	key     string
	at      atomic.Int64 // microseconds UTC
	queued  atomic.Bool
	written int64 // when it was last written; only flush uses it
}

// Touch records that the key was used now. It neither waits nor fails. RunLastUse
// writes last_used_at, the first time within a second and then at most every 30 s.
// The version of the configuration is not raised.
func (s *Service) Touch(k *Key) {
	u := k.use
	if u == nil {
		return
	}
	u.at.Store(clock.Micros(s.clock.Now()))
	if !u.queued.Load() && u.queued.CompareAndSwap(false, true) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.queue = append(s.queue, u)
	}
}

// useOf returns the use of a key, which is the same in all versions of the
// configuration.
func (s *Service) useOf(tenant tenant.ID, k *Key) *use {
	name := string(tenant) + "/" + k.ID
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.uses[name]; u != nil {
		return u
	}
	if s.uses == nil || len(s.uses) >= maxUses {
		s.uses = map[string]*use{}
	}
	u := &use{tenant: tenant, key: k.ID}
	s.uses[name] = u
	return u
}

// RunLastUse writes what Touch has recorded, until ctx ends. A write that fails is
// tried again, and the failure is logged.
func (s *Service) RunLastUse(ctx context.Context) {
	background.Sweep(ctx, flushEvery, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, flushTimeout)
		defer cancel()
		return s.flush(ctx, false)
	}, func(err error) {
		slog.Warn("last_used_at of API keys is not written; it is tried again", "error", err)
	})
}

// Close writes the uses that are not written yet. RunLastUse must have returned.
// When ctx ends first, or the database fails, the rest is lost; Close returns the
// error.
func (s *Service) Close(ctx context.Context) error { return s.flush(ctx, true) }

// flush writes the uses that are due, or all of them, in transactions of one tenant
// each. What could not be written stays queued.
func (s *Service) flush(ctx context.Context, all bool) error {
	s.mu.Lock()
	queue := s.queue
	s.queue = nil
	s.mu.Unlock()

	now := clock.Micros(s.clock.Now())
	var due, later []*use
	for _, u := range queue {
		if since := now - u.written; all || since >= writeEvery.Microseconds() || since < 0 {
			due = append(due, u)
		} else {
			later = append(later, u)
		}
	}
	slices.SortFunc(due, func(a, b *use) int { // all nodes lock rows in one order
		return cmp.Or(cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.key, b.key))
	})
	var failed error
	for len(due) > 0 {
		n := slices.IndexFunc(due, func(u *use) bool { return u.tenant != due[0].tenant })
		if n < 0 {
			n = len(due)
		}
		batch := due[:min(n, flushBatch)]
		due = due[len(batch):]
		for _, u := range batch {
			u.queued.Store(false) // before u.at is read, so that a later use queues it again
		}
		if err := s.store.touch(ctx, batch); err != nil {
			failed = err
			for _, u := range batch {
				if u.queued.CompareAndSwap(false, true) {
					later = append(later, u)
				}
			}
			continue
		}
		for _, u := range batch {
			u.written = now
		}
	}
	s.mu.Lock()
	s.queue = append(s.queue, later...)
	s.mu.Unlock()
	return failed
}
