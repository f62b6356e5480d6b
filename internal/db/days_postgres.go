package db

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// dayTables are the tables that have a partition for each day.
var dayTables = []string{"audit_blocks", "audit_marks"}

const (
	partitionFormat = "20060102"
	// dropPatience is how long a drop waits for the lock on the tables. It is
	// short because other statements queue behind a waiting drop.
	dropPatience = 50 * time.Millisecond
	dropTries    = 20
	// partitionLock is the advisory lock for creating and dropping partitions.
	partitionLock = 7233716121
)

// partitions keeps the days in partitions of dayTables. Any number of nodes may
// create and drop them at the same time.
type partitions struct {
	db *DB

	mu    sync.Mutex
	known map[Day]bool // days that have partitions
}

func partition(table string, day Day) string {
	return table + "_" + day.Start().Format(partitionFormat)
}

func (p *partitions) open(ctx context.Context, day Day, write bool) (*DB, func(error) error, error) {
	if write {
		if err := p.ensure(ctx, day); err != nil {
			return nil, nil, err
		}
	}
	return p.db, func(err error) error { return p.done(day, err) }, nil
}

// done removes the day from known if err shows that another node dropped it.
func (p *partitions) done(day Day, err error) error {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "23514" { // no partition of relation found for row
		p.learn(day, false)
		return fmt.Errorf("%w: %w", ErrBusy, err)
	}
	return err
}

func (p *partitions) learn(day Day, there bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if there {
		p.known[day] = true
	} else {
		delete(p.known, day)
	}
}

// ensure creates a day's partitions if they do not exist. It creates a table and
// then attaches it, because that does not block readers and writers of other
// days.
func (p *partitions) ensure(ctx context.Context, day Day) error {
	p.mu.Lock()
	known := p.known[day]
	p.mu.Unlock()
	if known {
		return nil
	}
	err := p.db.Unscoped("partitions belong to all tenants").Write(ctx, func(tx Tx) error {
		if err := script(ctx, tx, fmt.Sprintf(`SELECT pg_advisory_xact_lock(%d)`, partitionLock)); err != nil {
			return err
		}
		for _, table := range dayTables {
			name, there := partition(table, day), false
			err := tx.Query(ctx, `SELECT to_regclass($1::text) IS NOT NULL`, func(r Row) error {
				there = r.Bool(0)
				return nil
			}, name)
			if err != nil {
				return err
			}
			if there {
				continue
			}
			err = script(ctx, tx, fmt.Sprintf(`CREATE TABLE %[1]s (LIKE %[2]s INCLUDING STORAGE);
				ALTER TABLE %[2]s ATTACH PARTITION %[1]s FOR VALUES IN (%[3]d)`, name, table, day))
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		p.learn(day, true)
	}
	return err
}

func (p *partitions) list(ctx context.Context) ([]Day, error) {
	var days []Day
	err := p.db.Unscoped("partitions belong to all tenants").Query(ctx, `SELECT c.relname FROM pg_inherits i
		JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = to_regclass($1::text)`, func(r Row) error {
		at, err := time.Parse(partitionFormat, strings.TrimPrefix(r.Text(0), dayTables[0]+"_"))
		if err == nil { // ignores other partitions
			days = append(days, DayOf(at))
		}
		return nil
	}, dayTables[0])
	slices.Sort(days)
	slices.Reverse(days)
	return days, err
}

// drop drops a day's partitions. It needs a lock on the whole tables for a
// moment, so it waits for the lock only briefly and then tries again. It keeps
// apart from other drops, which PostgreSQL does not do by itself: the loser of
// two drops of one partition fails with "could not find tuple for parent".
func (p *partitions) drop(ctx context.Context, day Day) error {
	var names []string
	for _, table := range dayTables {
		names = append(names, partition(table, day))
	}
	sql := fmt.Sprintf(`SET LOCAL lock_timeout = '%dms'; SELECT pg_advisory_xact_lock(%d); DROP TABLE IF EXISTS %s`,
		dropPatience.Milliseconds(), partitionLock, strings.Join(names, ", "))
	for try := 1; ; try++ {
		err := p.db.Unscoped("partitions belong to all tenants").Write(ctx, func(tx Tx) error { return script(ctx, tx, sql) })
		if !errors.Is(err, ErrBusy) || try == dropTries {
			if err == nil {
				p.learn(day, false)
			}
			return err
		}
		if err := sleep(ctx, 4*dropPatience); err != nil {
			return err
		}
	}
}

func (p *partitions) close() error { return nil }
