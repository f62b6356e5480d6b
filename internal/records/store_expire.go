package records

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/background"
	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/schema"
	"gatehouse/internal/tenant"
)

// Records of an entity type with KeepDays are deleted when they are older (contract R20):
// by the way of every deletion, in short transactions, so that others get their turn.

const (
	expireEvery = time.Minute
	// expireRows is how many records one transaction deletes, fewer if they have more than
	// expireEntries index rows. expireFor is the turn of a tenant: others wait for it.
	expireRows    = 50
	expireEntries = 5_000
	expireFor     = 10 * time.Second
)

// RunRetention deletes the records that are older than their entity types keep them, at
// once and then every minute, until ctx ends. Of the nodes that run it, one does so. An
// error of one tenant does not stop the others; tell is called with it.
func RunRetention(ctx context.Context, d *db.DB, clk clock.Clock, tell func(error)) {
	d.Housekeep(ctx, "records", expireEvery, func(ctx context.Context) error { return expireAll(ctx, d, clk, expireFor) }, tell)
}

// expireAll deletes the old records of all tenants, in turns of some time: once of each,
// and of those that have more again, for a minute. The next pass, which knows of others,
// then begins at once.
func expireAll(ctx context.Context, d *db.DB, clk clock.Clock, turn time.Duration) (first error) {
	tenants, err := schema.Keeping(ctx, d)
	if err != nil {
		return err
	}
	for until := time.Now().Add(expireEvery); len(tenants) > 0 && time.Now().Before(until); {
		var left []tenant.ID
		err := background.Each(ctx, tenants, func(ctx context.Context, t tenant.ID) error {
			more, err := expire(ctx, d.For(t), clk, turn)
			if more && err == nil {
				left = append(left, t)
			}
			return err
		})
		first = cmp.Or(first, err)
		tenants = left
	}
	return first
}

// expire deletes old records of a tenant for some time, a page of each of its entity types
// in turn. more is true where some may be left, also where the configuration has changed
// meanwhile.
func expire(ctx context.Context, h db.Handle, clk clock.Clock, turn time.Duration) (more bool, err error) {
	config, err := access.Load(ctx, h)
	if err != nil {
		return false, err
	}
	var left []*schema.Entity
	for _, e := range config.Schema.Entities {
		if e.KeepDays > 0 {
			left = append(left, e)
		}
	}
	if len(left) == 0 {
		return false, nil
	}
	until := time.Now().Add(turn)
	err = background.Steps(ctx, func(ctx context.Context) (bool, error) {
		e, rest := left[0], left[1:]
		err := fenced(ctx, h, config, func(tx db.Tx) (err error) {
			more, err = expirePage(ctx, tx, config, e, clk.Now())
			return err
		})
		if err != nil {
			return false, err
		}
		if left = rest; more {
			left = append(slices.Clip(left), e)
		}
		return len(left) > 0 && time.Now().Before(until), nil
	})
	if errors.Is(err, errStale) {
		return true, nil
	}
	return len(left) > 0, err
}

// expirePage deletes some of the old records of an entity type, the oldest first. What it
// leaves of the references to them is stored (txView.left), for Sweep.
func expirePage(ctx context.Context, tx db.Tx, config *access.Config, e *schema.Entity, now time.Time) (more bool, err error) {
	list, last, err := page(ctx, tx, `entity = $4`, 0, keptFrom(e, now)-1, upTo(expireRows), tx.Dialect().ForUpdate, e.StoredAs())
	if err != nil {
		return false, err
	}
	v := &txView{s: &Session{viewer: access.System(config, "deletes records that are older than they are kept")}, tx: tx, by: &deletion{at: clock.Micros(now)}, indexing: &indexing{}}
	for i := range list {
		if err := v.dropRow(ctx, e, &list[i]); err != nil {
			return false, err
		}
		if v.indexing.rows > expireEntries {
			break
		}
	}
	return last > 0, nil
}

// keptFrom returns the created_at of the oldest record that is kept, in microseconds.
func keptFrom(e *schema.Entity, now time.Time) int64 {
	return clock.Micros(now.Add(-time.Duration(e.KeepDays) * 24 * time.Hour))
}

// Old counts the records that are older than their entity type keeps them, at most limit.
// The error is one of the database.
func Old(ctx context.Context, q db.Querier, e *schema.Entity, now time.Time, limit int) (n int64, err error) {
	err = q.Query(ctx, `SELECT count(*) FROM (SELECT 1 FROM records WHERE tenant_id = $1 AND entity = $2 AND created_at < $3 LIMIT `+strconv.Itoa(limit)+`) old`,
		func(r db.Row) error { n = r.Int(0); return nil }, e.StoredAs(), keptFrom(e, now))
	return n, err
}
