package db

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const (
	// copyRows and copyBytes bound a batch, and so the memory and the transactions
	// of a copy. A batch has one row at least.
	copyRows  = 2000
	copyBytes = 4 << 20
)

// copyBatch has rows of a table.
type copyBatch struct {
	rows  int
	cells []cell
	mem   []byte
}

// cell is a value: a part of the memory of its batch.
type cell struct {
	from, to int
	null     bool
}

func (b *copyBatch) value(c cell) []byte { return b.mem[c.from:c.to] }

func (b *copyBatch) reset() { b.rows, b.cells, b.mem = 0, b.cells[:0], b.mem[:0] }

func (b *copyBatch) add(t copyTable, r Row) {
	for i, c := range t.columns {
		at := cell{from: len(b.mem), null: r.Null(i)}
		switch {
		case at.null:
		case c.kind == kindInt:
			b.mem = strconv.AppendInt(b.mem, r.Int(i), 10)
		default:
			b.mem = append(b.mem, r.Bytes(i)...)
		}
		at.to = len(b.mem)
		b.cells = append(b.cells, at)
	}
	b.rows++
}

// row returns the cells of a row.
func (b *copyBatch) row(t copyTable, i int) []cell {
	return b.cells[i*len(t.columns) : (i+1)*len(t.columns)]
}

// keyOf returns the key of a row as arguments of a statement.
func (b *copyBatch) keyOf(t copyTable, i int) (key []any, err error) {
	row := b.row(t, i)
	for _, at := range t.key {
		var v any = string(b.value(row[at]))
		if t.columns[at].kind == kindInt {
			if v, err = strconv.ParseInt(string(b.value(row[at])), 10, 64); err != nil {
				return nil, err
			}
		}
		key = append(key, v)
	}
	return key, nil
}

// errBatchFull ends the reading of a batch.
var errBatchFull = fmt.Errorf("the batch is full")

// batches calls each with the rows behind the key after, in the order of the key. The batch
// is used again.
func (t copyTable) batches(ctx context.Context, s *snapshot, day *Day, after []any, most int, each func(*copyBatch) error) error {
	if most <= 0 {
		most = copyRows
	}
	limit := min(most, 100) // until the size of rows is known
	b := &copyBatch{}
	for {
		b.reset()
		args := slices.Clone(after)
		var where []string
		if after != nil {
			marks := make([]string, len(after))
			for i := range after {
				marks[i] = "$" + strconv.Itoa(i+1)
			}
			where = append(where, `(`+t.keyNames("")+`) > (`+strings.Join(marks, ", ")+`)`)
		}
		if day != nil {
			args = append(args, int64(*day))
			where = append(where, "day = $"+strconv.Itoa(len(args)))
		}
		sql := `SELECT ` + t.columnNames() + ` FROM ` + t.name
		if len(where) > 0 {
			sql += ` WHERE ` + strings.Join(where, " AND ")
		}
		err := s.query(ctx, sql+` ORDER BY `+t.keyNames("")+` LIMIT `+strconv.Itoa(limit), func(r Row) error {
			if b.rows > 0 && len(b.mem) >= copyBytes {
				return errBatchFull
			}
			b.add(t, r)
			return nil
		}, args...)
		full := err == errBatchFull //nolint:errorlint // it is returned as it is
		if err != nil && !full {
			return err
		}
		if b.rows == 0 {
			return nil
		}
		last := b.rows < limit && !full
		if after, err = b.keyOf(t, b.rows-1); err != nil {
			return err
		}
		if err := each(b); err != nil {
			return err
		}
		if last {
			return nil
		}
		limit = roundLimit(copyBytes/(len(b.mem)/b.rows+1), most)
	}
}

// roundLimit returns the greatest power of two that is not over n, between 1 and most, so that
// there are few texts of statements.
func roundLimit(n, most int) int {
	limit := 1
	for limit*2 <= n && limit < most {
		limit *= 2
	}
	return min(limit, most)
}

// insert stores the rows of a batch.
func (t copyTable) insert(ctx context.Context, tx Tx, b *copyBatch) error {
	if pg, ok := tx.(*pgTx); ok {
		return pg.copyIn(ctx, `COPY `+t.name+` (`+t.columnNames()+`) FROM STDIN`, t.copyText(b))
	}
	marks := make([]string, len(t.columns))
	for i := range marks {
		marks[i] = "$" + strconv.Itoa(i+1)
	}
	sql := `INSERT INTO ` + t.name + ` (` + t.columnNames() + `) VALUES (` + strings.Join(marks, ", ") + `)`
	args := make([]any, len(t.columns))
	var compact bytes.Buffer
	for i := range b.rows {
		for j, at := range b.row(t, i) {
			v := b.value(at)
			switch kind := t.columns[j].kind; {
			case at.null:
				args[j] = nil
			case kind == kindInt:
				n, err := strconv.ParseInt(string(v), 10, 64)
				if err != nil {
					return err
				}
				args[j] = n
			case kind == kindBytes:
				args[j] = v[:len(v):len(v)]
			case kind == kindJSON: // JSONB has spaces that the program does not write
				compact.Reset()
				if err := json.Compact(&compact, v); err != nil {
					return fmt.Errorf("column %s: %w", t.columns[j].name, err)
				}
				args[j] = compact.String()
			default:
				args[j] = string(v)
			}
		}
		if _, err := tx.Exec(ctx, sql, args...); err != nil {
			return err
		}
	}
	return nil
}

// copyText returns a batch in the text form of PostgreSQL's COPY.
func (t copyTable) copyText(b *copyBatch) []byte {
	out := make([]byte, 0, len(b.mem)+len(b.mem)/8+4*len(b.cells))
	for i := range b.rows {
		for j, at := range b.row(t, i) {
			if j > 0 {
				out = append(out, '\t')
			}
			switch v := b.value(at); {
			case at.null:
				out = append(out, `\N`...)
			case t.columns[j].kind == kindBytes:
				out = append(out, `\\x`...)
				out = hex.AppendEncode(out, v)
			default:
				out = appendCopyText(out, v)
			}
		}
		out = append(out, '\n')
	}
	return out
}

func appendCopyText(out, v []byte) []byte {
	for _, c := range v {
		switch c {
		case '\\':
			out = append(out, `\\`...)
		case '\n':
			out = append(out, `\n`...)
		case '\r':
			out = append(out, `\r`...)
		case '\t':
			out = append(out, `\t`...)
		default:
			out = append(out, c)
		}
	}
	return out
}

// copyIn runs COPY … FROM STDIN.
func (tx *pgTx) copyIn(ctx context.Context, sql string, text []byte) error {
	if tx.over {
		return errOver
	}
	if tx.broken != nil {
		return tx.broken
	}
	if _, err := tx.conn.PgConn().CopyFrom(ctx, bytes.NewReader(text), sql); err != nil {
		err = tx.conn.failed(ctx, err)
		tx.fail(err)
		return err
	}
	return nil
}
