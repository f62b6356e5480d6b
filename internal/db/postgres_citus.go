package db

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Citus is an extension of PostgreSQL that spreads tables over several servers: the rows of one
// tenant are on one of them, together. Nodes connect to its coordinator. A database counts as
// distributed once its table tenants is.

// ErrNotCitus says that a database which is to be distributed is not one of Citus. Test for it with errors.Is.
var ErrNotCitus = errors.New("this database cannot be distributed")

// errDistributed says that a connection must have the settings of a distributed database.
var errDistributed = errors.New("the database is distributed")

// citusDialect is that of PostgreSQL with a clock that Citus takes in UPDATE and DELETE: the
// instant at which the statement began, which for one that waits for a lock is that much earlier.
var citusDialect = func() Dialect {
	d := postgresDialect
	d.Distributed = true
	d.Now = "CAST(extract(epoch FROM statement_timestamp()) * 1000000 AS BIGINT)"
	return d
}()

// citusSettings replace some of sessionSettings: a plan for all values cannot choose the server
// of a tenant.
var citusSettings = map[string]string{"plan_cache_mode": "auto"}

// isDistributed reports whether the table tenants is distributed by Citus.
func (c pgConn) isDistributed(ctx context.Context) (bool, error) {
	for _, sql := range []string{
		"select 1 where to_regclass('pg_dist_partition') is not null",
		"select 1 from pg_dist_partition where logicalrelid = to_regclass('tenants')",
	} {
		results, err := c.PgConn().Exec(ctx, sql).ReadAll()
		if err != nil {
			return false, c.failed(ctx, err)
		}
		if len(results) != 1 || len(results[0].Rows) != 1 {
			return false, nil
		}
	}
	return true, nil
}

// workerLost reports whether the coordinator lost its connection to a worker, of which it says so
// with the code for connections or, where it ended during a transaction, for any other failure.
func workerLost(pg *pgconn.PgError) bool {
	return strings.HasPrefix(pg.Code, "08") || pg.Code == "XX000" && strings.Contains(pg.Message, "connection")
}

// distributable lists the tables that Citus does not know yet, tenants first: the others are put
// where it is. A table whose key begins with the tenant is distributed by it, any other one is
// the same on every server.
const distributable = `SELECT c.relname, CASE WHEN a.attname = 'tenant_id' THEN 1 ELSE 0 END FROM pg_class c
	JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = current_schema()
	LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
	LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
	WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND NOT EXISTS (SELECT 1 FROM pg_dist_partition d WHERE d.logicalrelid = c.oid)
	ORDER BY c.relname <> 'tenants', c.relname`

// Distribute makes a database of Citus a distributed one, with what it holds, and calls tell
// after each table: it is distributed by tenant, or the same on every server. Nothing else
// may use the database. If it is stopped, the next call, or the next program that opens the
// database, goes on. Its errors are ErrNotCitus, ErrInUse and those of Handle.
func (d *DB) Distribute(ctx context.Context, tell func(table string, byTenant bool)) error {
	if d.Engine() != Postgres {
		return fmt.Errorf("%w: it is SQLite; gatehouse copy moves it to PostgreSQL", ErrNotCitus)
	}
	if err := d.aloneFor(ctx, copyWait); err != nil {
		return err
	}
	there := false
	err := d.Unscoped("the extension belongs to no tenant").Query(ctx, `SELECT 1 FROM pg_extension WHERE extname = 'citus'`, func(Row) error { there = true; return nil })
	if err == nil && !there {
		err = fmt.Errorf("%w: it has no extension citus; as its superuser say CREATE EXTENSION citus, and name the workers (citus_add_node)", ErrNotCitus)
	}
	if err != nil {
		return err
	}
	return d.distribute(ctx, tell)
}

// distribute distributes the tables that are not, each in a transaction of its own. Of
// several nodes that start at once one does so, and the others wait.
func (d *DB) distribute(ctx context.Context, tell func(table string, byTenant bool)) error {
	h := d.Unscoped("a table is distributed with the rows of all tenants")
	type table struct {
		name     string
		byTenant bool
	}
	for {
		var next *table
		err := h.Query(ctx, distributable, func(r Row) error {
			if next == nil {
				next = &table{r.Text(0), r.Bool(1)}
			}
			return nil
		})
		if err != nil || next == nil {
			return err
		}
		call := `SELECT create_reference_table('` + next.name + `')`
		if next.byTenant {
			with := "tenants"
			if next.name == with {
				with = "none"
			}
			call = `SELECT create_distributed_table('` + next.name + `', 'tenant_id', colocate_with => '` + with + `')`
		}
		err = h.Write(Patiently(ctx, "Citus moves the rows of a table in one transaction"), func(tx Tx) error {
			err := script(ctx, tx, fmt.Sprintf(`SELECT pg_advisory_xact_lock(%d)`, migrationLock))
			if err != nil {
				return err
			}
			still := false
			err = tx.Query(ctx, distributable, func(r Row) error {
				still = still || r.Text(0) == next.name
				return nil
			})
			if err != nil || !still {
				return err
			}
			return script(ctx, tx, call)
		})
		if err != nil {
			return fmt.Errorf("distribute %s: %w", next.name, err)
		}
		if tell != nil {
			tell(next.name, next.byTenant)
		}
	}
}
