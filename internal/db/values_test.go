package db_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
)

// id is a named type, like those of ids in other packages.
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
			got = append(got, fmt.Sprint(r.Int(0), r.Text(1), r.Text(2), r.Bytes(3), r.Text(4), r.Bool(5), r.Int(6),
				r.Bool(7), r.Bool(8), r.Int(8), r.Int(9), r.Null(0), r.Null(3), r.Null(6)))
			return nil
		})
		want := []string{
			fmt.Sprint(int64(math.MaxInt64), "0.1", "Zürich", blob, "1", true, at.UnixMicro(), true, false, 0, 1, false, false, false),
			fmt.Sprint(-1, "-2.5e+300", "", []byte{}, "1", false, 0, false, false, 0, 1, false, false, true),
			fmt.Sprint(0, "", "", []byte(nil), "", false, 0, false, true, 1, 1, true, true, true),
		}
		if !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	})
}

// $2 comes first: SQLite would number it 1 if the text were not rewritten.
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
		read(t, d.Unscoped("test"), `SELECT name FROM installation WHERE value = '' ORDER BY name`, func(r db.Row) error {
			got.WriteString(r.Text(0))
			return nil
		})
		if got.String() != "BZ_aé" {
			t.Errorf("order %q", got.String())
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
