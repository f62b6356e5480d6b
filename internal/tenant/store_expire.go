package tenant

import (
	"context"
	"errors"
	"regexp"
	"strconv"
	"time"

	"gatehouse/internal/background"
	"gatehouse/internal/db"
)

// havingPage is how many tenants one statement of Having asks about, at most.
const havingPage = 1000

var theTenant = regexp.MustCompile(`\$1\b`)

// Having returns the tenants for which a SELECT has a row, in order. The text is written as
// for one tenant: $1 is its id, and the arguments begin with $2. An index should find the
// row, as it is asked for each tenant. The error is one of the database.
//
// It is for work on all tenants of which few have anything to do: it costs one statement for a
// thousand of them. Where the database ends a statement because it takes too long, it asks about
// half as many; a tenant that takes too long alone is taken for one that has something.
func Having(ctx context.Context, d *db.DB, text string, args ...any) (ids []ID, err error) {
	row := theTenant.ReplaceAllString(text, "t.tenant_id")
	// LIMIT in a subquery that gives a value keeps PostgreSQL from reading the whole table once
	// instead, which it may take for cheaper.
	text = `SELECT t.tenant_id, COALESCE((` + row + ` LIMIT 1), 0) FROM tenants t WHERE t.tenant_id > $1`
	if d.Dialect().Distributed { // which takes no such subquery
		text = `SELECT t.tenant_id, 1 FROM tenants t WHERE t.tenant_id > $1 AND EXISTS (` + row + `)`
	}
	text += ` ORDER BY t.tenant_id LIMIT `
	h := d.Unscoped("housekeeping asks who has something to do")
	for last, page := ID(""), havingPage; ; {
		var asked, some []ID
		begun := time.Now()
		err := h.Query(ctx, text+strconv.Itoa(page), func(r db.Row) error {
			id := ID(r.Text(0))
			if asked = append(asked, id); r.Bool(1) {
				some = append(some, id)
			}
			return nil
		}, append([]any{last}, args...)...)
		switch {
		case errors.Is(err, db.ErrBusy) && page > 1:
			page /= 2
			continue
		case errors.Is(err, db.ErrBusy):
			err = h.Query(ctx, `SELECT t.tenant_id FROM tenants t WHERE t.tenant_id > $1 ORDER BY t.tenant_id LIMIT 1`, func(r db.Row) error {
				asked = []ID{ID(r.Text(0))}
				some = asked
				return nil
			}, last)
		}
		if ids = append(ids, some...); err != nil || len(asked) < page {
			return ids, err
		}
		last, page = asked[len(asked)-1], min(2*page, havingPage)
		if err := background.Rest(ctx, time.Since(begun)); err != nil {
			return ids, err
		}
	}
}

// Old are rows that are kept for some time. Its statements are those of one tenant: $1 is
// its id, and Args begin with $2.
type Old struct {
	Some   string   // SELECT 1 of one of them
	Delete []string // each deletes some of them, found by an index and locked in one order
	Args   []any
}

// Expire deletes old rows of all tenants, each statement in a transaction of its own until
// none finds a row, and rests in between. What fails for one kind or one tenant does
// not stop the others. Expire returns the first error of each kind.
func Expire(ctx context.Context, d *db.DB, kinds ...Old) error {
	var failed []error
	for _, o := range kinds {
		ids, err := Having(ctx, d, o.Some, o.Args...)
		failed = append(failed, err, background.Each(ctx, ids, func(ctx context.Context, id ID) error { return o.DeleteOf(ctx, d.For(id)) }))
	}
	return errors.Join(failed...)
}

// DeleteOf deletes the old rows of one tenant, as Expire does.
func (o Old) DeleteOf(ctx context.Context, h db.Handle) error {
	return background.Steps(ctx, func(ctx context.Context) (more bool, err error) {
		for _, text := range o.Delete {
			err := h.Write(ctx, func(tx db.Tx) error {
				gone, err := tx.Exec(ctx, text, o.Args...)
				more = more || gone > 0
				return err
			})
			if err != nil {
				return false, err
			}
		}
		return more, nil
	})
}
