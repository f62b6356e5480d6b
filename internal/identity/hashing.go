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

// A password hash takes a core for tens of milliseconds, and 19 MiB. These limits bound
// how many hashes may wait, in total and per tenant, and for how long. They prevent a
// storm of logins from taking the cores and the memory from all other requests, or the
// places from another tenant's logins.
const (
	maxQueued      = 256
	maxQueuedOfOne = 64
	maxQueueTime   = 2 * time.Second
)

// newHashGate returns a gate that admits one hash fewer at once than there are cores,
// with turns by tenant.
func newHashGate() *admission.Gate {
	n := max(1, runtime.GOMAXPROCS(0)-1)
	return admission.NewGate(admission.Limits{
		Running: n, PerKey: n, Waiting: maxQueued, WaitingPerKey: maxQueuedOfOne, MaxWait: maxQueueTime,
	})
}

var errOverloaded = fault.New(fault.Overloaded, "too many requests wait for a password check; try again soon").After(maxQueueTime)

// hash waits for a place and returns the hash of a new password. It returns
// OVERLOADED if there is no place in time.
func (s *Service) hash(ctx context.Context, tenant tenant.ID, password string) (string, error) {
	leave, err := s.admit(ctx, tenant)
	if err != nil {
		return "", err
	}
	defer leave()
	return s.hashAdmitted(ctx, tenant, password)
}

// hashAdmitted is hash for a caller that holds a place.
func (s *Service) hashAdmitted(ctx context.Context, tenant tenant.ID, password string) (string, error) {
	work, err := s.cores.Start(ctx, string(tenant))
	if err != nil {
		return "", err
	}
	defer work.Stop()
	return s.passwords.hash(password)
}

// verifyPassword reports whether a password matches a hash. The caller must hold a place.
// It also takes a turn at the cores, which runs of components share: a hash and a
// concurrent run could leave no core to short requests.
func (s *Service) verifyPassword(ctx context.Context, tenant tenant.ID, hash, password string) (bool, error) {
	work, err := s.cores.Start(ctx, string(tenant))
	if err != nil {
		return false, err
	}
	defer work.Stop()
	return s.passwords.verify(hash, password), nil
}

// admit waits for a place to hash; leave releases it. It returns OVERLOADED if too many
// hashes wait, or no place becomes free in time.
func (s *Service) admit(ctx context.Context, tenant tenant.ID) (leave func(), err error) {
	leave, err = s.hashGate.Enter(ctx, string(tenant))
	if errors.Is(err, admission.ErrFull) {
		s.counts.overloads.Add(1)
		err = errOverloaded
	}
	return leave, err
}
