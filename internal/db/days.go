package db

import (
	"context"
	"fmt"
	"time"
)

// Day is a day in UTC, counted from 1 January 1970.
type Day int64

const dayFormat = "2006-01-02"

// DayOf is the day of an instant.
func DayOf(t time.Time) Day {
	const seconds = 24 * 60 * 60
	s := t.Unix()
	if s < 0 {
		s -= seconds - 1
	}
	return Day(s / seconds)
}

// Start is the instant at which the day begins.
func (d Day) Start() time.Time { return time.Unix(int64(d)*24*60*60, 0).UTC() }

// String is the day as 2026-11-22.
func (d Day) String() string { return d.Start().Format(dayFormat) }

// Days is what is kept by UTC day, apart from all other data, and dropped by
// the day: on SQLite each day has a file of its own beside the main one, with a
// writer of its own that does not wait for the disk at every commit; on
// PostgreSQL each day is a partition of the tables that 0005 makes.
//
// The same SQL text serves both. Its tables have a column day, which every
// statement must bind: PostgreSQL finds the partition by it.
type Days struct {
	store dayStore
}

// dayStore is what the two engines do in their own ways.
type dayStore interface {
	// open lends the database that has a day; done gives it back, and hears how
	// what was done with it ended. With write set the day is made when it is not
	// there; else one that is not there is nil.
	open(ctx context.Context, day Day, write bool) (d *DB, done func(err error) error, err error)
	list(ctx context.Context) ([]Day, error)
	drop(ctx context.Context, day Day) error
	close() error
}

// Days returns what is kept by day.
func (d *DB) Days() *Days { return d.days }

func newDays(d *DB, c Config) *Days {
	if d.Engine() == Postgres {
		return &Days{store: &partitions{db: d, known: map[Day]bool{}}}
	}
	return &Days{store: newDayFiles(c.Dir, d.written)}
}

// Write runs fn in a transaction on one day's data, as Handle.Write does with
// all else. On SQLite a commit outlives the process, but not the machine: the
// disk is waited for some time later. A day whose file is damaged is set aside
// and the write fails; the next one begins a new file.
func (y *Days) Write(ctx context.Context, tenant string, day Day, fn func(Tx) error) error {
	d, done, err := y.store.open(ctx, day, true)
	if err != nil {
		return err
	}
	return done(d.For(tenant).Write(ctx, fn))
}

// Read runs fn on one day's data; one that is not there is not an error, and fn
// is not called.
func (y *Days) Read(ctx context.Context, tenant string, day Day, fn func(Querier) error) error {
	d, done, err := y.store.open(ctx, day, false)
	if err != nil || d == nil {
		return err
	}
	return done(fn(d.For(tenant)))
}

// List returns the days that there are, the latest first.
func (y *Days) List(ctx context.Context) ([]Day, error) { return y.store.list(ctx) }

// Drop deletes a day with all that it has, of every tenant. Nobody else is kept
// waiting; where others keep it from its work for too long it fails with
// ErrBusy, having done nothing.
func (y *Days) Drop(ctx context.Context, day Day) error {
	if err := y.store.drop(ctx, day); err != nil {
		return fmt.Errorf("drop %s: %w", day, err)
	}
	return nil
}
