package identity

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"gatehouse/internal/fault"
)

// A hash takes a core for tens of milliseconds and 19 MiB. So many may wait for
// their turn, and so long: a login storm must not take the cores and the memory
// of all other requests.
const (
	maxQueued    = 64
	maxQueueTime = 2 * time.Second
)

// gate admits as many hashes at once as leave a core to the rest.
type gate struct {
	slots  chan struct{}
	queued atomic.Int64
}

func newGate() *gate {
	return &gate{slots: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)-1))}
}

var errOverloaded = fault.New(fault.Overloaded, "too many requests wait for a password check; try again soon").After(maxQueueTime)

// enter waits for a turn; leave ends it. It fails with OVERLOADED when too many
// wait already or the turn does not come in time.
func (g *gate) enter(ctx context.Context) (leave func(), err error) {
	select {
	case g.slots <- struct{}{}:
		return g.leave, nil
	default:
	}
	if g.queued.Add(1) > maxQueued {
		g.queued.Add(-1)
		return nil, errOverloaded
	}
	defer g.queued.Add(-1)
	limit := time.NewTimer(maxQueueTime)
	defer limit.Stop()
	select {
	case g.slots <- struct{}{}:
		return g.leave, nil
	case <-limit.C:
		return nil, errOverloaded
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (g *gate) leave() { <-g.slots }

// hash is the hash of a new password, once admitted.
func (s *Service) hash(ctx context.Context, password string) (string, error) {
	leave, err := s.admit(ctx)
	if err != nil {
		return "", err
	}
	defer leave()
	return s.passwords.hash(password)
}

// matches reports whether a password is the one of a hash, once admitted.
func (s *Service) matches(ctx context.Context, phc, password string) (bool, error) {
	leave, err := s.admit(ctx)
	if err != nil {
		return false, err
	}
	defer leave()
	return s.passwords.verify(phc, password), nil
}

func (s *Service) admit(ctx context.Context) (leave func(), err error) {
	leave, err = s.gate.enter(ctx)
	if err == errOverloaded { //nolint:errorlint // a sentinel of this file
		s.counts.overloads.Add(1)
	}
	return leave, err
}
