package records_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/fault"
	"gatehouse/internal/records"
	"gatehouse/internal/user"
)

// errUndone makes a test's transaction change nothing.
var errUndone = errors.New("undone")

// halfway stops first in the middle of its transaction, at something that hold
// holds for it, and begins then. It lets first go on when then waits for it, or
// has ended. On SQLite, where nothing happens in the middle of a transaction,
// the calls follow one another.
func (h *house) halfway(hold func(ctx context.Context, tx db.Tx) error, first, then func() error) (errs [2]error) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), time.Minute)
	defer cancel()
	var done [2]chan error
	err := h.d.For(h.tenant).Write(ctx, func(tx db.Tx) error {
		if err := hold(ctx, tx); err != nil {
			return err
		}
		for i, call := range []func() error{first, then} {
			done[i] = make(chan error, 1)
			go func() { done[i] <- call() }()
			for ctx.Err() == nil && h.waiting(ctx) <= i && (i == 0 || len(done[i]) == 0) {
				time.Sleep(time.Millisecond)
			}
		}
		return errors.Join(ctx.Err(), errUndone)
	})
	if !errors.Is(err, errUndone) || ctx.Err() != nil {
		h.t.Fatal(err, ctx.Err())
	}
	for i := range done {
		errs[i] = <-done[i]
	}
	return errs
}

// taken holds a value of a unique field.
func taken(entity, field, value string) func(context.Context, db.Tx) error {
	return func(ctx context.Context, tx db.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO field_values (tenant_id, entity, field, value, reach, record_created_at, is_unique)
			VALUES ($1, $2, $3, $4, '', 1, 1)`, entity, field, value)
		return err
	}
}

// holds holds a record.
func holds(entity, id string) func(context.Context, db.Tx) error {
	return func(ctx context.Context, tx db.Tx) error {
		return tx.Query(ctx, `SELECT 1 FROM records WHERE tenant_id = $1 AND entity = $2 AND record_id = $3`+tx.Dialect().ForUpdate,
			func(db.Row) error { return nil }, entity, id)
	}
}

// family is an account of sam with an order and a line.
type family struct{ account, order, line string }

func (h *house) family() family {
	sam, f := h.as("sam"), family{}
	f.account = id(h.create(sam, "account", `{}`))
	f.order = h.under(sam, "order", "account", f.account, `, "stage": "new"`)
	f.line = h.under(sam, "line", "order", f.order, `, "stage": "new"`)
	return f
}

func (h *house) shareWithEva(account string) func() error {
	return func() error {
		return h.as("sam").Share(h.t.Context(), "account", account,
			records.Share{Principal: access.UserPrincipal(user.ID(h.ids["eva"])), Access: access.Edit})
	}
}

func (h *house) unshareWithEva(account string) func() error {
	return func() error {
		return h.as("sam").Unshare(h.t.Context(), "account", account, access.UserPrincipal(user.ID(h.ids["eva"])))
	}
}

// inUnit makes changes in a unit of work of a user, the last of which gives a
// contact an address.
func (h *house) inUnit(name, contact, address string, fn func(ctx context.Context, p *records.UnitSession) error) func() error {
	return func() error {
		u, p := h.part(name)
		defer u.Close()
		ctx := h.t.Context()
		if err := fn(ctx, p); err != nil {
			return err
		}
		if _, err := p.Update(ctx, "contact", contact, body(h.t, `{"email": "`+address+`"}`)); err != nil {
			return err
		}
		return u.Commit(ctx, nil)
	}
}

// writesBelow are the writes of eva that a share of an account lets her make
// below it, and what each is answered when the share is revoked first.
func (h *house) writesBelow(f family, value string) map[string]struct {
	call func() error
	code fault.Code
} {
	eva, ctx, t := h.as("eva"), h.t.Context(), h.t
	type write = struct {
		call func() error
		code fault.Code
	}
	return map[string]write{
		"an update": {func() error {
			_, err := eva.Update(ctx, "line", f.line, body(t, `{"sku": "`+value+`"}`))
			return err
		}, fault.NotFound},
		"a creation": {func() error {
			_, err := eva.Create(ctx, "line", body(t, `{"order": "`+f.order+`", "sku": "`+value+`"}`))
			return err
		}, fault.Validation},
		"a run": {func() error {
			u, p := h.part("eva")
			defer u.Close()
			if _, err := p.Update(ctx, "line", f.line, body(t, `{"sku": "`+value+`"}`)); err != nil {
				return err
			}
			err := u.Commit(ctx, nil)
			if errors.Is(err, records.ErrLost) { // the run is made again
				_, err = eva.Get(ctx, "line", f.line)
			}
			return err
		}, fault.NotFound},
	}
}

// A write that a share of an account allows has effect before the share is
// revoked, or not at all.
func TestNoWriteBelowOutlivesItsShare(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := dealer(t, d)
		for what := range h.writesBelow(family{}, "") {
			value := "sku of " + what
			written := func() int64 {
				return h.tableRows("field_values", `entity = 'line' AND field = 'sku' AND value = $2`, value)
			}
			// The write has found its record when the share is to be revoked.
			f := h.family()
			if err := h.shareWithEva(f.account)(); err != nil {
				t.Fatal(describe(err))
			}
			when := int64(-1)
			errs := h.halfway(taken("line", "sku", value), h.writesBelow(f, value)[what].call, func() error {
				err := h.unshareWithEva(f.account)()
				when = written()
				return err
			})
			if errs[0] != nil || errs[1] != nil || when != 1 || written() != 1 {
				t.Errorf("%s before the share is revoked: %v and %v; %d written when it was revoked, %d later", what, describe(errs[0]), describe(errs[1]), when, written())
			}
			// The share is revoked while the write waits.
			f, value = h.family(), value+", later"
			if err := h.shareWithEva(f.account)(); err != nil {
				t.Fatal(describe(err))
			}
			late := h.writesBelow(f, value)[what]
			queue := h.queued("account", f.account, h.unshareWithEva(f.account), late.call)
			if queue[0] != nil || fault.CodeOf(queue[1]) != late.code || written() != 0 {
				t.Errorf("%s after the share is revoked: %v and %v, want %s; %d written", what, describe(queue[0]), describe(queue[1]), late.code, written())
			}
		}
		// A deletion waits for a record that refers to what it deletes.
		f := h.family()
		note := id(h.create(h.as("ada"), "note", `{"line": "`+f.line+`"}`))
		if err := h.shareWithEva(f.account)(); err != nil {
			t.Fatal(describe(err))
		}
		there := func() int64 { return h.tableRows("records", "entity = 'line' AND record_id = $2", f.line) }
		when := int64(-1)
		errs := h.halfway(holds("note", note), func() error { return h.as("eva").Delete(t.Context(), "line", f.line) }, func() error {
			err := h.unshareWithEva(f.account)()
			when = there()
			return err
		})
		if errs[0] != nil || errs[1] != nil || when != 0 {
			t.Errorf("a deletion: %v and %v; %d there when the share was revoked", describe(errs[0]), describe(errs[1]), when)
		}
	})
}

// followed checks that no record lacks its parent, that the rows of lineages are
// true, and that eva sees exactly the lines below accounts that are shared with her, in
// lists, filtered lists, point reads and explanations.
func (h *house) followed(about string) {
	h.t.Helper()
	if n := h.orphans(); n != 0 {
		h.t.Errorf("%s: %d records without their parent", about, n)
	}
	h.lineageRows()
	above := map[any]any{}
	for _, r := range h.list(h.as("ada"), "order") {
		above[r["id"]] = r["account"]
	}
	var all, shared []string
	for _, r := range h.list(h.as("ada"), "line") {
		all = append(all, id(r))
		if h.tableRows("shares", "record_id = $2 AND principal = $3", above[r["order"]], access.UserPrincipal(user.ID(h.ids["eva"]))) > 0 {
			shared = append(shared, id(r))
		}
	}
	if got := h.below("eva", "line", all...); !same(got, shared) {
		h.t.Errorf("%s: eva sees %v, want %v", about, got, shared)
	}
}

// Changes below a parent that is shared, moved or deleted at the same time leave
// the lines seen exactly where their account is, each below its order. One of
// the two is stopped in the middle of its transaction.
func TestChildrenFollowParentsUnderRaces(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h, ctx := dealer(t, d), t.Context()
		ada := h.as("ada")
		type unit = func(context.Context, *records.UnitSession) error
		shares := func(f family) unit {
			return func(ctx context.Context, p *records.UnitSession) error {
				_, err := p.ShareWith(ctx, "account", f.account, records.With{User: h.ids["eva"]}, access.ReadOnly)
				return err
			}
		}
		creates := func(order string) unit {
			return func(ctx context.Context, p *records.UnitSession) error {
				_, err := p.Create(ctx, "line", body(t, `{"order": "`+order+`", "stage": "new"}`))
				return err
			}
		}
		changes := func(entity, id, text string) unit {
			return func(ctx context.Context, p *records.UnitSession) error {
				_, err := p.Update(ctx, entity, id, body(t, text))
				return err
			}
		}
		create := func(order string) func() error {
			return func() error {
				_, err := ada.Create(ctx, "line", body(t, `{"order": "`+order+`", "stage": "new"}`))
				return err
			}
		}
		update := func(entity, id, text string) func() error {
			return func() error { _, err := ada.Update(ctx, entity, id, body(t, text)); return err }
		}
		remove := func(entity, id string) func() error {
			return func() error { return ada.Delete(ctx, entity, id) }
		}
		f := make([]family, 7)
		for i := range f {
			if f[i] = h.family(); i < 4 { // without lines
				h.delete(ada, "line", f[i].line)
			}
		}
		other := h.under(ada, "order", "account", f[4].account, "")
		if err := h.shareWithEva(f[4].account)(); err != nil {
			t.Fatal(describe(err))
		}
		contact := id(h.create(ada, "contact", `{}`))
		for i, c := range []struct {
			about string
			first unit
			then  func() error
			lines int64 // below the families 4 to 6, and others
		}{
			{"an account is shared while it gets its first line", shares(f[0]), create(f[0].order), 4},
			{"an account gets its first line while it is shared", creates(f[1].order), h.shareWithEva(f[1].account), 5},
			{"an account is shared while a line is moved below it", shares(f[2]), update("line", f[6].line, `{"order": "`+f[2].order+`"}`), 5},
			{"an account is shared while an order is moved below it", shares(f[3]), update("order", f[5].order, `{"account": "`+f[3].account+`"}`), 5},
			{"the last line goes while another comes", creates(other), remove("line", f[4].line), 5},
			{"an order is deleted while its line is moved away", changes("line", f[5].line, `{"order": "`+f[6].order+`"}`), remove("order", f[5].order), 5},
			{"an account is deleted while an order is moved away", changes("order", f[2].order, `{"account": "`+f[6].account+`"}`), remove("account", f[2].account), 5},
			{"an account is revoked while an order is moved below it", changes("order", f[6].order, `{"account": "`+f[0].account+`"}`), h.unshareWithEva(f[0].account), 5},
		} {
			address := fmt.Sprintf("%d@example.com", i)
			errs := h.halfway(taken("contact", "email", address), h.inUnit("ada", contact, address, c.first), c.then)
			if errs[0] != nil || errs[1] != nil {
				t.Errorf("%s: %v and %v", c.about, describe(errs[0]), describe(errs[1]))
			}
			if n := h.tableRows("records", "entity = 'line'"); n != c.lines {
				t.Errorf("%s: there are %d lines, want %d", c.about, n, c.lines)
			}
			h.followed(c.about)
		}
	})
}
