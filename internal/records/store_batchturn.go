package records

import (
	"context"
	"errors"
	"math"
	"time"

	"gatehouse/internal/admission"
	"gatehouse/internal/db"
	"gatehouse/internal/fault"
)

const (
	// fewItems is how many items a batch may have that is not more work than single calls,
	// unless they are large.
	fewItems = 10
	// heavyBatch is from how many bytes of records on a batch is written in turn, too: for a
	// database server its commit is hundreds of milliseconds of work.
	heavyBatch = 1 << 20
)

// batchGates admit batches. Their preparation is milliseconds of work for this process, and
// seconds where the records are large: one tenant has as many at a time as there are cores to
// share. Of those of more than heavyBatch as many are written at a time, of all tenants. A
// tenant whose batches wait for that keeps no other from preparing its own.
type batchGates struct{ preparing, writing *admission.Gate }

func newBatchGates(cores int) *batchGates {
	limits := admission.Limits{Running: math.MaxInt, PerKey: cores, Waiting: maxHeavy, WaitingPerKey: maxHeavy / 2, MaxWait: maxBatchTime}
	g := &batchGates{preparing: admission.NewGate(limits)}
	limits.Running = cores
	g.writing = admission.NewGate(limits)
	return g
}

// batchTurn is the turn of a batch that is much work. It has none until begin.
type batchTurn struct {
	store *Store
	key   string
	leave func() // nil without a turn
}

// begin waits for the tenant's turn, if the batch has none yet. It returns OVERLOADED when
// too many wait.
func (t *batchTurn) begin(ctx context.Context) (err error) {
	if t.leave == nil && t.store.batches != nil {
		t.leave, err = enterBatch(ctx, t.store.batches.preparing, t.key)
	}
	return err
}

// end gives the turn back.
func (t *batchTurn) end() {
	if t.leave != nil {
		t.leave()
		t.leave = nil
	}
}

// commit commits a batch that was prepared. It keeps the turn for a heavy one, of which as
// many are written at a time as there are cores to share.
func (t *batchTurn) commit(ctx context.Context, u *Unit, also func(db.Tx) error) error {
	if u.written <= heavyBatch || t.store.batches == nil {
		t.end() // the next one may be prepared meanwhile, and share the transaction
		return u.Commit(ctx, also)
	}
	if err := t.begin(ctx); err != nil {
		return err
	}
	leave, err := enterBatch(ctx, t.store.batches.writing, t.key)
	if err != nil {
		return err
	}
	defer leave()
	return u.Commit(ctx, also)
}

func enterBatch(ctx context.Context, g *admission.Gate, key string) (leave func(), err error) {
	leave, err = g.Enter(ctx, key)
	if errors.Is(err, admission.ErrFull) {
		err = fault.New(fault.Overloaded, "too many batches are being written").After(time.Second)
	}
	return leave, err
}
