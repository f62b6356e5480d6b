package data

import (
	"context"
	"errors"
	"time"

	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/records"
	"gatehouse/internal/tenant"
)

// Options are what a Service works with.
type Options struct {
	DB      *db.DB
	Records *records.Store
	Clock   clock.Clock
	// Secret is what Idempotency-Keys and their bodies are hashed with. It must be the
	// same on every node.
	Secret []byte
	// Emit writes a line to the log.
	Emit func(event string, members map[string]any)
}

// New returns a Service over a database.
func New(o Options) *Service {
	return &Service{records: o.Records, repeats: repeats{store: store{o.DB}, clock: o.Clock, secret: o.Secret}, emit: o.Emit}
}

type store struct{ d *db.DB }

// keepFor is how long a request with an Idempotency-Key is known again (contract R18).
const keepFor = 24 * time.Hour

// errRepeated means that a request with the same key was done meanwhile.
var errRepeated = errors.New("a request with this Idempotency-Key was done before")

// find returns what is kept of a request that was done before, nil if there is nothing
// that is newer than since, in microseconds.
func (s store) find(ctx context.Context, c *claim, since int64) (found *kept, err error) {
	err = s.d.For(c.tenant).Query(ctx, `SELECT body_hash, outcome FROM idempotency_keys WHERE tenant_id = $1 AND user_id = $2 AND key_hash = $3
		AND done_at > $4`, func(r db.Row) error {
		found = &kept{body: bodyHash(r.Text(0)), outcome: r.Text(1)}
		return nil
	}, c.caller, string(c.key), since)
	return found, err
}

// keeping returns what keeps a request and its outcome, in the transaction that does it.
// It returns errRepeated where the request was done before. The primary key decides
// which of two was first.
func (s store) keeping(ctx context.Context, c *claim, now time.Time) func(db.Tx, []records.Done) error {
	return func(tx db.Tx, done []records.Done) error {
		outcome, err := encodeOutcome(done)
		if err != nil {
			return err
		}
		n, err := tx.Exec(ctx, `INSERT INTO idempotency_keys (tenant_id, user_id, key_hash, body_hash, outcome, done_at) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (tenant_id, user_id, key_hash) DO UPDATE SET body_hash = excluded.body_hash, outcome = excluded.outcome, done_at = excluded.done_at
			WHERE idempotency_keys.done_at <= $7`,
			c.caller, string(c.key), string(c.body), outcome, clock.Micros(now), clock.Micros(now.Add(-keepFor)))
		if err == nil && n == 0 {
			err = errRepeated
		}
		return err
	}
}

const expireEvery = time.Hour

// RunRetention forgets old Idempotency-Keys, now and every hour, until ctx ends. Of the
// nodes that run it, one does so.
func (s *Service) RunRetention(ctx context.Context) {
	store := s.repeats.store
	store.d.Housekeep(ctx, "idempotency", expireEvery,
		func(ctx context.Context) error { return store.expire(ctx, s.repeats.clock.Now()) },
		func(err error) { s.emit("idempotency.retention_failed", map[string]any{"error": err.Error()}) })
}

// expire deletes the old keys of every tenant.
func (s store) expire(ctx context.Context, now time.Time) error {
	return tenant.Expire(ctx, s.d, tenant.Old{
		Some: `SELECT 1 FROM idempotency_keys WHERE tenant_id = $1 AND done_at <= $2`,
		Delete: []string{`DELETE FROM idempotency_keys WHERE tenant_id = $1 AND (user_id, key_hash) IN (SELECT user_id, key_hash
			FROM idempotency_keys WHERE tenant_id = $1 AND done_at <= $2 ORDER BY done_at, user_id, key_hash LIMIT 500` + s.d.Dialect().ForUpdate + `)`},
		Args: []any{clock.Micros(now.Add(-keepFor))},
	})
}
