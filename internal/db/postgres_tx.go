package db

import (
	"bytes"
	"context"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"gatehouse/internal/failpoint"
)

// pgTx is the transaction as one write sees it.
type pgTx struct {
	txState
	conn  pgConn
	wrote bool // it has changed something, or tried to
	later *pipeline

	shared, own keeping // what earlier writes of the transaction have kept, nil if it is not shared; and this one
}

var _ Tx = (*pgTx)(nil)

// Query reads all rows before it calls each: one connection cannot run a
// statement inside the row callback of another.
func (tx *pgTx) Query(ctx context.Context, sql string, each func(Row) error, args ...any) error {
	st, err := tx.usable(sql)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil { // before others' statements are sent with it
		tx.fail(err)
		return err
	}
	if err := tx.send(ctx); err != nil {
		return err
	}
	tx.wrote = tx.wrote || !st.reads
	var all []pgRow
	err = tx.conn.rows(ctx, tx.to, st, func(r Row) error {
		all = append(all, r.(*pgRow).copied())
		return nil
	}, args)
	if err != nil {
		tx.fail(err)
		return err
	}
	for i := range all {
		if err := each(&all[i]); err != nil {
			return err
		}
	}
	return nil
}

func (tx *pgTx) Exec(ctx context.Context, sql string, args ...any) (int64, error) {
	st, err := tx.usable(sql)
	if err != nil {
		return 0, err
	}
	if err := ctx.Err(); err != nil {
		tx.fail(err)
		return 0, err
	}
	bound, err := pgArguments(tx.to, args)
	if err != nil {
		tx.fail(err)
		return 0, err
	}
	if err := tx.send(ctx); err != nil {
		return 0, err
	}
	tx.wrote = tx.wrote || !st.reads
	tag, err := tx.conn.Exec(ctx, st.text, bound...)
	if err != nil {
		err = tx.conn.failed(ctx, err)
		tx.fail(err)
		return 0, err
	}
	failpoint.At("tx.statement")
	if st.reads {
		return 0, nil
	}
	return tag.RowsAffected(), nil
}

func (tx *pgTx) Later(ctx context.Context, sql string, args ...any) error {
	st, err := tx.usable(sql)
	if err != nil {
		return err
	}
	bound, err := pgArguments(tx.to, args)
	if err != nil {
		tx.fail(err)
		return err
	}
	tx.wrote = true
	tx.later.add(st.text, bound)
	if tx.later.full() {
		return tx.send(ctx)
	}
	return nil
}

// send runs the statements that were left for later.
func (tx *pgTx) send(ctx context.Context) error {
	err := tx.conn.send(ctx, tx.later)
	if err != nil {
		tx.fail(err)
	}
	return err
}

// pipeline is statements that are sent together.
type pipeline struct {
	batch pgx.Batch
	bytes int
}

// The most that a pipeline holds. The server's answers come when it has run all of them, which must be before its
// silence counts as the end of the connection.
const (
	pipelineStatements = 16
	pipelineBytes      = 1 << 20
)

func (p *pipeline) add(sql string, args []any) {
	p.batch.Queue(sql, args...)
	for _, a := range args {
		switch v := a.(type) {
		case string:
			p.bytes += len(v)
		case []byte:
			p.bytes += len(v)
		}
	}
}

func (p *pipeline) full() bool {
	return p.batch.Len() >= pipelineStatements || p.bytes >= pipelineBytes
}

// send runs a pipeline's statements, which are gone then. The error is that of the first one that fails.
func (c pgConn) send(ctx context.Context, p *pipeline) error {
	if p.batch.Len() == 0 {
		return nil
	}
	batch := p.batch
	*p = pipeline{}
	results := c.SendBatch(ctx, &batch)
	var err error
	for n := 0; n < batch.Len() && err == nil; n++ {
		if _, err = results.Exec(); err == nil {
			failpoint.At("tx.statement")
		}
	}
	if closed := results.Close(); err == nil {
		err = closed
	}
	return c.failed(ctx, err)
}

func (tx *pgTx) fail(err error) {
	tx.broken = err
	if standby(err) { // makes the pool connect to the new primary
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = tx.conn.Close(ctx)
	}
}

func (tx *pgTx) Dialect() Dialect { return *tx.conn.speak }

func (tx *pgTx) Kept(key any) any {
	if k, ok := tx.own[key]; ok {
		return k.value
	}
	return tx.shared[key].value
}

func (tx *pgTx) Keep(key, value any, finish func(ctx context.Context, tx Tx) error) {
	if tx.shared == nil {
		return
	}
	if tx.own == nil {
		tx.own = keeping{}
	}
	tx.own[key] = kept{value, finish}
}

// pgRow is a row in text format (bytea in binary).
type pgRow struct {
	fields []pgconn.FieldDescription
	values [][]byte
}

var _ Row = (*pgRow)(nil)

// copied returns the row with memory of its own, in one allocation.
func (r *pgRow) copied() pgRow {
	size := 0
	for _, v := range r.values {
		size += len(v)
	}
	mem := make([]byte, 0, size)
	values := make([][]byte, len(r.values))
	for i, v := range r.values {
		if v != nil {
			from := len(mem)
			mem = append(mem, v...)
			values[i] = mem[from:len(mem):len(mem)]
		}
	}
	return pgRow{fields: r.fields, values: values}
}

var truth, falsehood = []byte("1"), []byte("0")

// Bytes returns a boolean as SQLite does: 1 or 0.
func (r *pgRow) Bytes(col int) []byte {
	v := r.values[col]
	if r.fields[col].DataTypeOID == pgtype.BoolOID && v != nil {
		if bytes.Equal(v, []byte("t")) {
			return truth
		}
		return falsehood
	}
	return v
}

func (r *pgRow) Text(col int) string { return string(r.Bytes(col)) }
func (r *pgRow) Bool(col int) bool   { return r.Int(col) != 0 }
func (r *pgRow) Null(col int) bool   { return r.values[col] == nil }

func (r *pgRow) Int(col int) int64 {
	v := r.Bytes(col)
	if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
		return n
	}
	f, _ := strconv.ParseFloat(string(v), 64) // a numeric or double, truncated as SQLite does; 0 for anything else
	return int64(f)
}
