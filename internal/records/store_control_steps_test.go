package records_test

import (
	"context"
	"testing"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/records"
	"gatehouse/internal/schema"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

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
