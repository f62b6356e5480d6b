package db

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
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

// pgConn is a connection borrowed from the pool. Its socket bounds all that it does.
type pgConn struct {
	*pgx.Conn
	lent  *pgxpool.Conn
	link  *link
	leave func() // gives its place back
	speak *Dialect
}

// isUnicode returns an error if the database has another encoding than UTF8: its own tools would make
// something else of what is stored.
func (c pgConn) isUnicode(ctx context.Context) error {
	results, err := c.PgConn().Exec(ctx, "show server_encoding").ReadAll()
	if err != nil {
		return c.failed(ctx, err)
	}
	if has := string(results[0].Rows[0][0]); has != "UTF8" {
		return fmt.Errorf("the database has the encoding %s: expected one made with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0", has)
	}
	return nil
}

// release returns the connection.
func (c pgConn) release() {
	c.link.within(0)
	if c.link.isSpoilt() {
		_ = c.Close(context.Background()) // it has no socket any more; now the pool knows, too
	}
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
	rows, err := c.Query(stoppable, st.text, append([]any{resultFormats}, bound...)...)
	if err != nil {
		stop()
		return c.failed(ctx, err)
	}
	defer func() {
		stop() // nobody reads the rest where each panics either
		rows.Close()
	}()
	var row pgRow
	var written []int
	for rows.Next() {
		if row.values == nil {
			row.fields = rows.FieldDescriptions()
			written = asText(row.fields)
		}
		row.values = rows.RawValues()
		err := readBytes(row.values, written)
		if err == nil {
			err = each(&row)
		}
		if err != nil {
			leave(rows, stop)
			return err
		}
	}
	return c.failed(ctx, rows.Err())
}

// maxUnread is how much of an unwanted result is read to its end, which is
// cheaper than to stop the server: a cancellation needs a connection of its
// own (see canceler).
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

// failed returns the context's own error if that ended the statement: the server has
// canceled it. A server that has not even answered that is unavailable, and the caller's time is not
// to blame.
func (c pgConn) failed(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	ended := ctx.Err()
	pg, answered := errors.AsType[*pgconn.PgError](err)
	switch {
	case answered && (ended == nil || pg.Code != canceled):
		return classifyPostgres(err)
	case ended == nil:
		return classifyPostgres(c.cause(err))
	case !answered && c.IsClosed() && errors.Is(ended, context.DeadlineExceeded):
		return fmt.Errorf("%w: it has not answered until the time was over", ErrUnavailable)
	default:
		return ended
	}
}

// resultFormats requests the text format for every type except bytea, so that a
// row reads the same whatever type the server gives an expression.
var resultFormats = pgx.QueryResultFormatsByOID{pgtype.ByteaOID: pgx.BinaryFormatCode}

// asText returns the columns of type bytea that come as text all the same: pgx does not know the
// types of a statement that it does not prepare, as behind a pooler.
func asText(fields []pgconn.FieldDescription) (columns []int) {
	for i := range fields {
		if fields[i].DataTypeOID == pgtype.ByteaOID && fields[i].Format == pgtype.TextFormatCode {
			columns = append(columns, i)
		}
	}
	return columns
}

// readBytes replaces what is written in the server's hexadecimal form by the bytes that it stands for.
func readBytes(values [][]byte, columns []int) error {
	for _, col := range columns {
		text := values[col]
		if text == nil {
			continue
		}
		digits, ok := bytes.CutPrefix(text, []byte(`\x`))
		n, err := hex.Decode(digits, digits) // in place, as each byte has two digits
		if !ok || err != nil {
			return fmt.Errorf("column %d is not in the hexadecimal form of bytea (bytea_output = hex)", col)
		}
		values[col] = digits[:n]
	}
	return nil
}

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
	return c.failed(ctx, c.PgConn().Exec(ctx, sql).Close())
}

// commit ends the transaction. It does not end with the caller's ctx, whose rest of time it has
// and at least leastCommit, and it is never canceled at the server: a commit that waits for
// a synchronous standby would then succeed without it. It is never retried: if
// the connection is lost meanwhile, the error is ErrUnknown.
func (c pgConn) commit(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok {
		c.link.within(min(c.link.of.silence, max(leastCommit, time.Until(deadline))))
	}
	before, _ := c.link.state()
	failpoint.At("tx.before-commit")
	results, err := c.PgConn().Exec(context.WithoutCancel(ctx), "commit").ReadAll()
	if err == nil && (len(results) == 0 || results[0].CommandTag.String() != "COMMIT") {
		return errors.New("commit ended in a rollback")
	}
	if err == nil {
		failpoint.At("tx.committed")
		return nil
	}
	pg, answered := errors.AsType[*pgconn.PgError](err)
	lost := answered && c.speak.Distributed && workerLost(pg) // which may have committed before
	if answered && refused(pg) && !lost {
		return classifyPostgres(err) // the transaction is rolled back
	}
	sent, _ := c.link.state()
	if err = c.cause(err); sent == before && !lost { // pgx's own SafeToRetry is true for a lost answer, too
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return fmt.Errorf("%w: %w: %w", ErrUnavailable, ErrUnknown, err)
}

// refused reports whether the server goes on after an error. One that ends the connection during a
// commit may have committed before.
func refused(pg *pgconn.PgError) bool {
	return cmp.Or(pg.SeverityUnlocalized, pg.Severity) == "ERROR"
}

// cause returns what has befallen the socket, or err: pgx may say no more than that the
// connection is closed.
func (c pgConn) cause(err error) error {
	if _, failed := c.link.state(); failed != nil && c.IsClosed() {
		return failed
	}
	return err
}

// rollback rolls the transaction back, and closes the connection if that fails.
func (c pgConn) rollback() {
	ctx, cancel := context.WithTimeout(context.Background(), pingTime)
	defer cancel()
	if c.IsClosed() || c.control(ctx, "rollback") == nil {
		return
	}
	_ = c.Close(ctx) // then the server rolls back
}
