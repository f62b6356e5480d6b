package db

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// Migrations are migrations/NNNN_name.sql, one text for both engines, or
// NNNN_name.sqlite.sql and NNNN_name.postgres.sql where they must differ. They
// are applied in order, each once, all pending ones in one transaction. A
// released migration is never edited. Those of a day's own SQLite file are in
// the folder day; on PostgreSQL the days are partitions of tables of the main
// database.
//
//go:embed migrations/*.sql migrations/day/*.sql
var migrationFiles embed.FS

// The folders of migrations.
const (
	mainSteps = "migrations"
	daySteps  = "migrations/day"
)

// compatibleFrom is, for each folder, the last migration that a program must know to work
// with what the present ones make. It is stored with the schema, so that an older version
// runs beside a newer one, and can be started again after it: a rollback. Migrations after
// it only add, which TestMigrationsOnlyAdd holds; what takes something away or changes its
// meaning comes one release after the last program that needs it, and raises the number
// (decision 0039).
var compatibleFrom = map[string]int{mainSteps: 26, daySteps: 1}

// migrationLock is the advisory lock of changes of the schema.
const migrationLock = 7233716120

// tryMigrationLock takes the lock beside others who do so, unless the schema is being changed or is about to be.
var tryMigrationLock = fmt.Sprintf(`SELECT CASE WHEN pg_try_advisory_xact_lock_shared(%d) THEN 1 ELSE 0 END`, migrationLock)

// compatibleName is the name of compatibleFrom in the table installation.
const compatibleName = "schema_compatible_from"

// ErrTooNew means that a newer version of the program has migrated this
// database to a schema that this one cannot work with.
var ErrTooNew = errors.New("the database was migrated by a newer version of gatehouse")

// migration is one migration, with the engine's types in its text.
type migration struct {
	number int
	name   string
	sql    string
}

// computed has the functions that run after the text of a migration of the main
// database, for values that SQL cannot compute.
var computed = map[int]func(context.Context, Tx) error{11: rekeyEmails, 19: orderValues}

// bookkeeping creates the tables that this package owns.
const bookkeeping = `
CREATE TABLE IF NOT EXISTS schema_migrations (number INTEGER NOT NULL PRIMARY KEY, name {text} NOT NULL, applied_at BIGINT NOT NULL);
CREATE TABLE IF NOT EXISTS installation (name {text} NOT NULL PRIMARY KEY, value {text} NOT NULL)`

var columnTypes = map[Engine]*strings.Replacer{
	SQLite:   strings.NewReplacer("{text}", "TEXT", "{json}", "TEXT", "{bytes}", "BLOB", "{clustered}", "WITHOUT ROWID"),
	Postgres: strings.NewReplacer("{text}", `TEXT COLLATE "C"`, "{json}", "JSONB", "{bytes}", "BYTEA", "{clustered}", ""),
}

// migrations returns the engine's migrations of a folder, in order.
func migrations(folder string, engine Engine) ([]migration, error) {
	names, err := fs.Glob(migrationFiles, folder+"/*.sql")
	if err != nil {
		return nil, err
	}
	var all []migration
	for _, file := range names { // names sort in the order of their numbers
		base := strings.TrimSuffix(path.Base(file), ".sql")
		name, only, _ := strings.Cut(base, ".")
		if only != "" && only != string(engine) {
			continue
		}
		digits, _, _ := strings.Cut(name, "_")
		n, err := strconv.Atoi(digits)
		if err != nil || len(digits) != 4 {
			return nil, fmt.Errorf("migration %s does not begin with four digits", file)
		}
		if len(all) > 0 && all[len(all)-1].number == n {
			return nil, fmt.Errorf("two migrations have the number %s", digits)
		}
		text, err := fs.ReadFile(migrationFiles, file)
		if err != nil {
			return nil, err
		}
		all = append(all, migration{number: n, name: name, sql: columnTypes[engine].Replace(string(text))})
	}
	return all, nil
}

// MigrationsHash identifies the current set of migrations; tests use it to name
// a migrated template database.
func MigrationsHash() string {
	h := fnv.New64a()
	h.Write([]byte(bookkeeping))
	fmt.Fprint(h, compatibleFrom[mainSteps])
	for _, engine := range []Engine{SQLite, Postgres} {
		all, _ := migrations(mainSteps, engine)
		for _, m := range all {
			h.Write([]byte(m.name + "\x00" + m.sql + "\x00"))
		}
	}
	return fmt.Sprintf("%016x", h.Sum64())
}

// migrate applies the pending migrations in one transaction. Nodes and processes
// may start at the same time: one applies the migrations, and the others wait
// and find none pending.
func (d *DB) migrate(ctx context.Context, folder string) error {
	all, err := migrations(folder, d.dialect.Engine)
	if err != nil {
		return err
	}
	h := d.Unscoped("migrations")
	if done, err := applied(ctx, h); err == nil && done >= all[len(all)-1].number {
		return tooNew(ctx, h, done, all)
	} // otherwise something is pending, or the table does not exist yet
	ctx = Patiently(ctx, "a migration changes all tables in one transaction, and other nodes wait for it")
	err = h.Write(ctx, func(tx Tx) error {
		if d.dialect.Engine == Postgres { // SQLite has one writer anyway
			if err := script(ctx, tx, fmt.Sprintf(`SELECT pg_advisory_xact_lock(%d)`, migrationLock)); err != nil {
				return err
			}
		}
		if d.dialect.Distributed { // or a change of a table cannot follow one of another on the same server
			if err := script(ctx, tx, `SET LOCAL citus.multi_shard_modify_mode = 'sequential'`); err != nil {
				return err
			}
		}
		if err := script(ctx, tx, columnTypes[d.dialect.Engine].Replace(bookkeeping)); err != nil {
			return err
		}
		done, err := applied(ctx, tx)
		if err != nil {
			return err
		}
		for _, m := range all {
			if m.number <= done {
				continue
			}
			if err := script(ctx, tx, m.sql); err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
			if compute := computed[m.number]; compute != nil && folder == mainSteps {
				if err := compute(ctx, tx); err != nil {
					return fmt.Errorf("%s: %w", m.name, err)
				}
			}
			_, err := tx.Exec(ctx, `INSERT INTO schema_migrations (number, name, applied_at) VALUES ($1, $2, `+d.dialect.Now+`)`,
				m.number, m.name)
			if err != nil {
				return err
			}
		}
		if done >= all[len(all)-1].number {
			return tooNew(ctx, tx, done, all)
		}
		_, err = tx.Exec(ctx, `INSERT INTO installation (name, value) VALUES ($1, $2)
			ON CONFLICT (name) DO UPDATE SET value = excluded.value`, compatibleName, strconv.Itoa(compatibleFrom[folder]))
		return err
	})
	if standby(err) {
		err = fmt.Errorf("the database is read-only, and this program must migrate it first; run the program once against the primary: %w", err)
	}
	return err
}

// applied returns the number of the last migration applied, 0 for none.
func applied(ctx context.Context, q Querier) (done int, err error) {
	err = q.Query(ctx, `SELECT coalesce(max(number), 0) FROM schema_migrations`, func(r Row) error {
		done = int(r.Int(0))
		return nil
	})
	return done, err
}

// tooNew returns ErrTooNew if the database has migrations that the program does not know,
// unless the program that made them has stored that this one can work with them.
func tooNew(ctx context.Context, q Querier, done int, all []migration) error {
	newest := all[len(all)-1].number
	if done <= newest {
		return nil
	}
	from := ""
	err := q.Query(ctx, `SELECT value FROM installation WHERE name = $1`, func(r Row) error {
		from = r.Text(0)
		return nil
	}, compatibleName)
	if err != nil {
		return err
	}
	if least, err := strconv.Atoi(from); err == nil && newest >= least {
		return nil
	}
	return fmt.Errorf("%w: it has migration %d, this program knows %d; run the newer version, or restore a backup made before it",
		ErrTooNew, done, newest)
}

// script runs the statements of a text one after another.
func script(ctx context.Context, tx Tx, sql string) error {
	for _, part := range split(sql) {
		if _, err := tx.Exec(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

// split splits a text into its statements.
func split(sql string) []string {
	var parts []string
	first := -1
	for _, t := range scan(sql) {
		switch {
		case t.op(";"):
			if first >= 0 {
				parts = append(parts, sql[first:t.at])
			}
			first = -1
		case first < 0:
			first = t.at
		}
	}
	if first >= 0 {
		parts = append(parts, sql[first:])
	}
	return parts
}
