// Package signin has what every sign-in by password shares, that of end-users and
// that of staff: the admission of password hashes (Hasher), the limits of attempts
// (Limits), and work that runs after the answer was sent (Later).
package signin

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"gatehouse/internal/admission"
	"gatehouse/internal/fault"
	"gatehouse/internal/secret"
	"gatehouse/internal/tenant"
)

// A password hash takes a core for tens of milliseconds, and 19 MiB. These limits bound
// how many hashes may wait, in total and per tenant, and for how long. They prevent a
// storm of logins from taking the cores and the memory from all other requests, or the
// places from another tenant's logins.
const (
	maxQueued = 256
	// MaxQueuedOfOne is how many hashes of one tenant may wait.
	MaxQueuedOfOne = 64
	maxQueueTime   = 2 * time.Second
)

// Hasher computes and verifies password hashes, a few at once, with turns by tenant. All
// that a server hashes goes through one Hasher. It may be used by several goroutines at
// once.
type Hasher struct {
	gate      *admission.Gate
	cores     *admission.Cores
	overloads atomic.Int64
	// Functions may be replaced before the first hash, by tests.
	Functions Functions
}

// Functions are the three expensive functions.
type Functions struct {
	Hash   func(password string) (string, error)
	Verify func(phc, password string) bool
	Dummy  func() string
}

// NewHasher returns a Hasher that admits one hash fewer at once than there are cores.
// cores limits what computes on the machine at once; nil is no limit.
func NewHasher(cores *admission.Cores) *Hasher {
	n := max(1, runtime.GOMAXPROCS(0)-1)
	return &Hasher{
		gate: admission.NewGate(admission.Limits{
			Running: n, PerKey: n, Waiting: maxQueued, WaitingPerKey: MaxQueuedOfOne, MaxWait: maxQueueTime,
		}),
		cores:     cores,
		Functions: Functions{Hash: secret.HashPassword, Verify: secret.VerifyPassword, Dummy: secret.DummyHash},
	}
}

// Overloads counts the callers of Admit that were refused.
func (h *Hasher) Overloads() int64 { return h.overloads.Load() }

// Waiting returns how many callers of Admit wait.
func (h *Hasher) Waiting() int { return h.gate.Waiting() }

// Dummy returns a hash that no password matches, and that takes as long to verify as any.
func (h *Hasher) Dummy() string { return h.Functions.Dummy() }

var errOverloaded = fault.New(fault.Overloaded, "too many requests wait for a password check; try again soon").After(maxQueueTime)

// Admit waits for a place to hash; leave releases it. It returns OVERLOADED if too many
// hashes wait, or no place becomes free in time.
func (h *Hasher) Admit(ctx context.Context, tenant tenant.ID) (leave func(), err error) {
	leave, err = h.gate.Enter(ctx, string(tenant))
	if errors.Is(err, admission.ErrFull) {
		h.overloads.Add(1)
		err = errOverloaded
	}
	return leave, err
}

// Hash waits for a place and returns the hash of a new password. Its errors are those of
// Admit and of the check of a new password.
func (h *Hasher) Hash(ctx context.Context, tenant tenant.ID, password string) (string, error) {
	leave, err := h.Admit(ctx, tenant)
	if err != nil {
		return "", err
	}
	defer leave()
	return h.HashAdmitted(ctx, tenant, password)
}

// HashAdmitted is Hash for a caller that holds a place.
func (h *Hasher) HashAdmitted(ctx context.Context, tenant tenant.ID, password string) (string, error) {
	work, err := h.cores.Start(ctx, string(tenant))
	if err != nil {
		return "", err
	}
	defer work.Stop()
	return h.Functions.Hash(password)
}

// Verify reports whether a password matches a hash. The caller must hold a place. Verify
// also takes a turn at the cores, which runs of components share: a hash and a concurrent
// run could leave no core to short requests.
func (h *Hasher) Verify(ctx context.Context, tenant tenant.ID, hash, password string) (bool, error) {
	work, err := h.cores.Start(ctx, string(tenant))
	if err != nil {
		return false, err
	}
	defer work.Stop()
	return h.Functions.Verify(hash, password), nil
}
