package outbox

import (
	"context"
	"time"

	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/tenant"
)

// backlogMost is where Backlog stops to count.
const backlogMost = 10_000

// Backlog are the mails of a tenant that wait to be sent.
type Backlog struct {
	Count  int64 // at most 10,000
	More   bool
	Oldest time.Time // when the oldest one was put; zero for none
	Error  string    // of its last try
	Next   time.Time // when it is tried next
}

// Backlog returns what waits of a tenant's mails.
func (o *Outbox) Backlog(ctx context.Context, t tenant.ID) (w Backlog, err error) {
	h := o.store.db.For(t)
	err = h.Query(ctx, `SELECT count(*) FROM (SELECT 1 FROM outbox WHERE tenant_id = $1 LIMIT $2) AS first_ones`,
		func(r db.Row) error { w.Count = r.Int(0); return nil }, backlogMost+1)
	if err != nil {
		return w, err
	}
	w.Count, w.More = min(w.Count, backlogMost), w.Count > backlogMost
	return w, h.Query(ctx, `SELECT created_at, last_error, next_at FROM outbox WHERE tenant_id = $1 ORDER BY mail_id LIMIT 1`, func(r db.Row) error {
		w.Oldest, w.Error, w.Next = clock.FromMicros(r.Int(0)), r.Text(1), clock.FromMicros(r.Int(2))
		return nil
	})
}
