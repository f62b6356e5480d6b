package db_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
)

func TestNestedQueries(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		const pairs = `SELECT host FROM tenant_hosts WHERE tenant_id = $1 ORDER BY host`
		h := d.For("a")
		nest := func(q db.Querier) (got string) {
			err := q.Query(t.Context(), pairs, func(outer db.Row) error {
				return q.Query(t.Context(), pairs, func(inner db.Row) error {
					got += outer.Text(0) + inner.Text(0) + " "
					return nil
				})
			})
			if err != nil {
				t.Error(err)
			}
			return got
		}
		write(t, h, func(tx db.Tx) error {
			for _, host := range []string{"1", "2"} {
				if _, err := tx.Exec(t.Context(), `INSERT INTO tenant_hosts (tenant_id, host, admin) VALUES ($1, $2, 0)`, host); err != nil {
					return err
				}
			}
			if got := nest(tx); got != "11 12 21 22 " {
				t.Errorf("in a transaction: %q", got)
			}
			return nil
		})
		if got := nest(h); got != "11 12 21 22 " {
			t.Errorf("outside: %q", got)
		}
	})
}

// Rows read in a transaction keep their values, however many follow.
func TestManyRowsInATransaction(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		var want int64
		write(t, d.Unscoped("test"), func(tx db.Tx) error {
			want = 0
			return tx.Query(t.Context(), `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) SELECT i, 'row' || i FROM n`, func(r db.Row) error {
				if want++; r.Int(0) != want || r.Text(1) != fmt.Sprint("row", want) {
					return fmt.Errorf("row %d is %d, %q", want, r.Int(0), r.Text(1))
				}
				return nil
			})
		})
		if want != 20000 {
			t.Errorf("%d rows", want)
		}
	})
}

// More nested reads than there are connections still complete.
func TestNestedQueriesExhaustReaders(t *testing.T) {
	d := dbtest.OpenConfig(t, db.Config{Dir: t.TempDir(), Readers: 1})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	h := d.Unscoped("test")
	depth := 0
	var nest func(db.Row) error
	nest = func(db.Row) error {
		if depth++; depth == 4 {
			return nil
		}
		return h.Query(ctx, `SELECT 1`, nest)
	}
	if err := h.Query(ctx, `SELECT 1`, nest); err != nil || depth != 4 {
		t.Fatalf("depth %d, %v", depth, err)
	}
	if s := d.Stats(); s.InUse != 0 {
		t.Errorf("%d connections in use afterwards", s.InUse)
	}
}

func TestEachStopsTheRead(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		enough := errors.New("enough")
		h := d.Unscoped("test")
		for range 30 { // must not lose connections
			if err := h.Query(t.Context(), `SELECT 1 UNION ALL SELECT 2`, func(db.Row) error { return enough }); !errors.Is(err, enough) {
				t.Fatalf("err = %v", err)
			}
			mustPanic(t, "boom", func() {
				_ = h.Query(t.Context(), `SELECT 1 UNION ALL SELECT 2`, func(db.Row) error { panic("boom") })
			})
		}
	})
}

// An error of the callback alone does not spoil a transaction.
func TestEachMayStopInATransaction(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		enough := errors.New("enough")
		write(t, d.For("a"), func(tx db.Tx) error {
			if err := tx.Query(t.Context(), `SELECT CAST($1 AS TEXT)`, func(db.Row) error { return enough }); !errors.Is(err, enough) {
				t.Errorf("err = %v", err)
			}
			_, err := tx.Exec(t.Context(), `INSERT INTO tenant_hosts (tenant_id, host, admin) VALUES ($1, 'h', 0)`)
			return err
		})
		if n := countHosts(t, d); n != 1 {
			t.Errorf("%d rows", n)
		}
	})
}

func TestEndlessReadEndsWithItsContext(t *testing.T) {
	const endless = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n`
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h, unheard := d.Unscoped("test"), 0
		run := func(q db.Querier) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
			defer cancel()
			switch err := q.Query(ctx, endless, func(db.Row) error { return nil }); {
			case d.Engine() == db.Postgres && errors.Is(err, db.ErrUnavailable):
				unheard++ // on a busy machine the server may take over a second to hear of the end: it is given up
			case !errors.Is(err, context.DeadlineExceeded):
				t.Error(err)
			}
		}
		for range 12 { // more than there are readers: each is usable again
			run(h)
			read(t, h, `SELECT 1`, func(db.Row) error { return nil })
		}
		_ = h.Write(t.Context(), func(tx db.Tx) error { run(tx); return errors.New("roll back") })
		write(t, h, func(db.Tx) error { return nil })
		if unheard > 4 {
			t.Errorf("%d of 13 reads were given up", unheard)
		}
	})
}
