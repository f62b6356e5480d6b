package user_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/fault"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

func nothing(context.Context, db.Querier) (user.Names, error) {
	no := func(string) bool { return false }
	return user.Names{Role: no, Set: no}, nil
}

func TestCreatingUsersOfATenant(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx, clk, h := t.Context(), clock.NewFake(time.Unix(1_800_000_000, 0)), d.For("acme")
		draft := user.Draft{Email: "a@acme.example", Name: "A", Type: user.Internal}
		if _, err := user.Create(ctx, h, clk, "test", draft, nothing); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("without a tenant: %v", err)
		}
		if _, _, err := user.SetActive(ctx, h, clk, "test", draft.Email, false); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("deactivate without a tenant: %v", err)
		}
		err := tenant.Configure(ctx, h, "test", clk, func(tx tenant.ConfigTx, log *tenant.History) error {
			log.Record("tenant", "acme", nil, "acme")
			return tenant.Put(ctx, tx, &tenant.Tenant{ID: "acme", Settings: tenant.DefaultSettings()}, 1)
		})
		if err != nil {
			t.Fatal(err)
		}
		ids, last := []user.ID{"unknown", ""}, user.ID("")
		for i := range 20 {
			draft.Email = fmt.Sprintf("u%d@acme.example", i)
			u, err := user.Create(ctx, h, clk, "test", draft, nothing) // the clock stands still
			if err != nil || u.ID <= last {
				t.Fatalf("%q after %q: %v", u.ID, last, err)
			}
			ids, last = append(ids, u.ID), u.ID
			if i%3 == 0 {
				if _, changed, err := user.SetActive(ctx, h, clk, "test", draft.Email, false); err != nil || !changed {
					t.Fatal(changed, err)
				}
			}
		}
		for n := range len(ids) + 1 {
			active, err := user.ActiveAmong(ctx, h, append(ids[:n:n], ids[:n]...))
			if err != nil {
				t.Fatal(err)
			}
			for i, id := range ids {
				if want := i < n && i >= 2 && (i-2)%3 != 0; active[id] != want {
					t.Errorf("of %d: user %d is active: %v", n, i-2, active[id])
				}
			}
		}
		if _, err := user.Create(ctx, h, clk, "test", draft, nothing); fault.CodeOf(err) != fault.Conflict {
			t.Errorf("the same address twice: %v", err)
		}
	})
}
