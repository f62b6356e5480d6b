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

// together runs the functions as one batch of ordered writes: the first holds
// the transaction until all others have queued.
func together(t *testing.T, d *db.DB, fns ...func(db.Tx) error) []error {
	t.Helper()
	db.LongBatches(d)
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

// Writes that wait at the same time share a commit.
func TestWritesThatWaitShareACommit(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		before := d.Stats()
		writes := make([]func(db.Tx) error, 20)
		for i := range writes {
			writes[i] = adds(t, fmt.Sprint("host", i), nil)
		}
		if err := errors.Join(together(t, d, writes...)...); err != nil {
			t.Fatal(err)
		}
		after := d.Stats()
		if n, commits := after.Writes-before.Writes, after.Commits-before.Commits; n != 20 || d.Engine() == db.SQLite && commits != 1 {
			t.Errorf("%d writes took %d commits", n, commits)
		}
	})
}

// Writes of a batch that fail, panic or exit leave nothing behind and do not
// affect the other writes of the batch.
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
				func(tx db.Tx) error { // of a statement that fails on its second row
					_, _ = tx.Exec(t.Context(), `INSERT INTO tenant_hosts (tenant_id, host, admin) VALUES ($1, 'new', 0), ($1, $2, 0)`, taken)
					return nil
				},
				adds(t, "panics", func() error { panic("boom") }),
				adds(t, "exits", func() error { runtime.Goexit(); return nil }),
				adds(t, fmt.Sprint("last", firstFails), nil),
			)
			for i, want := range []string{"", "", "failed", db.ErrUnique.Error(), db.ErrUnique.Error(), "panic: boom", "never returned", ""} {
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

// What a write keeps is there for those after it in a transaction of PostgreSQL, unless it failed, and is finished once,
// before the commit. On SQLite each asks for itself.
func TestAWriteKeepsForThoseAfterIt(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		type key struct{}
		failed := errors.New("failed")
		var asked []string
		keeps := func(host string, then func() error) func(db.Tx) error {
			return func(tx db.Tx) error {
				by, ok := tx.Kept(key{}).(*string)
				if !ok {
					asked = append(asked, host)
					by = new(string)
					tx.Keep(key{}, by, func(ctx context.Context, tx db.Tx) error { return adds(t, "by "+*by, nil)(tx) })
				}
				*by += host
				return adds(t, host, then)(tx)
			}
		}
		errs := together(t, d, adds(t, "first", nil), keeps("a", func() error { return failed }), keeps("b", nil), keeps("c", nil), keeps("d", nil))
		if !errors.Is(errs[1], failed) || errors.Join(errs[0], errs[2], errs[3], errs[4]) != nil {
			t.Fatal(errs)
		}
		var hosts string
		read(t, d.For("a"), `SELECT host FROM tenant_hosts WHERE tenant_id = $1 ORDER BY host`, func(r db.Row) error { hosts += r.Text(0) + ", "; return nil })
		want, askers := "b, by bcd, c, d, first, ", "[a a b]" // a again, in a savepoint
		if d.Engine() == db.SQLite {
			want, askers = "b, c, d, first, ", "[a b c d]"
		}
		if hosts != want || fmt.Sprint(asked) != askers {
			t.Errorf("stored %q, asked by %v; want %q and %s", hosts, asked, want, askers)
		}
	})
}

// pair runs first, and queues second while it runs, each with its ctx.
func pair(t *testing.T, d *db.DB, ctx1, ctx2 context.Context, first, second func(db.Tx) error) (err1, err2 error) {
	t.Helper()
	begun, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		<-begun
		err2 = d.For("a").WriteOrdered(ctx2, second)
	}()
	var once sync.Once
	err1 = d.For("a").WriteOrdered(ctx1, func(tx db.Tx) error {
		once.Do(func() {
			close(begun)
			eventually(t, "queued", func() bool { return d.Stats().WritesQueued == 1 })
		})
		return first(tx)
	})
	<-done
	return err1, err2
}

// A write that fails late, as one does that has waited for a lock, does not take those along that it shared its
// transaction with, though they must begin before.
func TestAWriteThatFailsLateTakesNobodyWithIt(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, db.Postgres)
	failed, runs := errors.New("failed"), 0
	ctx := db.AnswerBy(t.Context(), time.Now().Add(2*time.Second))
	err1, err2 := pair(t, d, ctx, ctx, adds(t, "first", nil), adds(t, "late", func() error {
		if runs++; runs == 1 {
			time.Sleep(db.RetryTime + 100*time.Millisecond)
		}
		return failed
	}))
	if err1 != nil || !errors.Is(err2, failed) || runs != 2 || countHosts(t, d) != 1 {
		t.Errorf("%v, %v, %d hosts; it ran %d times", err1, err2, countHosts(t, d), runs)
	}
}

// A connection that is lost because the caller of one write is gone is no end of the other's time.
func TestALostConnectionIsNobodysOwnEnd(t *testing.T) {
	t.Parallel()
	cable, behind := newCable(t, dbtest.Config(t, db.Postgres))
	defer cable.end()
	d := dbtest.OpenConfig(t, behind)
	read(t, d.Unscoped("a connection is idle"), `SELECT 1`, func(db.Row) error { return nil })
	gone, leave := context.WithCancel(t.Context())
	defer leave()
	err, _ := pair(t, d, t.Context(), gone, adds(t, "first", func() error { time.Sleep(db.RetryTime); return nil }), func(tx db.Tx) error {
		cable.cut.Store(true)
		time.AfterFunc(100*time.Millisecond, leave)
		_, err := tx.Exec(gone, addHost, "second")
		return err
	})
	if !errors.Is(err, db.ErrUnavailable) || errors.Is(err, context.Canceled) {
		t.Errorf("the first, whose ctx has not ended: %v", err)
	}
}

// What a write failed with beside another is not its answer where the other was not committed.
func TestAConflictIsWithWhatIsThere(t *testing.T) {
	t.Parallel()
	c := dbtest.Config(t, db.Postgres)
	sure, d := dbtest.OpenConfig(t, c), dbtest.OpenConfig(t, c)
	runs := 0
	_, err := pair(t, d, t.Context(), t.Context(), func(tx db.Tx) error {
		if err := adds(t, "same", nil)(tx); err != nil {
			return err
		}
		if runs++; runs == 2 {
			eventually(t, "queued", func() bool { return d.Stats().WritesQueued == 1 })
			time.Sleep(db.RetryTime + 50*time.Millisecond)
			var pid int64
			read(t, tx, `SELECT pg_backend_pid() WHERE $1 <> ''`, func(r db.Row) error { pid = r.Int(0); return nil })
			read(t, sure.Unscoped("test"), fmt.Sprintf(`SELECT pg_terminate_backend(%d, 5000)`, pid), func(db.Row) error { return nil })
		}
		return nil
	}, adds(t, "same", nil))
	if errors.Is(err, db.ErrUnique) && countHosts(t, sure) == 0 {
		t.Error("conflict with nothing")
	}
}

// A write whose caller is gone gets the error of its own context. It does not get the error of another's statement that
// was sent with its own, nor that the database is busy.
func TestAnEndedContextIsTheError(t *testing.T) {
	d := dbtest.Open(t, db.Postgres)
	gone, leave := context.WithCancel(t.Context())
	_, err := pair(t, d, t.Context(), gone, func(tx db.Tx) error {
		return errors.Join(adds(t, "one", nil)(tx), tx.Later(t.Context(), addHost, "one"))
	}, func(tx db.Tx) error {
		_, err := tx.Exec(gone, addHost, "two")
		leave()
		return err
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the second, of the first's value: %v", err)
	}
	d = dbtest.Open(t, db.Postgres) // without savepoints
	gone, leave = context.WithCancel(t.Context())
	failed := errors.New("failed")
	err, other := pair(t, d, gone, t.Context(), adds(t, "three", nil), adds(t, "four", func() error { leave(); return failed }))
	if !errors.Is(err, context.Canceled) || !errors.Is(other, failed) {
		t.Errorf("%v, %v", err, other)
	}
}

// No caller is answered before the commit of the shared transaction.
func TestAnswersComeAfterTheCommit(t *testing.T) {
	d := dbtest.Open(t, db.SQLite)
	var answered atomic.Int64
	db.BeforeCommit(d, func() error {
		time.Sleep(5 * time.Millisecond)
		if rows := countHosts(t, d); rows < answered.Load() {
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
				if rows, done := countHosts(t, d), answered.Add(1); rows < done {
					t.Errorf("%d answered, %d stored", done, rows)
				}
			}
		})
	}
	wg.Wait()
}

// When the commit fails, no write of the batch is acknowledged.
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
	if n := countHosts(t, d); n != 0 {
		t.Errorf("%d rows", n)
	}
	write(t, d.For("a"), adds(t, "1", nil))
}

// Only the write that ends the shared transaction fails; the other writes of
// the batch are run again.
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
	if n := countHosts(t, d); n != 3 {
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
