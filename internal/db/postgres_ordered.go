package db

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// orderedQueue holds one tenant's ordered writes on this node. They would queue
// for the tenant's row anyway, each with a commit of its own; here they share
// transactions, each in a savepoint.
type orderedQueue struct {
	p      *postgres
	turns  []*turn       // guarded by p.mu
	around time.Duration // what the last transaction took in addition to its writes
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
		q = &orderedQueue{p: p}
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
			q.p.mu.Unlock()
			return
		}
		q.p.mu.Unlock()
		if again := q.batch(); again != nil {
			time.Sleep(backoff(again[0].attempts))
			q.p.mu.Lock()
			q.turns = append(again, q.turns...)
			q.p.mu.Unlock()
			q.p.queued.Add(int64(len(again)))
		}
	}
}

// next returns the next write whose caller still waits, or nil.
func (q *orderedQueue) next() *turn {
	q.p.mu.Lock()
	defer q.p.mu.Unlock()
	for len(q.turns) > 0 {
		t := q.turns[0]
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
	savepoint       bool    // a savepoint is open
	good, bad, lost []*turn // to commit; failed; to run again
}

// batch runs one transaction and returns the writes to run again.
func (q *orderedQueue) batch() (again []*turn) {
	t := q.next()
	if t == nil {
		return nil
	}
	c, err := q.p.acquireUntil(t.ctx, t.to.tenant, t.late)
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
	b := &orderedBatch{conn: c, longest: &q.p.longest}
	var first time.Time
	most := q.batchTime()
	for n := 1; t != nil; n++ {
		if err := b.runOne(t); err != nil { // the transaction is lost with everything in it
			c.rollback()
			answer(b.bad)
			return append(b.lost, retryOrFail(b.good, err, true)...)
		}
		if n == 1 {
			first = time.Now()
		}
		if len(b.good) == 0 || n == maxBatch || time.Since(first) > most {
			break
		}
		t = q.next()
	}
	ending := time.Now()
	q.end(b)
	q.around = begun.Sub(asked) + time.Since(ending)
	return b.lost
}

// runOne runs one write. An error means that the transaction itself is lost;
// the batch records the outcome of the write. The first write needs no
// savepoint, because there is nothing else to keep.
func (b *orderedBatch) runOne(t *turn) error {
	if len(b.good) > 0 {
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
	tx := &pgTx{conn: b.conn, txState: txState{to: t.to}}
	ran, _ := t.hand(tx, b.longest)
	tx.over = true
	t.err = ran.err
	if t.err == nil {
		t.err = tx.broken
	}
	switch {
	case ran.finished && t.err == nil:
		b.good = append(b.good, t)
		return nil
	case ran.finished && lostRace(tx.broken):
		b.lost = append(b.lost, retryOrFail([]*turn{t}, tx.broken, true)...)
	default:
		b.bad = append(b.bad, t)
	}
	if len(b.good) == 0 {
		return nil // everything is rolled back
	}
	return b.conn.control(context.Background(), "rollback to savepoint op")
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
		again := retryOrFail(b.good, err, lostRace(err))
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
// again: not after several tries, nor, where the database is lost, after retryTime.
func retryOrFail(turns []*turn, err error, retry bool) (again []*turn) {
	within := retryTime
	if lostRace(err) {
		within = maxWait
	}
	for _, t := range turns {
		switch {
		case retry && t.attempts < maxRaces && t.ctx.Err() == nil && time.Since(t.born) < within:
			again = append(again, t)
		case retry && lostRace(err):
			t.done <- fmt.Errorf("%w: it lost %d races: %w", ErrBusy, t.attempts, err)
		default:
			t.done <- err
		}
	}
	return again
}
