package db

import (
	"context"
	"errors"
	"time"
)

// statisticsEvery is how often a table that lacks statistics is looked for.
const statisticsEvery = 10 * time.Second

// unknown lists our tables of over eight pages that PostgreSQL has no statistics of, or that have
// grown to eight times the size they had then. Of a table without rows there are none to be had,
// however large it is: it is looked at once, and again when it has some. A table of somebody else in the
// schema is none of ours, and its name may be anything: ours need no quotes.
const unknown = `SELECT quote_ident(c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = current_schema()
	WHERE c.relkind = 'r' AND pg_has_role(c.relowner, 'USAGE') AND c.relname ~ '^[a-z_][a-z0-9_]*$' AND pg_relation_size(c.oid) > 8 * 8192 AND (pg_relation_size(c.oid) > 8 * 8192 * CAST(c.relpages AS BIGINT)
		OR (c.reltuples <> 0 OR pg_stat_get_live_tuples(c.oid) > 0) AND NOT EXISTS (SELECT 1 FROM pg_stats s WHERE s.schemaname = n.nspname AND s.tablename = c.relname)) ORDER BY c.relname`

// RunStatistics sees to it that PostgreSQL has statistics of each table, at once and then every
// 10 s, until ctx ends. Of the nodes that run it, one does so.
//
// PostgreSQL itself comes to a new table after a minute, and not at all where autovacuum is off or
// the database was restored. Until then it takes all indexes for equally good: for one record of
// 30,000 it reads all of them by an index that begins as the right one does.
func (d *DB) RunStatistics(ctx context.Context, failed func(error)) {
	if d.Engine() != Postgres || d.dialect.Distributed { // on whose workers the tables are
		return
	}
	d.Housekeep(ctx, "statistics", statisticsEvery, func(ctx context.Context) error {
		_, err := d.analyze(ctx)
		return err
	}, failed)
}

// analyze makes the statistics that are missing, and returns the names of the tables. It leaves
// out a table that somebody else analyzes or changes at that moment. While it is at a table, no migration
// begins: that would wait for the table, and every request behind it.
func (d *DB) analyze(ctx context.Context) (tables []string, err error) {
	h := d.Unscoped("statistics are of all tenants")
	if err := h.Query(ctx, unknown, func(r Row) error { tables = append(tables, r.Text(0)); return nil }); err != nil {
		return nil, err
	}
	for _, table := range tables {
		err = errors.Join(err, h.Write(Patiently(ctx, "statistics of a table of any size"), func(tx Tx) error {
			migrates := true
			err := tx.Query(ctx, tryMigrationLock, func(r Row) error { migrates = !r.Bool(0); return nil })
			if err != nil || migrates {
				return err
			}
			return script(ctx, tx, `ANALYZE (SKIP_LOCKED) `+table)
		}))
	}
	return tables, err
}
