// Package db is one small handle over two engines: SQLite embedded, and
// PostgreSQL.
//
// The same SQL text runs on both: $1…$n, RETURNING, ON CONFLICT, row values
// and ->> mean the same in each. What must differ is a named fragment of
// Dialect. Times are BIGINT microseconds UTC, booleans INTEGER 0/1, ids text.
//
// Every statement is bound to a tenant: For(tenant) passes the tenant as $1
// and refuses a text that does not name it. Unscoped exists for the few
// questions that come before a tenant is known, and says why.
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

// Config says which database to open.
type Config struct {
	// Dir is the folder of the SQLite files, made if absent. Ignored when URL is set.
	Dir string
	// URL is a postgres:// address.
	URL string
	// Readers is how many connections may read at once; 0 chooses.
	Readers int
	// Serve takes the folder's serving lock; a second server is refused with
	// ErrServed. On PostgreSQL it has no effect: nodes share a database.
	Serve bool
}

// Errors that callers tell apart. Test with errors.Is.
var (
	// ErrServed: another process serves this SQLite folder.
	ErrServed = errors.New("another gatehouse process serves this data folder")
	// ErrUnique: a unique index refused a row.
	ErrUnique = errors.New("unique value is taken")
	// ErrFull: the disk is full or the database is read-only.
	ErrFull = errors.New("database cannot be written: disk full")
	// ErrUnavailable: the database cannot be reached, or is shutting down.
	ErrUnavailable = errors.New("database is unavailable")
	// ErrBusy: the database stayed locked, or lost a race, after every retry.
	ErrBusy = errors.New("database is busy")
)

// Row is one row of a result. It is valid only inside the callback.
type Row interface {
	Text(col int) string
	// Bytes is the column's text or blob without a copy: valid only inside the callback.
	Bytes(col int) []byte
	Int(col int) int64
	Float(col int) float64
	Bool(col int) bool // an INTEGER 0/1 column
	Null(col int) bool
}

// Querier runs a read and hands each row to each, in order; an error from
// each stops the read and is returned. Arguments: nil, string, []byte, int,
// int64, float64, bool (stored as 0/1), time.Time (stored as UTC microseconds),
// and named types of these kinds. Outside a transaction it only reads, and a
// Query inside a row callback holds a second connection meanwhile.
type Querier interface {
	Query(ctx context.Context, sql string, each func(Row) error, args ...any) error
	// Dialect names the fragments that differ.
	Dialect() Dialect
}

// Tx is one transaction, bound to a tenant (or to none, from Unscoped).
// It is valid only inside the function it was handed to, on its goroutine. A
// statement that fails spoils it, on both engines: later ones fail alike, and
// the transaction is rolled back even if fn returns nil. Row callbacks may run
// statements of the same Tx. fn must not wait for another Write: on SQLite that
// one waits for this.
type Tx interface {
	Querier
	// Exec runs a statement and returns the number of rows it changed.
	Exec(ctx context.Context, sql string, args ...any) (int64, error)
}

// Handle is the database as one tenant sees it.
type Handle interface {
	Querier
	// Write runs fn in a transaction and returns once it is durable. An error
	// from fn rolls it back and is returned as it is. fn may run more than
	// once (a lost race is run again), so it must have no effect but on tx
	// and on variables that each run sets anew. A panic in fn rolls back and
	// goes on in the caller. If ctx ends while waiting to start, nothing is done.
	Write(ctx context.Context, fn func(Tx) error) error
	// WriteOrdered is Write for transactions of which each takes the tenant's
	// row lock early (creations, which draw the tenant's next tick): those of
	// one tenant run one after another and share commits, on both engines.
	WriteOrdered(ctx context.Context, fn func(Tx) error) error
	Dialect() Dialect
	// Tenant is the id bound as $1; "" for an unscoped handle.
	Tenant() string
}

// Dialect holds the SQL fragments that differ between the engines.
type Dialect struct {
	Engine Engine
	// ForUpdate and ForShare go at the end of a SELECT inside a transaction;
	// empty on SQLite, whose only writer excludes every other.
	ForUpdate, ForShare string
	// JSON casts a text parameter to the engine's JSON type: "$5" + JSON.
	JSON string
	// JSONText is an expression: the JSON object column doc, of a size that can
	// be read. JSONB keeps in a few bytes a number that takes 16,000 digits to
	// write down. None is taken any more; members that hold one from before, or
	// that are over 16 MiB for other numbers, are left out. weight is an
	// expression that is positive where doc is known to hold none.
	JSONText func(doc, weight string) string
	// JSONRemove is an expression that drops the member named by the text
	// expression key from the JSON object expression doc.
	JSONRemove func(doc, key string) string
	// Greatest is the scalar maximum of two expressions.
	Greatest func(a, b string) string
	// Now is an expression: database time as microseconds since 1970, the
	// clock's, not the transaction's.
	Now string
}
