package audit

import (
	"context"
	"errors"
	"time"

	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/tenant"
)

const (
	// Retention is how long entries and usage are kept (contract G9). Entries
	// are dropped by the day, once the whole day is that old.
	Retention = 30 * 24 * time.Hour

	retentionEvery = time.Hour
	retentionBatch = 500 // rows of usage deleted by one transaction
)

// RunRetention deletes what is older than Retention, now and every hour, until
// ctx ends. Any number of nodes may run it at once.
func (r *Recorder) RunRetention(ctx context.Context) {
	s, ok := r.store.(dbStore)
	if !ok {
		return
	}
	ticker := time.NewTicker(retentionEvery)
	defer ticker.Stop()
	for {
		if err := s.expire(ctx, r.clk.Now().Add(-Retention)); err != nil && ctx.Err() == nil {
			r.trouble.say("audit.retention_failed", map[string]any{"error": err.Error()})
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// expire deletes what is older than an instant, of every tenant. A day or
// tenant that fails does not stop the others.
func (s dbStore) expire(ctx context.Context, before time.Time) error {
	failed := s.expireDays(ctx, db.DayOf(before))
	tenants, err := tenant.List(ctx, s.d)
	if err != nil {
		return errors.Join(failed, err)
	}
	for _, t := range tenants {
		if err := expireTenant(ctx, s.d.For(t), before); err != nil {
			failed = err
		}
	}
	return failed
}

// expireDays drops the days before one.
func (s dbStore) expireDays(ctx context.Context, before db.Day) error {
	days, err := s.d.Days().List(ctx)
	failed := err
	for _, day := range days {
		if day < before {
			if err := s.d.Days().Drop(ctx, day); err != nil {
				failed = err
			}
		}
	}
	return failed
}

// expireTenant deletes in small transactions, oldest first. Each locks its rows
// in the order of their keys, so that nodes that do the same wait for each
// other and then find nothing left.
func expireTenant(ctx context.Context, h db.Handle, before time.Time) error {
	lock := h.Dialect().ForUpdate
	for _, job := range []struct {
		sql   string
		bound any
	}{
		{`DELETE FROM usage_minutes WHERE tenant_id = $1 AND (minute, endpoint) IN (SELECT minute, endpoint FROM usage_minutes
			WHERE tenant_id = $1 AND minute < $2 ORDER BY minute, endpoint LIMIT $3` + lock + `)`, clock.Micros(before) - minute + 1}, // the whole minute is over
		{`DELETE FROM audit_users WHERE tenant_id = $1 AND (email_key, user_id) IN (SELECT email_key, user_id FROM audit_users
			WHERE tenant_id = $1 AND seen_at < $2 ORDER BY email_key, user_id LIMIT $3` + lock + `)`,
			clock.Micros(before.Add(-namesNotAgain))},
		{`DELETE FROM usage_writers WHERE tenant_id = $1 AND writer IN (SELECT writer FROM usage_writers
			WHERE tenant_id = $1 AND at < $2 ORDER BY writer LIMIT $3` + lock + `)`, clock.Micros(before)},
	} {
		for {
			begun := time.Now()
			var deleted int64
			err := h.Write(ctx, func(tx db.Tx) (err error) {
				deleted, err = tx.Exec(ctx, job.sql, job.bound, retentionBatch)
				return err
			})
			if err != nil {
				return err
			}
			if deleted == 0 {
				break
			}
			if err := clock.Rest(ctx, time.Since(begun)); err != nil {
				return err
			}
		}
	}
	return nil
}
