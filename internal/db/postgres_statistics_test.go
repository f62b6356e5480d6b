package db_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
)

// The server of the tests makes no statistics by itself. Without them one record is looked for
// among all; once a table is no longer small, it has statistics, and again when it has grown.
func TestTablesGetStatistics(t *testing.T) {
	d := dbtest.Open(t, db.Postgres)
	fill := func(from, to int) {
		t.Helper()
		err := d.For("acme").Write(t.Context(), func(tx db.Tx) error {
			_, err := tx.Exec(t.Context(), `INSERT INTO records (tenant_id, entity, record_id, owner_id, owner_role, created_at, updated_at, created_by, updated_by, version, data)
				SELECT $1, 'item', 'record-' || i, 'sam', '', i, i, '', '', 1, '{"note": "a record of some length, which is not short"}'
				FROM generate_series(CAST($2 AS INTEGER), CAST($3 AS INTEGER)) i`, from, to)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	// byID returns how PostgreSQL finds a record.
	byID := func() (plan string) {
		t.Helper()
		err := d.For("acme").Query(t.Context(), `EXPLAIN SELECT version FROM records WHERE tenant_id = $1 AND entity = 'item' AND record_id = 'record-7'`,
			func(r db.Row) error { plan += r.Text(0) + "\n"; return nil })
		if err != nil {
			t.Fatal(err)
		}
		return plan
	}
	analyzed := func(what string, want ...string) {
		t.Helper()
		got, err := db.Analyze(t.Context(), d)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v is analyzed, want %v; %v", what, got, want, err)
		}
	}
	analyzed("empty tables")
	fill(1, 20)
	analyzed("a small table")
	fill(21, 20_000)
	if plan := byID(); strings.Contains(plan, "using records_id") {
		t.Errorf("without statistics the right index is chosen: the test shows nothing:\n%s", plan)
	}
	analyzed("a table of 20,000 rows", "records")
	if plan := byID(); !strings.Contains(plan, "using records_id") {
		t.Error(plan)
	}
	analyzed("the same table")
	fill(20_001, 60_000)
	analyzed("three times the size")
	fill(60_001, 180_000)
	analyzed("nine times the size", "records")
	if err := d.For("acme").Write(t.Context(), func(tx db.Tx) error {
		_, err := tx.Exec(t.Context(), `DELETE FROM records WHERE tenant_id = $1`)
		return err
	}); err != nil {
		t.Fatal(fmt.Errorf("delete: %w", err))
	}
	analyzed("a table that was emptied")
}

// A table that has only pages of deleted rows has no statistics after it was analyzed either.
func TestAnEmptyTableIsAnalyzedOnce(t *testing.T) {
	d := dbtest.Open(t, db.Postgres)
	for _, sql := range []string{
		`INSERT INTO config_changes (tenant_id, change_id, changed_at, actor, action, kind, name, before_value, after_value)
			SELECT $1, 'c' || i, i, '', '', '', '', NULL, 'a value of some length, which is not short' FROM generate_series(1, 5000) i`,
		`DELETE FROM config_changes WHERE tenant_id = $1`,
	} {
		err := d.For("acme").Write(t.Context(), func(tx db.Tx) error { _, err := tx.Exec(t.Context(), sql); return err })
		if err != nil {
			t.Fatal(err)
		}
	}
	if got, err := db.Analyze(t.Context(), d); err != nil || !slices.Equal(got, []string{"config_changes"}) {
		t.Errorf("never analyzed: %v, %v", got, err)
	}
	if got, err := db.Analyze(t.Context(), d); err != nil || len(got) > 0 {
		t.Errorf("analyzed, and empty: %v, %v", got, err)
	}
}

// Only our own tables are analyzed, whatever others are called; and none while the schema is changed,
// for which the change, and all that comes behind it, would wait.
func TestStatisticsAreOfOurTablesAlone(t *testing.T) {
	c := dbtest.Config(t, db.Postgres)
	d, other := dbtest.OpenConfig(t, c), dbtest.OpenConfig(t, c)
	write := func(sql string) {
		t.Helper()
		if err := d.Unscoped("test").Write(t.Context(), func(tx db.Tx) error { _, err := tx.Exec(t.Context(), sql); return err }); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{`"Odd"`, `"odd; DROP TABLE installation"`, `"order"`} {
		write(`CREATE TABLE ` + name + ` AS SELECT i, repeat('x', 100) AS s FROM generate_series(1, 5000) i`)
	}
	statistics := func() (n int64) {
		t.Helper()
		err := d.Unscoped("test").Query(t.Context(), `SELECT count(*) FROM pg_stats WHERE tablename = 'order'`, func(r db.Row) error { n = r.Int(0); return nil })
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	err := other.Unscoped("test").Write(t.Context(), func(tx db.Tx) error {
		if err := db.LockMigrations(t.Context(), tx); err != nil {
			return err
		}
		_, err := db.Analyze(t.Context(), d)
		return err
	})
	if n := statistics(); err != nil || n != 0 {
		t.Errorf("during a change of the schema: %d, %v", n, err)
	}
	if got, err := db.Analyze(t.Context(), d); err != nil || !slices.Equal(got, []string{`"order"`}) || statistics() == 0 {
		t.Errorf("%v is analyzed, %v", got, err)
	}
}
