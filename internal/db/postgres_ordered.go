package db

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// orderedQueue holds one tenant's ordered writes on this node. They would queue
// for the tenant's row anyway, each with a commit of its own; here they share
// transactions. Few fail, so a transaction has no savepoints. Where a write fails that has changed something, all
// writes of the transaction run again, and for a while each has a savepoint (decision 0045).
type orderedQueue struct {
	p       *postgres
	turns   []*turn       // guarded by p.mu
	around  time.Duration // what the last transaction took in addition to its writes
	careful int           // so many transactions more have savepoints
	atOnce  bool          // what runs again has collided with nobody, and need not wait
}

// batchTime returns how long a transaction accepts more writes. If beginning and
// committing take longer than maxBatchTime, on a busy server or a slow disk,
// batchTime grows with them; otherwise each transaction would carry a write or
// two, and the tenant's writes would fall behind.
func (q *orderedQueue) batchTime() time.Duration {
	return min(max(maxBatchTime, q.around), maxBatchAround)
}

// maxBatchAround bounds batchTime: other nodes wait for the tenant's row.
const maxBatchAround = 50 * time.Millisecond

func (p *postgres) writeOrdered(ctx context.Context, to scope, fn func(Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t := newTurn(ctx, to, fn)
	p.mu.Lock()
	q := p.tenants[to]
	if q == nil {
		q = &orderedQueue{p: p, careful: p.careful[to]}
		delete(p.careful, to)
		p.tenants[to] = q
		go q.work(to)
	}
	if !room(len(q.turns), int(p.queued.Load())) {
		p.mu.Unlock()
		return fmt.Errorf("%w: too many writes wait", ErrBusy)
	}
	p.queued.Add(1)
	q.turns = append(q.turns, t)
	p.mu.Unlock()
	return t.wait(nil, func() { q.remove(t) })
}

// remove removes a write whose caller no longer waits.
func (q *orderedQueue) remove(t *turn) {
	q.p.mu.Lock()
	defer q.p.mu.Unlock()
	if n := slices.Index(q.turns, t); n >= 0 {
		q.turns = slices.Delete(q.turns, n, n+1)
		q.p.queued.Add(-1)
	}
}

// work runs batches until no write of the tenant waits.
func (q *orderedQueue) work(to scope) {
	for {
		q.p.mu.Lock()
		if len(q.turns) == 0 {
			delete(q.p.tenants, to)
			if q.careful > 0 {
				q.p.careful[to] = q.careful
			}
			q.p.mu.Unlock()
			return
		}
		q.p.mu.Unlock()
		if again := q.batch(); again != nil {
			if !q.atOnce {
				time.Sleep(backoff(again[0].attempts))
			}
			q.p.mu.Lock()
			q.turns = append(again, q.turns...)
			q.p.mu.Unlock()
			q.p.queued.Add(int64(len(again)))
		}
	}
}

// next returns the next write whose caller still waits, or nil; first says that it is the first of its transaction.
func (q *orderedQueue) next(first bool) *turn {
	q.p.mu.Lock()
	defer q.p.mu.Unlock()
	for len(q.turns) > 0 {
		t := q.turns[0]
		if t.alone && !first {
			return nil
		}
		q.turns = q.turns[1:]
		q.p.queued.Add(-1)
		if t.take() {
			return t
		}
	}
	return nil
}

// orderedBatch is one shared transaction.
type orderedBatch struct {
	conn            pgConn
	longest         *maximum
	careful         bool // writes have savepoints
	savepoint       bool // one is open
	kept            keeping
	later           *pipeline
	good, bad, lost []*turn // to commit; failed; to run again
}

// carefulFor is how many transactions have savepoints after one of a write that failed.
const carefulFor = 32

// errTogether ends a transaction without savepoints in which a write failed.
var errTogether = fmt.Errorf("%w: a write of the same transaction failed", ErrBusy)

// batch runs one transaction and returns the writes to run again.
func (q *orderedQueue) batch() (again []*turn) {
	t := q.next(true)
	if t == nil {
		return nil
	}
	q.atOnce = false
	late := t.late
	if t.attempts > 1 { // it began in time, and its transaction was lost
		late = waitEnd(t.ctx)
	}
	c, err := q.p.acquireUntil(t.ctx, t.to.tenant, late)
	if err != nil {
		t.done <- err
		return nil
	}
	defer c.release()
	asked := time.Now()
	if again, err := q.p.begin(context.Background(), c); err != nil {
		return retryOrFail([]*turn{t}, err, again)
	}
	begun := time.Now()
	b := &orderedBatch{conn: c, longest: &q.p.longest, kept: keeping{}, later: &pipeline{}, careful: q.careful > 0}
	q.careful = max(0, q.careful-1)
	lost := func(err error) []*turn { // with everything in it
		c.rollback()
		if errors.Is(err, errTogether) {
			q.careful, q.atOnce = carefulFor, true
		}
		failed := b.againToo()
		return slices.Concat(retryOrFail(b.good, err, true), retryOrFail(failed, err, true), b.lost)
	}
	var first time.Time
	most := q.batchTime()
	for n := 1; t != nil; n++ {
		if err := b.runOne(t); err != nil {
			return lost(err)
		}
		if n == 1 {
			first = time.Now()
		}
		if len(b.good) == 0 || n == maxBatch || time.Since(first) > most {
			break
		}
		t = q.next(false)
	}
	ending := time.Now()
	if err := b.finish(); err != nil {
		return lost(err)
	}
	q.end(b)
	q.around = begun.Sub(asked) + time.Since(ending)
	return b.lost
}

// runOne runs one write. An error means that the transaction itself is lost;
// the batch records the outcome of the write. The first write needs no
// savepoint, because there is nothing else to keep.
func (b *orderedBatch) runOne(t *turn) error {
	if b.careful && len(b.good) > 0 {
		sql := "savepoint op"
		if b.savepoint {
			sql = "release savepoint op; savepoint op"
		}
		if err := b.conn.control(context.Background(), sql); err != nil {
			b.good = append(b.good, t) // not the cause, so treated like the others
			return err
		}
		b.savepoint = true
	}
	tx := &pgTx{conn: b.conn, txState: txState{to: t.to}, shared: b.kept, later: b.later}
	ran, _ := t.hand(tx, b.longest)
	switch {
	case b.careful && ran.finished && ran.err == nil && tx.broken == nil:
		_ = tx.send(context.Background()) // which breaks it
	case b.careful:
		*b.later = pipeline{}
	}
	tx.over = true
	t.err, t.panicked = ran.err, !ran.finished
	if t.err == nil {
		t.err = tx.broken
	}
	switch {
	case ran.finished && t.err == nil:
		b.good = append(b.good, t)
		maps.Copy(b.kept, tx.own)
		return nil
	case ran.finished && lostRace(tx.broken):
		t.alone = true
		b.lost = append(b.lost, retryOrFail([]*turn{t}, tx.broken, true)...)
	default:
		b.bad = append(b.bad, t)
	}
	switch {
	case len(b.good) == 0: // everything is rolled back
		return nil
	case b.careful:
		return b.conn.control(context.Background(), "rollback to savepoint op")
	case !tx.wrote && tx.broken == nil: // there is nothing to undo
		return nil
	default:
		return b.together(tx.broken)
	}
}

// together returns the error of a transaction without savepoints in which a write failed with err, which is that write's
// own. What it says of the connection is the others', too.
func (b *orderedBatch) together(err error) error {
	switch {
	case !b.conn.IsClosed():
		return errTogether
	case errors.Is(err, ErrUnavailable):
		return err
	default:
		return fmt.Errorf("%w: the connection was lost", ErrUnavailable)
	}
}

// againToo returns the writes that failed in a transaction that is lost. They run again, too, each as the first of a
// transaction, because they may have failed by what the others wrote. Those that panicked are answered.
func (b *orderedBatch) againToo() (failed []*turn) {
	for _, t := range b.bad {
		if t.panicked {
			answer([]*turn{t})
			continue
		}
		t.alone = true
		failed = append(failed, t)
	}
	return failed
}

// finish runs what the writes of the transaction have left to its end.
func (b *orderedBatch) finish() error {
	if len(b.good) == 0 {
		return nil
	}
	ctx := context.Background()
	tx := &pgTx{conn: b.conn, txState: txState{to: b.good[0].to}, later: b.later}
	for _, k := range b.kept {
		if k.finish == nil {
			continue
		}
		if err := k.finish(ctx, tx); err != nil {
			return b.together(err)
		}
	}
	if err := tx.send(ctx); err != nil {
		return b.together(err)
	}
	return nil
}

// end commits the transaction and answers the callers. Failed writes are also
// answered after the commit: they may have failed because of what the others
// wrote.
func (q *orderedQueue) end(b *orderedBatch) {
	if len(b.good) == 0 {
		b.conn.rollback()
		answer(b.bad)
		return
	}
	err := b.conn.commit(context.Background()) // of several callers
	if err != nil {
		undone := errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrUnknown) // a write whose time was over may have cost the connection
		again := retryOrFail(b.good, err, undone || lostRace(err))
		b.lost = append(b.lost, again...)
		for _, t := range b.bad {
			t.done <- err
		}
		return
	}
	q.p.commits.Add(1)
	q.p.writes.Add(uint64(len(b.good)))
	answer(b.good)
	answer(b.bad)
}

// retryOrFail answers the writes with err, except those that it returns to run
// again: not after several tries, nor, where the database is lost, after retryTime. A write that another has taken down
// with it runs again however long that took.
func retryOrFail(turns []*turn, err error, retry bool) (again []*turn) {
	within := retryTime
	if lostRace(err) {
		within = maxWait
	}
	together := errors.Is(err, errTogether)
	for _, t := range turns {
		switch {
		case retry && t.attempts < maxRaces && t.ctx.Err() == nil && (together || time.Since(t.born) < within):
			again = append(again, t)
		case retry && lostRace(err):
			t.done <- fmt.Errorf("%w: it lost %d races: %w", ErrBusy, t.attempts, err)
		case together && t.ctx.Err() != nil:
			t.done <- t.ctx.Err()
		default:
			t.done <- err
		}
	}
	return again
}
