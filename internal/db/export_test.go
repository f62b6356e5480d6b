package db

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"zombiezen.com/go/sqlite/sqlitex"
)

// BeforeCommit runs in the place of SQLite's COMMIT: an error makes it fail.
func BeforeCommit(d *DB, fn func() error) { d.engine.(*sqliteEngine).writer.beforeCommit = fn }

// Numbered is the text as SQLite gets it.
func Numbered(sql string) string { return describe(sql).numbered }

// Split cuts a script.
func Split(sql string) string { return strings.Join(split(sql), "|") }

// EndTransaction rolls SQLite's open transaction back behind the writer's
// back, as SQLite itself does after some errors. Call it inside a write.
func EndTransaction(d *DB) { d.engine.(*sqliteEngine).writer.rollback() }

// LimitPages makes the disk full, as far as the writer can see, at n pages.
func LimitPages(d *DB, n int) {
	c := d.engine.(*sqliteEngine).writer.conn.Conn
	if err := sqlitex.ExecuteTransient(c, fmt.Sprintf("PRAGMA max_page_count = %d", n), nil); err != nil {
		panic(err)
	}
}

// LongBatches makes SQLite's transactions take in whatever waits, however long
// their first writes took.
func LongBatches(d *DB) {
	if e, ok := d.engine.(*sqliteEngine); ok {
		e.writer.batchTime = time.Minute
	}
}

// MaxWaiting is how many may wait of one kind.
const MaxWaiting = maxWaiting

// RekeyEmails is what migration 11 computes.
var RekeyEmails = rekeyEmails

// Column is a column of a table that has a column tenant_id, as the test of Purge fills it.
type Column struct{ Name, Type string }

// TenantColumns lists the columns of the tables that have a column tenant_id.
func TenantColumns(ctx context.Context, d *DB) (map[string][]Column, error) {
	tables, err := d.tenantTables(ctx)
	columns := map[string][]Column{}
	for _, t := range tables {
		sql := `SELECT name, type FROM pragma_table_info('` + t.name + `')`
		if d.Engine() == Postgres {
			sql = `SELECT column_name::text, data_type::text FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = '` + t.name + `'`
		}
		err = errors.Join(err, d.Unscoped("test").Query(ctx, sql, func(r Row) error {
			columns[t.name] = append(columns[t.name], Column{r.Text(0), strings.ToLower(r.Text(1))})
			return nil
		}))
	}
	return columns, err
}

// OfDay runs fn with the database that has a day.
func OfDay(ctx context.Context, d *DB, day Day, fn func(*DB) error) error {
	of, done, err := d.days.store.open(ctx, day, true)
	if err != nil {
		return err
	}
	return done(fn(of))
}
