package records_test

import (
	"context"
	"errors"
	"strconv"
	"testing"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/fault"
	"gatehouse/internal/records"
)

// Shares made in a unit are visible to its later reads by id. They are stored
// with the unit or not at all, together with the index rows that follow from
// them.
func TestAUnitSharesRecords(t *testing.T) {
	support := records.With{Role: "support"}
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h, ctx := acme(t, d), t.Context()
		sam := h.as("sam")
		old := id(h.create(sam, "contact", `{"score": 1}`))
		sees := func(what string, eva interface {
			Get(context.Context, string, string) (records.Record, error)
		}, at string, want bool) {
			t.Helper()
			if _, err := eva.Get(ctx, "contact", at); (err == nil) != want {
				t.Errorf("%s: %v", what, err)
			}
		}
		u, p := h.part("sam")
		eva := h.join(u, "eva")
		r, err := p.Create(ctx, "contact", body(t, `{"score": 1}`))
		fresh := id(must(t, r, err))
		for _, at := range []string{old, fresh} {
			sees("not shared", eva, at, false)
			r, err := p.ShareWith(ctx, "contact", at, support, access.ReadOnly)
			if got := must(t, r, err); got["role"] != "support" || got["user"] != nil || got["access"] != "read" {
				t.Errorf("shared: %v", got)
			}
			sees("shared in the unit", eva, at, true)
			_, err = eva.Update(ctx, "contact", at, body(t, `{"score": 2}`))
			want(t, err, fault.Forbidden)
			_, err = eva.ShareWith(ctx, "contact", at, support, access.Edit)
			want(t, err, fault.Forbidden)
			r, err = p.ShareWith(ctx, "contact", at, support, access.Edit)
			must(t, r, err)
			r, err = eva.Update(ctx, "contact", at, body(t, `{"score": 2}`))
			must(t, r, err)
			sees("shared outside", h.as("eva"), at, false)
		}
		refused := errors.New("no")
		if err := u.Commit(ctx, func(db.Tx) error { return refused }); !errors.Is(err, refused) {
			t.Fatal(err)
		}
		if n := h.tableRows("shares", "1 = 1"); n != 0 {
			t.Errorf("a refused commit left %d shares", n)
		}
		if err := u.Commit(ctx, nil); err != nil {
			t.Fatal(describe(err))
		}
		score := func(v string) int {
			return len(h.list(h.as("eva"), "contact", records.Filter{Field: "score", Value: v}))
		}
		if all, one, two := len(h.list(h.as("eva"), "contact")), score("1"), score("2"); all != 2 || one != 0 || two != 2 {
			t.Errorf("eva lists %d, and by score 1 and 2 %d and %d", all, one, two)
		}

		u, p = h.part("sam")
		eva = h.join(u, "eva")
		sees("before", eva, old, true)
		r, err = p.UnshareWith(ctx, "contact", old, support)
		if got := must(t, r, err); got["role"] != "support" || got["deleted"] != true {
			t.Errorf("removed: %v", got)
		}
		_, err = p.UnshareWith(ctx, "contact", old, support)
		want(t, err, fault.NotFound)
		sees("taken back in the unit", eva, old, false)
		sees("taken back outside", h.as("eva"), old, true)
		if err := u.Commit(ctx, nil); err != nil {
			t.Fatal(describe(err))
		}
		sees("taken back", h.as("eva"), old, false)
		if score("2") != 1 {
			t.Error("the index row of the share stayed")
		}
	})
}

// A share that another user removes meanwhile is a lost race; nothing of the
// unit is stored.
func TestAUnitLosesARaceForAShare(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h, ctx := acme(t, d), t.Context()
		support := records.With{Role: "support"}
		one := id(h.create(h.as("sam"), "contact", `{}`))
		if _, isNew, err := h.as("sam").ShareWith(ctx, "contact", one, support, access.Edit); err != nil || !isNew {
			t.Fatal(isNew, err)
		}
		u, p := h.part("sam")
		r, err := p.Update(ctx, "contact", one, body(t, `{"name": "changed"}`))
		must(t, r, err)
		r, err = p.UnshareWith(ctx, "contact", one, support)
		must(t, r, err)
		if _, err := h.as("sam").UnshareWith(ctx, "contact", one, support); err != nil {
			t.Fatal(err)
		}
		if err := u.Commit(ctx, nil); !errors.Is(err, records.ErrLost) {
			t.Errorf("commit: %v", err)
		}
		if got := h.get(h.as("sam"), "contact", one); got["name"] != nil {
			t.Errorf("left: %v", got)
		}
	})
}

// A record has at most MaxShares shares, in a unit as well. Each change of a
// share counts as a change of the run.
func TestSharesAreBounded(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h, ctx := acme(t, d), t.Context()
		one := id(h.create(h.as("sam"), "contact", `{}`))
		err := d.For(h.tenant).Write(ctx, func(tx db.Tx) error {
			for i := range records.MaxShares - 1 {
				if _, err := tx.Exec(ctx, `INSERT INTO shares (tenant_id, entity, record_id, principal, access, record_created_at, created_at, created_by)
					VALUES ($1, 'contact', $2, $3, 'read', 1, 1, '')`, one, "user:"+strconv.Itoa(i)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		support, sales := records.With{Role: "support"}, records.With{Role: "sales"}
		u, p := h.part("sam")
		r, err := p.ShareWith(ctx, "contact", one, support, access.ReadOnly)
		must(t, r, err)
		_, err = p.ShareWith(ctx, "contact", one, sales, access.ReadOnly)
		want(t, err, fault.Conflict)
		r, err = p.UnshareWith(ctx, "contact", one, support)
		must(t, r, err)
		r, err = p.ShareWith(ctx, "contact", one, sales, access.ReadOnly)
		must(t, r, err)
		u.Close()

		sam := h.as("sam")
		if _, _, err := sam.ShareWith(ctx, "contact", one, support, access.ReadOnly); err != nil {
			t.Fatal(err)
		}
		_, _, err = sam.ShareWith(ctx, "contact", one, sales, access.ReadOnly)
		want(t, err, fault.Conflict)
		if _, isNew, err := sam.ShareWith(ctx, "contact", one, support, access.Edit); err != nil || isNew {
			t.Errorf("an existing share: %v %v", isNew, err)
		}

		u, p = h.part("sam")
		defer u.Close()
		two := id(h.create(sam, "contact", `{}`))
		level := map[int]access.Level{0: access.ReadOnly, 1: access.Edit}
		for i := range records.MaxChanged {
			if _, err := p.ShareWith(ctx, "contact", two, support, level[i%2]); err != nil {
				t.Fatal(i, err)
			}
		}
		_, err = p.ShareWith(ctx, "contact", two, support, access.ReadOnly)
		want(t, err, fault.ExecutionError)
	})
}
