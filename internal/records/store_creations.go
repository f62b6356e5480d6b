package records

import (
	"context"
	"strconv"
	"strings"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
)

// maxTogether is how many records one statement adds.
const maxTogether = 32

// maxRowsTogether is how many index rows are collected before they are written; one
// record may have more.
const maxRowsTogether = 4096

// creations are new records, of any type, that are written together.
type creations struct {
	records []any // the arguments of newRecords, by columns
	values  []any // the arguments of newValues
	matches []any // the arguments of newMatches
	shaped  []newlyShaped
}

// newlyShaped is a new record of a type for which a change is being prepared.
type newlyShaped struct {
	shape     *access.Shape
	createdAt int64
	is        standing
}

// add adds a record. It returns how many index rows it has.
func (w *creations) add(c *creation, rec *row) (rows int) {
	acting := c.s.viewer.UserID()
	w.records = append(w.records, c.e.StoredAs(), rec.id, rec.owner, rec.ownerRole, rec.createdAt, acting, string(rec.data), len(rec.data))
	is := standing{id: rec.id, values: c.values, data: rec.data, owner: rec.owner, ownerRole: rec.ownerRole}
	is.rules = holding(c.e, valueRules(c.s.viewer.Config(), c.e.Name), rec.id, c.values)
	list := is.entries(c.e)
	for _, en := range list {
		w.values = append(w.values, c.e.StoredAs(), en.field, en.value, en.reach, rec.createdAt, en.unique)
	}
	for _, rule := range is.rules {
		w.matches = append(w.matches, rule, rec.createdAt)
	}
	if shape := c.s.viewer.Config().Shape(c.e.StoredAs()); shape != nil {
		w.shaped = append(w.shaped, newlyShaped{shape, rec.createdAt, is})
	}
	return len(list)
}

// full reports whether write must be called before more records are added.
func (w *creations) full() bool {
	return len(w.records) >= maxTogether*newRecords.columns || len(w.values) >= maxRowsTogether*newValues.columns
}

// write writes the added records. It returns db.ErrUnique for a unique value
// that is taken, which ends the transaction.
func (w *creations) write(ctx context.Context, tx db.Tx) error {
	if len(w.records) == 0 {
		return nil
	}
	if err := newRecords.insert(ctx, tx, w.records); err != nil {
		return err
	}
	if err := newValues.insert(ctx, tx, w.values); err != nil {
		return err
	}
	if err := newMatches.insert(ctx, tx, w.matches); err != nil {
		return err
	}
	for _, n := range w.shaped {
		if err := followShape(ctx, tx, n.shape, n.createdAt, standing{}, n.is); err != nil {
			return err
		}
	}
	w.records, w.values, w.matches, w.shaped = w.records[:0], w.values[:0], w.matches[:0], w.shaped[:0]
	return nil
}

// rows is an INSERT of several rows: a statement for each of a few row counts,
// so that every statement is prepared once.
type rows struct {
	columns int // arguments of one row
	sql     []string
}

// counts are the row counts that have a statement.
var counts = []int{maxTogether, 8, 1}

// rowsOf builds the statements. row is the text of one row, in which #n is the
// nth argument of the row; text builds a statement from all rows.
func rowsOf(columns int, row string, text func(rows string) string) rows {
	r := rows{columns: columns}
	for _, n := range counts {
		list := make([]string, n)
		for i := range list {
			list[i] = row
			for c := columns; c > 0; c-- {
				list[i] = strings.ReplaceAll(list[i], "#"+strconv.Itoa(c), "$"+strconv.Itoa(1+columns*i+c))
			}
		}
		r.sql = append(r.sql, text(strings.Join(list, ", ")))
	}
	return r
}

// insert inserts the rows whose arguments are args.
func (r *rows) insert(ctx context.Context, tx db.Tx, args []any) error {
	for i, n := range counts {
		for n *= r.columns; len(args) >= n; args = args[n:] {
			if _, err := tx.Exec(ctx, r.sql[i], args[:n]...); err != nil {
				return err
			}
		}
	}
	return nil
}

var (
	newRecords = rowsOf(8, `($1, #1, #2, #3, #4, #5, #5, #6, #6, 1, #7, #8)`, insertRecords)
	newValues  = rowsOf(6, `($1, #1, #2, #3, #4, #5, #6)`, insertRows)
	newMatches = rowsOf(2, `($1, #1, #2)`, insertMatches)
)

func insertRecords(rows string) string {
	return `INSERT INTO records (tenant_id, entity, record_id, owner_id, owner_role, created_at, updated_at,
		created_by, updated_by, version, data, data_bytes) VALUES ` + rows
}

func insertMatches(rows string) string {
	return `INSERT INTO rule_matches (tenant_id, rule_id, record_created_at) VALUES ` + rows + `
		ON CONFLICT (tenant_id, rule_id, record_created_at) DO NOTHING`
}
