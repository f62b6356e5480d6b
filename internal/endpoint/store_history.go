package endpoint

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"gatehouse/internal/background"
	"gatehouse/internal/clock"
	"gatehouse/internal/credential"
	"gatehouse/internal/custom"
	"gatehouse/internal/db"
	"gatehouse/internal/fault"
	"gatehouse/internal/secret"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// putRuns stores runs of one tenant in one transaction. It returns errUnfit
// where the failure has another cause than the database's state. An existing
// run is left unchanged: it may be unknown whether an earlier try was
// committed.
func (s store) putRuns(ctx context.Context, tenantID tenant.ID, runs []*Run) error {
	deliveries := make([]string, len(runs))
	for i, r := range runs {
		if len(r.payload) > 0 {
			deliveries[i] = s.keyring.Seal(payloadPurpose, r.payload)
		}
	}
	err := s.d.For(tenantID).Write(ctx, func(tx db.Tx) error {
		for i, r := range runs {
			_, err := tx.Exec(ctx, `INSERT INTO runs (tenant_id, run_id, started_at, took_us, cpu_us, target_kind, target, slug, auth,
				user_id, request_id, event_id, status, error_code, error, tries, trace, console, payload, used, event_kind, skipped, skipped_because)
				VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, '', $19, $20, $21, $22) ON CONFLICT (tenant_id, run_id) DO NOTHING`,
				r.ID, r.StartedAt, r.Took, r.CPU, r.Target.Kind, r.Target.Name, r.Slug, string(r.Auth), r.UserID, r.RequestID, r.EventID,
				r.Status, r.ErrorCode, r.Error, r.Tries, r.Trace, r.Console, r.Used, r.EventKind, r.Skipped.Nodes, r.Skipped.Because)
			if err == nil && deliveries[i] != "" {
				_, err = tx.Exec(ctx, `INSERT INTO failed_deliveries (tenant_id, run_id, sealed) VALUES ($1, $2, $3) ON CONFLICT (tenant_id, run_id) DO NOTHING`,
					r.ID, deliveries[i])
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil || ctx.Err() != nil || errors.Is(err, db.ErrFull) || errors.Is(err, db.ErrBusy) || errors.Is(err, db.ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%w: %w", errUnfit, err)
}

const runColumns = `run_id, started_at, took_us, cpu_us, target_kind, target, slug, auth, user_id, request_id, event_id,
	status, error_code, error, tries, trace, console, used, event_kind, skipped, skipped_because`

func scanRun(r db.Row) *Run {
	return &Run{
		ID: r.Text(0), StartedAt: r.Int(1), Took: r.Int(2), CPU: r.Int(3),
		Target: custom.Target{Kind: custom.TargetKind(r.Text(4)), Name: r.Text(5)}, Slug: r.Text(6), Auth: credential.Kind(r.Text(7)), UserID: user.ID(r.Text(8)),
		RequestID: r.Text(9), EventID: r.Text(10), Status: r.Text(11), ErrorCode: r.Text(12), Error: r.Text(13), Tries: int(r.Int(14)),
		Trace: r.Text(15), Console: r.Text(16), Used: r.Text(17), EventKind: r.Text(18), Skipped: Skipped{int(r.Int(19)), r.Text(20)},
	}
}

// RunFilter selects runs.
type RunFilter struct {
	Slug   string // of an endpoint; "" for all runs
	Errors bool   // only failed runs
	Limit  int    // 0 for all
	// RequestID selects the run of one request; "" for all runs.
	RequestID string
	Since     time.Time // only runs that began then or later; zero for all
}

// Runs calls each for a tenant's runs, newest first.
func Runs(ctx context.Context, d *db.DB, tenantID tenant.ID, f RunFilter, each func(*Run) error) error {
	where, args := "", []any{}
	and := func(condition string, arg any) {
		args = append(args, arg)
		where += " AND " + condition + " $" + strconv.Itoa(len(args)+1)
	}
	if f.Slug != "" {
		and("slug =", f.Slug)
	}
	if f.RequestID != "" {
		and("request_id =", f.RequestID)
	}
	if !f.Since.IsZero() {
		and("run_id >=", clock.IDsFrom(f.Since))
	}
	if f.Errors {
		where += " AND status = 'failed'"
	}
	limit := ""
	if f.Limit > 0 {
		limit = " LIMIT " + strconv.Itoa(f.Limit)
	}
	return d.For(tenantID).Query(ctx, `SELECT `+runColumns+` FROM runs WHERE tenant_id = $1`+where+` ORDER BY run_id DESC`+limit,
		func(r db.Row) error { return each(scanRun(r)) }, args...)
}

// RunByID returns one run, or NOT_FOUND.
func RunByID(ctx context.Context, d *db.DB, tenantID tenant.ID, id string) (*Run, error) {
	var run *Run
	err := d.For(tenantID).Query(ctx, `SELECT `+runColumns+` FROM runs WHERE tenant_id = $1 AND run_id = $2`,
		func(r db.Row) error { run = scanRun(r); return nil }, id)
	if err == nil && run == nil {
		err = fault.New(fault.NotFound, "there is no run %q", id)
	}
	return run, err
}

// runByID is RunByID for the service.
func (s store) runByID(ctx context.Context, tenantID tenant.ID, id string) (*Run, error) {
	return RunByID(ctx, s.d, tenantID, id)
}

// CheckDeliveries returns secret.ErrOpen when the newest failed delivery of the
// tenant that h is bound to was sealed under another master key.
func CheckDeliveries(ctx context.Context, h db.Handle, keyring *secret.Keyring) error {
	sealed := ""
	read := func(r db.Row) error { sealed = r.Text(0); return nil }
	err := h.Query(ctx, `SELECT sealed FROM failed_deliveries WHERE tenant_id = $1 ORDER BY run_id DESC LIMIT 1`, read)
	if err == nil && sealed == "" {
		err = h.Query(ctx, `SELECT payload FROM runs WHERE tenant_id = $1 AND payload <> '' ORDER BY started_at DESC LIMIT 1`, read)
	}
	if err == nil && sealed != "" {
		_, err = keyring.Open(payloadPurpose, sealed)
	}
	return err
}

// failedDelivery returns a run and what is needed to run its failed delivery again, packed.
// Its errors are those of Retry.
func (s store) failedDelivery(ctx context.Context, tenantID tenant.ID, id string) (*Run, []byte, error) {
	run, err := RunByID(ctx, s.d, tenantID, id)
	if err != nil {
		return nil, nil, err
	}
	sealed := ""
	err = s.d.For(tenantID).Query(ctx, `SELECT payload FROM runs WHERE tenant_id = $1 AND run_id = $2 AND payload <> ''
		UNION ALL SELECT sealed FROM failed_deliveries WHERE tenant_id = $1 AND run_id = $2`,
		func(r db.Row) error { sealed = r.Text(0); return nil }, id)
	if err != nil {
		return nil, nil, err
	}
	if sealed == "" {
		return nil, nil, fault.New(fault.Conflict, "run %s is not the failed delivery of a webhook, or was too large to be kept", id)
	}
	text, err := s.keyring.Open(payloadPurpose, sealed)
	return run, text, err
}

// runRetention is how long runs are kept (contract X8).
const (
	runRetention = 30 * 24 * time.Hour
	expireEvery  = time.Hour
)

// RunRetention deletes what is older than the retention, now and every hour,
// until ctx ends. Of the nodes that run it, one does so.
func (s *Service) RunRetention(ctx context.Context) {
	s.store.d.Housekeep(ctx, "runs", expireEvery,
		func(ctx context.Context) error { return s.store.expire(ctx, s.clock.Now()) },
		func(err error) { s.emit("run.retention_failed", map[string]any{"error": err.Error()}) })
}

// expire deletes every tenant's runs that are over 30 days old, and events and
// their keys where the tenant does not keep them for ever (contract W13). A
// tenant whose deletion fails does not stop the others.
func (s store) expire(ctx context.Context, now time.Time) error {
	lock, before := s.d.Dialect().ForUpdate, []any{clock.Micros(now.Add(-runRetention))}
	err := tenant.Expire(ctx, s.d,
		tenant.Old{
			Some: `SELECT 1 FROM runs WHERE tenant_id = $1 AND started_at < $2`,
			Delete: []string{`DELETE FROM runs WHERE tenant_id = $1 AND run_id IN (SELECT run_id FROM runs
				WHERE tenant_id = $1 AND started_at < $2 ORDER BY started_at, run_id LIMIT 500` + lock + `)`},
			Args: before,
		},
		tenant.Old{
			Some: `SELECT 1 FROM failed_deliveries WHERE tenant_id = $1 AND run_id < $2`,
			Delete: []string{`DELETE FROM failed_deliveries WHERE tenant_id = $1 AND run_id IN (SELECT run_id FROM failed_deliveries
				WHERE tenant_id = $1 AND run_id < $2 ORDER BY run_id LIMIT 4` + lock + `)`}, // large rows: 10 ms each with SQLite
			Args: []any{clock.IDsFrom(now.Add(-runRetention))},
		},
		tenant.Old{
			Some: `SELECT 1 FROM event_repeats WHERE tenant_id = $1 AND last_at < $2`,
			Delete: []string{`DELETE FROM event_repeats WHERE tenant_id = $1 AND event_id IN (SELECT event_id FROM event_repeats
				WHERE tenant_id = $1 AND last_at < $2 ORDER BY last_at, event_id LIMIT 500` + lock + `)`},
			Args: before,
		})
	return errors.Join(err, s.expireEvents(ctx, now))
}

// expireEvents deletes events and their keys. Each tenant says how long it keeps them, a day
// at least.
func (s store) expireEvents(ctx context.Context, now time.Time) error {
	keys, events := tenant.Old{
		Some: `SELECT 1 FROM event_keys WHERE tenant_id = $1 AND seen_at < $2`,
		Delete: []string{`DELETE FROM event_keys WHERE tenant_id = $1 AND (slug, key_hash) IN (SELECT slug, key_hash FROM event_keys
			WHERE tenant_id = $1 AND seen_at < $2 ORDER BY seen_at, slug, key_hash LIMIT 500` + s.d.Dialect().ForUpdate + `)`},
	}, tenant.Old{
		Some: `SELECT 1 FROM events WHERE tenant_id = $1 AND received_at < $2`,
		Delete: []string{`DELETE FROM events WHERE tenant_id = $1 AND event_id IN (SELECT event_id FROM events
			WHERE tenant_id = $1 AND received_at < $2 ORDER BY received_at, event_id LIMIT 500` + s.d.Dialect().ForUpdate + `)`},
	}
	var failed []error
	for _, old := range []tenant.Old{keys, events} {
		ids, err := tenant.Having(ctx, s.d, old.Some, clock.Micros(now.AddDate(0, 0, -1)))
		failed = append(failed, err, background.Each(ctx, ids, func(ctx context.Context, id tenant.ID) error {
			h := s.d.For(id)
			t, err := tenant.Load(ctx, h)
			if err != nil || t.Settings.DedupRetentionDays == 0 {
				return err
			}
			old.Args = []any{clock.Micros(now.AddDate(0, 0, -t.Settings.DedupRetentionDays))}
			return old.DeleteOf(ctx, h)
		}))
	}
	return errors.Join(failed...)
}

// sealing is the part of a keyring that a store needs.
type sealing interface {
	Seal(purpose string, plain []byte) string
	Open(purpose, sealed string) ([]byte, error)
}

var _ sealing = (*secret.Keyring)(nil)
