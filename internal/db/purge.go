package db

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Purge describes the deletion of all data of a tenant.
type Purge struct {
	Tenant TenantID
	// First are the tables to begin with, in order; Keep are those to leave
	// alone.
	First, Keep []string
	// Guard runs first in the transaction of each step, on the main database,
	// and its error ends the purge. It must lock the state that marks the tenant
	// as being deleted.
	Guard func(ctx context.Context, tx Tx) error
	// Rest is called between two steps with the time that the last one took.
	Rest func(ctx context.Context, took time.Duration) error
}

const (
	purgeTime  = 5 * time.Millisecond // of one step, about
	purgeFirst = 50                   // rows of the first step
	purgeLeast = 8
	purgeMost  = 500
)

// Purge deletes a tenant's rows from every table that has a column tenant_id,
// in short transactions, and from every day. It reads the list of tables from
// the database, so that none is forgotten. It returns the number of rows that it
// deleted, also with an error. The error is one of Handle, of Guard or of Rest.
func (d *DB) Purge(ctx context.Context, p Purge) (deleted int64, err error) {
	h := d.For(p.Tenant)
	deleted, err = d.purge(ctx, p, func(ctx context.Context, fn func(Tx) error) error {
		return h.Write(ctx, func(tx Tx) error {
			if err := p.Guard(ctx, tx); err != nil {
				return err
			}
			return fn(tx)
		})
	})
	if err != nil || d.Engine() == Postgres { // the days are partitions of its tables
		return deleted, err
	}
	days, err := d.days.List(ctx)
	if err != nil {
		return deleted, err
	}
	for _, day := range days {
		n, failed := d.purgeDay(ctx, p, h, day)
		deleted += n
		err = errors.Join(err, failed) // a damaged day does not stop the others
	}
	return deleted, err
}

// purgeDay is Purge for the file of one day.
func (d *DB) purgeDay(ctx context.Context, p Purge, h Handle, day Day) (int64, error) {
	file, done, err := d.days.store.open(ctx, day, true)
	if err != nil {
		return 0, err
	}
	days := file.For(p.Tenant)
	n, err := file.purge(ctx, p, func(ctx context.Context, fn func(Tx) error) error {
		// The guard's transaction stays open until the day's step is committed.
		// The main database waits for the day's writer, which never waits for
		// the main database.
		return h.Write(ctx, func(tx Tx) error {
			if err := p.Guard(ctx, tx); err != nil {
				return err
			}
			return days.Write(ctx, fn)
		})
	})
	return n, done(err)
}

// purge deletes from the tables of one database; write runs one step.
func (d *DB) purge(ctx context.Context, p Purge, write func(context.Context, func(Tx) error) error) (deleted int64, err error) {
	tables, err := d.tenantTables(ctx)
	if err != nil {
		return 0, err
	}
	place := func(t tenantTable) int {
		if i := slices.Index(p.First, t.name); i >= 0 {
			return i
		}
		return len(p.First)
	}
	slices.SortStableFunc(tables, func(a, b tenantTable) int { return place(a) - place(b) })
	limit := purgeFirst
	for _, t := range tables {
		for more := !slices.Contains(p.Keep, t.name); more; {
			var n int64
			last := false
			begun, took := time.Now(), time.Duration(0)
			err := write(ctx, func(tx Tx) (err error) {
				began := time.Now()
				last = false
				if n, err = tx.Exec(ctx, t.deletion(limit)); err == nil && n == 0 {
					last = true
					n, err = tx.Exec(ctx, `DELETE FROM `+t.name+` WHERE tenant_id = $1`) // fewer than one step deletes
				}
				took = time.Since(began)
				return err
			})
			if err != nil {
				return deleted, fmt.Errorf("delete from %s: %w", t.name, err)
			}
			deleted += n
			more = !last
			switch {
			case took > 2*purgeTime:
				limit = max(limit/2, purgeLeast)
			case took < purgeTime && more:
				limit = min(limit*2, purgeMost)
			}
			if n > 0 {
				if err := p.Rest(ctx, time.Since(begun)); err != nil {
					return deleted, err
				}
			}
		}
	}
	return deleted, nil
}

// tenantTable is a table with a column tenant_id.
type tenantTable struct {
	name string
	key  []string // of its primary key, without tenant_id
}

// deletion returns the statement that deletes the first rows of the tenant, up
// to the one at limit, or none if there are fewer. It uses a range of the primary
// key, so that PostgreSQL reads no more, whatever the table's statistics.
func (t tenantTable) deletion(limit int) string {
	if len(t.key) == 0 {
		return `DELETE FROM ` + t.name + ` WHERE tenant_id = $1`
	}
	key := strings.Join(t.key, ", ")
	return `DELETE FROM ` + t.name + ` WHERE tenant_id = $1 AND (` + key + `) <= (SELECT ` + key + ` FROM ` + t.name +
		` WHERE tenant_id = $1 ORDER BY ` + key + ` LIMIT 1 OFFSET ` + strconv.Itoa(limit-1) + `)`
}

// The columns of all tables; pk is the position in the primary key, 0 for other
// columns.
const (
	sqliteColumns = `SELECT m.name, c.name, c.pk FROM sqlite_master m JOIN pragma_table_info(m.name) c
		WHERE m.type = 'table' ORDER BY m.name, c.pk`
	// A partition is reached through its table.
	postgresColumns = `SELECT c.relname, a.attname, COALESCE(array_position(i.indkey::int2[], a.attnum) + 1, 0) AS pk
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = current_schema()
		JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
		WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition ORDER BY c.relname, pk`
)

// tenantTables returns the tables that have a column tenant_id.
func (d *DB) tenantTables(ctx context.Context) (list []tenantTable, err error) {
	sql := sqliteColumns
	if d.Engine() == Postgres {
		sql = postgresColumns
	}
	var tables []tenantTable
	bound := map[string]bool{}
	err = d.Unscoped("the database says which tables it has").Query(ctx, sql, func(r Row) error {
		table, column := r.Text(0), r.Text(1)
		if len(tables) == 0 || tables[len(tables)-1].name != table {
			tables = append(tables, tenantTable{name: table})
		}
		if column == "tenant_id" {
			bound[table] = true
		} else if t := &tables[len(tables)-1]; r.Int(2) > 0 {
			t.key = append(t.key, column)
		}
		return nil
	})
	for _, t := range tables {
		if bound[t.name] {
			list = append(list, t)
		}
	}
	return list, err
}
