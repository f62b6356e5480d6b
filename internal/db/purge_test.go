package db_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
)

// day is a day for which the tests store data.
var day = db.DayOf(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))

// oneRow are the tables that have a single row of a tenant.
var oneRow = []string{"tenants", "tenant_clocks", "builds", "tenant_deletions", "tenant_people"}

// fillTables inserts rows of a tenant into every table that has a tenant_id column,
// including tables that are added later.
func fillTables(t *testing.T, d *db.DB, tenant db.TenantID, rows int) (tables []string) {
	t.Helper()
	all, err := db.TenantColumns(t.Context(), d)
	if err != nil || len(all) == 0 {
		t.Fatalf("%d tables, %v", len(all), err)
	}
	err = d.For(tenant).Write(t.Context(), func(tx db.Tx) error {
		for table, columns := range all {
			names, values := []string{"tenant_id"}, []string{"$1"}
			for _, c := range columns {
				if c.Name == "tenant_id" {
					continue
				}
				value := "CAST($2 AS BIGINT)"
				switch c.Type {
				case "text":
					value = "CAST(CAST($2 AS BIGINT) AS TEXT) || '" + string(tenant) + "'"
				case "jsonb":
					value = "'{}'"
				case "blob", "bytea":
					value = "$3"
				}
				if c.Name == "day" {
					value = fmt.Sprint(int64(day))
				}
				names, values = append(names, c.Name), append(values, value)
			}
			for i := range rows {
				if i > 0 && slices.Contains(oneRow, table) {
					break
				}
				args := []any{i + 2}
				sql := `INSERT INTO ` + table + ` (` + strings.Join(names, ", ") + `) VALUES (` + strings.Join(values, ", ") + `)`
				if strings.Contains(sql, "$3") {
					args = append(args, []byte("x"))
				}
				if _, err := tx.Exec(t.Context(), sql, args...); err != nil {
					return fmt.Errorf("%s: %w", table, err)
				}
			}
			tables = append(tables, table)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(tables)
	return tables
}

func rowsOf(t *testing.T, d *db.DB, tenant db.TenantID, table string) (n int64) {
	t.Helper()
	err := d.For(tenant).Query(t.Context(), `SELECT count(*) FROM `+table+` WHERE tenant_id = $1`, func(r db.Row) error { n = r.Int(0); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestAPurgeLeavesNothingOfATenantAndAllOfAnother checks every table of the database, so
// that it also covers tables that are added later.
func TestAPurgeLeavesNothingOfATenantAndAllOfAnother(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		const rows = 130
		tables := map[*db.DB][]string{}
		onDays := func(fn func(*db.DB) error) {
			if err := db.OfDay(t.Context(), d, day, fn); err != nil {
				t.Fatal(err)
			}
		}
		onDays(func(of *db.DB) error { // creates the day's tables or partitions
			for _, tenant := range []string{"acme", "umbrella"} {
				tables[of] = fillTables(t, of, db.TenantID(tenant), rows)
				if of != d {
					tables[d] = fillTables(t, d, db.TenantID(tenant), rows)
				}
			}
			return nil
		})
		if !slices.Contains(tables[d], "records") || !slices.Contains(tables[d], "tenant_hosts") {
			t.Fatalf("the tables are %v", tables[d])
		}
		steps, guarded := 0, 0
		p := db.Purge{
			Tenant: "acme", First: []string{"outbox", "builds"}, Keep: []string{"tenant_deletions"},
			Guard: func(context.Context, db.Tx) error { guarded++; return nil },
		}
		stop := errors.New("stopped")
		p.Rest = func(context.Context, time.Duration) error {
			if steps++; steps == 5 {
				return stop
			}
			return nil
		}
		if n, err := d.Purge(t.Context(), p); !errors.Is(err, stop) || n == 0 || rowsOf(t, d, "acme", "outbox") != 0 || rowsOf(t, d, "acme", "users") != rows {
			t.Fatalf("a purge that is stopped: %d rows, %v", n, err)
		}
		if n, err := d.Purge(t.Context(), p); err != nil || n == 0 {
			t.Fatalf("%d rows, %v", n, err)
		}
		onDays(func(*db.DB) error {
			for of, names := range tables {
				for _, table := range names {
					want, whole := int64(0), int64(rows)
					if table == "tenant_deletions" {
						want = 1
					}
					if slices.Contains(oneRow, table) {
						whole = 1
					}
					if n := rowsOf(t, of, "acme", table); n != want {
						t.Errorf("%s: %d rows are left", table, n)
					}
					if n := rowsOf(t, of, "umbrella", table); n != whole {
						t.Errorf("%s: the neighbour has %d rows of %d", table, n, whole)
					}
				}
			}
			return nil
		})
		if steps < 30 || guarded < steps {
			t.Errorf("%d steps, of which %d were guarded", steps, guarded)
		}
		refused := errors.New("no")
		p.Guard = func(context.Context, db.Tx) error { return refused }
		p.Tenant = "umbrella"
		if _, err := d.Purge(t.Context(), p); !errors.Is(err, refused) || rowsOf(t, d, "umbrella", "records") != rows {
			t.Errorf("a guard that refuses: %v", err)
		}
	})
}
