package tenant_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/tenant"
)

// TestTheChangeHistoryIsReadInParts: all of it, in its order, whatever is asked for,
// and nothing of the database is held meanwhile.
func TestTheChangeHistoryIsReadInParts(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx, h := t.Context(), d.For("acme")
		clk := clock.NewFake(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
		for n := range 70 {
			clk.Advance(time.Second)
			err := tenant.Configure(ctx, h, "a test", clk, func(tx tenant.ConfigTx, log *tenant.History) error {
				kind := []string{"role", "entity"}[n%2]
				log.Record(kind, fmt.Sprint(n), nil, n)
				return tenant.Put(ctx, tx, &tenant.Tenant{ID: "acme"}, clock.Micros(clk.Now()))
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []struct {
			filter             tenant.ChangeFilter
			want, first, after int // changes, the number of the newest, and how far apart they are
		}{
			{tenant.ChangeFilter{}, 70, 69, 1},
			{tenant.ChangeFilter{Limit: 32}, 32, 69, 1},
			{tenant.ChangeFilter{Limit: 33}, 33, 69, 1},
			{tenant.ChangeFilter{Kind: "role"}, 35, 68, 2},
			{tenant.ChangeFilter{Kind: "entity", Limit: 34}, 34, 69, 2},
			{tenant.ChangeFilter{Kind: "user"}, 0, 0, 0},
		} {
			n := 0
			err := tenant.EachChange(ctx, h, c.filter, func(is tenant.Change) error {
				if want := fmt.Sprint(c.first - n*c.after); is.Name != want {
					t.Errorf("%+v: change %d is %s, want %s", c.filter, n, is.Name, want)
				}
				n++
				return nil
			})
			if err != nil || n != c.want {
				t.Errorf("%+v: %d changes, want %d, %v", c.filter, n, c.want, err)
			}
		}
		n := 0
		err := tenant.EachChange(ctx, h, tenant.ChangeFilter{}, func(tenant.Change) error {
			if n++; n > 1 {
				return nil
			}
			return h.Write(ctx, func(tx db.Tx) error {
				_, err := tx.Exec(context.WithoutCancel(ctx), `DELETE FROM config_changes WHERE tenant_id = $1`)
				return err
			})
		})
		if err != nil || n == 70 {
			t.Errorf("%d changes were read, %v: all of them at one instant", n, err)
		}
	})
}

// TestOneChangeIsInOrder: what one Configure recorded is read in that order, the
// last first, at one instant and across the parts in which it is read.
func TestOneChangeIsInOrder(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx, h := t.Context(), d.For("acme")
		err := tenant.Configure(ctx, h, "a test", clock.NewFake(time.Unix(1_800_000_000, 0)), func(tx tenant.ConfigTx, log *tenant.History) error {
			for n := range 100 {
				log.Record("role", fmt.Sprint(n), nil, n)
			}
			return tenant.Put(ctx, tx, &tenant.Tenant{ID: "acme"}, 1)
		})
		if err != nil {
			t.Fatal(err)
		}
		next := 99
		err = tenant.EachChange(ctx, h, tenant.ChangeFilter{}, func(is tenant.Change) error {
			if is.Name != fmt.Sprint(next) {
				t.Fatalf("%s, want %d", is.Name, next)
			}
			next--
			return nil
		})
		if err != nil || next != -1 {
			t.Errorf("%d are left, %v", next+1, err)
		}
	})
}

// TestARareChangeIsLookedForInSteps: a page looks at so many changes and says where the
// next one goes on, also when none of them was asked for; and it ends before a change that
// its reader does not take.
func TestARareChangeIsLookedForInSteps(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx, h := t.Context(), d.For("acme")
		err := tenant.Configure(ctx, h, "a test", clock.NewFake(time.Unix(1_800_000_000, 0)), func(tx tenant.ConfigTx, log *tenant.History) error {
			for n := range 100 {
				log.Record("role", fmt.Sprint(n), nil, n)
			}
			return tenant.Put(ctx, tx, &tenant.Tenant{ID: "acme"}, 1)
		})
		if err == nil {
			err = h.Write(ctx, func(tx db.Tx) error { // 10,000 that are older, and one that is the oldest
				const into = `INSERT INTO config_changes (tenant_id, change_id, changed_at, actor, action, kind, name, before_value, after_value) `
				_, err := tx.Exec(ctx, into+`SELECT $1, '0' || a.change_id || b.change_id, 1, 'x', 'update', 'role', 'common', NULL, NULL
					FROM config_changes a, config_changes b WHERE a.tenant_id = $1 AND b.tenant_id = $1`)
				if err == nil {
					_, err = tx.Exec(ctx, into+`VALUES ($1, '0', 1, 'x', 'update', 'role', 'rare', NULL, NULL)`)
				}
				return err
			})
		}
		if err != nil {
			t.Fatal(err)
		}
		below, pages, found := "", 0, []string{}
		for pages == 0 || below != "" {
			next, err := tenant.ChangesBelow(ctx, h, tenant.ChangeFilter{Name: "rare", Limit: 50}, below, func(c tenant.Change) bool {
				found = append(found, c.Name)
				return true
			})
			if err != nil || pages == 0 && (next == "" || len(found) > 0) {
				t.Fatalf("the first page ends at %q, with %q, %v: it looked at all", next, found, err)
			}
			below = next
			pages++
		}
		if len(found) != 1 || pages != 3 {
			t.Errorf("%q on %d pages", found, pages)
		}
		var names []string
		next, err := tenant.ChangesBelow(ctx, h, tenant.ChangeFilter{Limit: 50}, "", func(c tenant.Change) bool {
			if len(names) == 3 {
				return false
			}
			names = append(names, c.Name)
			return true
		})
		if err != nil || len(names) != 3 {
			t.Fatalf("%q, %v", names, err)
		}
		_, err = tenant.ChangesBelow(ctx, h, tenant.ChangeFilter{Limit: 1}, next, func(c tenant.Change) bool {
			names = append(names, c.Name)
			return true
		})
		if want := []string{"99", "98", "97", "96"}; err != nil || !slices.Equal(names, want) {
			t.Errorf("%q, %v, want %q", names, err, want)
		}
	})
}
