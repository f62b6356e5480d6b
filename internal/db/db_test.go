package db_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
)

func TestOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		for _, value := range []string{"first", "second"} {
			stored, err := d.Once(t.Context(), "key", value)
			if err != nil || stored != "first" {
				t.Fatalf("Once(%q) = %q, %v", value, stored, err)
			}
		}
	})
}

func TestNowIsTheClock(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		now, err := d.Now(t.Context())
		if err != nil || time.Since(now).Abs() > 5*time.Second || now.Location() != time.UTC {
			t.Fatalf("Now = %v, %v", now, err)
		}
	})
}

// id is a named type as the rest of the house uses them.
type id string

func TestRowsOfEveryType(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		table(t, d, `CREATE TABLE kinds (i BIGINT, f DOUBLE PRECISION, s TEXT, b `+bytesType(d)+`, j `+jsonType(d)+`, flag INTEGER, at BIGINT)`)
		at := time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.FixedZone("x", 3600))
		blob := []byte{0, 1, 255, 'x'}
		h := d.Unscoped("test")
		write(t, h, func(tx db.Tx) error {
			const insert = `INSERT INTO kinds (i, f, s, b, j, flag, at) VALUES ($1, $2, $3, $4, $5, $6, $7)`
			_, err := tx.Exec(t.Context(), insert, int64(math.MaxInt64), 0.1, id("Zürich"), blob, `{"a":1}`, true, at)
			if err == nil {
				_, err = tx.Exec(t.Context(), insert, -1, -2.5e300, "", []byte{}, []byte(`{"a":1}`), false, nil)
			}
			if err == nil {
				_, err = tx.Exec(t.Context(), insert, nil, nil, nil, nil, nil, nil, nil)
			}
			return err
		})
		var got []string
		read(t, h, `SELECT i, f, s, b, j ->> 'a', flag, at, flag = 1, i IS NULL, sum(flag) OVER () FROM kinds ORDER BY coalesce(i, -2) DESC`, func(r db.Row) error {
			got = append(got, fmt.Sprint(r.Int(0), r.Float(1), r.Text(2), r.Bytes(3), r.Text(4), r.Bool(5), r.Int(6),
				r.Bool(7), r.Bool(8), r.Int(8), r.Int(9), r.Null(0), r.Null(3), r.Null(6)))
			return nil
		})
		want := []string{
			fmt.Sprint(int64(math.MaxInt64), 0.1, "Zürich", blob, "1", true, at.UnixMicro(), true, false, 0, 1, false, false, false),
			fmt.Sprint(-1, -2.5e300, "", []byte{}, "1", false, 0, false, false, 0, 1, false, false, true),
			fmt.Sprint(0, 0.0, "", []byte(nil), "", false, 0, false, true, 1, 1, true, true, true),
		}
		if !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	})
}

// Swapped appearance: SQLite would number $2 first if the texts were not rewritten.
func TestParametersGoByNumber(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		read(t, d.Unscoped("test"), `SELECT CAST($2 AS TEXT), CAST($1 AS TEXT), '$1', "x$1" FROM (SELECT 'quoted' AS "x$1") q`, func(r db.Row) error {
			if got := r.Text(0) + r.Text(1) + r.Text(2) + r.Text(3); got != "ba$1quoted" {
				t.Errorf("got %q", got)
			}
			return nil
		}, "a", "b")
	})
}

func TestDialect(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		table(t, d, `CREATE TABLE docs (name TEXT, doc `+jsonType(d)+`)`)
		x := d.Dialect()
		h := d.Unscoped("test")
		write(t, h, func(tx db.Tx) error {
			if _, err := tx.Exec(t.Context(), `INSERT INTO docs VALUES ('d', $1`+x.JSON+`)`, `{"a":1,"b":2}`); err != nil {
				return err
			}
			_, err := tx.Exec(t.Context(), `UPDATE docs SET doc = `+x.JSONRemove("doc", "$1"), "a")
			return err
		})
		write(t, h, func(tx db.Tx) error {
			return tx.Query(t.Context(), `SELECT doc ->> 'a', doc ->> 'b', `+x.Greatest("1", "2")+` FROM docs`+x.ForUpdate, func(r db.Row) error {
				if !r.Null(0) || r.Text(1) != "2" || r.Int(2) != 2 {
					t.Errorf("got %q %q %d", r.Text(0), r.Text(1), r.Int(2))
				}
				return nil
			})
		})
	})
}

// Text sorts by bytes on both engines, whatever the server's locale.
func TestTextSortsByBytes(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		for _, name := range []string{"a", "B", "_", "Z", "é"} {
			if _, err := d.Once(t.Context(), name, ""); err != nil {
				t.Fatal(err)
			}
		}
		var got strings.Builder
		read(t, d.Unscoped("test"), `SELECT name FROM installation ORDER BY name`, func(r db.Row) error {
			got.WriteString(r.Text(0))
			return nil
		})
		if got.String() != "BZ_aé" {
			t.Errorf("order %q", got.String())
		}
	})
}

func TestTenantIsBound(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		for _, tenant := range []string{"a", "b"} {
			write(t, d.For(tenant), func(tx db.Tx) error {
				_, err := tx.Exec(t.Context(), `INSERT INTO tenant_hosts (tenant_id, host, admin) VALUES ($1, $2, 0)`, tenant+".example")
				return err
			})
		}
		var hosts []string
		read(t, d.For("b"), `SELECT host FROM tenant_hosts WHERE tenant_id = $1`, func(r db.Row) error {
			hosts = append(hosts, r.Text(0))
			return nil
		})
		if !slices.Equal(hosts, []string{"b.example"}) {
			t.Errorf("b sees %v", hosts)
		}
		mustPanic(t, "keep to its tenant", func() {
			_ = d.For("b").Query(t.Context(), `SELECT host FROM tenant_hosts`, func(db.Row) error { return nil })
		})
		mustPanic(t, "keep to its tenant", func() {
			_ = d.For("b").Write(t.Context(), func(tx db.Tx) error {
				_, err := tx.Exec(t.Context(), `DELETE FROM tenant_hosts`)
				return err
			})
		})
		mustPanic(t, "only reads", func() {
			_ = d.For("b").Query(t.Context(), `DELETE FROM tenant_hosts WHERE tenant_id = $1 RETURNING host`, nil)
		})
		mustPanic(t, "reason", func() { d.Unscoped("") })
		mustPanic(t, "tenant id", func() { d.For("") })
	})
}

func TestUnique(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		err := d.For("a").Write(t.Context(), func(tx db.Tx) error {
			var err error
			for range 2 {
				_, err = tx.Exec(t.Context(), `INSERT INTO tenant_hosts (tenant_id, host, admin) VALUES ($1, 'h', 0)`)
			}
			return err
		})
		if !errors.Is(err, db.ErrUnique) {
			t.Fatalf("err = %v", err)
		}
		if n := count(t, d, "tenant_hosts"); n != 0 {
			t.Errorf("%d rows left", n)
		}
	})
}

// A failed statement spoils the transaction on both engines, even if fn
// forgets the error.
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
		if n := count(t, d, "tenant_hosts"); n != 0 {
			t.Errorf("%d rows left", n)
		}
	})
}

func TestRowsChanged(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		write(t, d.For("a"), func(tx db.Tx) error {
			for i, want := range []int64{1, 0} {
				n, err := tx.Exec(t.Context(), `INSERT INTO tenant_hosts (tenant_id, host, admin) VALUES ($1, 'h', 0) ON CONFLICT DO NOTHING`)
				if err != nil || n != want {
					t.Errorf("insert %d changed %d, %v", i, n, err)
				}
			}
			n, err := tx.Exec(t.Context(), `UPDATE tenant_hosts SET admin = 1 WHERE tenant_id = $1 AND host = $2`, "none")
			if n != 0 {
				t.Errorf("update changed %d", n)
			}
			return err
		})
	})
}

func TestWrongArguments(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := d.For("a")
		never := func(db.Row) error { t.Error("a row"); return nil }
		for _, args := range [][]any{{}, {"x", "y"}, {struct{}{}}, {[]string{"x"}}} {
			if err := h.Query(t.Context(), `SELECT 1 FROM tenant_hosts WHERE tenant_id = $1 AND host = $2`, never, args...); err == nil {
				t.Errorf("no error for %v", args)
			}
		}
	})
}

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

// What an acknowledged write rests on.
func TestSQLiteIsDurable(t *testing.T) {
	d := dbtest.Open(t, db.SQLite)
	write(t, d.Unscoped("test"), func(tx db.Tx) error {
		for pragma, want := range map[string]string{"synchronous": "2", "journal_mode": "wal"} {
			if err := tx.Query(t.Context(), `PRAGMA `+pragma, func(r db.Row) error {
				if r.Text(0) != want {
					t.Errorf("%s is %s", pragma, r.Text(0))
				}
				return nil
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

// More nested reads than there are connections get through all the same.
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
		for range 30 { // no connection is lost by it
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
		if n := count(t, d, "tenant_hosts"); n != 1 {
			t.Errorf("%d rows", n)
		}
	})
}

func TestEndlessReadEndsWithItsContext(t *testing.T) {
	const endless = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n`
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := d.Unscoped("test")
		run := func(q db.Querier) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
			defer cancel()
			began := time.Now()
			err := q.Query(ctx, endless, func(db.Row) error { return nil })
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 300*time.Millisecond {
				t.Errorf("%v after %v", err, time.Since(began))
			}
		}
		for range 12 { // more than there are readers: each is usable again
			run(h)
			read(t, h, `SELECT 1`, func(db.Row) error { return nil })
		}
		_ = h.Write(t.Context(), func(tx db.Tx) error { run(tx); return errors.New("roll back") })
		write(t, h, func(db.Tx) error { return nil })
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

func TestClosed(t *testing.T) {
	for _, engine := range dbtest.Engines {
		t.Run(string(engine), func(t *testing.T) {
			d, err := db.Open(t.Context(), dbtest.Config(t, engine))
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(d.Close(), d.Close()); err != nil {
				t.Fatal(err)
			}
			for _, writer := range writers(d.For("a")) {
				if err := writer(t.Context(), func(db.Tx) error { return nil }); !errors.Is(err, db.ErrUnavailable) {
					t.Errorf("write: %v", err)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := d.Ping(ctx); !errors.Is(err, db.ErrUnavailable) {
				t.Errorf("read: %v", err)
			}
		})
	}
}
