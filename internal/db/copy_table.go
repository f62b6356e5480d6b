package db

import (
	"context"
	"fmt"
	"slices"
	"strings"
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

// notCopied are the tables that Copy has a way of its own for, or that are about one
// database, not what is in it.
var notCopied = []string{"schema_migrations", "installation", "housekeeping"}

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
