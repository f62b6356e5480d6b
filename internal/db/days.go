package db

import (
	"context"
	"fmt"
	"time"
)

// Day is a day in UTC, counted from 1 January 1970.
type Day int64

const dayFormat = "2006-01-02"

// DayOf returns the day of an instant.
func DayOf(t time.Time) Day {
	const seconds = 24 * 60 * 60
	s := t.Unix()
	if s < 0 {
		s -= seconds - 1
	}
	return Day(s / seconds)
}

// Start returns the instant at which the day begins.
func (d Day) Start() time.Time { return time.Unix(int64(d)*24*60*60, 0).UTC() }

// String returns the day in the form 2026-11-22.
func (d Day) String() string { return d.Start().Format(dayFormat) }

// Days is data that is kept by UTC day, apart from all other data, and dropped
// by the day. On SQLite each day has a file of its own next to the main one,
// with a writer of its own that does not wait for the disk at every commit; on
// PostgreSQL each day is a partition of the tables of migration 0005.
//
// The same SQL text runs on both. The tables have a column day, which every
// statement must bind, because PostgreSQL finds the partition by it.
type Days struct {
	store dayStore
}

// dayStore is the part of Days that differs between the engines.
type dayStore interface {
	// open returns the database of a day. done must be called with the outcome.
	// If write is set, open creates the day if it does not exist; otherwise d
	// is nil for such a day.
	open(ctx context.Context, day Day, write bool) (d *DB, done func(err error) error, err error)
	list(ctx context.Context) ([]Day, error)
	drop(ctx context.Context, day Day) error
	close() error
}

// Days returns the data that is kept by day.
func (d *DB) Days() *Days { return d.days }

func newDays(d *DB, c Config) *Days {
	if d.Engine() == Postgres {
		return &Days{store: &partitions{db: d, known: map[Day]bool{}}}
	}
	return &Days{store: newDayFiles(c.Dir, d.written)}
}

// Write runs fn in a transaction on one day's data, like Handle.Write. On
// SQLite a commit survives a crash of the process but perhaps not of the
// machine, because the disk is synced later. If a day's file is damaged, it is
// set aside and the write fails; the next write begins a new file.
func (y *Days) Write(ctx context.Context, tenant TenantID, day Day, fn func(Tx) error) error {
	d, done, err := y.store.open(ctx, day, true)
	if err != nil {
		return err
	}
	return done(d.For(tenant).Write(ctx, fn))
}

// Read runs fn on one day's data. A day that does not exist is not an error: fn
// is not called.
func (y *Days) Read(ctx context.Context, tenant TenantID, day Day, fn func(Querier) error) error {
	d, done, err := y.store.open(ctx, day, false)
	if err != nil || d == nil {
		return err
	}
	return done(fn(d.For(tenant)))
}

// List returns the existing days, the latest first. Its errors, and those of Read and Write,
// are those of Handle.
func (y *Days) List(ctx context.Context) ([]Day, error) { return y.store.list(ctx) }

// Drop deletes a day with all its data, for every tenant. It does not block
// other callers. It returns ErrBusy, having done nothing, if it cannot get the
// lock in time.
func (y *Days) Drop(ctx context.Context, day Day) error {
	if err := y.store.drop(ctx, day); err != nil {
		return fmt.Errorf("drop %s: %w", day, err)
	}
	return nil
}
