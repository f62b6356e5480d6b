package endpoint

import (
	"context"
	"errors"
	"strings"

	"gatehouse/internal/clock"
	"gatehouse/internal/custom"
	"gatehouse/internal/db"
	"gatehouse/internal/failpoint"
	"gatehouse/internal/fault"
	"gatehouse/internal/records"
	"gatehouse/internal/secret"
	"gatehouse/internal/tenant"
)

// New returns a Service over a database, which must stay open until Close has
// returned.
func New(d *db.DB, o Options) *Service { return newService(store{d, o.Keyring}, o) }

type store struct {
	d       *db.DB
	keyring sealing
}

// definitions reads what a tenant defined, and the version of the configuration
// that defines it. It returns OVERLOADED when the configuration keeps changing.
func (s store) definitions(ctx context.Context, tenantID tenant.ID) (*custom.Definitions, int64, error) {
	h := s.d.For(tenantID)
	for range 20 {
		before, _, err := tenant.Version(ctx, h)
		if err != nil {
			return nil, 0, err
		}
		d, err := custom.Load(ctx, h)
		if err != nil {
			return nil, 0, err
		}
		after, _, err := tenant.Version(ctx, h)
		if err != nil {
			return nil, 0, err
		}
		if before == after {
			return d, after, nil
		}
	}
	return nil, 0, fault.New(fault.Overloaded, "the configuration changes too fast to be read")
}

// tokenHash is read on every delivery, so that a new token holds at once on
// every node (contract W1, H15).
func (s store) tokenHash(ctx context.Context, tenantID tenant.ID, slug string) (secret.TokenHash, error) {
	return custom.TokenHash(ctx, s.d.For(tenantID), slug)
}

// seen returns the id of the event that a delivery's key belongs to, "" when
// the key is new.
func (s store) seen(ctx context.Context, tenantID tenant.ID, slug, keyHash string) (eventID string, err error) {
	err = s.d.For(tenantID).Query(ctx, `SELECT event_id FROM event_keys WHERE tenant_id = $1 AND slug = $2 AND key_hash = $3`,
		func(r db.Row) error { eventID = r.Text(0); return nil }, slug, keyHash)
	return eventID, err
}

// commit commits a run's changes together with its event and the event's key,
// in one transaction. It returns errSeen when the key exists, records.ErrLost
// when the run lost a race, and EXECUTION_TIMEOUT when ctx's deadline came before
// the transaction was complete; then nothing is committed. A transaction that was
// complete by then is committed, and commit returns nil.
func (s store) commit(ctx context.Context, unit *records.Unit, j *job, now int64) error {
	var also func(db.Tx) error
	if j.event != nil {
		also = func(tx db.Tx) error { return deliver(ctx, tx, j, now) }
	}
	err := unit.Commit(ctx, also)
	if errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, db.ErrUnavailable) { // an unavailable database may have committed
		err = errTime
	}
	return err
}

// deliver writes a run's event and its deduplication key.
func deliver(ctx context.Context, tx db.Tx, j *job, now int64) error {
	e := j.event
	failpoint.At("commit.records-done")
	_, err := tx.Exec(ctx, `INSERT INTO events (tenant_id, event_id, slug, auth, kind, received_at) VALUES ($1, $2, $3, $4, $5, $6)`,
		e.ID, j.slug, string(j.auth), storedKind(e.Kind), now)
	failpoint.At("commit.event-written")
	if err != nil || e.KeyHash == "" {
		return orSeen(err)
	}
	// The unique index decides which of two deliveries was first.
	_, err = tx.Exec(ctx, `INSERT INTO event_keys (tenant_id, slug, key_hash, event_id, seen_at) VALUES ($1, $2, $3, $4, $5)`,
		j.slug, e.KeyHash, e.ID, now)
	failpoint.At("commit.key-written")
	return orSeen(err)
}

// storedKind returns an event's kind as it can be stored: in UTF-8, without U+0000.
func storedKind(kind string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(kind, "\uFFFD"), "\x00", "\uFFFD")
}

// orSeen returns errSeen when err says that the row exists, and err otherwise.
func orSeen(err error) error {
	if errors.Is(err, db.ErrUnique) {
		return errSeen
	}
	return err
}

// committed reports whether there is an event with that id.
func (s store) committed(ctx context.Context, tenantID tenant.ID, eventID string) (found bool, err error) {
	err = s.d.For(tenantID).Query(ctx, `SELECT 1 FROM events WHERE tenant_id = $1 AND event_id = $2`,
		func(db.Row) error { found = true; return nil }, eventID)
	return found, err
}

// NewToken makes a new webhook token for an endpoint in token mode. The old one
// stops working at once on every node (contract W1). It returns NOT_FOUND when
// there is no such endpoint, VALIDATION when the endpoint has another mode, and
// the errors of tenant.Configure.
func NewToken(ctx context.Context, d *db.DB, clk clock.Clock, actor string, tenantID tenant.ID, slug string) (secret.Token, error) {
	token := secret.NewWebhookToken()
	h := d.For(tenantID)
	err := tenant.Configure(ctx, h, actor, clk, func(tx tenant.ConfigTx, log *tenant.History) error {
		all, err := custom.Load(ctx, tx)
		if err != nil {
			return err
		}
		e := all.Endpoints[slug]
		if e == nil {
			return fault.New(fault.NotFound, "there is no endpoint %q", slug)
		}
		if e.Auth != custom.Token {
			return fault.Fields("the endpoint "+slug+" takes no webhook token: its auth is "+string(e.Auth),
				map[string]string{"slug": "expected an endpoint with auth: token"})
		}
		prefix := secret.Prefix(token.Reveal())
		if _, err := custom.PutToken(ctx, tx, slug, secret.Hash(token.Reveal()), prefix); err != nil {
			return err
		}
		type past struct {
			Prefix string `json:"prefix"`
		}
		var before any
		if e.TokenPrefix != "" {
			before = past{e.TokenPrefix}
		}
		log.Record("webhook_token", slug, before, past{prefix})
		return nil
	})
	return token, err
}
