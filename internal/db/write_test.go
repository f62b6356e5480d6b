package db_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
)

const addHost = `INSERT INTO tenant_hosts (tenant_id, host, admin) VALUES ($1, $2, 0)`

func TestCounterUnderConcurrentWrites(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := d.For("a")
		write(t, h, func(tx db.Tx) error {
			_, err := tx.Exec(t.Context(), `INSERT INTO tenant_clocks (tenant_id, last) VALUES ($1, 0)`)
			return err
		})
		const each = 10
		bump := func(tx db.Tx) error {
			var n int64
			err := tx.Query(t.Context(), `SELECT last FROM tenant_clocks WHERE tenant_id = $1`+tx.Dialect().ForUpdate, func(r db.Row) error {
				n = r.Int(0)
				return nil
			})
			if err != nil {
				return err
			}
			_, err = tx.Exec(t.Context(), `UPDATE tenant_clocks SET last = $2 WHERE tenant_id = $1`, n+1)
			return err
		}
		for round, writer := range writers(h) {
			var wg sync.WaitGroup
			for range 64 {
				wg.Go(func() {
					for range each {
						if err := writer(t.Context(), bump); err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			read(t, h, `SELECT last FROM tenant_clocks WHERE tenant_id = $1`, func(r db.Row) error {
				if want := int64((round + 1) * 64 * each); r.Int(0) != want {
					t.Errorf("counted %d of %d", r.Int(0), want)
				}
				return nil
			})
		}
		if s := d.Stats(); s.Writes < 64*each || d.Engine() == db.SQLite && s.Commits*2 > s.Writes {
			t.Errorf("%d writes took %d commits", s.Writes, s.Commits)
		}
	})
}

// Ticks become visible in order: a reader that sees tick n sees all below.
// Some writers draw a tick and then fail, or dawdle between tick and row.
func TestOrderedTicksAreVisibleInOrder(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := d.For("a")
		failed := errors.New("failed after the tick")
		create := func(fails bool) func(db.Tx) error {
			return func(tx db.Tx) error {
				var tick int64
				err := tx.Query(t.Context(), `INSERT INTO tenant_clocks (tenant_id, last) VALUES ($1, 1)
					ON CONFLICT (tenant_id) DO UPDATE SET last = tenant_clocks.last + 1 RETURNING last`, func(r db.Row) error {
					tick = r.Int(0)
					return nil
				})
				if err != nil {
					return err
				}
				if rand.N(4) == 0 {
					time.Sleep(time.Duration(rand.N(int64(2 * time.Millisecond))))
				}
				if _, err = tx.Exec(t.Context(), `INSERT INTO tenant_hosts (tenant_id, host, admin) VALUES ($1, $2, $3)`,
					fmt.Sprint(tick), tick); err == nil && fails {
					err = failed
				}
				return err
			}
		}
		var wg sync.WaitGroup
		done := make(chan struct{})
		for worker := range 16 {
			wg.Go(func() {
				for i := range 20 {
					fails := (worker+i)%5 == 0
					if err := h.WriteOrdered(t.Context(), create(fails)); err != nil && !(fails && errors.Is(err, failed)) {
						t.Error(err)
					}
				}
			})
		}
		go func() { wg.Wait(); close(done) }()
		var last int64
		for running := true; running; {
			select {
			case <-done:
				running = false
			default:
			}
			read(t, h, `SELECT count(*), coalesce(max(admin), 0) FROM tenant_hosts WHERE tenant_id = $1`, func(r db.Row) error {
				if r.Int(0) != r.Int(1) || r.Int(1) < last {
					t.Errorf("saw %d rows up to tick %d, after tick %d", r.Int(0), r.Int(1), last)
					running = false
				}
				last = r.Int(1)
				return nil
			})
		}
		wg.Wait()
		if last != 16*16 {
			t.Errorf("last tick %d", last)
		}
		if s := d.Stats(); s.Commits*2 > s.Writes {
			t.Errorf("%d ordered writes took %d commits", s.Writes, s.Commits)
		}
	})
}

// together runs the functions as one batch of ordered writes: the first holds
// the transaction until all others have queued.
func together(t *testing.T, d *db.DB, fns ...func(db.Tx) error) []error {
	t.Helper()
	h := d.For("a")
	errs := make([]error, len(fns))
	begun := make(chan struct{})
	var once sync.Once
	var wg sync.WaitGroup
	for i, fn := range fns {
		wg.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					errs[i] = fmt.Errorf("panic: %v", p)
				}
			}()
			errs[i] = errors.New("never returned")
			errs[i] = h.WriteOrdered(t.Context(), func(tx db.Tx) error {
				if i == 0 {
					once.Do(func() {
						close(begun)
						eventually(t, "all queued", func() bool { return d.Stats().WritesQueued == len(fns)-1 })
					})
				}
				return fn(tx)
			})
		})
		if i == 0 {
			<-begun
		} else {
			eventually(t, "queued", func() bool { return d.Stats().WritesQueued == i || len(fns) == i+1 })
		}
	}
	wg.Wait()
	return errs
}

func adds(t *testing.T, host string, then func() error) func(db.Tx) error {
	return func(tx db.Tx) error {
		if _, err := tx.Exec(t.Context(), addHost, host); err != nil || then == nil {
			return err
		}
		return then()
	}
}

// In one batch: failing, panicking and exiting writes leave nothing behind and
// take nobody with them.
func TestBatchKeepsWritesApart(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		failed := errors.New("failed")
		before := d.Stats().Commits
		for _, firstFails := range []bool{false, true} {
			first, taken := func() error { return nil }, fmt.Sprint("second", firstFails)
			if firstFails {
				first = func() error { return failed }
			}
			errs := together(t, d,
				adds(t, fmt.Sprint("first", firstFails), first),
				adds(t, taken, nil),
				adds(t, "fails", func() error { return failed }),
				func(tx db.Tx) error { return adds(t, taken, nil)(tx) },
				adds(t, "panics", func() error { panic("boom") }),
				adds(t, "exits", func() error { runtime.Goexit(); return nil }),
				adds(t, fmt.Sprint("last", firstFails), nil),
			)
			for i, want := range []string{"", "", "failed", db.ErrUnique.Error(), "panic: boom", "never returned", ""} {
				if i == 0 && firstFails {
					want = "failed"
				}
				if got := fmt.Sprint(errs[i]); want == "" && errs[i] != nil || want != "" && (len(got) < len(want) || got[:len(want)] != want) {
					t.Errorf("write %d: %v, want %q", i, errs[i], want)
				}
			}
		}
		var hosts string
		read(t, d.For("a"), `SELECT host FROM tenant_hosts WHERE tenant_id = $1 ORDER BY host`, func(r db.Row) error {
			hosts += r.Text(0) + " "
			return nil
		})
		if want := "firstfalse lastfalse lasttrue secondfalse secondtrue "; hosts != want {
			t.Errorf("stored %q", hosts)
		}
		if n := d.Stats().Commits - before; d.Engine() == db.SQLite && n != 2 {
			t.Errorf("%d commits for two batches", n)
		}
	})
}

// A panic goes on in the caller and leaves the database in order.
func TestPanicInAWrite(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		for i, writer := range writers(d.For("a")) {
			mustPanic(t, "boom", func() {
				_ = writer(t.Context(), adds(t, "h", func() error { panic("boom") }))
			})
			if err := writer(t.Context(), adds(t, fmt.Sprint("after", i), nil)); err != nil {
				t.Error(err)
			}
		}
		if n := count(t, d, "tenant_hosts"); n != 2 {
			t.Errorf("%d rows", n)
		}
	})
}

// A write whose caller has left before its turn never runs, and the caller
// does not wait for the turn.
func TestContextEndsBeforeTheTurn(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := d.For("a")
		begun, release := make(chan struct{}), make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			_ = h.WriteOrdered(t.Context(), func(db.Tx) error { close(begun); <-release; return nil })
		})
		<-begun
		ctx, cancel := context.WithCancel(t.Context())
		var ran atomic.Bool
		left := make(chan error)
		go func() {
			left <- h.WriteOrdered(ctx, func(db.Tx) error { ran.Store(true); return nil })
		}()
		eventually(t, "queued", func() bool { return d.Stats().WritesQueued == 1 })
		cancel()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("err = %v", err)
		}
		close(release)
		wg.Wait()
		for _, writer := range writers(h) {
			if err := writer(ctx, func(db.Tx) error { ran.Store(true); return nil }); !errors.Is(err, context.Canceled) {
				t.Errorf("err = %v", err)
			}
			if err := writer(t.Context(), func(db.Tx) error { return nil }); err != nil {
				t.Error(err)
			}
		}
		if ran.Load() {
			t.Error("it ran")
		}
	})
}

// Nobody is answered before the commit they share.
func TestAnswersComeAfterTheCommit(t *testing.T) {
	d := dbtest.Open(t, db.SQLite)
	var answered atomic.Int64
	db.BeforeCommit(d, func() error {
		time.Sleep(5 * time.Millisecond)
		if rows := count(t, d, "tenant_hosts"); rows < answered.Load() {
			t.Errorf("%d answered, %d stored", answered.Load(), rows)
		}
		return nil
	})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 3 {
				if err := d.For("a").Write(t.Context(), adds(t, fmt.Sprint(i, n), nil)); err != nil {
					t.Error(err)
				}
				if rows, done := count(t, d, "tenant_hosts"), answered.Add(1); rows < done {
					t.Errorf("%d answered, %d stored", done, rows)
				}
			}
		})
	}
	wg.Wait()
}

// A commit that fails acknowledges nobody's write.
func TestFailedCommitFailsTheBatch(t *testing.T) {
	d := dbtest.Open(t, db.SQLite)
	broken := fmt.Errorf("%w: injected", db.ErrUnavailable)
	db.BeforeCommit(d, func() error { return broken })
	refused := errors.New("refused")
	for i, err := range together(t, d, adds(t, "1", nil), adds(t, "2", nil), adds(t, "3", func() error { return refused })) {
		if !errors.Is(err, broken) {
			t.Errorf("write %d: %v", i, err)
		}
	}
	db.BeforeCommit(d, nil)
	if n := count(t, d, "tenant_hosts"); n != 0 {
		t.Errorf("%d rows", n)
	}
	write(t, d.For("a"), adds(t, "1", nil))
}

// A write that ends the shared transaction under the others fails alone; they
// are run again.
func TestBrokenTransactionIsRunAgain(t *testing.T) {
	d := dbtest.Open(t, db.SQLite)
	breaks := func(tx db.Tx) error {
		_, err := tx.Exec(t.Context(), `UPDATE tenant_hosts SET host = host WHERE tenant_id = $1; `)
		db.EndTransaction(d)
		return err
	}
	errs := together(t, d, adds(t, "1", nil), adds(t, "2", nil), breaks, adds(t, "3", nil))
	if errs[0] != nil || errs[1] != nil || errs[2] == nil || errs[3] != nil {
		t.Errorf("%v", errs)
	}
	if n := count(t, d, "tenant_hosts"); n != 3 {
		t.Errorf("%d rows", n)
	}
}

func TestFullDisk(t *testing.T) {
	d := dbtest.Open(t, db.SQLite)
	big := string(make([]byte, 1<<20))
	db.LimitPages(d, 500)
	errs := together(t, d, adds(t, "1", nil), adds(t, big, nil), adds(t, "also "+big, nil), adds(t, "2", nil))
	if errs[0] != nil || !errors.Is(errors.Join(errs[1:3]...), db.ErrFull) || errs[3] != nil {
		t.Errorf("%.300q", fmt.Sprint(errs))
	}
	db.LimitPages(d, 1<<30)
	write(t, d.For("a"), adds(t, "3", nil))
}

// Two processes write the same folder, both as fast as they can.
func TestTwoProcessesWriteOneFile(t *testing.T) {
	c := dbtest.Config(t, db.SQLite)
	var wg sync.WaitGroup
	var slowest atomic.Int64
	stop := make(chan struct{})
	server, command := dbtest.OpenConfig(t, c), dbtest.OpenConfig(t, c)
	var n atomic.Int64
	for range 128 { // two batches' worth: the first process always has one waiting
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := server.For("a").Write(t.Context(), adds(t, fmt.Sprint(n.Add(1)), nil)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	time.Sleep(50 * time.Millisecond)
	for i := range 20 {
		began := time.Now()
		write(t, command.For("b"), adds(t, fmt.Sprint("b", i), nil))
		slowest.Store(max(slowest.Load(), int64(time.Since(began))))
	}
	close(stop)
	wg.Wait()
	t.Logf("slowest of the second process: %v beside %d writes", time.Duration(slowest.Load()), n.Load())
	if time.Duration(slowest.Load()) > 2*time.Second {
		t.Error("the second process starves")
	}
	if rows := count(t, command, "tenant_hosts"); rows != n.Load()+20 {
		t.Errorf("%d rows of %d", rows, n.Load()+20)
	}
}
