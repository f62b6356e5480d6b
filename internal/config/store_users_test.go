package config_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/clock"
	"gatehouse/internal/config"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/fault"
	"gatehouse/internal/tenant"
	"gatehouse/internal/tenant/tenanttest"
	"gatehouse/internal/user"
)

func TestCreatingUsersOfATenant(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx, clk, h := t.Context(), clock.NewFake(time.Unix(1_800_000_000, 0)), d.For("acme")
		draft := config.UserDraft{Email: "a@acme.example", Name: "A", Type: user.Internal}
		if _, err := config.CreateUser(ctx, h, clk, config.Operator("test"), draft); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("without a tenant: %v", err)
		}
		if _, _, err := config.SetUserActive(ctx, h, clk, config.Operator("test"), draft.Email, false); fault.CodeOf(err) != fault.NotFound {
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
			u, err := config.CreateUser(ctx, h, clk, config.Operator("test"), draft) // the clock stands still
			if err != nil || u.ID <= last {
				t.Fatalf("%q after %q: %v", u.ID, last, err)
			}
			ids, last = append(ids, u.ID), u.ID
			if i%3 == 0 {
				if _, changed, err := config.SetUserActive(ctx, h, clk, config.Operator("test"), draft.Email, false); err != nil || !changed {
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
		if _, err := config.CreateUser(ctx, h, clk, config.Operator("test"), draft); fault.CodeOf(err) != fault.Conflict {
			t.Errorf("the same address twice: %v", err)
		}
	})
}

// Of two accounts with one address each can be deactivated, by the form that it
// was made with.
func TestAnAccountWithAnothersAddressIsDeactivated(t *testing.T) {
	each(t, func(p *house) {
		ctx, forms := p.Context(), map[user.ID]string{"0": "eva@xn--bcher-kva.example", "1": "eva@bücher.example"}
		for _, id := range []user.ID{"1", "0"} {
			err := tenanttest.Change(ctx, p.h, func(tx tenant.ConfigTx) error {
				err := user.Insert(ctx, tx, &user.User{ID: id, Email: forms[id], Type: user.External, Active: true, CreatedAt: int64(len(id)), UpdatedAt: 1})
				if err == nil && id == "1" { // as the migration leaves it
					_, err = tx.Exec(ctx, `UPDATE users SET email_key = ' eva@bücher.example', created_at = 2 WHERE tenant_id = $1 AND user_id = '1'`)
				}
				return err
			})
			if err != nil {
				p.Fatal(err)
			}
		}
		for _, id := range []user.ID{"1", "0"} {
			u, changed, err := config.SetUserActive(ctx, p.h, p.clock, config.Operator("test"), forms[id], false)
			if err != nil || !changed || u.ID != id || u.Active {
				p.Errorf("%s: %+v, %v, %v", forms[id], u, changed, err)
			}
		}
		p.refused("edits[0]: two users have the e-mail address \"eva@xn--bcher-kva.example\", each in a form of its own: leave it out of the manifest",
			config.Edit{Kind: "user", Value: object("email", forms["0"], "type", "external")})
	})
}

// TestAPendingUserIsDecidedOver: either decision ends the wait, and the history
// tells of it.
func TestAPendingUserIsDecidedOver(t *testing.T) {
	each(t, func(p *house) {
		ctx := p.Context()
		for _, active := range []bool{true, false} {
			address := fmt.Sprintf("waits-%v@acme.example", active)
			err := tenanttest.Change(ctx, p.h, func(tx tenant.ConfigTx) error {
				return user.Add(ctx, tx, 1, &user.User{Email: address, Type: user.External, Pending: true})
			})
			if err != nil {
				p.Fatal(err)
			}
			p.says(p.done(config.Edit{Kind: "user", Value: object("email", address, "type", "external", "active", false)}), "")
			for _, want := range []bool{true, false} {
				u, changed, err := config.SetUserActive(ctx, p.h, p.clock, config.Operator("test"), address, active)
				if err != nil || changed != want || u.Active != active || u.Pending || u.EmailVerified != active {
					p.Errorf("%+v, %v, %v", u, changed, err)
				}
			}
			history, err := tenant.Changes(ctx, p.h, 1)
			if err != nil || history[0].Name != address || !strings.Contains(string(mustJSON(p, history[0].Before)), `"pending":true`) {
				p.Errorf("%+v, %v", history, err)
			}
		}
		p.refused("only a user can be activated, with no value: found role", config.Edit{Kind: "role", Name: "sales", Activate: true})
	})
}

func TestAnEditOfOneObjectMakesNoTenant(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		p := &house{T: t, h: d.For("acme"), clock: clock.NewFake(time.Unix(1_800_000_000, 0))}
		p.refused(`NOT_FOUND: there is no tenant "acme"`, config.Edit{Kind: "role", Value: object("name", "a")})
	})
}
