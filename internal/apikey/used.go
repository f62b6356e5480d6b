package apikey

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"gatehouse/internal/clock"
	"gatehouse/internal/tenant"
)

const (
	// flushEvery is how soon the first use of a key is written.
	flushEvery = time.Second
	// writeEvery is how often at most a key that is in use is written.
	writeEvery = 30 * time.Second
	// flushTimeout bounds a write; what it did not write is written later.
	flushTimeout = 10 * time.Second
	// maxUses bounds how many keys' uses are remembered between versions of
	// the configuration; forgetting one costs a write too many.
	maxUses = 100_000
)

// use is when one key was last used.
type use struct {
	tenant  tenant.ID
	key     string
	at      atomic.Int64 // microseconds UTC
	queued  atomic.Bool
	written int64 // when it was last written; the flusher's
}

// Touch notes that the key was just used. It never waits and never fails; a
// background write makes it last_used_at within a second, and then at most
// every 30 s. It is no change of configuration.
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
		if s.flushing == nil && !s.closed {
			s.flushing = &flusher{stop: make(chan struct{}), stopped: make(chan struct{})}
			go s.flushing.run(s)
		}
	}
}

// useOf is the one use of a key, whatever version of the configuration it was
// resolved under.
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

// flusher is the background write of last_used_at.
type flusher struct{ stop, stopped chan struct{} }

func (f *flusher) run(s *Service) {
	defer close(f.stopped)
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-f.stop:
			return
		case <-tick.C:
		}
		ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
		err := s.flush(ctx, false)
		cancel()
		if err != nil && !failing {
			slog.Warn("last_used_at of API keys is not written; it is tried again", "error", err)
		}
		failing = err != nil
	}
}

// Close ends the background work and writes what is not written yet; ctx
// bounds the write. A Touch after it has no effect.
func (s *Service) Close(ctx context.Context) error {
	s.mu.Lock()
	f := s.flushing
	s.flushing, s.closed = nil, true
	s.mu.Unlock()
	if f == nil {
		return nil
	}
	close(f.stop)
	<-f.stopped
	return s.flush(ctx, true)
}

// flush writes the uses that are due, or all of them, one transaction a
// tenant. What could not be written stays queued.
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
	slices.SortFunc(due, func(a, b *use) int {
		if a.tenant != b.tenant {
			return cmp.Compare(a.tenant, b.tenant)
		}
		return strings.Compare(a.key, b.key) // two nodes lock rows in one order
	})
	var failed error
	for len(due) > 0 {
		n := slices.IndexFunc(due, func(u *use) bool { return u.tenant != due[0].tenant })
		if n < 0 {
			n = len(due)
		}
		batch := due[:min(n, 500)]
		due = due[len(batch):]
		for _, u := range batch {
			u.queued.Store(false) // before its instant is read: a later use queues it again
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
