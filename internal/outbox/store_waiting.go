package outbox

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/mail"
	"gatehouse/internal/tenant"
)

// Waiting is a mail that was not sent yet: to whom, and how it goes. It has no text, in
// which there may be tokens.
type Waiting struct {
	ID, To, Subject   string
	CreatedAt, NextAt time.Time
	Tries             int
	Sending           bool   // a server is trying it now
	LastError         string // of the last try, "" for none
}

// Waiting returns the mails of a tenant that wait, those that are due first, at most
// limit. To and Subject are "" where the mail cannot be decrypted.
func (o *Outbox) Waiting(ctx context.Context, id tenant.ID, limit int) (list []Waiting, err error) {
	now := clock.Micros(o.clock.Now())
	err = o.store.db.For(id).Query(ctx, `SELECT mail_id, sealed, attempts, next_at, leased_until, created_at, last_error
		FROM outbox WHERE tenant_id = $1 ORDER BY next_at LIMIT `+strconv.Itoa(limit), func(r db.Row) error {
		w := Waiting{
			ID: r.Text(0), Tries: int(r.Int(2)), NextAt: clock.FromMicros(r.Int(3)), Sending: r.Int(4) > now,
			CreatedAt: clock.FromMicros(r.Int(5)), LastError: r.Text(6),
		}
		var m mail.Message
		if plain, err := o.store.keyring.Open(purpose, r.Text(1)); err == nil && json.Unmarshal(plain, &m) == nil {
			w.To, w.Subject = m.To, m.Subject
		}
		list = append(list, w)
		return nil
	})
	return list, err
}

// CountUpTo counts the mails of a tenant that wait, up to limit.
func CountUpTo(ctx context.Context, q db.Querier, limit int) (n int64, err error) {
	err = q.Query(ctx, `SELECT count(*) FROM (SELECT 1 FROM outbox WHERE tenant_id = $1 LIMIT `+strconv.Itoa(limit)+`) l`,
		func(r db.Row) error { n = r.Int(0); return nil })
	return n, err
}
