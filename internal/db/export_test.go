package db

import (
	"fmt"
	"strings"
	"time"

	"zombiezen.com/go/sqlite/sqlitex"
)

// BeforeCommit runs in the place of SQLite's COMMIT: an error makes it fail.
func BeforeCommit(d *DB, fn func() error) { d.engine.(*sqliteEngine).writer.beforeCommit = fn }

// TenantProblem is tenantProblem of a text.
func TenantProblem(sql string) string { return tenantProblem(scan(sql)) }

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
