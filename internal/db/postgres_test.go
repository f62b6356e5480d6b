package db_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
)

// Two writes that deadlock both succeed: the loser is run again, and leaves
// nothing of its first run.
func TestLostRacesAreRunAgain(t *testing.T) {
	for i, name := range []string{"Write", "WriteOrdered"} {
		t.Run(name, func(t *testing.T) {
			c := dbtest.Config(t, db.Postgres)
			d := dbtest.OpenConfig(t, c)
			write(t, d.Unscoped("test"), func(tx db.Tx) error {
				_, err := tx.Exec(t.Context(), `INSERT INTO tenant_clocks (tenant_id, last) VALUES ('x', 0), ('y', 0)`)
				return err
			})
			var runs atomic.Int64
			var met sync.WaitGroup
			met.Add(2)
			cross := func(first, second string) func(db.Tx) error {
				var once sync.Once
				return func(tx db.Tx) error {
					runs.Add(1)
					const bump = `UPDATE tenant_clocks SET last = last + 1 WHERE tenant_id = $1`
					if _, err := tx.Exec(t.Context(), bump, first); err != nil {
						return err
					}
					once.Do(func() { met.Done(); met.Wait() })
					if _, err := tx.Exec(t.Context(), bump, second); err != nil {
						return errors.New("the error is hidden")
					}
					return nil
				}
			}
			var wg sync.WaitGroup
			node := dbtest.OpenConfig(t, c) // another, with a queue of its own
			for at, fn := range map[*db.DB]func(db.Tx) error{d: cross("x", "y"), node: cross("y", "x")} {
				wg.Go(func() {
					if err := writers(at.Unscoped("test"))[i](t.Context(), fn); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			read(t, d.Unscoped("test"), `SELECT last FROM tenant_clocks`, func(r db.Row) error {
				if r.Int(0) != 2 {
					t.Errorf("bumped %d times", r.Int(0))
				}
				return nil
			})
			// On a busy machine the loser may be back before the winner has noticed, and lose again.
			if n := runs.Load(); n < 3 {
				t.Errorf("%d runs", n)
			}
		})
	}
}

// A connection lost at COMMIT leaves the outcome unknown: the error says so,
// and the write is not run again.
func TestConnectionLostAtCommit(t *testing.T) {
	d := dbtest.Open(t, db.Postgres)
	for _, writer := range writers(d.For("a")) {
		runs := 0
		err := writer(t.Context(), func(tx db.Tx) error {
			runs++
			var pid int64
			if err := tx.Query(t.Context(), `SELECT pg_backend_pid() WHERE $1 <> ''`, func(r db.Row) error {
				pid = r.Int(0)
				return nil
			}); err != nil {
				return err
			}
			kill(t, d, pid)
			return nil
		})
		if runs != 1 || !errors.Is(err, db.ErrUnavailable) || !errors.Is(err, db.ErrUnknown) {
			t.Errorf("%d runs, %v", runs, err)
		}
		if err := writer(t.Context(), adds(t, "after", nil)); err != nil && !errors.Is(err, db.ErrUnique) {
			t.Errorf("afterwards: %v", err)
		}
	}
}

func kill(t *testing.T, d *db.DB, pid int64) {
	read(t, d.Unscoped("test"), `SELECT pg_terminate_backend($1)`, func(db.Row) error { return nil }, pid)
	eventually(t, "backend gone", func() (gone bool) {
		read(t, d.Unscoped("test"), `SELECT count(*) FROM pg_stat_activity WHERE pid = $1`, func(r db.Row) error {
			gone = r.Int(0) == 0
			return nil
		}, pid)
		return gone
	})
}

// Connections that died while idle, as all do when the server restarts, cost
// no caller an error.
func TestDeadIdleConnections(t *testing.T) {
	c := dbtest.Config(t, db.Postgres)
	d, other := dbtest.OpenConfig(t, c), dbtest.OpenConfig(t, c)
	h := d.For("a")
	use := []func() error{
		func() error { return d.Ping(t.Context()) },
		func() error { return h.Write(t.Context(), func(db.Tx) error { return nil }) },
		func() error { return h.WriteOrdered(t.Context(), func(db.Tx) error { return nil }) },
	}
	const idle = 7 // more than the tries of any call
	for i, call := range use {
		var met sync.WaitGroup
		met.Add(idle)
		var mu sync.Mutex
		var pids []int64
		var wg sync.WaitGroup
		for range idle {
			wg.Go(func() {
				err := d.Unscoped("test").Query(t.Context(), `SELECT pg_backend_pid()`, func(r db.Row) error {
					mu.Lock()
					pids = append(pids, r.Int(0))
					mu.Unlock()
					met.Done()
					met.Wait()
					return nil
				})
				if err != nil {
					t.Error(err)
					met.Done()
				}
			})
		}
		wg.Wait()
		for _, pid := range pids {
			kill(t, other, pid)
		}
		if err := call(); err != nil {
			t.Errorf("call %d: %v", i, err)
		}
	}
}

// A server that has become a standby is unavailable, not out of space.
func TestReadOnlyServer(t *testing.T) {
	c := dbtest.Config(t, db.Postgres)
	dbtest.OpenConfig(t, c)
	c.URL += "&default_transaction_read_only=on"
	d := dbtest.OpenConfig(t, c)
	for _, writer := range writers(d.For("a")) {
		if err := writer(t.Context(), adds(t, "x", nil)); !errors.Is(err, db.ErrUnavailable) {
			t.Errorf("err = %v", err)
		}
	}
}

func TestPoolSizeOfTheURL(t *testing.T) {
	c := dbtest.Config(t, db.Postgres)
	c.Readers = 5
	if n := dbtest.OpenConfig(t, c).Stats().Connections; n != 5 {
		t.Errorf("%d connections", n)
	}
	c.URL += "&pool_max_conns=3"
	d := dbtest.OpenConfig(t, c)
	if n := d.Stats().Connections; n != 3 {
		t.Errorf("%d connections", n)
	}
	var wg sync.WaitGroup
	var most atomic.Int64
	for range 20 {
		wg.Go(func() {
			read(t, d.Unscoped("test"), `SELECT pg_sleep(0.005)`, func(db.Row) error {
				most.Store(max(most.Load(), int64(d.Stats().InUse)))
				time.Sleep(time.Millisecond)
				return nil
			})
		})
	}
	wg.Wait()
	if most.Load() > 3 {
		t.Errorf("%d in use", most.Load())
	}
}

// With one connection, waiting calls are counted, and stop waiting when their ctx ends.
func TestWaitingForAConnection(t *testing.T) {
	c := dbtest.Config(t, db.Postgres)
	c.URL += "&pool_max_conns=1"
	d := dbtest.OpenConfig(t, c)
	write(t, d.For("a"), func(db.Tx) error {
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error)
		go func() { left <- d.Ping(ctx) }()
		eventually(t, "one waits", func() bool { return d.Stats().Waiting == 1 })
		if n := d.Stats().InUse; n != 1 {
			t.Errorf("%d in use", n)
		}
		cancel()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("err = %v", err)
		}
		return nil
	})
	if s := d.Stats(); s.InUse != 0 || s.Waiting != 0 {
		t.Errorf("afterwards %d in use, %d waiting", s.InUse, s.Waiting)
	}
}

func TestSessionSettings(t *testing.T) {
	c := dbtest.Config(t, db.Postgres)
	c.URL += "&lock_timeout=3s&pool_max_conn_idle_time=1m"
	d := dbtest.OpenConfig(t, c)
	for name, want := range map[string]string{
		"timezone": "UTC", "lock_timeout": "3s", "idle_in_transaction_session_timeout": "30s", "application_name": "gatehouse",
	} {
		read(t, d.Unscoped("test"), `SELECT current_setting($1)`, func(r db.Row) error {
			if r.Text(0) != want {
				t.Errorf("%s is %s, want %s", name, r.Text(0), want)
			}
			return nil
		}, name)
	}
}

func TestWrongPoolSettingsInTheURL(t *testing.T) {
	for _, setting := range []string{"pool_max_conns=0", "pool_max_conns=many", "pool_max_conn_lifetime=x"} {
		_, err := db.Open(t.Context(), db.Config{URL: "postgres://u:hidden@127.0.0.1:1/x?" + setting})
		if name, _, _ := strings.Cut(setting, "="); err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %v", setting, err)
		}
	}
}

// TestASlowCommitIsSharedByMore: if beginning and committing take long, a shared
// transaction accepts writes for as long; otherwise a tenant's writes would fall
// behind.
func TestASlowCommitIsSharedByMore(t *testing.T) {
	for around, want := range map[time.Duration]time.Duration{
		0: 5 * time.Millisecond, time.Millisecond: 5 * time.Millisecond, 30 * time.Millisecond: 30 * time.Millisecond, time.Second: 50 * time.Millisecond,
	} {
		if got := db.BatchTime(around); got != want {
			t.Errorf("after %s to begin and commit a transaction takes writes in for %s, expected %s", around, got, want)
		}
	}
}
