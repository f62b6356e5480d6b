package audit

import (
	"context"
	"errors"
	"slices"
	"time"

	"gatehouse/internal/background"
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

// RunRetention deletes what is older than Retention, and merges usage of minutes
// that is a day old, now and every hour, until ctx ends. Any number of nodes may run it at once.
func (r *Recorder) RunRetention(ctx context.Context) {
	s, ok := r.store.(dbStore)
	if !ok {
		return
	}
	background.Sweep(ctx, retentionEvery,
		func(ctx context.Context) error {
			now := r.clk.Now()
			return errors.Join(s.expire(ctx, now.Add(-Retention)), s.thin(ctx, now))
		},
		func(err error) { r.trouble.say("audit.retention_failed", map[string]any{"error": err.Error()}) })
}

// expire deletes what is older than an instant, of every tenant. A day or
// tenant that fails does not stop the others.
func (s dbStore) expire(ctx context.Context, before time.Time) error {
	dropped := s.expireDays(ctx, db.DayOf(before))
	tenants, err := tenant.List(ctx, s.d)
	return errors.Join(dropped, err, background.Each(ctx, tenants, func(ctx context.Context, t tenant.ID) error {
		return expireTenant(ctx, s.d.For(t), before)
	}))
}

// thin merges old usage of every tenant.
func (s dbStore) thin(ctx context.Context, now time.Time) error {
	tenants, err := tenant.List(ctx, s.d)
	return errors.Join(err, background.Each(ctx, tenants, func(ctx context.Context, t tenant.ID) error {
		return thin(ctx, s.d.For(t), now)
	}))
}

// expireDays drops the days before one.
func (s dbStore) expireDays(ctx context.Context, before db.Day) error {
	days, err := s.d.Days().List(ctx)
	days = slices.DeleteFunc(days, func(day db.Day) bool { return day >= before })
	return errors.Join(err, background.Each(ctx, days, s.d.Days().Drop))
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
		{`DELETE FROM usage_keys WHERE tenant_id = $1 AND (minute, key_id) IN (SELECT minute, key_id FROM usage_keys
			WHERE tenant_id = $1 AND minute < $2 ORDER BY minute, key_id LIMIT $3` + lock + `)`, clock.Micros(before) - minute + 1},
		{`DELETE FROM audit_users WHERE tenant_id = $1 AND (email_key, user_id) IN (SELECT email_key, user_id FROM audit_users
			WHERE tenant_id = $1 AND seen_at < $2 ORDER BY email_key, user_id LIMIT $3` + lock + `)`,
			clock.Micros(before.Add(-namesNotAgain))},
		{`DELETE FROM usage_writers WHERE tenant_id = $1 AND writer IN (SELECT writer FROM usage_writers
			WHERE tenant_id = $1 AND at < $2 ORDER BY writer LIMIT $3` + lock + `)`, clock.Micros(before)},
	} {
		err := background.Steps(ctx, func(ctx context.Context) (more bool, err error) {
			err = h.Write(ctx, func(tx db.Tx) error {
				deleted, err := tx.Exec(ctx, job.sql, job.bound, retentionBatch)
				more = deleted > 0
				return err
			})
			return more, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
