package db

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"gatehouse/internal/failpoint"
)

// commitTimeout bounds COMMIT, which must not end with a caller's ctx: it would
// be unknown whether the commit happened.
const commitTimeout = 30 * time.Second

// pgConn is a connection borrowed from the pool.
type pgConn struct {
	*pgx.Conn
	lent  *pgxpool.Conn
	leave func() // gives its place back
}

// release returns the connection.
func (c pgConn) release() {
	c.lent.Release()
	c.leave()
}

// rows runs a statement and streams its rows.
func (c pgConn) rows(ctx context.Context, to scope, st *statement, each func(Row) error, args []any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	bound, err := pgArguments(to, args)
	if err != nil {
		return fmt.Errorf("%w in %q", err, st.text)
	}
	stoppable, stop := context.WithCancel(ctx)
	defer stop()
	rows, err := c.Query(stoppable, st.text, append([]any{resultFormats}, bound...)...)
	if err != nil {
		return pgError(ctx, err)
	}
	defer rows.Close()
	var row pgRow
	for rows.Next() {
		row.fields, row.values = rows.FieldDescriptions(), rows.RawValues()
		if err := each(&row); err != nil {
			leave(rows, stop)
			return err
		}
	}
	return pgError(ctx, rows.Err())
}

// maxUnread is how much of an unwanted result is read to its end, which is
// cheaper than to stop the server: a cancellation needs a connection of its
// own, and pgx waits 100 ms for statements that it may still hit.
const maxUnread = 2 << 20

// leave ends a result early. The connection is usable only once the rest has
// been read; if there is much of it, leave stops the server.
func leave(rows pgx.Rows, stop func()) {
	for unread := 0; unread <= maxUnread && rows.Next(); {
		for _, v := range rows.RawValues() {
			unread += len(v)
		}
	}
	stop() // no effect on a result that has ended
}

// pgError returns the context's own error if that ended the statement.
func pgError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ended := ctx.Err(); ended != nil {
		pg, ok := errors.AsType[*pgconn.PgError](err)
		if ok && pg.Code == "57014" || !ok {
			return ended
		}
	}
	return classifyPostgres(err)
}

// resultFormats requests the text format for every type except bytea, so that a
// row reads the same whatever type the server gives an expression.
var resultFormats = pgx.QueryResultFormatsByOID{pgtype.ByteaOID: pgx.BinaryFormatCode}

// pgArguments puts the tenant first and turns numbers into text: a text
// parameter fits a column of any type.
func pgArguments(to scope, args []any) ([]any, error) {
	bound := make([]any, 0, len(args)+1)
	if to.bound {
		bound = append(bound, to.tenant)
	}
	for i, arg := range args {
		v, ok := pgArgument(arg)
		if !ok {
			return nil, fmt.Errorf("argument %d has the unusable type %T", i, arg)
		}
		bound = append(bound, v)
	}
	return bound, nil
}

func pgArgument(arg any) (any, bool) {
	switch v := arg.(type) {
	case nil, string, []byte:
		return v, true
	case int:
		return strconv.Itoa(v), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), true
	case bool:
		if v {
			return "1", true
		}
		return "0", true
	case time.Time:
		return strconv.FormatInt(v.UnixMicro(), 10), true
	default:
		if plain, ok := underlying(arg); ok {
			return pgArgument(plain)
		}
		return nil, false
	}
}

// control runs a statement that controls the transaction.
func (c pgConn) control(ctx context.Context, sql string) error {
	return pgError(ctx, c.PgConn().Exec(ctx, sql).Close())
}

// commit ends the transaction. It is never retried: if the connection is lost
// meanwhile, it is unknown whether the commit happened.
func (c pgConn) commit() error {
	ctx, cancel := context.WithTimeout(context.Background(), commitTimeout)
	defer cancel()
	failpoint.At("tx.before-commit")
	results, err := c.PgConn().Exec(ctx, "commit").ReadAll()
	if err == nil && (len(results) == 0 || results[0].CommandTag.String() != "COMMIT") {
		return errors.New("commit ended in a rollback")
	}
	if err == nil {
		failpoint.At("tx.committed")
		return nil
	}
	if _, answered := errors.AsType[*pgconn.PgError](err); !answered {
		return fmt.Errorf("%w: whether the commit happened is unknown: %w", ErrUnavailable, err)
	}
	return classifyPostgres(err)
}

// rollback rolls the transaction back, and closes the connection if that fails.
func (c pgConn) rollback() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if c.IsClosed() || c.control(ctx, "rollback") == nil {
		return
	}
	_ = c.Close(ctx) // then the server rolls back
}
