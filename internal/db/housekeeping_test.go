package db_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
)

// Of all nodes that ask at once, one finds a job due, and no other does until the
// interval has passed.
func TestOneNodeKeepsHouse(t *testing.T) {
	c := dbtest.Config(t, db.Postgres)
	nodes := []*db.DB{dbtest.OpenConfig(t, c), dbtest.OpenConfig(t, c), dbtest.OpenConfig(t, c)}
	ask := func() int64 {
		var due atomic.Int64
		var all sync.WaitGroup
		for i := range 24 {
			all.Go(func() {
				yes, err := db.Due(t.Context(), nodes[i%3], "a job", time.Hour)
				if err != nil {
					t.Error(err)
				}
				if yes {
					due.Add(1)
				}
			})
		}
		all.Wait()
		return due.Load()
	}
	set := func(from string) {
		t.Helper()
		err := nodes[0].Unscoped("test").Write(t.Context(), func(tx db.Tx) error {
			n, err := tx.Exec(t.Context(), `UPDATE housekeeping SET due_at = `+tx.Dialect().Now+` `+from)
			if err == nil && n != 1 {
				err = errors.New("the table has not one job")
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		what, due string
		want      int64
	}{
		{"never done", "", 1},
		{"just done", "", 0},
		{"not yet due", "+ 60000000", 0},
		{"due", "- 1", 1},
		{"done before the clock was set back by a day", "+ 86400000000", 1},
	} {
		if c.due != "" {
			set(c.due)
		}
		if got := ask(); got != c.want {
			t.Errorf("%s: %d of 24 find it due, want %d", c.what, got, c.want)
		}
	}
	if due, err := db.Due(t.Context(), nodes[1], "another job", time.Hour); !due || err != nil {
		t.Errorf("another job: %v, %v", due, err)
	}
}

// The folder of an SQLite database has one server: nothing is asked.
func TestTheOneServerKeepsHouse(t *testing.T) {
	d := dbtest.Open(t, db.SQLite)
	for range 2 {
		if due, err := db.Due(t.Context(), d, "a job", time.Hour); !due || err != nil {
			t.Fatal(due, err)
		}
	}
}

// Where nothing can be written, nothing is due, and nobody hears of it each time.
func TestNothingIsDueOnAReadOnlyServer(t *testing.T) {
	c := dbtest.Config(t, db.Postgres)
	c.URL += "&default_transaction_read_only=on"
	if due, err := db.Due(t.Context(), dbtest.OpenConfig(t, c), "a job", time.Hour); due || err != nil {
		t.Errorf("%v, %v", due, err)
	}
}
