package db

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// turn is one write that waits to share a transaction with others. The
// goroutine that runs the transaction passes the Tx to the caller, who runs fn
// on its own goroutine: a panic or Goexit in fn then unwinds only the caller,
// with its stack, and never ends the goroutine that all writes depend on.
type turn struct {
	ctx      context.Context
	to       scope
	fn       func(Tx) error
	state    atomic.Int32
	start    chan Tx    // passes the transaction to the caller
	ran      chan ran   // fn has ended
	done     chan error // the outcome
	err      error      // what fn returned, until the outcome is known
	panicked bool
	alone    bool // it has failed with others in its transaction, and is the first of its next one
	attempts int  // how often it was taken
	born     time.Time
	late     time.Time // fn must have begun
}

// ran is how fn ended; finished is false after a panic.
type ran struct {
	err      error
	finished bool
}

const (
	waiting int32 = iota
	taken
	abandoned
)

func newTurn(ctx context.Context, to scope, fn func(Tx) error) *turn {
	return &turn{
		ctx: ctx, to: to, fn: fn, born: time.Now(), late: waitEnd(ctx),
		start: make(chan Tx), ran: make(chan ran), done: make(chan error, 1),
	}
}

// errLate is the outcome of a turn that did not come in time.
var errLate = fmt.Errorf("%w: no turn to write came in time", ErrBusy)

// wait is called by the caller: it runs fn when its turn comes and returns the
// outcome. It returns early only while fn has not begun: when ctx ends, it is
// late or gone is closed. It then calls left.
func (t *turn) wait(gone <-chan struct{}, left func()) error {
	ended := t.ctx.Done()
	late := time.AfterFunc(time.Until(t.late), func() { // cheaper than a select on a timer's channel
		if t.abandon(left) {
			t.done <- errLate
		}
	})
	defer late.Stop()
	for {
		select {
		case tx := <-t.start:
			t.run(tx)
		case err := <-t.done:
			return err
		case <-ended:
			if t.abandon(left) {
				return t.ctx.Err()
			}
			ended = nil // too late: the outcome must be reported
		case <-gone:
			if t.abandon(left) {
				return fmt.Errorf("%w: it is closed", ErrUnavailable)
			}
			gone = nil
		}
	}
}

func (t *turn) abandon(left func()) bool {
	if !t.state.CompareAndSwap(waiting, abandoned) {
		return false
	}
	left()
	return true
}

func (t *turn) run(tx Tx) {
	finished := false
	defer func() {
		if !finished { // a panic or Goexit continues once the rollback is done
			t.ran <- ran{}
			<-t.done //nolint:errcheck // the panic is the answer
		}
	}()
	err := t.fn(tx)
	finished = true
	t.ran <- ran{err: err, finished: true}
}

// take is called by the runner: it claims the turn and reports whether the caller
// still waits. A turn that was claimed before, and lost with its transaction,
// stays claimed.
func (t *turn) take() bool {
	if t.state.Load() != taken && (t.ctx.Err() != nil || !t.state.CompareAndSwap(waiting, taken)) {
		return false
	}
	t.attempts++
	t.err = nil
	return true
}

// hand passes the transaction to the caller, waits until fn ends and returns
// how long it took.
func (t *turn) hand(tx Tx, longest *maximum) (ran, time.Duration) {
	begun := time.Now()
	t.start <- tx
	r := <-t.ran
	took := time.Since(begun)
	longest.note(took)
	return r, took
}

// maximum is the longest duration noted.
type maximum struct{ d atomic.Int64 }

func (m *maximum) note(d time.Duration) {
	for was := m.d.Load(); int64(d) > was && !m.d.CompareAndSwap(was, int64(d)); was = m.d.Load() {
	}
}

func (m *maximum) get() time.Duration { return time.Duration(m.d.Load()) }
