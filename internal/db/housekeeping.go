package db

import (
	"context"
	"time"

	"gatehouse/internal/background"
)

// Housekeep calls pass, at once and then once in every interval, until ctx ends. Of the nodes
// that share a PostgreSQL, one does so each time: the first to find that job is due. If that
// node dies, or its pass fails, another turn comes after at most twice the interval. A pass
// that takes longer than the interval may meet the next one on another node, so it must be
// right beside itself.
//
// failed is called with errors, as background.Sweep does.
func (d *DB) Housekeep(ctx context.Context, job string, every time.Duration, pass func(context.Context) error, failed func(error)) {
	background.Sweep(ctx, every, func(ctx context.Context) error {
		due, err := d.due(ctx, job, every)
		if err != nil || !due {
			return err
		}
		return pass(ctx)
	}, failed)
}

// due reports whether a job is due, and then makes it due again a little before the interval
// has passed, so that the node that did it finds it due when it asks next. Where nothing can
// be written, nothing is due. On SQLite, whose folder has one server, every job is due.
func (d *DB) due(ctx context.Context, job string, every time.Duration) (due bool, err error) {
	if d.Engine() == SQLite {
		return true, nil
	}
	h := d.Unscoped("nodes agree on who does what is due for all tenants")
	now, was, readOnly := int64(0), int64(-1), false // was stays -1 if nobody did it yet
	err = h.Query(ctx, `SELECT `+d.dialect.Now+`, (SELECT due_at FROM housekeeping WHERE job = $1), current_setting('transaction_read_only')`, func(r Row) error {
		if now = r.Int(0); !r.Null(1) {
			was = r.Int(1)
		}
		readOnly = r.Text(2) == "on"
		return nil
	}, job)
	// An instant that is further away than the interval was written by another clock.
	if err != nil || readOnly || now < was && was <= now+every.Microseconds() {
		return false, err
	}
	err = h.Write(ctx, func(tx Tx) error {
		take, args := `UPDATE housekeeping SET due_at = $2 WHERE job = $1 AND due_at = $3`, []any{job, now + (every * 4 / 5).Microseconds(), was}
		if was < 0 {
			take, args = `INSERT INTO housekeeping (job, due_at) VALUES ($1, $2) ON CONFLICT (job) DO NOTHING`, args[:2]
		}
		n, err := tx.Exec(ctx, take, args...)
		due = n > 0
		return err
	})
	return due && err == nil, err
}
