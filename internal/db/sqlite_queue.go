package db

import (
	"fmt"
	"sync"
	"time"

	"gatehouse/internal/admission"
)

const (
	// maxBatchTime bounds how long after its first write a shared transaction
	// accepts others: their callers wait for its commit, and on PostgreSQL it
	// holds the tenant's row, for which other nodes wait. A turn that takes
	// longer counts as long.
	maxBatchTime = 5 * time.Millisecond
	// maxCharge bounds the time charged for one turn, so that a tenant does not
	// have to wait for minutes after a transaction that took minutes.
	maxCharge = 250 * time.Millisecond
)

// writeQueue holds the writes that wait for SQLite's writer. Tenants take turns
// by the time that their writes took: while one tenant has long transactions,
// the short writes of others come before its next.
type writeQueue struct {
	arrived chan struct{} // holds one signal: a write was pushed

	mu    sync.Mutex
	turns admission.Queue[*turn]
	slow  map[string]time.Duration // tenants with recent long turns: how long the next may take
}

func newWriteQueue() *writeQueue {
	return &writeQueue{arrived: make(chan struct{}, 1), slow: map[string]time.Duration{}}
}

// push queues a write for its tenant. It returns ErrBusy when too many wait.
func (q *writeQueue) push(t *turn) error {
	q.mu.Lock()
	if !room(q.turns.LenOf(t.to.tenant), q.turns.Len()) {
		q.mu.Unlock()
		return fmt.Errorf("%w: too many writes wait", ErrBusy)
	}
	q.turns.Push(t.to.tenant, t)
	q.mu.Unlock()
	select {
	case q.arrived <- struct{}{}:
	default:
	}
	return nil
}

// remove removes a write whose caller no longer waits.
func (q *writeQueue) remove(t *turn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.turns.Remove(t.to.tenant, func(other *turn) bool { return other == t })
}

// pop returns the next write, or nil. If others is not empty, the write would
// share their transaction; pop then returns nil if the next write may take long
// and delay them.
func (q *writeQueue) pop(others company) *turn {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !others.empty() {
		key, ok := q.turns.Peek()
		if !ok || q.slow[key] > 0 && !others.only(key) {
			return nil
		}
	}
	_, t, _ := q.turns.Pop(nil)
	return t
}

// charge records how long a tenant's turn took.
func (q *writeQueue) charge(tenant string, took time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.turns.Charge(tenant, int64(min(took, maxCharge)))
	// One short turn among long ones proves little, so the estimate decays
	// slowly.
	if expect := max(took, q.slow[tenant]*7/8); expect > maxBatchTime {
		q.slow[tenant] = expect
	} else {
		delete(q.slow, tenant)
	}
}

// share charges the tenants of some writes for their common commit.
func (q *writeQueue) share(turns []*turn, took time.Duration) {
	each := min(took, maxCharge) / time.Duration(max(1, len(turns)))
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, t := range turns {
		q.turns.Charge(t.to.tenant, int64(each))
	}
}

func (q *writeQueue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.turns.Len()
}

// company describes whose writes are in a transaction.
type company struct {
	tenant string
	many   bool // of several tenants
	writes int
}

func (c company) empty() bool             { return c.writes == 0 }
func (c company) only(tenant string) bool { return !c.many && c.tenant == tenant }

func (c *company) join(tenant string) {
	c.many = c.many || c.writes > 0 && c.tenant != tenant
	c.tenant = tenant
	c.writes++
}
