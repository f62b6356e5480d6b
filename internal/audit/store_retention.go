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
)

// RunRetention deletes what is older than Retention, and merges usage of minutes
// that is a day old, now and every hour, until ctx ends. Of the nodes that run it, one does so.
func (r *Recorder) RunRetention(ctx context.Context) {
	s, ok := r.store.(dbStore)
	if !ok {
		return
	}
	s.d.Housekeep(ctx, "audit", retentionEvery,
		func(ctx context.Context) error {
			now := r.clk.Now()
			return errors.Join(s.expire(ctx, now.Add(-Retention)), s.thin(ctx, now))
		},
		func(err error) { r.trouble.say("audit.retention_failed", map[string]any{"error": err.Error()}) })
}

// expire deletes what is older than an instant, of every tenant. A day or
// tenant that fails does not stop the others. It locks rows in the order of their keys, so
// that nodes that do the same wait for each other and then find nothing left.
func (s dbStore) expire(ctx context.Context, before time.Time) error {
	lock, whole := s.d.Dialect().ForUpdate, []any{clock.Micros(before) - minute + 1} // the whole minute is over
	return errors.Join(s.expireDays(ctx, db.DayOf(before)), tenant.Expire(ctx, s.d,
		tenant.Old{
			Some: `SELECT 1 FROM usage_minutes WHERE tenant_id = $1 AND minute < $2`,
			Delete: []string{`DELETE FROM usage_minutes WHERE tenant_id = $1 AND (minute, endpoint) IN (SELECT minute, endpoint FROM usage_minutes
				WHERE tenant_id = $1 AND minute < $2 ORDER BY minute, endpoint LIMIT 500` + lock + `)`},
			Args: whole,
		},
		tenant.Old{
			Some: `SELECT 1 FROM usage_keys WHERE tenant_id = $1 AND minute < $2`,
			Delete: []string{`DELETE FROM usage_keys WHERE tenant_id = $1 AND (minute, key_id) IN (SELECT minute, key_id FROM usage_keys
				WHERE tenant_id = $1 AND minute < $2 ORDER BY minute, key_id LIMIT 500` + lock + `)`},
			Args: whole,
		},
		tenant.Old{
			Some: `SELECT 1 FROM audit_users WHERE tenant_id = $1 AND seen_at < $2`,
			Delete: []string{`DELETE FROM audit_users WHERE tenant_id = $1 AND (email_key, user_id) IN (SELECT email_key, user_id FROM audit_users
				WHERE tenant_id = $1 AND seen_at < $2 ORDER BY email_key, user_id LIMIT 500` + lock + `)`},
			Args: []any{clock.Micros(before.Add(-namesNotAgain))},
		},
		tenant.Old{
			Some: `SELECT 1 FROM usage_writers WHERE tenant_id = $1 AND at < $2`,
			Delete: []string{`DELETE FROM usage_writers WHERE tenant_id = $1 AND writer IN (SELECT writer FROM usage_writers
				WHERE tenant_id = $1 AND at < $2 ORDER BY writer LIMIT 500` + lock + `)`},
			Args: []any{clock.Micros(before)},
		}))
}

// expireDays drops the days before one.
func (s dbStore) expireDays(ctx context.Context, before db.Day) error {
	days, err := s.d.Days().List(ctx)
	days = slices.DeleteFunc(days, func(day db.Day) bool { return day >= before })
	return errors.Join(err, background.Each(ctx, days, s.d.Days().Drop))
}

// thin merges old usage of every tenant that has some.
func (s dbStore) thin(ctx context.Context, now time.Time) error {
	from, below := thinSpan(now)
	byEndpoint, err := tenant.Having(ctx, s.d, `SELECT 1 FROM usage_minutes WHERE tenant_id = $1 AND minute >= $2 AND minute < $3 AND minute % $4 <> 0`, from, below, coarse)
	byKey, failed := tenant.Having(ctx, s.d, `SELECT 1 FROM usage_keys WHERE tenant_id = $1 AND minute >= $2 AND minute < $3 AND minute % $4 <> 0`, from, below, coarse)
	tenants := slices.Concat(byEndpoint, byKey)
	slices.Sort(tenants)
	return errors.Join(err, failed, background.Each(ctx, slices.Compact(tenants), func(ctx context.Context, t tenant.ID) error {
		return thin(ctx, s.d.For(t), now)
	}))
}
