package tenant

import (
	"context"
	"errors"
	"time"

	"gatehouse/internal/background"
	"gatehouse/internal/db"
	"gatehouse/internal/fault"
)

// A tenant is deleted in three parts. Its row and its hosts go in one short
// transaction, with which nobody reaches it any more, and which leaves a row that
// says that it is being deleted. Then all that it has goes in short transactions,
// which anybody may go on with after a crash. What requests that had begun before
// still write goes last, after nodes have forgotten it; then its name is free.

const (
	// deletionRest is how long a deleted tenant's name stays taken: whoever still
	// worked for it has ended by then, and what they wrote is purged.
	deletionRest  = 60 * time.Second
	deletionEvery = 20 * time.Second
)

// errDeleted ends a purge that somebody else has finished.
var errDeleted = errors.New("the tenant is deleted")

// Deletion is how far the deletion of a tenant has come.
type Deletion struct {
	Rows int64 // that this call deleted
	// Done: the name is free. Else servers finish it, or who deletes it again.
	Done bool
}

// Delete deletes a tenant with everything that it has, or goes on with that.
// NOT_FOUND when there is no such tenant. When it fails, the tenant is gone for its
// callers all the same if it was there: Delete again, or a server, goes on.
func Delete(ctx context.Context, d *db.DB, id ID) (Deletion, error) {
	err := d.For(id).Write(ctx, func(tx db.Tx) error {
		there, err := tx.Exec(ctx, `DELETE FROM tenants WHERE tenant_id = $1`)
		if err != nil {
			return err
		}
		if there == 0 {
			begun, err := deleting(ctx, tx, "")
			if err == nil && !begun {
				err = fault.New(fault.NotFound, "there is no tenant %q", id)
			}
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM tenant_hosts WHERE tenant_id = $1`); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO tenant_deletions (tenant_id, begun_at) VALUES ($1, `+tx.Dialect().Now+`)
			ON CONFLICT (tenant_id) DO UPDATE SET begun_at = excluded.begun_at`)
		return err
	})
	if err != nil {
		return Deletion{}, err
	}
	return finish(ctx, d, id)
}

// finish deletes what a tenant has. Once nobody works for it any more, it frees
// the name.
func finish(ctx context.Context, d *db.DB, id ID) (done Deletion, err error) {
	h := d.For(id)
	rested := false
	err = h.Query(ctx, `SELECT CASE WHEN begun_at <= `+h.Dialect().Now+` - $2 THEN 1 ELSE 0 END FROM tenant_deletions WHERE tenant_id = $1`,
		func(r db.Row) error { rested = r.Bool(0); return nil }, deletionRest.Microseconds())
	if err != nil {
		return done, err
	}
	done.Rows, err = d.Purge(ctx, db.Purge{
		Tenant: id,
		First:  []string{"outbox", "builds", "leftovers", "api_keys"}, // what somebody might still act by
		Keep:   []string{"tenant_deletions"},
		Guard: func(ctx context.Context, tx db.Tx) error {
			there, err := deleting(ctx, tx, tx.Dialect().ForShare)
			if err == nil && !there {
				err = errDeleted
			}
			return err
		},
		Rest: background.Rest,
	})
	switch {
	case errors.Is(err, errDeleted):
		done.Done = true
		return done, nil
	case err != nil || !rested:
		return done, err
	}
	done.Done = true
	return done, h.Write(ctx, func(tx db.Tx) error {
		_, err := tx.Exec(ctx, `DELETE FROM tenant_deletions WHERE tenant_id = $1`)
		return err
	})
}

// deleting reports whether the tenant of tx is being deleted, and holds that it is
// as suffix says.
func deleting(ctx context.Context, tx db.Tx, suffix string) (yes bool, err error) {
	err = tx.Query(ctx, `SELECT 1 FROM tenant_deletions WHERE tenant_id = $1`+suffix, func(db.Row) error { yes = true; return nil })
	return yes, err
}

// RunDeletions continues the deletion of tenants, now and every 20 s, until ctx
// ends. Of the nodes that run it, one does so. A tenant that fails does not stop
// the others; tell is called with the error.
func RunDeletions(ctx context.Context, d *db.DB, tell func(error)) {
	d.Housekeep(ctx, "deletions", deletionEvery, func(ctx context.Context) error {
		ids, err := Deletions(ctx, d)
		if err != nil {
			return err
		}
		return background.Each(ctx, ids, func(ctx context.Context, id ID) error {
			_, err := finish(ctx, d, id)
			return err
		})
	}, tell)
}

// Deletions lists the tenants that are being deleted, in order.
func Deletions(ctx context.Context, d *db.DB) (ids []ID, err error) {
	err = d.Unscoped("a server asks which tenants are to go").Query(ctx, `SELECT tenant_id FROM tenant_deletions ORDER BY tenant_id`,
		func(r db.Row) error { ids = append(ids, ID(r.Text(0))); return nil })
	return ids, err
}
