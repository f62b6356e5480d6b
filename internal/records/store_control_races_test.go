package records_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/fault"
	"gatehouse/internal/records"
	"gatehouse/internal/schema"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// orphans counts the lines whose order, and the orders whose account, is gone.
func (h *house) orphans() int64 {
	return h.tableRows("records", `entity = 'line' AND NOT EXISTS (SELECT 1 FROM records p WHERE p.tenant_id = $1 AND p.entity = 'order' AND p.record_id = records.data ->> 'order')`) +
		h.tableRows("records", `entity = 'order' AND NOT EXISTS (SELECT 1 FROM records p WHERE p.tenant_id = $1 AND p.entity = 'account' AND p.record_id = records.data ->> 'account')`)
}

// lineageRows checks that exactly the ancestors that have lines have rows that
// say so, each as it is reached. A row may remain of an ancestor that was held
// when it lost its last line.
func (h *house) lineageRows() {
	h.t.Helper()
	line := h.config().Schema.Entity("line")
	missing := int64(0)
	err := h.d.For(h.tenant).Query(context.Background(), `SELECT count(*) FROM records l
		JOIN records o ON o.tenant_id = $1 AND o.entity = 'order' AND o.record_id = l.data ->> 'order'
		JOIN records a ON a.tenant_id = $1 AND a.entity = 'account' AND a.record_id = o.data ->> 'account'
		WHERE l.tenant_id = $1 AND l.entity = 'line' AND (
		NOT EXISTS (SELECT 1 FROM field_values f WHERE f.tenant_id = $1 AND f.entity = 'order' AND f.field = $2 AND f.value = '' AND f.reach = 'p:' || a.record_id AND f.record_created_at = o.created_at)
		OR NOT EXISTS (SELECT 1 FROM field_values f WHERE f.tenant_id = $1 AND f.entity = 'account' AND f.field = $2 AND f.value = '' AND f.reach = 'o:' || a.owner_id AND f.record_created_at = a.created_at)
		OR EXISTS (SELECT 1 FROM shares s WHERE s.tenant_id = $1 AND s.entity = 'account' AND s.record_id = a.record_id AND NOT EXISTS (SELECT 1 FROM field_values f
			WHERE f.tenant_id = $1 AND f.entity = 'account' AND f.field = $2 AND f.value = '' AND f.reach = 's:' || s.principal AND f.record_created_at = a.created_at)))`,
		func(r db.Row) error { missing = r.Int(0); return nil }, line.Lineage)
	if err != nil {
		h.t.Fatal(err)
	}
	leaks := h.tableRows("field_values", `field = $2 AND entity = 'account' AND reach LIKE 's:%' AND NOT EXISTS (SELECT 1 FROM shares s JOIN records a ON a.tenant_id = $1 AND a.record_id = s.record_id
		WHERE s.tenant_id = $1 AND a.created_at = field_values.record_created_at AND field_values.reach = 's:' || s.principal)`, line.Lineage) +
		h.tableRows("field_values", `field = $2 AND entity = 'order' AND reach LIKE 'p:%' AND NOT EXISTS (SELECT 1 FROM records o
		WHERE o.tenant_id = $1 AND o.entity = 'order' AND o.created_at = field_values.record_created_at AND field_values.reach = 'p:' || (o.data ->> 'account'))`, line.Lineage)
	if missing != 0 || leaks != 0 {
		h.t.Errorf("%d lines lack a row of an ancestor, %d rows show what is not reached", missing, leaks)
	}
}

// Lines that are created, moved and deleted while their order and its account
// are moved, shared and deleted are never without a parent, and are seen exactly
// where their account is.
func TestFamiliesStayTogetherInTurmoil(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := dealer(t, d)
		ada, sam := h.as("ada"), h.as("sam")
		tolerated := func(err error) error {
			switch fault.CodeOf(err) {
			case fault.Validation, fault.NotFound, fault.Forbidden:
				return nil
			}
			return err
		}
		ctx := t.Context()
		for round := range 4 {
			a1, a2 := id(h.create(sam, "account", `{}`)), id(h.create(sam, "account", `{}`))
			o1, o2 := h.under(sam, "order", "account", a1, ""), h.under(sam, "order", "account", a2, "")
			spare := h.under(sam, "line", "order", o1, `, "stage": "won"`)
			eva := records.Share{Principal: access.UserPrincipal(user.ID(h.ids["eva"])), Access: access.Edit}
			for i, err := range together(9, func(i int) (err error) {
				switch i {
				case 0, 1, 2:
					for n := range 3 {
						_, err = sam.Create(ctx, "line", body(t, fmt.Sprintf(`{"order": %q, "stage": "new"}`, []string{o1, o2}[n%2])))
						if tolerated(err) != nil {
							return err
						}
					}
				case 3:
					_, err = ada.Update(ctx, "order", o1, body(t, `{"account": "`+a2+`"}`))
				case 4:
					_, err = sam.Update(ctx, "line", spare, body(t, `{"order": "`+o2+`"}`))
				case 5:
					err = sam.Share(ctx, "account", a1, eva)
				case 6:
					err = sam.Share(ctx, "account", a2, eva)
					if err == nil {
						err = sam.Unshare(ctx, "account", a2, eva.Principal)
					}
				case 7:
					if round%3 == 0 {
						err = sam.Delete(ctx, "account", a1)
					}
				case 8:
					if round%3 != 2 {
						err = sam.Delete(ctx, "order", o2)
					}
				}
				return tolerated(err)
			}) {
				if err != nil {
					t.Fatalf("round %d, %d: %s", round, i, describe(err))
				}
			}
			if n := h.orphans(); n != 0 {
				t.Fatalf("round %d: %d records without their parent", round, n)
			}
			h.lineageRows()
			var all []string
			for _, r := range h.list(ada, "line") {
				all = append(all, id(r))
			}
			h.below("eva", "line", all...)
			h.below("sam", "line", all...)
		}
	})
}

// From the moment a share is revoked no read shows what is below, though others
// create more all the time.
func TestARevokedShareShowsNothingBelow(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := dealer(t, d)
		sam, eva, ctx := h.as("sam"), h.as("eva"), t.Context()
		account := id(h.create(sam, "account", `{}`))
		order := h.under(sam, "order", "account", account, "")
		line := h.under(sam, "line", "order", order, `, "stage": "won"`)
		share := records.Share{Principal: access.UserPrincipal(user.ID(h.ids["eva"])), Access: access.Edit}
		var stop atomic.Bool
		errs := together(3, func(i int) error {
			if i > 0 {
				for !stop.Load() {
					if _, err := sam.Create(ctx, "line", body(t, `{"order": "`+order+`", "stage": "won"}`)); err != nil {
						return err
					}
				}
				return nil
			}
			defer stop.Store(true)
			for range 20 {
				if err := sam.Share(ctx, "account", account, share); err != nil {
					return err
				}
				if len(h.list(eva, "line")) == 0 || len(h.list(eva, "line", records.Filter{Field: "stage", Value: "won"})) == 0 {
					return fmt.Errorf("a share shows nothing")
				}
				if err := sam.Unshare(ctx, "account", account, share.Principal); err != nil {
					return err
				}
				if n := len(h.list(eva, "line")) + len(h.list(eva, "line", records.Filter{Field: "stage", Value: "won"})); n != 0 {
					return fmt.Errorf("%d lines are shown after the share was revoked", n)
				}
				if _, err := eva.Update(ctx, "line", line, body(t, `{"name": "x"}`)); fault.CodeOf(err) != fault.NotFound {
					return fmt.Errorf("an update after the share was revoked: %w", err)
				}
			}
			return nil
		})
		for _, err := range errs {
			if err != nil {
				t.Fatal(describe(err))
			}
		}
	})
}

// A parent with many records below it is gone at once for everybody, and what is
// below is deleted in steps: by a server, if the deleting process does not.
func TestALargeFamilyIsDeletedInSteps(t *testing.T) {
	t.Cleanup(records.ClearFor(0))
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := dealer(t, d)
		sam, ada := h.as("sam"), h.as("ada")
		account := id(h.create(sam, "account", `{}`))
		var orders, lines []string
		for range 3 {
			orders = append(orders, h.under(sam, "order", "account", account, ""))
			u, p := h.part("sam")
			for range 60 {
				r, err := p.Create(t.Context(), "line", body(t, `{"order": "`+orders[len(orders)-1]+`", "stage": "won"}`))
				lines = append(lines, id(must(t, r, err)))
			}
			if err := u.Commit(t.Context(), nil); err != nil {
				t.Fatal(describe(err))
			}
			u.Close()
		}
		h.create(sam, "note", `{"line": "`+lines[0]+`"}`)
		gone := func(when string) {
			t.Helper()
			for _, name := range []string{"ada", "olivia", "sam"} {
				for kind, all := range map[string][]string{"order": orders, "line": lines[:3]} {
					if n := len(h.list(h.as(name), kind)) + len(h.list(h.as(name), kind, records.Filter{Field: "stage", Value: "won"})); n != 0 {
						t.Errorf("%s: %s sees %d of %s", when, name, n, kind)
					}
					for _, one := range all {
						if _, err := h.as(name).Get(t.Context(), kind, one); fault.CodeOf(err) != fault.NotFound {
							t.Errorf("%s: %s reads %s: %v", when, name, kind, describe(err))
						}
						want(t, h.as(name).Delete(t.Context(), kind, one), fault.NotFound)
					}
				}
			}
			_, err := ada.Create(t.Context(), "line", body(t, `{"order": "`+orders[0]+`"}`))
			want(t, err, fault.Validation, "order")
			_, err = ada.Create(t.Context(), "note", body(t, `{"line": "`+lines[1]+`"}`))
			want(t, err, fault.Validation, "line")
		}
		h.delete(sam, "account", account)
		if n := h.tableRows("records", "entity IN ('order', 'line')"); n < 50 {
			t.Errorf("the deletion left %d records only: it was no short one", n)
		}
		gone("after the deletion")
		err := h.change(func(ctx context.Context, tx tenant.ConfigTx) error {
			return schema.PutEntity(ctx, tx, entity("line", "name text", "stage select indexed", "sku text unique", "order reference:order required"))
		})
		want(t, err, fault.Conflict)
		if err := records.Sweep(t.Context(), d.For(h.tenant)); err != nil {
			t.Fatal(err)
		}
		if n := h.tableRows("records", "entity IN ('order', 'line')") + h.tableRows("leftovers", "1 = 1") + h.tableRows("field_values", "1 = 1"); n != 0 {
			t.Errorf("%d records, leftovers and index rows are left", n)
		}
		if notes := h.list(ada, "note"); len(notes) != 1 || notes[0]["line"] != nil {
			t.Errorf("the note is %v", notes)
		}
		gone("at the end")
	})
}

// A unit sees records below what it moved, deleted and created as they will be.
func TestAUnitReachesRecordsBelowWhatItChanged(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h, ctx := dealer(t, d), t.Context()
		sam, sue := h.as("sam"), h.as("sue")
		a1, a2 := id(h.create(sam, "account", `{}`)), id(h.create(sue, "account", `{}`))
		o1 := h.under(sam, "order", "account", a1, "")
		l1 := h.under(sam, "line", "order", o1, "")
		sees := func(p *records.UnitSession, code fault.Code) {
			t.Helper()
			_, err := p.Get(ctx, "line", l1)
			if fault.CodeOf(err) != code {
				t.Errorf("a read of the line: %v, want %q", describe(err), code)
			}
		}
		u, ada := h.part("ada")
		inSue, inSam := h.join(u, "sue"), h.join(u, "sam")
		sees(inSue, fault.NotFound)
		r, err := ada.Update(ctx, "order", o1, body(t, `{"account": "`+a2+`"}`))
		must(t, r, err)
		sees(inSue, "")
		sees(inSam, fault.NotFound)
		r, err = inSue.Update(ctx, "line", l1, body(t, `{"name": "sue's"}`)) // only the unit lets sue
		must(t, r, err)
		r, err = inSue.Create(ctx, "line", body(t, `{"order": "`+o1+`"}`))
		must(t, r, err)
		_, err = inSam.Create(ctx, "line", body(t, `{"order": "`+o1+`"}`))
		want(t, err, fault.Validation, "order")
		made, err := inSue.Create(ctx, "order", body(t, `{"account": "`+a2+`"}`))
		order := id(must(t, made, err))
		made, err = inSue.Create(ctx, "line", body(t, `{"order": "`+order+`"}`))
		line := id(must(t, made, err))
		if err := u.Commit(ctx, nil); err != nil {
			t.Fatal(describe(err))
		}
		u.Close()
		if got := h.below("sue", "line", l1, line); len(got) != 3 {
			t.Errorf("sue sees %v", got)
		}
		h.lineageRows()
		u, ada = h.part("ada")
		if err := ada.Delete(ctx, "order", o1); err != nil {
			t.Fatal(describe(err))
		}
		sees(ada, fault.NotFound)
		_, err = ada.Create(ctx, "line", body(t, `{"order": "`+o1+`"}`))
		want(t, err, fault.Validation, "order")
		if err := u.Commit(ctx, nil); err != nil {
			t.Fatal(describe(err))
		}
		u.Close()
		if got := h.below("ada", "line", l1, line); len(got) != 1 {
			t.Errorf("ada sees %v", got)
		}
		h.lineageRows()
	})
}

// A type with many records becomes controlled, and is no longer, in short steps,
// between which others create, move and share.
func TestATypeBecomesControlledInSteps(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := dealer(t, d)
		free := entity("line", "name text", "stage select indexed", "sku text unique", "order reference:order required")
		controlled := childOf("line", "order", "name text", "stage select indexed", "sku text unique")
		put := func(e *schema.Entity) func(context.Context, tenant.ConfigTx) error {
			return func(ctx context.Context, tx tenant.ConfigTx) error { return schema.PutEntity(ctx, tx, e) }
		}
		h.configure(put(free))
		sam, sue := h.as("sam"), h.as("sue")
		account, other := id(h.create(sam, "account", `{}`)), id(h.create(sue, "account", `{}`))
		order := h.under(sam, "order", "account", account, "")
		var lines []string
		for range 30 {
			lines = append(lines, h.under(h.as("ada"), "line", "order", order, `, "stage": "won"`))
		}
		step := 0
		switchTo := func(e *schema.Entity, during func()) {
			t.Helper()
			for tries := 0; ; tries++ {
				var long *records.Long
				err := h.changeShort(put(e), 3, &long)
				if long == nil && err == nil {
					return
				}
				if long == nil || tries > 5 {
					t.Fatal(describe(err))
				}
				err = records.Prepare(t.Context(), d.For(h.tenant), clock.System(), long.Work, records.Pace{Records: 4, Step: func() error {
					step++
					during()
					return nil
				}})
				if err != nil {
					t.Fatal(describe(err))
				}
			}
		}
		share := records.Share{Principal: access.UserPrincipal(user.ID(h.ids["eva"])), Access: access.ReadOnly}
		switchTo(controlled, func() {
			if n := len(h.list(h.as("sam"), "line")); n != 0 {
				t.Errorf("sam sees %d lines before the change", n)
			}
			switch step % 5 {
			case 1:
				lines = append(lines, h.under(h.as("ada"), "line", "order", order, `, "stage": "won"`))
			case 2:
				fresh := h.under(h.as("ada"), "order", "account", other, "")
				h.update(h.as("ada"), "line", lines[step/5], `{"order": "`+fresh+`"}`) // in the end, one that was visited
			case 3:
				if err := h.as("sam").Share(t.Context(), "account", account, share); err != nil {
					t.Fatal(describe(err))
				}
			case 4:
				h.update(h.as("ada"), "order", order, `{"account": "`+[]string{other, account}[step/4%2]+`"}`)
			}
		})
		if step < 8 {
			t.Errorf("the change took %d steps", step)
		}
		h.update(h.as("ada"), "order", order, `{"account": "`+account+`"}`)
		h.lineageRows()
		mine, hers := h.below("sam", "line", lines...), h.below("sue", "line", lines...)
		if len(mine)+len(hers) != len(lines) || len(hers) == 0 {
			t.Errorf("sam sees %d and sue %d of %d lines", len(mine), len(hers), len(lines))
		}
		if got := h.below("eva", "line", lines...); len(got) != len(mine) {
			t.Errorf("eva sees %d lines, sam %d", len(got), len(mine))
		}
		name := h.config().Schema.Entity("line").Lineage
		switchTo(free, func() {
			if got := h.list(h.as("sam"), "line"); len(got) != len(mine) {
				t.Errorf("sam sees %d lines before the change, want %d", len(got), len(mine))
			}
		})
		if n := len(h.below("sam", "line", lines...)); n != 0 {
			t.Errorf("sam sees %d lines that ada owns", n)
		}
		if err := h.d.For(h.tenant).Write(t.Context(), func(tx db.Tx) error {
			_, err := tx.Exec(t.Context(), `UPDATE leftovers SET due_at = 0 WHERE tenant_id = $1`)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if err := records.Sweep(t.Context(), d.For(h.tenant)); err != nil {
			t.Fatal(err)
		}
		if n := h.tableRows("field_values", "field = $2", name); n != 0 {
			t.Errorf("%d rows of the lineage are left", n)
		}
	})
}

// A type whose records lack a parent does not become controlled.
func TestRecordsWithoutAParentStandAgainstControl(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		put := func(e *schema.Entity) error {
			return h.change(func(ctx context.Context, tx tenant.ConfigTx) error { return schema.PutEntity(ctx, tx, e) })
		}
		if err := put(entity("line", "account reference:account")); err != nil {
			t.Fatal(describe(err))
		}
		h.create(h.as("ada"), "line", `{}`)
		h.create(h.as("ada"), "line", `{"account": "`+id(h.create(h.as("ada"), "account", `{}`))+`"}`)
		refused(t, put(childOf("line", "account")), "line", "account", 1)
		h.delete(h.as("ada"), "line", id(h.list(h.as("ada"), "line")[1]))
		if err := put(childOf("line", "account")); err != nil {
			t.Fatal(describe(err))
		}
	})
}

// changeShort is change for one that may visit only a few records: a longer one
// is stored in long.
func (h *house) changeShort(fn func(context.Context, tenant.ConfigTx) error, inline int, long **records.Long) error {
	ctx := context.Background()
	err := tenant.Configure(ctx, h.d.For(h.tenant), "test", h.clk, func(tx tenant.ConfigTx, log *tenant.History) error {
		before, err := access.Load(ctx, tx)
		if err != nil {
			return err
		}
		if err := fn(ctx, tx); err != nil {
			return err
		}
		log.Record("test", "change", nil, time.Now().String())
		after, err := access.Load(ctx, tx)
		if err != nil {
			return err
		}
		return (&records.Transition{Before: before, After: after, Inline: inline}).Run(ctx, tx)
	})
	if l, ok := err.(*records.Long); ok { //nolint:errorlint // Run returns it as it is
		*long = l
		return nil
	}
	return err
}
