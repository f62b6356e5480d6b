package db

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// clockTimeout bounds a question for database time.
const clockTimeout = 5 * time.Second

// DB is an open database. It is safe for concurrent use.
type DB struct {
	engine  engine
	dialect Dialect
	days    *Days
	written *written
}

// engine is what the two engines do in their own ways.
type engine interface {
	query(ctx context.Context, to scope, st *statement, each func(Row) error, args []any) error
	write(ctx context.Context, to scope, fn func(Tx) error) error
	writeOrdered(ctx context.Context, to scope, fn func(Tx) error) error
	backup(ctx context.Context, destFile string, add func(file string) error) error
	stats() Stats
	close() error
}

// scope is whose statements these are: bound to a tenant as $1, or to none.
type scope struct {
	tenant string
	bound  bool
}

// check refuses a text that could touch another tenant's rows. Such a text is
// a programming error, found by the first test that runs it.
func (to scope) check(st *statement) {
	if to.bound && st.problem != "" {
		panic("db: this statement does not keep to its tenant: " + st.problem + ":\n" + st.text)
	}
}

// Open opens the database, making and migrating it as needed. With Serve it
// holds the folder's serving lock until Close.
func Open(ctx context.Context, c Config) (*DB, error) {
	open, dialect := openSQLite, sqliteDialect
	if c.URL != "" {
		open, dialect = openPostgres, postgresDialect
	}
	e, err := open(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	d := &DB{engine: e, dialect: dialect, written: new(written)}
	d.days = newDays(d, c)
	if err := d.migrate(ctx, mainSteps); err != nil {
		return nil, errors.Join(fmt.Errorf("migrate database: %w", err), d.Close())
	}
	if c.Serve && c.URL == "" {
		if err := markServed(c.Dir); err != nil {
			return nil, errors.Join(fmt.Errorf("open database: %w", err), d.Close())
		}
	}
	return d, nil
}

// Close waits for running writes and releases everything. Writes that have
// not started fail with ErrUnavailable. Reads must have ended.
func (d *DB) Close() error { return errors.Join(d.days.store.close(), d.engine.close()) }

// Engine names the engine.
func (d *DB) Engine() Engine { return d.dialect.Engine }

// Dialect holds the fragments that differ.
func (d *DB) Dialect() Dialect { return d.dialect }

// Ping asks the database a question that any database in order answers.
func (d *DB) Ping(ctx context.Context) error {
	_, err := d.Now(ctx)
	return err
}

// Now is the database's clock, the one all nodes share.
func (d *DB) Now(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, clockTimeout)
	defer cancel()
	var micros int64
	err := d.Unscoped("the clock belongs to no tenant").Query(ctx, "SELECT "+d.dialect.Now, func(r Row) error {
		micros = r.Int(0)
		return nil
	})
	return time.UnixMicro(micros).UTC(), err
}

// For is the database as one tenant sees it: its id is $1 of every statement
// and call arguments start at $2. A text that does not bind the tenant panics.
func (d *DB) For(tenantID string) Handle {
	if tenantID == "" {
		panic("db: For needs a tenant id")
	}
	return &handle{db: d, to: scope{tenant: tenantID, bound: true}}
}

// Unscoped is the whole database; $1 is the first argument. It is for
// questions that come before a tenant is known or concern them all; reason
// says which.
func (d *DB) Unscoped(reason string) Handle {
	if reason == "" {
		panic("db: Unscoped needs a reason")
	}
	return &handle{db: d}
}

// Value reads a value of the installation that Once stored; "" for none.
func (d *DB) Value(ctx context.Context, name string) (value string, err error) {
	err = d.Unscoped("a value of the installation").Query(ctx, `SELECT value FROM installation WHERE name = $1`, func(r Row) error {
		value = r.Text(0)
		return nil
	}, name)
	return value, err
}

// Once stores a value for the installation unless the name has one already,
// and returns the stored one: of many callers at once, on any node, all get
// the same.
func (d *DB) Once(ctx context.Context, name, value string) (stored string, err error) {
	err = d.Unscoped("a value of the installation").Write(ctx, func(tx Tx) error {
		if _, err := tx.Exec(ctx, `INSERT INTO installation (name, value) VALUES ($1, $2)
			ON CONFLICT (name) DO NOTHING`, name, value); err != nil {
			return err
		}
		return tx.Query(ctx, `SELECT value FROM installation WHERE name = $1`, func(r Row) error {
			stored = r.Text(0)
			return nil
		}, name)
	})
	return stored, err
}

// Backup writes a consistent copy of a SQLite database to destFile, which must
// not exist, while others go on reading and writing. With days set the copy has
// what is kept by day too, each day as it is at an instant of its own; left says
// which could not be read. When err is nil the copy is on disk.
func (d *DB) Backup(ctx context.Context, destFile string, days bool) (left []error, err error) {
	err = d.engine.backup(ctx, destFile, func(file string) (err error) {
		if files, ok := d.days.store.(*dayFiles); ok && days {
			left, err = files.pack(ctx, file)
		}
		return err
	})
	return left, err
}

// Stats are figures for metrics.
type Stats struct {
	Engine       Engine
	Connections  int    // at most this many read (SQLite) or read and write (PostgreSQL) at once
	InUse        int    // of them busy now
	Waiting      int    // calls that wait for one
	WritesQueued int    // writes that wait for their turn
	Writes       uint64 // committed
	Commits      uint64 // transactions they took; fewer than Writes where they shared one

	LongestWrite time.Duration // of one write's turn so far, its commit not counted
}

// Stats reports the present figures.
func (d *DB) Stats() Stats { return d.engine.stats() }

// handle is the database as one tenant, or none, sees it.
type handle struct {
	db *DB
	to scope
}

var _ Handle = (*handle)(nil)

func (h *handle) Query(ctx context.Context, sql string, each func(Row) error, args ...any) error {
	st := describe(sql)
	h.to.check(st)
	if !st.reads {
		panic("db: Query outside a transaction only reads:\n" + sql)
	}
	return h.db.engine.query(ctx, h.to, st, each, args)
}

func (h *handle) Write(ctx context.Context, fn func(Tx) error) error {
	return h.db.written.after(h.db.engine.write(ctx, h.to, fn))
}

func (h *handle) WriteOrdered(ctx context.Context, fn func(Tx) error) error {
	return h.db.written.after(h.db.engine.writeOrdered(ctx, h.to, fn))
}

func (h *handle) Dialect() Dialect { return h.db.dialect }
func (h *handle) Tenant() string   { return h.to.tenant }
