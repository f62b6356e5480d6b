package endpoint

import (
	"context"
	"time"

	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/tenant"
)

// Bounds of Recent: counts end at recentMost, and recentRuns runs are looked at.
const (
	recentMost = 10_000
	recentRuns = 20_000
)

// Recent is what a tenant's webhooks received in a span of time, and which runs
// failed.
type Recent struct {
	Events, Failed         int64 // at most 10,000
	MoreEvents, MoreFailed bool  // there are, or may be, more
	// The latest run that failed; RunID is "" for none.
	RunID, Slug, Target, Error string
	FailedAt                   time.Time
}

// Recent counts the events of a span of time and the runs of endpoints that failed
// in it.
func (s *Service) Recent(ctx context.Context, t tenant.ID, from, to time.Time) (Recent, error) {
	return s.store.recent(ctx, t, clock.IDsFrom(from), clock.IDsFrom(to))
}

func (s store) recent(ctx context.Context, t tenant.ID, from, below string) (r Recent, err error) {
	h := s.d.For(t)
	err = h.Query(ctx, `SELECT count(*) FROM (SELECT 1 FROM events WHERE tenant_id = $1 AND event_id >= $2 AND event_id < $3 LIMIT $4) AS first_ones`,
		func(row db.Row) error { r.Events = row.Int(0); return nil }, from, below, recentMost+1)
	if err != nil {
		return r, err
	}
	looked := int64(0)
	err = h.Query(ctx, `SELECT count(*), coalesce(sum(CASE WHEN status = 'failed' AND slug <> '' THEN 1 ELSE 0 END), 0)
		FROM (SELECT status, slug FROM runs WHERE tenant_id = $1 AND run_id >= $2 AND run_id < $3 ORDER BY run_id DESC LIMIT $4) AS latest`,
		func(row db.Row) error { looked, r.Failed = row.Int(0), row.Int(1); return nil }, from, below, recentRuns)
	if err != nil {
		return r, err
	}
	r.Events, r.MoreEvents = min(r.Events, recentMost), r.Events > recentMost
	r.Failed, r.MoreFailed = min(r.Failed, recentMost), r.Failed > recentMost || looked == recentRuns
	if r.Failed == 0 {
		return r, nil
	}
	return r, h.Query(ctx, `SELECT run_id, slug, target, error, started_at FROM runs WHERE tenant_id = $1 AND run_id >= $2 AND run_id < $3
		AND status = 'failed' AND slug <> '' ORDER BY run_id DESC LIMIT 1`, func(row db.Row) error {
		r.RunID, r.Slug, r.Target, r.Error, r.FailedAt = row.Text(0), row.Text(1), row.Text(2), row.Text(3), clock.FromMicros(row.Int(4))
		return nil
	}, from, below)
}
