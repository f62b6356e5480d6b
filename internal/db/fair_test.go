package db_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
)

// hold begins a write of the tenant and returns a function that ends it.
func hold(t *testing.T, d *db.DB, tenant db.TenantID) (release func()) {
	t.Helper()
	begun, end := make(chan struct{}), make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		if err := d.For(tenant).WriteOrdered(t.Context(), func(db.Tx) error { close(begun); <-end; return nil }); err != nil {
			t.Error(err)
		}
	})
	<-begun
	return func() { close(end); wait.Wait() }
}

// Behind 500 writes of one tenant, the only write of another tenant waits for at
// most two of their turns. (In order of arrival it would wait for all of them.)
func TestACrowdOfOneTenantDoesNotDelayAnother(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		release := hold(t, d, "crowd")
		var served atomic.Int64
		var all sync.WaitGroup
		for range 500 {
			all.Go(func() {
				if err := d.For("crowd").WriteOrdered(t.Context(), func(db.Tx) error { served.Add(1); return nil }); err != nil {
					t.Error(err)
				}
			})
		}
		eventually(t, "the crowd waits", func() bool { return d.Stats().WritesQueued == 500 })
		before := int64(-1)
		begun := make(chan struct{})
		all.Go(func() {
			close(begun)
			if err := d.For("eva").WriteOrdered(t.Context(), func(db.Tx) error { before = served.Load(); return nil }); err != nil {
				t.Error(err)
			}
		})
		<-begun
		if d.Engine() == db.SQLite {
			eventually(t, "eva waits", func() bool { return d.Stats().WritesQueued == 501 })
		} else { // each tenant has a queue of its own
			eventually(t, "eva is served", func() bool { return d.Stats().Writes == 1 })
		}
		release()
		all.Wait()
		if before < 0 || before > 2 {
			t.Errorf("%d of the crowd were served before eva", before)
		}
	})
}

// While one tenant runs long transactions without end, a short write of another
// tenant waits for at most one of them, and is not committed with the next.
func TestShortWritesComeBetweenLongTurns(t *testing.T) {
	d := dbtest.Open(t, db.SQLite)
	ctx, stop := context.WithCancel(t.Context())
	var turns atomic.Int64
	var all sync.WaitGroup
	for range 24 {
		all.Go(func() {
			for ctx.Err() == nil {
				if err := d.For("crowd").Write(t.Context(), func(db.Tx) error {
					time.Sleep(20 * time.Millisecond)
					turns.Add(1)
					return nil
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	eventually(t, "some turns are over", func() bool { return turns.Load() > 2 })
	var most int64
	for range 20 {
		before := turns.Load()
		write(t, d.For("eva"), func(db.Tx) error { return nil })
		most = max(most, turns.Load()-before)
	}
	stop()
	all.Wait()
	if most > 1 {
		t.Errorf("a short write waited for %d long ones", most)
	}
	if s := d.Stats(); s.LongestWrite < 20*time.Millisecond {
		t.Errorf("the longest turn took %s", s.LongestWrite)
	}
}

// The waiting writes of one tenant are bounded and leave room for another
// tenant's. Writes that failed or stopped waiting leave nothing behind.
func TestWaitingWritesAreBounded(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		release := hold(t, d, "crowd")
		ctx, cancel := context.WithCancel(t.Context())
		var refused, left atomic.Int64
		var all sync.WaitGroup
		for range db.MaxWaiting {
			all.Go(func() {
				switch err := d.For("crowd").WriteOrdered(ctx, func(db.Tx) error { t.Error("it ran"); return nil }); {
				case errors.Is(err, db.ErrBusy):
					refused.Add(1)
				case errors.Is(err, context.Canceled):
					left.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		eventually(t, "half are refused", func() bool { return refused.Load() == db.MaxWaiting/2 })
		if n := d.Stats().WritesQueued; n != db.MaxWaiting/2 {
			t.Errorf("%d wait", n)
		}
		done := make(chan error)
		go func() { done <- d.For("eva").WriteOrdered(t.Context(), func(db.Tx) error { return nil }) }()
		cancel()
		all.Wait()
		if n := left.Load(); n != db.MaxWaiting/2 {
			t.Errorf("%d left", n)
		}
		if n := d.Stats().WritesQueued; n > 1 {
			t.Errorf("%d wait after all but one have left", n)
		}
		release()
		if err := <-done; err != nil {
			t.Errorf("another tenant's write: %v", err)
		}
		for _, end := range []func(){func() { panic("boom") }, runtime.Goexit} {
			all.Go(func() {
				defer func() { _ = recover() }() // the panic must continue in the caller
				_ = d.For("crowd").WriteOrdered(t.Context(), func(db.Tx) error { end(); return nil })
			})
		}
		all.Wait()
		write(t, d.For("crowd"), adds(t, "after", nil))
		eventually(t, "nothing is left", func() bool { s := d.Stats(); return s.WritesQueued == 0 && s.Waiting == 0 && s.InUse == 0 })
	})
}

// One tenant's reads that never end leave a connection for another tenant, on
// both engines, and a waiting call ends with its context.
func TestATenantLeavesConnectionsToOthers(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx, stop := context.WithCancel(t.Context())
		end := make(chan struct{})
		var inside atomic.Int64
		var all sync.WaitGroup
		for range 40 {
			all.Go(func() {
				err := d.For("crowd").Query(ctx, `SELECT 1 WHERE $1 <> ''`, func(db.Row) error {
					inside.Add(1)
					<-end
					return nil
				})
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
		}
		eventually(t, "all wait or read", func() bool { return int64(d.Stats().Waiting)+inside.Load() == 40 })
		if n, size := inside.Load(), int64(d.Stats().Connections); n >= size {
			t.Errorf("one tenant has %d of %d connections", n, size)
		}
		for _, h := range []db.Handle{d.For("eva"), d.Unscoped("the host")} {
			sql := `SELECT 1`
			if h.Tenant() != "" {
				sql += ` WHERE $1 <> ''`
			}
			read(t, h, sql, func(db.Row) error { return nil })
		}
		if err := d.For("eva").Write(t.Context(), func(db.Tx) error { return nil }); err != nil {
			t.Error(err)
		}
		stop()
		close(end)
		all.Wait()
		if s := d.Stats(); s.InUse != 0 || s.Waiting != 0 {
			t.Errorf("afterwards %d in use, %d waiting", s.InUse, s.Waiting)
		}
	})
}

// A released place goes to the next tenant, not to the next call of the same tenant.
func TestConnectionsAreGivenInTurns(t *testing.T) {
	for _, engine := range dbtest.Engines {
		t.Run(string(engine), func(t *testing.T) {
			c := dbtest.Config(t, engine)
			c.Readers = 1
			d := dbtest.OpenConfig(t, c)
			var all sync.WaitGroup
			var served atomic.Int64
			var before atomic.Int64 // of the crowd, since eva waited
			before.Store(-1)
			ask := func(tenant db.TenantID, then func()) {
				if err := d.For(tenant).Query(t.Context(), `SELECT 1 WHERE $1 <> ''`, func(db.Row) error { then(); return nil }); err != nil {
					t.Error(err)
				}
			}
			var from atomic.Int64 // on a busy machine some of the crowd get the extra place meanwhile
			ask("crowd", func() {
				for range 100 {
					all.Go(func() { ask("crowd", func() { served.Add(1) }) })
				}
				eventually(t, "the crowd waits", func() bool { return int64(d.Stats().Waiting)+served.Load() == 100 })
				from.Store(served.Load())
				all.Go(func() { ask("eva", func() { before.Store(served.Load() - from.Load()) }) })
				eventually(t, "eva waits", func() bool { return int64(d.Stats().Waiting)+served.Load() == 101 || before.Load() >= 0 })
			})
			all.Wait()
			if n := before.Load(); n < 0 || n > 2 {
				t.Errorf("%d of the crowd were served before eva", n)
			}
		})
	}
}

// Nested reads of two tenants, more than there are connections, all complete.
func TestNestedReadsOfManyDoNotStandStill(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		size := d.Stats().Connections
		var all sync.WaitGroup
		for n := range 2 * size {
			tenant := fmt.Sprint(n % 2)
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
				defer cancel()
				const sql = `SELECT 1 WHERE $1 <> ''`
				err := d.For(db.TenantID(tenant)).Query(ctx, sql, func(db.Row) error {
					time.Sleep(20 * time.Millisecond) // until all have one
					return d.For(db.TenantID(tenant)).Query(ctx, sql, func(db.Row) error { return nil })
				})
				if err != nil {
					t.Errorf("tenant %s: %v", tenant, err)
				}
			})
		}
		all.Wait()
		if s := d.Stats(); s.InUse != 0 || s.Waiting != 0 {
			t.Errorf("afterwards %d in use, %d waiting", s.InUse, s.Waiting)
		}
	})
}
