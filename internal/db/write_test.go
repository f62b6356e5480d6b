package db_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
)

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
		if s := d.Stats(); s.Writes < 64*each {
			t.Errorf("%d writes are counted", s.Writes)
		}
	})
}

// Ticks become visible in order: a reader that sees tick n sees all below.
// Some writers draw a tick and then fail, or wait before they write the row.
func TestOrderedTicksAreVisibleInOrder(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := d.For("a")
		failed := errors.New("failed after the tick")
		var wg sync.WaitGroup
		done := make(chan struct{})
		for worker := range 16 {
			wg.Go(func() {
				for i := range 20 {
					var wanted error
					if (worker+i)%5 == 0 {
						wanted = failed
					}
					if err := h.WriteOrdered(t.Context(), drawsTick(t, wanted)); !errors.Is(err, wanted) {
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

// drawsTick stores a row under the tenant's next tick and ends with an error, or nil.
func drawsTick(t *testing.T, end error) func(db.Tx) error {
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
			time.Sleep(rand.N(2 * time.Millisecond))
		}
		if _, err = tx.Exec(t.Context(), `INSERT INTO tenant_hosts (tenant_id, host, admin) VALUES ($1, $2, $3)`,
			fmt.Sprint(tick), tick); err != nil {
			return err
		}
		return end
	}
}

// A panic continues in the caller, and the database stays usable.
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
		if n := countHosts(t, d); n != 2 {
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
	if rows := countHosts(t, command); rows != n.Load()+20 {
		t.Errorf("%d rows of %d", rows, n.Load()+20)
	}
}

// A failed statement breaks the transaction on both engines, even if fn ignores the error.
func TestForgottenErrorIsNoCommit(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		for _, writer := range writers(d.For("a")) {
			err := writer(t.Context(), func(tx db.Tx) error {
				for range 2 {
					_, _ = tx.Exec(t.Context(), `INSERT INTO tenant_hosts (tenant_id, host, admin) VALUES ($1, 'h', 0)`)
				}
				return nil
			})
			if !errors.Is(err, db.ErrUnique) {
				t.Errorf("err = %v", err)
			}
		}
		if n := countHosts(t, d); n != 0 {
			t.Errorf("%d rows left", n)
		}
	})
}

func TestStatementAfterTheTransaction(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		for _, writer := range writers(d.For("a")) {
			var kept db.Tx
			if err := writer(t.Context(), func(tx db.Tx) error { kept = tx; return nil }); err != nil {
				t.Fatal(err)
			}
			if _, err := kept.Exec(t.Context(), `DELETE FROM tenant_hosts WHERE tenant_id = $1`); err == nil {
				t.Error("a transaction works after its end")
			}
		}
	})
}
