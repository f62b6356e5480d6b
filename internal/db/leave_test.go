package db_test

import (
	"errors"
	"testing"
	"time"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
)

// TestARestThatNobodyWantsIsNotRead: a read that is stopped at its first row ends
// soon, however many rows follow, and the connection stays usable.
func TestARestThatNobodyWantsIsNotRead(t *testing.T) {
	c := dbtest.Config(t, db.Postgres)
	c.Readers = 1
	d := dbtest.OpenConfig(t, c)
	h := d.Unscoped("test")
	enough := errors.New("enough")
	connection := func() (pid int64) {
		if err := h.Query(t.Context(), `SELECT pg_backend_pid()`, func(r db.Row) error { pid = r.Int(0); return nil }); err != nil {
			t.Fatal(err)
		}
		return pid
	}
	before := connection()
	for _, rows := range []string{"2", "20000"} { // a rest that is read, and one that takes 200 s to send
		begun := time.Now()
		err := h.Query(t.Context(), `SELECT repeat('x', 400000), pg_sleep(0.01) FROM generate_series(1, `+rows+`)`, func(db.Row) error { return enough })
		if !errors.Is(err, enough) {
			t.Errorf("%s rows: %v", rows, err)
		}
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("%s rows: it took %v", rows, took)
		}
		if after := connection(); after != before {
			t.Errorf("%s rows: the connection is another", rows)
		}
	}
}
