package records

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"gatehouse/internal/db"
	"gatehouse/internal/schema"
)

// replaceEntries replaces the index rows before of a record with after. before
// must be exactly what is stored: rows in both are not touched.
// It returns the errors of reindex.
func replaceEntries(ctx context.Context, tx db.Tx, counted *indexing, e *schema.Entity, createdAt int64, before, after []entry) error {
	if slices.Equal(before, after) {
		return nil
	}
	if len(after) > max(len(before), maxEntries) {
		return errEntries
	}
	gone, added := minus(before, after), minus(after, before)
	if err := counted.add(len(gone) + len(added)); err != nil {
		return err
	}
	if err := deleteEntries(ctx, tx, e.StoredAs(), createdAt, gone); err != nil {
		return err
	}
	return insertEntries(ctx, tx, e, createdAt, added)
}

// manyEntries is a statement for n index rows of one record. There are few n,
// so that every statement is prepared once.
type manyEntries struct {
	n   int
	sql string
}

// Most fields have three rows (everybody, owner, owner's role) or two.
var (
	entryInserts = []manyEntries{insertOf(12), insertOf(6), insertOf(3), insertOf(2), insertOf(1)}
	entryDeletes = map[db.Engine][]manyEntries{
		db.SQLite:   {deleteOf(1), deleteOf(4), deleteOf(16)},
		db.Postgres: {deleteOf(1), deleteEach(4), deleteEach(16)},
	}
)

// insertOf returns the statement that inserts n rows; $2 is the entity, $3 the
// record.
func insertOf(n int) manyEntries {
	var rows strings.Builder
	for i := range n {
		if i > 0 {
			rows.WriteString(", ")
		}
		rows.WriteString("($1, $2, $" + strconv.Itoa(4+3*i) + ", $" + strconv.Itoa(5+3*i) + ", $" + strconv.Itoa(6+3*i) + ", $3, 0)")
	}
	return manyEntries{n, insertRows(rows.String())}
}

func insertRows(rows string) string {
	return `INSERT INTO field_values (tenant_id, entity, field, value, reach, record_created_at, is_unique) VALUES ` + rows + `
		ON CONFLICT (tenant_id, entity, field, reach, value, record_created_at) DO NOTHING`
}

// deleteOf returns the statement that deletes n rows of one value; $2 is the
// entity, $3 the record.
func deleteOf(n int) manyEntries {
	list := "$6"
	for i := range n - 1 {
		list += ", $" + strconv.Itoa(7+i)
	}
	return manyEntries{n, `DELETE FROM field_values WHERE tenant_id = $1 AND entity = $2 AND record_created_at = $3
		AND field = $4 AND value = $5 AND reach IN (` + list + `)`}
}

// deleteEach returns the same for PostgreSQL, as one deletion for each reach. Without
// statistics it takes a list of reaches for a condition on what it finds, and reads all
// rows of the field.
func deleteEach(n int) manyEntries {
	one := func(i int) string {
		return `DELETE FROM field_values WHERE tenant_id = $1 AND entity = $2 AND record_created_at = $3 AND field = $4 AND value = $5 AND reach = $` + strconv.Itoa(6+i)
	}
	with := make([]string, n-1)
	for i := range with {
		with[i] = "d" + strconv.Itoa(i) + " AS (" + one(i) + ")"
	}
	return manyEntries{n, "WITH " + strings.Join(with, ", ") + " " + one(n-1)}
}

// insertEntries adds index rows; existing ones stay. A unique value that
// another record has is CONFLICT.
func insertEntries(ctx context.Context, tx db.Tx, e *schema.Entity, createdAt int64, list []entry) error {
	plain := list
	if slices.ContainsFunc(list, func(en entry) bool { return en.unique }) {
		plain = nil
		for _, en := range list {
			if !en.unique {
				plain = append(plain, en)
			} else if err := insertUnique(ctx, tx, e, createdAt, en); err != nil {
				return err
			}
		}
	}
	var args []any
	for _, in := range entryInserts {
		for ; len(plain) >= in.n; plain = plain[in.n:] {
			args = append(args[:0], e.StoredAs(), createdAt)
			for _, en := range plain[:in.n] {
				args = append(args, en.field, en.value, en.reach)
			}
			if err := tx.Later(ctx, in.sql, args...); err != nil {
				return err
			}
		}
	}
	return nil
}

func insertUnique(ctx context.Context, tx db.Tx, e *schema.Entity, createdAt int64, en entry) error {
	_, err := tx.Exec(ctx, `INSERT INTO field_values (tenant_id, entity, field, value, reach, record_created_at, is_unique)
		VALUES ($1, $2, $3, $4, $5, $6, 1)`, e.StoredAs(), en.field, en.value, en.reach, createdAt)
	if errors.Is(err, db.ErrUnique) {
		return conflict(map[string]string{e.OfIndex(en.field): "the value is taken"})
	}
	return err
}

// deleteEntries removes index rows. The rows of one field must be adjacent in
// list.
func deleteEntries(ctx context.Context, tx db.Tx, entity string, createdAt int64, list []entry) error {
	deletes := entryDeletes[tx.Dialect().Engine]
	most := deletes[len(deletes)-1].n
	for len(list) > 0 {
		n := 1
		for n < len(list) && n < most && list[n].field == list[0].field && list[n].value == list[0].value {
			n++
		}
		del := deletes[slices.IndexFunc(deletes, func(d manyEntries) bool { return d.n >= n })]
		args := append(make([]any, 0, 4+del.n), entity, createdAt, list[0].field, list[0].value)
		for i := range del.n {
			args = append(args, list[min(i, n-1)].reach)
		}
		if _, err := tx.Exec(ctx, del.sql, args...); err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}

// principals returns the principals that a record is shared with.
func principals(ctx context.Context, q db.Querier, e *schema.Entity, id string) (list []string, err error) {
	err = q.Query(ctx, `SELECT principal FROM shares WHERE tenant_id = $1 AND entity = $2 AND record_id = $3 ORDER BY principal`,
		func(r db.Row) error { list = append(list, r.Text(0)); return nil }, e.StoredAs(), id)
	return list, err
}
