package identity

import (
	"context"
	"errors"
	"runtime"
	"time"

	"gatehouse/internal/admission"
	"gatehouse/internal/fault"
	"gatehouse/internal/tenant"
)

// A hash takes a core for tens of milliseconds and 19 MiB. So many may wait for
// their turn, altogether and of one tenant, and so long: a login storm must not
// take the cores and the memory of all other requests, nor the turns of another
// tenant's logins.
const (
	maxQueued      = 256
	maxQueuedOfOne = 64
	maxQueueTime   = 2 * time.Second
)

// newGate admits as many hashes at once as leave a core to the rest, by tenant.
func newGate() *admission.Gate {
	n := max(1, runtime.GOMAXPROCS(0)-1)
	return admission.NewGate(admission.Limits{
		Running: n, PerKey: n, Waiting: maxQueued, WaitingPerKey: maxQueuedOfOne, MaxWait: maxQueueTime,
	})
}

var errOverloaded = fault.New(fault.Overloaded, "too many requests wait for a password check; try again soon").After(maxQueueTime)

// hash is the hash of a new password, once admitted.
func (s *Service) hash(ctx context.Context, tenant tenant.ID, password string) (string, error) {
	leave, err := s.admit(ctx, tenant)
	if err != nil {
		return "", err
	}
	defer leave()
	return s.hashAdmitted(ctx, tenant, password)
}

// hashAdmitted is hash for a caller who has been admitted.
func (s *Service) hashAdmitted(ctx context.Context, tenant tenant.ID, password string) (string, error) {
	work, err := s.cores.Start(ctx, string(tenant))
	if err != nil {
		return "", err
	}
	defer work.Stop()
	return s.passwords.hash(password)
}

// right reports whether the password is that of the hash; the caller has been
// admitted. The turn at the cores is shared with everything else that computes:
// a hash beside a run would leave no core to those who need one briefly.
func (s *Service) right(ctx context.Context, tenant tenant.ID, hash, password string) (bool, error) {
	work, err := s.cores.Start(ctx, string(tenant))
	if err != nil {
		return false, err
	}
	defer work.Stop()
	return s.passwords.verify(hash, password), nil
}

// admit waits for a tenant's turn to hash; leave ends it. It fails with
// OVERLOADED when too many wait already or the turn does not come in time.
func (s *Service) admit(ctx context.Context, tenant tenant.ID) (leave func(), err error) {
	leave, err = s.gate.Enter(ctx, string(tenant))
	if errors.Is(err, admission.ErrFull) {
		s.counts.overloads.Add(1)
		err = errOverloaded
	}
	return leave, err
}
