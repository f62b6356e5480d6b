package db

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
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

// copyKind is how the values of a column are read and written.
type copyKind int

const (
	kindText copyKind = iota
	kindInt
	kindBytes
	kindJSON // TEXT on SQLite
)

// copyColumn is a column; pk is its place in the primary key, 0 for none.
type copyColumn struct {
	name string
	kind copyKind
	pk   int
}

// copyTable is a table that is copied. Its columns are in the order of their names,
// which is that of neither engine.
type copyTable struct {
	name    string
	columns []copyColumn
	key     []int // the columns of the primary key
}

// copyPlan are the tables that are copied, in the order of their names.
type copyPlan struct {
	tables, byDay []copyTable
}

// notCopied are the tables that Copy has a way of its own for.
var notCopied = []string{"schema_migrations", "installation"}

// planCopy asks both databases which tables they have, so that none is forgotten. They must
// have the same schema, that of this program.
func planCopy(ctx context.Context, from, to *DB) (*copyPlan, error) {
	known := map[Engine]map[string]copyTable{}
	for _, d := range []*DB{from, to} {
		all, err := migrations(mainSteps, d.Engine())
		if err != nil {
			return nil, err
		}
		h := d.Unscoped("the database says what it has")
		done, err := applied(ctx, h)
		if err != nil {
			return nil, err
		}
		if newest := all[len(all)-1].number; done != newest {
			return nil, fmt.Errorf("%w: the %s database has migration %d, this program knows %d; copy with the newer version", ErrTooNew, d.Engine(), done, newest)
		}
		if known[d.Engine()], err = copyTables(ctx, d); err != nil {
			return nil, err
		}
	}
	// Only PostgreSQL knows of a text that it is JSON, and has the tables of the days
	// in its main database.
	lite, post := known[SQLite], known[Postgres]
	plan := &copyPlan{}
	for name, t := range post {
		if slices.Contains(dayTables, name) {
			plan.byDay = append(plan.byDay, t)
			continue
		}
		other, ok := lite[name]
		if !ok {
			return nil, fmt.Errorf("table %s is in PostgreSQL, and not in SQLite", name)
		}
		if err := t.sameAs(other); err != nil {
			return nil, err
		}
		plan.tables = append(plan.tables, t)
	}
	for name := range lite {
		if _, ok := post[name]; !ok {
			return nil, fmt.Errorf("table %s is in SQLite, and not in PostgreSQL", name)
		}
	}
	byName := func(a, b copyTable) int { return strings.Compare(a.name, b.name) }
	slices.SortFunc(plan.tables, byName)
	slices.SortFunc(plan.byDay, byName)
	return plan, nil
}

// sameAs returns an error if a table of SQLite has other columns or another key.
func (t copyTable) sameAs(lite copyTable) error {
	same := slices.EqualFunc(t.columns, lite.columns, func(a, b copyColumn) bool {
		return a.name == b.name && a.pk == b.pk && (a.kind == b.kind || a.kind == kindJSON && b.kind == kindText)
	})
	if !same {
		return fmt.Errorf("table %s differs between the engines: %v, %v", t.name, t.columns, lite.columns)
	}
	return nil
}

// The columns of all tables with their types and places in the primary key.
const (
	sqliteCopyColumns = `SELECT m.name, c.name, lower(c.type), c.pk FROM sqlite_schema m JOIN pragma_table_info(m.name) c
		WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite~_%' ESCAPE '~' ORDER BY m.name, c.name`
	postgresCopyColumns = `SELECT c.relname, a.attname, format_type(a.atttypid, NULL), COALESCE(array_position(i.indkey::int2[], a.attnum) + 1, 0)
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = current_schema()
		JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
		WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition ORDER BY c.relname COLLATE "C", a.attname::text COLLATE "C"`
)

var copyKinds = map[string]copyKind{
	"text": kindText, "bigint": kindInt, "integer": kindInt, "blob": kindBytes, "bytea": kindBytes, "jsonb": kindJSON,
}

// copyTables returns the tables of a database by name.
func copyTables(ctx context.Context, d *DB) (map[string]copyTable, error) {
	sql := sqliteCopyColumns
	if d.Engine() == Postgres {
		sql = postgresCopyColumns
	}
	tables := map[string]copyTable{}
	err := d.Unscoped("the database says which tables it has").Query(ctx, sql, func(r Row) error {
		name := r.Text(0)
		if slices.Contains(notCopied, name) {
			return nil
		}
		kind, ok := copyKinds[r.Text(2)]
		if !ok {
			return fmt.Errorf("column %s of table %s has the type %s, which copy does not know", r.Text(1), name, r.Text(2))
		}
		t := tables[name]
		t.name = name
		t.columns = append(t.columns, copyColumn{r.Text(1), kind, int(r.Int(3))})
		tables[name] = t
		return nil
	})
	for name, t := range tables {
		for place := 1; ; place++ {
			i := slices.IndexFunc(t.columns, func(c copyColumn) bool { return c.pk == place })
			if i < 0 {
				break
			}
			t.key = append(t.key, i)
		}
		if len(t.key) == 0 && err == nil {
			err = fmt.Errorf("table %s has no primary key", name)
		}
		tables[name] = t
	}
	return tables, err
}

func (t copyTable) columnNames() string {
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i] = c.name
	}
	return strings.Join(names, ", ")
}

func (t copyTable) keyNames(suffix string) string {
	names := make([]string, len(t.key))
	for i, at := range t.key {
		names[i] = t.columns[at].name + suffix
	}
	return strings.Join(names, ", ")
}

// last returns the key of the last row of a table, nil if there is none.
func (t copyTable) last(ctx context.Context, d *DB, day *Day) (key []any, err error) {
	where, args := "", []any(nil)
	if day != nil {
		where, args = ` WHERE day = $1`, []any{int64(*day)}
	}
	err = d.Unscoped("how far a copy of all tenants has come").Query(ctx,
		`SELECT `+t.keyNames("")+` FROM `+t.name+where+` ORDER BY `+t.keyNames(" DESC")+` LIMIT 1`, func(r Row) error {
			for i, at := range t.key {
				if t.columns[at].kind == kindInt {
					key = append(key, r.Int(i))
				} else {
					key = append(key, r.Text(i))
				}
			}
			return nil
		}, args...)
	return key, err
}

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

// digest returns the number of rows of a table and the SHA-256 of all of them in the
// order of their keys, in a form that is the same for both engines. each is called after each
// batch with the rows so far.
func (t copyTable) digest(ctx context.Context, s *snapshot, day *Day, most int, each func(rows int64) error) (rows int64, digest string, err error) {
	h := sha256.New()
	var canonical []byte
	err = t.batches(ctx, s, day, nil, most, func(b *copyBatch) error {
		for i := range b.rows {
			for j, at := range b.row(t, i) {
				v := b.value(at)
				if t.columns[j].kind == kindJSON && !at.null {
					if canonical, err = canonicalJSON(canonical[:0], v); err != nil {
						return fmt.Errorf("column %s: %w", t.columns[j].name, err)
					}
					v = canonical
				}
				hashValue(h, v, at.null)
			}
		}
		rows += int64(b.rows)
		return each(rows)
	})
	return rows, hex.EncodeToString(h.Sum(nil)), err
}

// hashValue adds a value and its length.
func hashValue(h hash.Hash, v []byte, null bool) {
	var head [9]byte
	if null {
		head[0] = 1
	}
	binary.BigEndian.PutUint64(head[1:], uint64(len(v)))
	h.Write(head[:])
	h.Write(v)
}

func digestInstallation(ctx context.Context, s *snapshot) (int64, string, error) {
	list, err := installation(ctx, s)
	h := sha256.New()
	for _, v := range list {
		hashValue(h, []byte(v[0]), false)
		hashValue(h, []byte(v[1]), false)
	}
	return int64(len(list)), hex.EncodeToString(h.Sum(nil)), err
}

// canonicalJSON appends a JSON text in the one form that JSONB and the text that it was made of
// share: members in the order of their names, the last of those of one name, numbers
// as their digits and a power of ten.
func canonicalJSON(dst, text []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return appendCanonical(dst, v), nil
}

func appendCanonical(dst []byte, v any) []byte {
	switch v := v.(type) {
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		dst = append(dst, '{')
		for _, name := range names {
			dst = strconv.AppendQuote(dst, name)
			dst = append(dst, ':')
			dst = append(appendCanonical(dst, v[name]), ',')
		}
		return append(dst, '}')
	case []any:
		dst = append(dst, '[')
		for _, e := range v {
			dst = append(appendCanonical(dst, e), ',')
		}
		return append(dst, ']')
	case string:
		return strconv.AppendQuote(dst, v)
	case json.Number:
		return appendDecimal(dst, string(v))
	case bool:
		return strconv.AppendBool(dst, v)
	default:
		return append(dst, "null"...)
	}
}

// appendDecimal appends the significant digits of a JSON number and the power of ten of the
// last of them: 120 and 1.2e2 are both 12e1.
func appendDecimal(dst []byte, number string) []byte {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(number), "e")
	power, _ := strconv.Atoi(exponent) // "" is 0; no double has an exponent beyond an int
	negative := strings.HasPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(strings.TrimPrefix(mantissa, "-"), ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	power -= len(fraction)
	trimmed := strings.TrimRight(digits, "0")
	power += len(digits) - len(trimmed)
	if trimmed == "" {
		return append(dst, '0')
	}
	if negative {
		dst = append(dst, '-')
	}
	dst = append(append(dst, trimmed...), 'e')
	return strconv.AppendInt(dst, int64(power), 10)
}
