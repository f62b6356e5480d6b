package user_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"gatehouse/internal/clock"
	"gatehouse/internal/config"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/tenant"
	"gatehouse/internal/tenant/tenanttest"
	"gatehouse/internal/user"
)

// What changes an account's epoch, its wait for activation and its being
// verified, by each of the ways to change a user.
func TestWhatBecomesOfAnAccount(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx, h, clk := t.Context(), d.For("acme"), clock.System()
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		must(tenant.Configure(ctx, h, "test", clk, func(tx tenant.ConfigTx, log *tenant.History) error {
			log.Record("tenant", "acme", nil, 1)
			return tenant.Put(ctx, tx, &tenant.Tenant{ID: "acme", Settings: tenant.DefaultSettings()}, 1)
		}))
		write := func(fn func(tx tenant.ConfigTx) error) { t.Helper(); must(tenanttest.Change(ctx, h, fn)) }
		expect := func(id string, want user.Account) {
			t.Helper()
			got, err := user.AccountByID(ctx, h, user.ID(id))
			must(err)
			if got.Active != want.Active || got.Pending != want.Pending || got.Verified != want.Verified || got.Epoch != want.Epoch {
				t.Errorf("%+v, want %+v", got, want)
			}
		}
		for i, kind := range []user.Type{user.External, user.Internal} {
			u := &user.User{
				ID: user.ID(kind), Email: string(kind) + "@b.example", Name: "N", Type: kind, Pending: true, PasswordHash: "1",
				CreatedAt: int64(i), UpdatedAt: int64(i),
			}
			write(func(tx tenant.ConfigTx) error { return user.Insert(ctx, tx, u) })
			if got, err := user.AccountByEmail(ctx, h, " EXTERNAL@b.example"); err != nil || got.ID != "external" || got.PasswordHash != "1" {
				t.Errorf("%+v %v", got, err)
			}
		}
		activate := func(id string) (ok bool) {
			write(func(tx tenant.ConfigTx) (err error) { ok, err = user.Activate(ctx, tx, user.ID(id), 9); return err })
			return ok
		}
		if activate("internal") || activate("nobody") || !activate("external") || activate("external") {
			t.Error("Activate is for those who wait, once")
		}
		expect("external", user.Account{Active: true, Verified: true})

		reset := func(id string, epoch int64) (ok bool) {
			write(func(tx tenant.ConfigTx) (err error) {
				ok, err = user.ResetPassword(ctx, tx, user.ID(id), user.External, epoch, "2", 9)
				return err
			})
			return ok
		}
		if reset("internal", 0) || reset("external", 7) || !reset("external", 0) || reset("external", 0) {
			t.Error("ResetPassword is for the epoch it was asked at")
		}
		expect("external", user.Account{Active: true, Verified: true, Epoch: 1})

		setActive := func(email string, active, changes bool) {
			t.Helper()
			_, changed, err := config.SetUserActive(ctx, h, clk, config.Operator("test"), email, active)
			must(err)
			if changed != changes {
				t.Errorf("SetActive(%v): changed %v", active, changed)
			}
		}
		setActive("external@b.example", false, true)
		setActive("external@b.example", false, false)
		expect("external", user.Account{Verified: true, Epoch: 2})
		if reset("external", 2) {
			t.Error("a deactivated user's password was reset")
		}
		setActive("external@b.example", true, true)
		expect("external", user.Account{Active: true, Verified: true, Epoch: 2})
		setActive("internal@b.example", false, true) // ends the wait
		expect("internal", user.Account{Epoch: 1})
		setActive("internal@b.example", true, true)
		expect("internal", user.Account{Active: true, Verified: true, Epoch: 1})

		update := func(change func(*user.User)) {
			t.Helper()
			write(func(tx tenant.ConfigTx) error {
				u, err := user.ByID(ctx, tx, "external")
				if err != nil {
					return err
				}
				change(u)
				return user.Update(ctx, tx, u)
			})
		}
		update(func(u *user.User) { u.Name = "M" })
		expect("external", user.Account{Active: true, Verified: true, Epoch: 2})
		update(func(u *user.User) { u.PasswordHash = "3" })
		expect("external", user.Account{Active: true, Verified: true, Epoch: 3})
		update(func(u *user.User) { u.Active, u.PasswordHash = false, "4" })
		expect("external", user.Account{Verified: true, Epoch: 4})
		update(func(u *user.User) { u.Active = true })
		expect("external", user.Account{Active: true, Verified: true, Epoch: 4})

		if _, err := user.AccountByEmail(ctx, h, "nobody@b.example"); !errors.Is(err, user.ErrUnknown) {
			t.Error(err)
		}
		hungUp, cancel := context.WithTimeout(ctx, time.Nanosecond)
		defer cancel()
		<-hungUp.Done()
		if _, err := user.AccountByID(hungUp, h, "external"); err == nil || errors.Is(err, user.ErrUnknown) {
			t.Errorf("a read that failed: %v", err)
		}
	})
}
