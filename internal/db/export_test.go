package db

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"zombiezen.com/go/sqlite/sqlitex"
)

// BeforeCommit makes fn run before SQLite's COMMIT; an error of fn fails the commit.
func BeforeCommit(d *DB, fn func() error) { d.engine.(*sqliteEngine).writer.beforeCommit = fn }

// Numbered returns the text that is passed to SQLite.
func SQLiteText(sql string) string { return describe(sql).sqlite }

// Immutable is the URI by which Check opens a file.
var Immutable = immutable

// Split splits a script into its statements, joined by |.
func Split(sql string) string { return strings.Join(split(sql), "|") }

// EndTransaction rolls back SQLite's open transaction without telling the
// writer, as SQLite itself does after some errors. Call it inside a write.
func EndTransaction(d *DB) { d.engine.(*sqliteEngine).writer.rollback() }

// LimitPages limits the database to n pages, which the writer sees as a full disk.
func LimitPages(d *DB, n int) {
	c := d.engine.(*sqliteEngine).writer.conn.Conn
	if err := sqlitex.ExecuteTransient(c, fmt.Sprintf("PRAGMA max_page_count = %d", n), nil); err != nil {
		panic(err)
	}
}

// LongBatches makes SQLite's transactions accept all waiting writes, however
// long their first writes took.
func LongBatches(d *DB) {
	if e, ok := d.engine.(*sqliteEngine); ok {
		e.writer.batchTime = time.Minute
	}
}

// MaxWaiting is the limit on the waiting calls of one kind.
const MaxWaiting = maxWaiting

// RekeyEmails is the function that migration 11 runs.
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

// OfDay runs fn with the database that holds a day.
func OfDay(ctx context.Context, d *DB, day Day, fn func(*DB) error) (err error) {
	of, done, err := d.days.store.open(ctx, day, true)
	if err != nil {
		return err
	}
	defer func() { err = done(err) }() // also when a test ends in fn, or closing d would wait for it for ever
	return fn(of)
}

// Key is a primary key or an index of a table.
type Key struct {
	Table, Name string
	Primary     bool
	Columns     []string // in their order; "" is an expression
}

// Keys lists the keys and indexes of all tables; a table without a primary key is
// listed with a key that has no columns.
func Keys(ctx context.Context, d *DB) (list []Key, err error) {
	sql := `SELECT m.name, '', 1, COALESCE(c.name, '') FROM sqlite_schema m LEFT JOIN pragma_table_info(m.name) c ON c.pk > 0
			WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' ORDER BY m.name, c.pk`
	indexes := `SELECT m.name, i.name, 0, COALESCE(c.name, '') FROM sqlite_schema m JOIN pragma_index_list(m.name) i ON i.origin <> 'pk'
			JOIN pragma_index_info(i.name) c WHERE m.type = 'table' ORDER BY m.name, i.name, c.seqno`
	if d.Engine() == Postgres {
		sql = `SELECT t.relname::text, x.relname::text, i.indisprimary::int, COALESCE(a.attname::text, '')
			FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid JOIN pg_class x ON x.oid = i.indexrelid
			JOIN pg_namespace n ON n.oid = t.relnamespace AND n.nspname = current_schema()
			CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY k (attnum, place)
			LEFT JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.attnum
			WHERE NOT t.relispartition ORDER BY t.relname, x.relname, k.place`
		indexes = `SELECT t.relname::text, '', 1, '' FROM pg_class t JOIN pg_namespace n ON n.oid = t.relnamespace AND n.nspname = current_schema()
			WHERE t.relkind IN ('r', 'p') AND NOT t.relispartition AND NOT EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = t.oid AND i.indisprimary)`
	}
	for _, sql := range []string{sql, indexes} {
		err = errors.Join(err, d.Unscoped("test").Query(ctx, sql, func(r Row) error {
			at := Key{Table: r.Text(0), Name: r.Text(1), Primary: r.Bool(2)}
			if n := len(list) - 1; n < 0 || list[n].Table != at.Table || list[n].Name != at.Name || list[n].Primary != at.Primary {
				list = append(list, at)
			}
			k := &list[len(list)-1]
			k.Columns = append(k.Columns, r.Text(3))
			return nil
		}))
	}
	return list, err
}

// BatchTime returns how long a shared transaction on PostgreSQL accepts writes if
// the previous one spent the duration around on anything but its writes.
func BatchTime(around time.Duration) time.Duration {
	return (&orderedQueue{around: around}).batchTime()
}

// OrderValues is the function that migration 19 runs.
var OrderValues = orderValues

// Newest returns the number of the last migration.
func Newest() int {
	all, err := migrations(mainSteps, SQLite)
	if err != nil {
		panic(err)
	}
	return all[len(all)-1].number
}

// Adds returns "" if a statement of a migration only adds, and otherwise what it does.
func Adds(statement string) string { return adds(statement) }

// LaterMigrations returns the statements of the migrations that an older program must be able
// to live with, by file.
func LaterMigrations() map[string][]string {
	later := map[string][]string{}
	for folder, from := range compatibleFrom {
		for _, engine := range []Engine{SQLite, Postgres} {
			all, err := migrations(folder, engine)
			if err != nil {
				panic(err)
			}
			for _, m := range all {
				if m.number > from {
					later[folder+"/"+m.name] = split(m.sql)
				}
			}
		}
	}
	return later
}

// adds is in the tests because only they ask.
func adds(statement string) string {
	words := strings.Fields(strings.ToUpper(statement))
	text := strings.Join(words, " ")
	switch {
	case strings.HasPrefix(text, "CREATE TABLE "), strings.HasPrefix(text, "CREATE INDEX "):
		return ""
	case strings.HasPrefix(text, "CREATE UNIQUE INDEX "):
		return "refuses values that an older program writes"
	case strings.HasPrefix(text, "ALTER TABLE ") && len(words) > 4 && words[3] == "ADD" && words[4] == "COLUMN":
		if strings.Contains(text, " NOT NULL") && !strings.Contains(text, " DEFAULT ") {
			return "adds a column that an older program does not fill"
		}
		return ""
	default:
		return "does not only add"
	}
}

// Silence sets how long a server may be silent on connections that are made from now on, and
// closes those that are idle.
func Silence(d *DB, limit time.Duration) {
	p := d.engine.(*postgres)
	p.links.silence = limit
	p.reset()
}

// SmallCopy makes a copy use batches of so many rows, and wait but shortly for others.
func SmallCopy(c *Copy, rows int) { c.batchRows, c.wait = rows, 300*time.Millisecond }

// PlannedTables lists the tables that a copy copies.
func PlannedTables(ctx context.Context, from, to *DB) (names []string, err error) {
	plan, err := planCopy(ctx, from, to)
	if err != nil {
		return nil, err
	}
	for _, t := range append(plan.tables, plan.byDay...) {
		names = append(names, t.name)
	}
	return names, nil
}

// CanonicalJSON is the form in which a copy compares JSON.
func CanonicalJSON(text string) (string, error) {
	form, err := canonicalJSON(nil, []byte(text))
	return string(form), err
}

// Due says whether a job is due on the node of d, as Housekeep asks.
func Due(ctx context.Context, d *DB, job string, every time.Duration) (bool, error) {
	return d.due(ctx, job, every)
}

// WorkerLost is workerLost.
var WorkerLost = workerLost

// Analyze makes the statistics that are missing, as RunStatistics does.
func Analyze(ctx context.Context, d *DB) ([]string, error) { return d.analyze(ctx) }

// LockMigrations takes the lock of a change of the schema.
func LockMigrations(ctx context.Context, tx Tx) error {
	return script(ctx, tx, fmt.Sprintf(`SELECT pg_advisory_xact_lock(%d)`, migrationLock))
}

// RetryTime is how long a write may be tried again whose transaction the database lost.
const RetryTime = retryTime
