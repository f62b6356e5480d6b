package audit

import (
	"context"
	"time"

	"gatehouse/internal/background"
	"gatehouse/internal/clock"
	"gatehouse/internal/db"
)

const (
	// thinAfter is the age from which rows of usage are of fifteen minutes.
	thinAfter = 25 * time.Hour
	// thinBack is how far back from there rows of a minute are looked for: longer
	// than any server that counts is without housekeeping.
	thinBack = 48 * time.Hour
	// coarse is the span of such a row, in microseconds.
	coarse = 15 * minute
	// thinBatch is how many rows one transaction merges.
	thinBatch = 500
)

// usageColumns are the columns of usageSums, in the order of values.
const usageColumns = `requests, errors, failed, limited, latency_us, le_1, le_2, le_5, le_10, le_25, le_50, le_100, le_250, le_500, le_1000, le_2500,
	le_5000, slower`

// usageArgs is how many arguments a row of usage has beside the tenant.
var usageArgs = 2 + len((&usageSums{}).values())

// values returns the sums in the order of usageColumns.
func (s *usageSums) values() []*int64 {
	list := []*int64{&s.requests, &s.errors, &s.failed, &s.limited, &s.latencyMicros}
	for i := range s.buckets {
		list = append(list, &s.buckets[i])
	}
	return list
}

// scanSums reads sums from usageColumns, which begin at column first.
func scanSums(r db.Row, first int) (s usageSums) {
	for i, to := range s.values() {
		*to = r.Int(first + i)
	}
	return s
}

var (
	usageInserts = []insert{newInsert(16, usageArgs, upsertUsage), newInsert(1, usageArgs, upsertUsage)}
	keyInserts   = []insert{newInsert(16, usageArgs, upsertKeys), newInsert(1, usageArgs, upsertKeys)}
)

func upsertUsage(values string) string {
	return `INSERT INTO usage_minutes (tenant_id, minute, endpoint, ` + usageColumns + `) VALUES ` + values + `
		ON CONFLICT (tenant_id, minute, endpoint) DO UPDATE SET
		requests = usage_minutes.requests + excluded.requests, errors = usage_minutes.errors + excluded.errors,
		failed = usage_minutes.failed + excluded.failed, limited = usage_minutes.limited + excluded.limited,
		latency_us = usage_minutes.latency_us + excluded.latency_us, le_1 = usage_minutes.le_1 + excluded.le_1,
		le_2 = usage_minutes.le_2 + excluded.le_2, le_5 = usage_minutes.le_5 + excluded.le_5, le_10 = usage_minutes.le_10 + excluded.le_10,
		le_25 = usage_minutes.le_25 + excluded.le_25, le_50 = usage_minutes.le_50 + excluded.le_50,
		le_100 = usage_minutes.le_100 + excluded.le_100, le_250 = usage_minutes.le_250 + excluded.le_250,
		le_500 = usage_minutes.le_500 + excluded.le_500, le_1000 = usage_minutes.le_1000 + excluded.le_1000,
		le_2500 = usage_minutes.le_2500 + excluded.le_2500, le_5000 = usage_minutes.le_5000 + excluded.le_5000,
		slower = usage_minutes.slower + excluded.slower`
}

func upsertKeys(values string) string {
	return `INSERT INTO usage_keys (tenant_id, minute, key_id, ` + usageColumns + `) VALUES ` + values + `
		ON CONFLICT (tenant_id, minute, key_id) DO UPDATE SET
		requests = usage_keys.requests + excluded.requests, errors = usage_keys.errors + excluded.errors,
		failed = usage_keys.failed + excluded.failed, limited = usage_keys.limited + excluded.limited,
		latency_us = usage_keys.latency_us + excluded.latency_us, le_1 = usage_keys.le_1 + excluded.le_1,
		le_2 = usage_keys.le_2 + excluded.le_2, le_5 = usage_keys.le_5 + excluded.le_5, le_10 = usage_keys.le_10 + excluded.le_10,
		le_25 = usage_keys.le_25 + excluded.le_25, le_50 = usage_keys.le_50 + excluded.le_50, le_100 = usage_keys.le_100 + excluded.le_100,
		le_250 = usage_keys.le_250 + excluded.le_250, le_500 = usage_keys.le_500 + excluded.le_500,
		le_1000 = usage_keys.le_1000 + excluded.le_1000, le_2500 = usage_keys.le_2500 + excluded.le_2500,
		le_5000 = usage_keys.le_5000 + excluded.le_5000, slower = usage_keys.slower + excluded.slower`
}

// addUsage adds rows, which are in the order of their keys.
func addUsage(ctx context.Context, tx db.Tx, usage []usageRow) error {
	var endpoints, keys []usageRow
	for _, u := range usage {
		if u.key == "" {
			endpoints = append(endpoints, u)
		} else {
			keys = append(keys, u)
		}
	}
	if err := addRows(ctx, tx, usageInserts, endpoints); err != nil {
		return err
	}
	return addRows(ctx, tx, keyInserts, keys)
}

func addRows(ctx context.Context, tx db.Tx, inserts []insert, rows []usageRow) error {
	var args []any
	for _, in := range inserts {
		for ; len(rows) >= in.rows; rows = rows[in.rows:] {
			args = args[:0]
			for i := range rows[:in.rows] {
				u := &rows[i]
				args = append(args, u.minute, u.endpoint+u.key)
				for _, n := range u.values() {
					args = append(args, *n)
				}
			}
			if _, err := tx.Exec(ctx, in.sql, args...); err != nil {
				return err
			}
		}
	}
	return nil
}

// thinSpan returns the minutes that thin merges.
func thinSpan(now time.Time) (from, below int64) {
	below = clock.Micros(now.Add(-thinAfter))
	below -= below % coarse
	return below - thinBack.Microseconds(), below
}

// thin merges the rows of a tenant's usage that are thinAfter old into rows of
// fifteen minutes. It does so in small transactions, each of which deletes rows
// and adds what they had, so that nothing counts twice or not at all, whatever
// stops it and whoever else does the same.
func thin(ctx context.Context, h db.Handle, now time.Time) error {
	from, below := thinSpan(now)
	for _, job := range []struct {
		sql     string
		inserts []insert
	}{
		{`DELETE FROM usage_minutes WHERE tenant_id = $1 AND (minute, endpoint) IN (SELECT minute, endpoint FROM usage_minutes
			WHERE tenant_id = $1 AND minute >= $2 AND minute < $3 AND minute % $4 <> 0 ORDER BY minute, endpoint LIMIT $5` + h.Dialect().ForUpdate + `)
			RETURNING minute, endpoint, ` + usageColumns, usageInserts},
		{`DELETE FROM usage_keys WHERE tenant_id = $1 AND (minute, key_id) IN (SELECT minute, key_id FROM usage_keys
			WHERE tenant_id = $1 AND minute >= $2 AND minute < $3 AND minute % $4 <> 0 ORDER BY minute, key_id LIMIT $5` + h.Dialect().ForUpdate + `)
			RETURNING minute, key_id, ` + usageColumns, keyInserts},
	} {
		err := background.Steps(ctx, func(ctx context.Context) (more bool, err error) {
			err = h.Write(ctx, func(tx db.Tx) error {
				merged := usageMerge{}
				err := tx.Query(ctx, job.sql, func(r db.Row) error {
					sums := scanSums(r, 2)
					merged.add(r.Int(0)-r.Int(0)%coarse, r.Text(1), &sums)
					return nil
				}, from, below, coarse, thinBatch)
				if err != nil {
					return err
				}
				more = len(merged) > 0
				return addRows(ctx, tx, job.inserts, merged.rows())
			})
			return more, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
