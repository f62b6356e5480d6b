package admin

import (
	"context"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// workRow is a long change as it is stored. Times are the database's.
type workRow struct {
	id, actor, entity, answer string
	userID                    user.ID
	state                     WorkState
	done, total               int64
	startedAt                 time.Time
	silent                    time.Duration // since its server last wrote
}

// keepWork is how long a work is kept after its last word.
const keepWork = 24 * time.Hour

func (s store) beginWork(ctx context.Context, id tenant.ID, w workRow) error {
	return s.db.For(id).Write(ctx, func(tx db.Tx) error {
		now := tx.Dialect().Now
		if _, err := tx.Exec(ctx, `DELETE FROM config_work WHERE tenant_id = $1 AND beat_at < `+now+` - $2`, keepWork.Microseconds()); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO config_work (tenant_id, work_id, user_id, actor, state, entity, done, total, answer, started_at, beat_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, '', `+now+`, `+now+`)`, w.id, w.userID, w.actor, string(Running), w.entity, w.done, w.total)
		return err
	})
}

// tellWork stores how far a work has come, or how it ended.
func (s store) tellWork(ctx context.Context, id tenant.ID, w workRow) error {
	return s.db.For(id).Write(ctx, func(tx db.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE config_work SET state = $3, entity = $4, done = $5, total = $6, answer = $7, beat_at = `+tx.Dialect().Now+`
			WHERE tenant_id = $1 AND work_id = $2`, w.id, string(w.state), w.entity, w.done, w.total, w.answer)
		return err
	})
}

// lastWork returns the work that was begun last, and whether there is one.
func (s store) lastWork(ctx context.Context, id tenant.ID) (w workRow, ok bool, err error) {
	h := s.db.For(id)
	err = h.Query(ctx, `SELECT work_id, user_id, actor, state, entity, done, total, answer, started_at, `+h.Dialect().Now+` - beat_at
		FROM config_work WHERE tenant_id = $1 ORDER BY work_id DESC LIMIT 1`, func(r db.Row) error {
		ok = true
		w = workRow{
			id: r.Text(0), userID: user.ID(r.Text(1)), actor: r.Text(2), state: WorkState(r.Text(3)), entity: r.Text(4),
			done: r.Int(5), total: r.Int(6), answer: r.Text(7), startedAt: clock.FromMicros(r.Int(8)), silent: time.Duration(r.Int(9)) * time.Microsecond,
		}
		return nil
	})
	return w, ok, err
}

// build returns the change that is being prepared, by whomever, nil for none.
func (s store) build(ctx context.Context, id tenant.ID) (*access.Build, error) {
	return access.ReadBuild(ctx, s.db.For(id))
}
