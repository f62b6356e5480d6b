package db

import (
	"fmt"
	"sync"
	"time"

	"gatehouse/internal/admission"
)

const (
	// maxBatchTime bounds how long after its first write a shared transaction
	// takes others in: their answers wait for its commit, and on PostgreSQL it
	// holds the tenant's row, for which other nodes wait. A turn that takes longer
	// is a long one.
	maxBatchTime = 5 * time.Millisecond
	// maxCharge bounds what one turn is charged: after a transaction of minutes
	// its tenant is not kept away for as long.
	maxCharge = 250 * time.Millisecond
)

// writeQueue holds the writes that wait for SQLite's writer. Tenants take turns
// by the time that theirs took: while one has long transactions, the short writes
// of others come before its next.
type writeQueue struct {
	arrived chan struct{} // has room for one: somebody has come

	mu    sync.Mutex
	turns admission.Queue[*turn]
	slow  map[string]time.Duration // of tenants that had long turns of late: what the next may take
}

func newWriteQueue() *writeQueue {
	return &writeQueue{arrived: make(chan struct{}, 1), slow: map[string]time.Duration{}}
}

// push puts a write in its tenant's line, or fails with ErrBusy.
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

// remove takes out a write whose caller has left.
func (q *writeQueue) remove(t *turn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.turns.Remove(t.to.tenant, func(other *turn) bool { return other == t })
}

// pop takes the next write, or nil. With others it is one to share a transaction
// with theirs: none, when the next may take long and their answers would wait.
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

// charge notes how long a tenant's turn took.
func (q *writeQueue) charge(tenant string, took time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.turns.Charge(tenant, int64(min(took, maxCharge)))
	// One short turn between long ones proves nothing: it is trusted again bit by bit.
	if expect := max(took, q.slow[tenant]*7/8); expect > maxBatchTime {
		q.slow[tenant] = expect
	} else {
		delete(q.slow, tenant)
	}
}

// share charges the tenants of some writes for the commit that they shared.
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

// company is whose writes are in a transaction.
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
