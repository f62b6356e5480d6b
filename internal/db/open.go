package db

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// clockTimeout bounds a query for the database's time.
	clockTimeout = 5 * time.Second
	// healthTime bounds the question of Health.
	healthTime = 900 * time.Millisecond
)

// DB is an open database. It is safe for concurrent use.
type DB struct {
	engine  engine
	dialect Dialect
	days    *Days
	written *written
}

// engine is the part of DB that differs between the engines.
type engine interface {
	query(ctx context.Context, to scope, st *statement, each func(Row) error, args []any) error
	write(ctx context.Context, to scope, fn func(Tx) error) error
	writeOrdered(ctx context.Context, to scope, fn func(Tx) error) error
	backup(ctx context.Context, destFile string, add func(file string) error) error
	stats() Stats
	close() error
}

// scope is what statements are bound to: a tenant, passed as $1, or none.
type scope struct {
	tenant string
	bound  bool
}

// check panics on a statement that could touch another tenant's rows. That is a
// programming error, which the first test that runs the statement finds.
func (to scope) check(st *statement) {
	if to.bound && st.problem != "" {
		panic("db: this statement is not bound to its tenant: " + st.problem + ":\n" + st.text)
	}
}

// Open opens the database, creating and migrating it as needed. If c.Serve is
// set, it holds the folder's serving lock until Close. It returns ErrServed
// if another process serves the folder, ErrLost if the folder has lost its
// database, ErrTooNew if a newer program has migrated it, ErrNone as Config.Existing says, ErrUnfinished and
// ErrOccupied for targets of copies, ErrBusy if it stays locked, and ErrFull or
// ErrUnavailable as Handle does.
func Open(ctx context.Context, c Config) (*DB, error) {
	open := openSQLite
	if c.URL != "" {
		open = openPostgres
	}
	e, err := open(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	d := &DB{engine: e, dialect: sqliteDialect, written: new(written)}
	if p, ok := e.(*postgres); ok {
		d.dialect = *p.dialect
	}
	d.days = newDays(d, c)
	fresh, err := d.suits(ctx, c) // before it is migrated
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	if err := d.migrate(ctx, mainSteps); err != nil {
		return nil, errors.Join(fmt.Errorf("migrate database: %w", err), d.Close())
	}
	if d.dialect.Distributed { // what a migration has made, or a call of Distribute that was stopped has left
		if err := d.distribute(ctx, nil); err != nil {
			return nil, errors.Join(fmt.Errorf("migrate database: %w", err), d.Close())
		}
	}
	if err := d.ready(ctx, c, fresh); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	if c.Serve && c.URL == "" {
		if err := markServed(c.Dir); err != nil {
			return nil, errors.Join(fmt.Errorf("open database: %w", err), d.Close())
		}
	}
	return d, nil
}

// suits returns an error if a database is not what c asks for, and whether it has no schema yet. It writes
// nothing.
func (d *DB) suits(ctx context.Context, c Config) (fresh bool, err error) {
	if !c.Target && !c.Existing {
		return false, nil
	}
	there, err := hasSchema(ctx, d.Unscoped("whether the database is one of Gatehouse"))
	switch {
	case err != nil:
		return false, err
	case c.Existing && !there:
		return true, ErrNone
	case c.Target && there:
		return false, d.mayBeFilled(ctx)
	case c.Target:
		return true, d.mayBeMade(ctx)
	}
	return false, nil
}

// hasSchema reports whether a database has been made by Gatehouse.
func hasSchema(ctx context.Context, q Querier) (there bool, err error) {
	tables := `SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('schema_migrations', 'installation', 'tenants')`
	if q.Dialect().Engine == Postgres {
		tables = `SELECT count(to_regclass(name)) FROM (VALUES ('schema_migrations'), ('installation'), ('tenants')) t (name)`
	}
	err = q.Query(ctx, tables, func(r Row) error { there = r.Int(0) == 3; return nil })
	return there, err
}

// ready returns an error if a database with its schema cannot be used as c asks for.
func (d *DB) ready(ctx context.Context, c Config, fresh bool) error {
	switch {
	case c.Target && fresh:
		return d.reserve(ctx)
	case c.Target:
		return nil
	}
	if err := d.whole(ctx); err != nil || !c.Serve || d.Engine() != Postgres {
		return err
	}
	role, may := "", false
	err := d.Unscoped("rights on tables are those of the server").Query(ctx, `SELECT current_user, has_table_privilege('tenants', 'UPDATE')
		AND has_table_privilege('records', 'INSERT')`, func(r Row) error {
		role, may = r.Text(0), r.Bool(1)
		return nil
	})
	if err == nil && !may {
		err = fmt.Errorf("the role %s may not write to this database: serve it as the owner of its tables, or as one with the owner's rights", role)
	}
	return err
}

// Close waits for running writes and releases everything. Writes that have not
// started fail with ErrUnavailable. All reads must have ended.
func (d *DB) Close() error { return errors.Join(d.days.store.close(), d.engine.close()) }

// Engine returns the engine.
func (d *DB) Engine() Engine { return d.dialect.Engine }

// Dialect returns the fragments that differ between the engines.
func (d *DB) Dialect() Dialect { return d.dialect }

// Health reports whether the database answers, within a second, and whether it only reads, as a
// standby does. With Config.Serve on PostgreSQL it waits for nothing, because the server is
// watched. It returns ErrUnavailable or ErrBusy.
func (d *DB) Health(ctx context.Context) (readsOnly bool, err error) {
	if p, ok := d.engine.(*postgres); ok && p.watch != nil {
		return p.watch.health()
	}
	ctx, cancel := context.WithTimeout(ctx, healthTime)
	defer cancel()
	if err = d.Ping(ctx); errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w: no answer within %s", ErrUnavailable, healthTime)
	}
	return false, err
}

// Ping runs a query that any healthy database answers.
func (d *DB) Ping(ctx context.Context) error {
	_, err := d.Now(ctx)
	return err
}

// Now returns the time of the database's clock, which all nodes share.
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

// For returns the database as one tenant sees it: the tenant's id is $1 of
// every statement, and arguments start at $2. A statement that does not bind
// the tenant panics.
func (d *DB) For(tenantID TenantID) Handle {
	if tenantID == "" {
		panic("db: For needs a tenant id")
	}
	return &handle{db: d, to: scope{tenant: string(tenantID), bound: true}}
}

// Unscoped returns the whole database; $1 is the first argument. It is for
// queries that run before a tenant is known or concern all tenants; reason says
// which.
func (d *DB) Unscoped(reason string) Handle {
	if reason == "" {
		panic("db: Unscoped needs a reason")
	}
	return &handle{db: d}
}

// Value returns a value of the installation that Once stored, "" for none. Its errors, and
// those of Now, Ping and Once, are those of Handle.
func (d *DB) Value(ctx context.Context, name string) (value string, err error) {
	err = d.Unscoped("a value of the installation").Query(ctx, `SELECT value FROM installation WHERE name = $1`, func(r Row) error {
		value = r.Text(0)
		return nil
	}, name)
	return value, err
}

// Once stores a value for the installation under name unless there is one
// already, and returns the stored value: concurrent callers, on any node, all
// get the same value.
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

// Backup writes a consistent copy of an SQLite database to destFile, which must
// not exist, while others read and write. If days is set, the copy includes
// what is kept by day, each day as a snapshot of its own; left has the errors of
// the days that could not be read. When err is nil, the copy is on disk. Backup
// returns an error if destFile exists, and always on PostgreSQL.
func (d *DB) Backup(ctx context.Context, destFile string, days bool) (left []error, err error) {
	err = d.engine.backup(ctx, destFile, func(file string) (err error) {
		if files, ok := d.days.store.(*dayFiles); ok && days {
			left, err = files.pack(ctx, file)
		}
		return err
	})
	return left, err
}

// Stats are the values for metrics.
type Stats struct {
	Engine       Engine
	Connections  int    // how many may read (SQLite) or read and write (PostgreSQL) at once
	InUse        int    // connections in use
	Waiting      int    // calls that wait for one
	WritesQueued int    // writes that wait for their turn
	Writes       uint64 // committed
	Commits      uint64 // transactions of these writes; fewer where they shared one

	LongestWrite time.Duration // the longest turn of one write so far, without its commit
}

// Stats returns the current values.
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
func (h *handle) Tenant() TenantID { return TenantID(h.to.tenant) }
