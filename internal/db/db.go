// Package db provides one small handle for two engines: embedded SQLite and
// PostgreSQL.
//
// The same SQL text runs on both: $1…$n, RETURNING, ON CONFLICT, row values
// and ->> mean the same in each. Where the text must differ, Dialect has a named
// fragment. Times are BIGINT microseconds UTC, booleans INTEGER 0/1, ids text.
//
// Every statement is bound to a tenant: For(tenant) passes the tenant as $1 and
// rejects a statement that does not bind it. Unscoped is for the few queries
// that run before a tenant is known; its caller gives the reason.
//
// Only files named store*.go may import this package.
package db

import (
	"context"
	"errors"
)

// Engine names one of the two engines.
type Engine string

// The engines.
const (
	SQLite   Engine = "sqlite"
	Postgres Engine = "postgres"
)

// Config configures Open.
type Config struct {
	// Dir is the folder of the SQLite files, which Open makes if it does not
	// exist. It is ignored when URL is set.
	Dir string
	// URL is a postgres:// address.
	URL string
	// Readers is how many connections may read at once; 0 chooses a number.
	Readers int
	// Serve takes the folder's serving lock; Open returns ErrServed if another
	// server holds it. On PostgreSQL, whose nodes share a database, it watches the
	// servers of the URL; see Health.
	Serve bool
	// Target opens the database as the target of a Copy: it must be empty, or the
	// target of a copy that is unfinished, which Open refuses otherwise.
	Target bool
	// Existing makes nothing: Open returns ErrNone where there is no database of Gatehouse yet.
	Existing bool
	// Name is what PostgreSQL calls the connections; "" is gatehouse.
	Name string
}

// Errors that callers distinguish. Test for them with errors.Is.
var (
	// ErrServed: another process serves this SQLite folder.
	ErrServed = errors.New("another gatehouse process serves this data folder")
	// ErrNone: the folder or the database of PostgreSQL has no tables of Gatehouse.
	ErrNone = errors.New("there is no gatehouse database there")
	// ErrUnique: a unique index refused a row.
	ErrUnique = errors.New("unique value is taken")
	// ErrFull: the disk is full or the database is read-only.
	ErrFull = errors.New("database cannot be written: disk full")
	// ErrUnavailable: the database cannot be reached, or is shutting down.
	ErrUnavailable = errors.New("database is unavailable")
	// ErrBusy: the database stayed locked, or lost a race, after every retry.
	ErrBusy = errors.New("database is busy")
)

// TenantID is the id of a tenant; tenant.ID is an alias for it. It is a distinct
// type so that the compiler rejects a string from a request where a tenant id is
// required. Only code that looks up a tenant converts a string to a TenantID: the
// directory, the code that reads a row, and the commands (TestLockTenantIDs).
type TenantID string

// UnmarshalText always returns an error, because a decoded id, for example one
// in a JSON body, comes from a request.
func (*TenantID) UnmarshalText([]byte) error {
	return errors.New("db: a tenant's id is not decoded: decode a string, and compare it")
}

// Row is one row of a result. It is valid only inside the callback.
type Row interface {
	Text(col int) string
	// Bytes returns the column's text or blob without a copy, valid only inside
	// the callback.
	Bytes(col int) []byte
	Int(col int) int64
	Bool(col int) bool // an INTEGER 0/1 column
	Null(col int) bool
}

// Querier runs a read and calls each for every row, in order; an error of each
// stops the read and is returned. Arguments may be nil, string, []byte, int,
// int64, float64, bool (stored as 0/1), time.Time (stored as UTC microseconds),
// and named types of these kinds. Outside a transaction it only reads, and a
// Query inside a row callback takes a second connection.
type Querier interface {
	Query(ctx context.Context, sql string, each func(Row) error, args ...any) error
	// Dialect returns the fragments that differ between the engines.
	Dialect() Dialect
}

// Tx is one transaction, bound to a tenant (or to none, from Unscoped). It is
// valid only inside the function that it was passed to, on that goroutine. A
// statement that fails breaks the transaction, on both engines: later
// statements fail with the same error, and the transaction is rolled back even
// if fn returns nil. Row callbacks may run statements of the same Tx. fn must
// not wait for another Write: on SQLite that write waits for this one.
type Tx interface {
	Querier
	// Exec runs a statement and returns the number of rows it changed.
	Exec(ctx context.Context, sql string, args ...any) (int64, error)
	// Later runs a change with the next statement, or at the end of the write, where nobody needs to know before what
	// came of it: on PostgreSQL that saves the way to the server and back. Its error is that of the statement which it
	// ran with, or of the write. Bytes among the arguments must not change until the write ends.
	Later(ctx context.Context, sql string, args ...any) error
	// Kept returns what this write has kept under a key, or an earlier one of the same transaction, and else nil.
	Kept(key any) any
	// Keep keeps what holds until the transaction ends, for this write and, if it succeeds, for those that share its
	// transaction: ordered writes of PostgreSQL, for each of which it need not be asked again. finish, if not nil, runs
	// before the commit. Elsewhere Keep keeps nothing.
	Keep(key, value any, finish func(ctx context.Context, tx Tx) error)
}

// Handle is the database as one tenant sees it. Its errors are ErrUnique,
// ErrFull, ErrBusy and ErrUnavailable, and those of fn and ctx. A write that failed has
// changed nothing, unless its error is ErrUnknown. On PostgreSQL each statement, begin and
// commit ends in seconds, whatever becomes of the server; Patiently says otherwise.
type Handle interface {
	Querier
	// Write runs fn in a transaction and returns once it is durable. An error
	// of fn rolls it back and is returned unchanged. fn may run several times
	// (after a lost race), so it must have no effects except through tx and on
	// variables that each run sets again. A panic in fn rolls back and
	// continues in the caller. If ctx ends while Write waits to start, nothing
	// is done.
	Write(ctx context.Context, fn func(Tx) error) error
	// WriteOrdered is Write for transactions that take the tenant's row lock
	// early (creations, which draw the tenant's next tick): those of one tenant
	// run one after another and share commits, on both engines.
	WriteOrdered(ctx context.Context, fn func(Tx) error) error
	// Tenant returns the id bound as $1, "" for an unscoped handle.
	Tenant() TenantID
}

// Dialect holds the SQL fragments that differ between the engines.
type Dialect struct {
	Engine Engine
	// ForUpdate and ForShare go at the end of a SELECT inside a transaction.
	// They are empty on SQLite, which has one writer only.
	ForUpdate, ForShare string
	// JSON casts a text parameter to the engine's JSON type: "$5" + JSON.
	JSON string
	// JSONText is an expression for the text of the JSON object column doc,
	// bounded in size. JSONB stores in a few bytes a number whose text takes
	// 16,000 digits. Such numbers are no longer accepted; members that still
	// have one, or that are over 16 MiB because of other numbers, are left out.
	// weight is an expression that is positive where doc is known to have none.
	JSONText func(doc, weight string) string
	// JSONRemove is an expression that removes the member named by the text
	// expression key from the JSON object expression doc.
	JSONRemove func(doc, key string) string
	// Greatest is the scalar maximum of two expressions.
	Greatest func(a, b string) string
	// Now is an expression for the database's time as microseconds since 1970.
	// It is the current time, not the start time of the transaction.
	Now string
	// Distributed is true where the rows of the tenants are on several servers: what asks for all
	// tenants at once must be of a kind that each server can answer for its own.
	Distributed bool
}
