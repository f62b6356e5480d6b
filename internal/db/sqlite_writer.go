package db

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"zombiezen.com/go/sqlite"

	"gatehouse/internal/failpoint"
)

const (
	// maxBatch bounds the writes that share a commit.
	maxBatch = 64
	// maxLost bounds how often a write runs again because another write of its
	// batch broke the transaction.
	maxLost = 3
	// pollEvery is how often begin checks whether another process has released
	// the file's lock: often enough to find the gap between two of its commits.
	pollEvery = 300 * time.Microsecond
	// restShare sets how long the writer leaves the file's lock free after a
	// long transaction, so that other processes, which poll for it like begin,
	// can take it: a sixteenth of the transaction's time, and no more than they
	// need to find the gap. Between short transactions they find enough gaps.
	restShare = 16
	maxRest   = 5 * time.Millisecond
)

// sqliteWriter owns the writing connection. Its goroutine takes a write from
// the queue, begins a transaction, runs that write and those that arrive
// meanwhile, each in a savepoint, commits once and then answers all of them. It
// keeps the transaction short, so that a write waits for at most one long turn
// of another tenant: it accepts no more writes after maxBatchTime.
type sqliteWriter struct {
	conn    *sqliteConn
	queue   *writeQueue
	longest maximum
	again   []*turn // lost with a transaction that another write broke; to be run again
	quit    chan struct{}
	gone    chan struct{}
	writes  atomic.Uint64
	commits atomic.Uint64

	batchTime    time.Duration // maxBatchTime, except in tests
	beforeCommit func() error  // lets a test make COMMIT fail
}

func startSQLiteWriter(conn *sqliteConn) *sqliteWriter {
	w := &sqliteWriter{
		conn: conn, queue: newWriteQueue(), quit: make(chan struct{}), gone: make(chan struct{}), batchTime: maxBatchTime,
	}
	conn.SetBusyTimeout(0) // begin polls itself
	go w.loop()
	return w
}

// write queues a write and waits for its outcome.
func (w *sqliteWriter) write(t *turn) error {
	if err := t.ctx.Err(); err != nil {
		return err
	}
	if err := w.queue.push(t); err != nil {
		return err
	}
	return t.wait(w.gone, func() { w.queue.remove(t) })
}

func (w *sqliteWriter) close() error {
	close(w.quit)
	<-w.gone
	return w.conn.Close()
}

func (w *sqliteWriter) loop() {
	defer close(w.gone)
	for {
		t := w.next(company{})
		if t == nil {
			select {
			case <-w.queue.arrived:
				continue
			case <-w.quit:
				return
			}
		}
		select {
		case <-w.quit: // a write that has begun is finished, and no other begins
			w.fail(append(w.again, t), fmt.Errorf("%w: it is closed", ErrUnavailable))
			return
		default:
		}
		if took := w.batch(t); took > maxBatchTime {
			time.Sleep(min(took/restShare, maxRest))
		}
	}
}

// next returns a queued write that may share a transaction with others, or nil
// when there is none.
func (w *sqliteWriter) next(others company) *turn {
	if len(w.again) > 0 {
		t := w.again[0]
		w.again = w.again[1:]
		return t
	}
	return w.queue.pop(others)
}

// sharedBatch is one transaction and the writes in it.
type sharedBatch struct {
	open      bool
	begun     time.Time // when it was opened
	with      company
	good, bad []*turn // to commit; failed after others had run
}

// batch runs t and the writes that arrive meanwhile in one transaction. It
// returns how long it held the file's lock.
func (w *sqliteWriter) batch(t *turn) time.Duration {
	b := sharedBatch{begun: time.Now()}
	for n := 1; t != nil; n++ {
		if t.take() {
			if !b.open {
				if err := w.begin(); err != nil {
					w.fail(append(w.drain(), t), err)
					return 0
				}
				b.open, b.begun = true, time.Now()
				failpoint.At("tx.begun")
			}
			w.place(&b, t, w.runOne(t, len(b.good) > 0))
		}
		if n == maxBatch || time.Since(b.begun) > w.batchTime {
			break
		}
		t = w.next(b.with)
	}
	if b.open {
		w.commit(b.good, b.bad)
	} else {
		answer(b.bad)
	}
	return time.Since(b.begun)
}

// place files a write that has run by its outcome.
func (w *sqliteWriter) place(b *sharedBatch, t *turn, ok bool) {
	lost := w.conn.AutocommitEnabled()
	switch {
	case ok && !lost:
		b.good = append(b.good, t)
		b.with.join(t.to.tenant)
	case lost:
		// This write failed, or broke the transaction without an error.
		b.open = false
		t.done <- cmp.Or(t.err, ErrUnavailable)
		w.retry(b.good)
		b.good, b.with = nil, company{}
	case len(b.good) == 0:
		w.rollback()
		b.open = false
		t.done <- t.err
	default:
		// It may have failed because of what the others wrote, so its caller is
		// answered when that is durable.
		b.bad = append(b.bad, t)
		b.with.join(t.to.tenant)
	}
}

// runOne runs one write and reports whether to commit it. The first write needs
// no savepoint, because there is nothing else to keep.
func (w *sqliteWriter) runOne(t *turn, savepoint bool) bool {
	if savepoint {
		if t.err = w.control("SAVEPOINT op"); t.err != nil {
			return false
		}
	}
	tx := &sqliteTx{conn: w.conn, txState: txState{to: t.to}}
	ran, took := t.hand(tx, &w.longest)
	w.queue.charge(t.to.tenant, took)
	tx.over = true
	t.err = ran.err
	if ran.finished && t.err == nil {
		t.err = tx.broken
	}
	if ran.finished && t.err == nil {
		return true
	}
	if savepoint && !w.conn.AutocommitEnabled() {
		// Otherwise the write's changes would be committed with the rest.
		if err := errors.Join(w.control("ROLLBACK TO op"), w.control("RELEASE op")); err != nil {
			w.rollback()
		}
	}
	return false
}

// begin takes the file's write lock; it waits for other processes.
func (w *sqliteWriter) begin() error {
	deadline := time.Now().Add(busyTimeout)
	for {
		err := w.control("BEGIN IMMEDIATE")
		if err == nil || sqlite.ErrCode(err).ToPrimary() != sqlite.ResultBusy || time.Now().After(deadline) {
			return err
		}
		select {
		case <-w.quit:
			return fmt.Errorf("%w: it is closed", ErrUnavailable)
		case <-time.After(pollEvery):
		}
	}
}

// commit makes the good writes durable and answers all callers. If it fails, no
// write happened, and what the bad ones saw was never committed: but see unsynced.
func (w *sqliteWriter) commit(good, bad []*turn) {
	var err, unknown error
	if w.beforeCommit != nil {
		err = w.beforeCommit()
	}
	if err == nil {
		failpoint.At("tx.before-commit")
		begun := time.Now()
		err = w.control("COMMIT")
		w.queue.share(good, time.Since(begun))
		if unsynced(err) {
			unknown = fmt.Errorf("%w: %w", ErrUnknown, err)
		}
	}
	if err != nil {
		w.rollback()
		w.fail(good, cmp.Or(unknown, err))
		w.fail(bad, err)
		return
	}
	failpoint.At("tx.committed")
	w.commits.Add(1)
	w.writes.Add(uint64(len(good)))
	answer(good)
	answer(bad)
}

// answer sends each caller the outcome of its write.
func answer(turns []*turn) {
	for _, t := range turns {
		t.done <- t.err
	}
}

// retry queues the writes of a broken transaction again.
func (w *sqliteWriter) retry(lost []*turn) {
	for _, t := range lost {
		if t.attempts < maxLost {
			w.again = append(w.again, t)
		} else {
			t.done <- fmt.Errorf("%w: other writes broke its transaction %d times", ErrBusy, t.attempts)
		}
	}
}

// drain empties the queue.
func (w *sqliteWriter) drain() []*turn {
	var all []*turn
	for t := w.next(company{}); t != nil; t = w.next(company{}) {
		all = append(all, t)
	}
	return all
}

// fail answers writes that did not happen with err.
func (w *sqliteWriter) fail(turns []*turn, err error) {
	for _, t := range turns {
		if t.take() {
			t.done <- err
		}
	}
}

// control runs a statement that controls the transaction.
func (w *sqliteWriter) control(sql string) error {
	return w.conn.run(context.Background(), scope{}, describe(sql), nil, nil)
}

// rollback rolls back the open transaction, if there is one. If that fails, the
// next BEGIN fails, too.
func (w *sqliteWriter) rollback() {
	if !w.conn.AutocommitEnabled() {
		_ = w.control("ROLLBACK")
	}
}

// sqliteTx is the writer's transaction as one write sees it.
type sqliteTx struct {
	txState
	conn *sqliteConn
}

var _ Tx = (*sqliteTx)(nil)

func (tx *sqliteTx) Query(ctx context.Context, sql string, each func(Row) error, args ...any) error {
	var stopped error // an error of each does not break the transaction
	st, err := tx.usable(sql)
	if err != nil {
		return err
	}
	err = tx.conn.run(ctx, tx.to, st, func(r Row) error {
		stopped = each(r)
		return stopped
	}, args)
	if err != nil && stopped == nil {
		tx.broken = err
	}
	return err
}

func (tx *sqliteTx) Exec(ctx context.Context, sql string, args ...any) (int64, error) {
	st, err := tx.usable(sql)
	if err != nil {
		return 0, err
	}
	if err := tx.conn.run(ctx, tx.to, st, nil, args); err != nil {
		tx.broken = err
		return 0, err
	}
	failpoint.At("tx.statement")
	if st.reads {
		return 0, nil
	}
	return int64(tx.conn.Changes()), nil
}

func (tx *sqliteTx) Dialect() Dialect { return sqliteDialect }

func (tx *sqliteTx) Later(ctx context.Context, sql string, args ...any) error {
	_, err := tx.Exec(ctx, sql, args...)
	return err
}

// Kept and Keep do nothing. On SQLite a change of the tenant's configuration may be in the same transaction, and to ask
// again is cheap.
func (tx *sqliteTx) Kept(any) any                                          { return nil }
func (tx *sqliteTx) Keep(any, any, func(ctx context.Context, tx Tx) error) {}
