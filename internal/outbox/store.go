package outbox

import (
	"context"
	"encoding/json"
	"time"

	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/mail"
	"gatehouse/internal/secret"
	"gatehouse/internal/tenant"
)

// purpose is the purpose that the keyring encrypts mails for.
const purpose = "waiting mail"

// share is how many mails of one tenant are begun before the next tenant's.
const share = 16

// Options configure an Outbox. Sender is needed by Run only. Emit writes an event
// to the log and may be nil; it gets neither addresses nor text of mails.
type Options struct {
	DB      *db.DB
	Keyring *secret.Keyring
	Clock   clock.Clock
	Sender  mail.Sender
	Emit    func(event string, fields map[string]any)
}

// New returns an outbox, which sends nothing until Run is called.
func New(opt Options) *Outbox {
	if opt.Emit == nil {
		opt.Emit = func(string, map[string]any) {}
	}
	return &Outbox{
		store: &store{db: opt.DB, keyring: opt.Keyring}, clock: opt.Clock, sender: opt.Sender, emit: opt.Emit,
		wake: make(chan struct{}, 1), renewEvery: renewEvery,
	}
}

// Put stores a mail of the tenant that tx is bound to. It is sent if tx is
// committed; Wake should be called then. The outbox sets the message's ID and
// Date. Put returns errors of the database only.
func (o *Outbox) Put(ctx context.Context, tx db.Tx, m mail.Message) error {
	plain, err := json.Marshal(m)
	if err != nil {
		return err
	}
	now := o.clock.Now()
	_, err = tx.Exec(ctx, `INSERT INTO outbox (tenant_id, mail_id, sealed, attempts, next_at, leased_until, created_at, last_error)
		VALUES ($1, $2, $3, 0, $4, 0, $4, '')`, clock.NewID(now), o.store.keyring.Seal(purpose, plain), now)
	return err
}

type store struct {
	db      *db.DB
	keyring *secret.Keyring
}

// open decrypts the message of a mail, whose ID and Date are the same at each
// try. It returns errSealed when that fails.
func (s *store) open(m claimedMail) (mail.Message, error) {
	var message mail.Message
	plain, err := s.keyring.Open(purpose, m.sealed)
	if err != nil || json.Unmarshal(plain, &message) != nil {
		return message, errSealed
	}
	message.ID, message.Date = m.id, m.createdAt
	return message, nil
}

// CheckMails returns secret.ErrOpen if a waiting mail of the tenant that h is
// bound to was encrypted under another master key.
func CheckMails(ctx context.Context, h db.Handle, keyring *secret.Keyring) error {
	sealed := ""
	err := h.Query(ctx, `SELECT sealed FROM outbox WHERE tenant_id = $1 ORDER BY next_at DESC LIMIT 1`,
		func(r db.Row) error { sealed = r.Text(0); return nil })
	if err == nil && sealed != "" {
		_, err = keyring.Open(purpose, sealed)
	}
	return err
}

// tenantWithMail is a tenant that has mail, and when its earliest is due.
type tenantWithMail struct {
	name tenant.ID
	next time.Time
}

// tenants lists the tenants that have mail. It steps through the index from
// tenant to tenant, so that its cost does not grow with the number of mails. Where the
// tenants are on several servers, which have no common index, each reads its own.
func (s *store) tenants(ctx context.Context) ([]tenantWithMail, error) {
	var list []tenantWithMail
	text := `SELECT tenant_id, min(next_at) FROM outbox GROUP BY tenant_id ORDER BY tenant_id`
	if !s.db.Dialect().Distributed {
		text = `WITH RECURSIVE found(tenant_id) AS (
			SELECT min(tenant_id) FROM outbox
			UNION ALL
			SELECT (SELECT min(o.tenant_id) FROM outbox o WHERE o.tenant_id > f.tenant_id) FROM found f WHERE f.tenant_id IS NOT NULL)
		SELECT f.tenant_id, (SELECT min(o.next_at) FROM outbox o WHERE o.tenant_id = f.tenant_id)
		FROM found f WHERE f.tenant_id IS NOT NULL`
	}
	err := s.db.Unscoped("the outbox sends the mails of all tenants").Query(ctx, text, func(r db.Row) error {
		if !r.Null(1) { // its last mail was deleted in between
			list = append(list, tenantWithMail{tenant.ID(r.Text(0)), clock.FromMicros(r.Int(1))})
		}
		return nil
	})
	return list, err
}

// count returns how many mails wait, of all tenants.
func (s *store) count(ctx context.Context) (n int64, err error) {
	err = s.db.Unscoped("an operator watches the outbox").Query(ctx, `SELECT count(*) FROM outbox`, func(r db.Row) error {
		n = r.Int(0)
		return nil
	})
	return n, err
}

// due lists mails of a tenant that may be tried now, at most share, in the order
// in which they became due.
func (s *store) due(ctx context.Context, tenant tenant.ID, now time.Time) ([]waitingMail, error) {
	var list []waitingMail
	err := s.db.For(tenant).Query(ctx, `SELECT mail_id, leased_until FROM outbox
		WHERE tenant_id = $1 AND next_at <= $2 ORDER BY next_at LIMIT 16`, func(r db.Row) error { // the literal is share
		list = append(list, waitingMail{tenant, r.Text(0), r.Int(1)})
		return nil
	}, now)
	return list, err
}

// claim leases a mail and counts the try; ok is false if another node was first:
// of several that have read the same lease, one can replace it.
func (s *store) claim(ctx context.Context, m waitingMail, now, until time.Time) (c claimedMail, ok bool, err error) {
	err = s.db.For(m.tenant).Write(ctx, func(tx db.Tx) error {
		ok = false
		return tx.Query(ctx, `UPDATE outbox SET leased_until = $3, next_at = $3, attempts = attempts + 1
			WHERE tenant_id = $1 AND mail_id = $2 AND leased_until = $4 AND next_at <= $5
			RETURNING sealed, attempts, created_at`, func(r db.Row) error {
			ok = true
			c = claimedMail{m, r.Text(0), int(r.Int(1)), clock.FromMicros(r.Int(2))}
			return nil
		}, m.id, until, m.leased, now)
	})
	return c, ok, err
}

// ours is the condition that a mail is still leased for the try with number $3.
// Each claim has a number of its own, so it does not matter whether a renewal
// whose answer was lost took effect.
const ours = ` AND attempts = $3 AND leased_until > 0`

// renew makes the lease of a mail last until another instant; ok is false if
// another node has leased it.
func (s *store) renew(ctx context.Context, m claimedMail, until time.Time) (ok bool, err error) {
	err = s.db.For(m.tenant).Write(ctx, func(tx db.Tx) error {
		n, err := tx.Exec(ctx, `UPDATE outbox SET leased_until = $4, next_at = $4
			WHERE tenant_id = $1 AND mail_id = $2`+ours, m.id, m.attempts, until)
		ok = n > 0
		return err
	})
	return ok, err
}

// remove deletes a mail that needs no further try, even if another node has leased
// it meanwhile.
func (s *store) remove(ctx context.Context, m waitingMail) error {
	return s.db.For(m.tenant).Write(ctx, func(tx db.Tx) error {
		_, err := tx.Exec(ctx, `DELETE FROM outbox WHERE tenant_id = $1 AND mail_id = $2`, m.id)
		return err
	})
}

// postpone ends the lease and sets the instant of the next try. It does nothing if
// another node has leased the mail meanwhile.
func (s *store) postpone(ctx context.Context, m claimedMail, next time.Time, cause string) error {
	return s.db.For(m.tenant).Write(ctx, func(tx db.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE outbox SET leased_until = 0, next_at = $4, last_error = $5
			WHERE tenant_id = $1 AND mail_id = $2`+ours, m.id, m.attempts, next, cause)
		return err
	})
}

// release ends the lease as if the mail had not been tried.
func (s *store) release(ctx context.Context, m claimedMail, now time.Time) error {
	return s.db.For(m.tenant).Write(ctx, func(tx db.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE outbox SET leased_until = 0, next_at = $4, attempts = attempts - 1
			WHERE tenant_id = $1 AND mail_id = $2`+ours, m.id, m.attempts, now)
		return err
	})
}
