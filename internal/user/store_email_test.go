package user_test

import (
	"errors"
	"fmt"
	"testing"

	"gatehouse/internal/clock"
	"gatehouse/internal/config"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/fault"
	"gatehouse/internal/tenant"
	"gatehouse/internal/tenant/tenanttest"
	"gatehouse/internal/user"
)

// Whatever form of an address comes, it is the one account's.
func TestAnAddressIsOneAccountInAllItsForms(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx, h, clk := t.Context(), d.For("acme"), clock.System()
		err := tenant.Configure(ctx, h, "test", clk, func(tx tenant.ConfigTx, log *tenant.History) error {
			log.Record("tenant", "acme", nil, 1)
			return tenant.Put(ctx, tx, &tenant.Tenant{ID: "acme", Settings: tenant.DefaultSettings()}, 1)
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, forms := range [][]string{
			{"eva@bücher.example", "EVA@xn--bcher-kva.example", "eva@bu\u0308cher.example"},
			{"ΣΟΦΟΣ@x.example", "σοφος@x.example", "σοφοσ@x.example"},
			{"josé@x.example", "JOSE\u0301@x.example"},
		} {
			for i, form := range forms {
				draft := config.UserDraft{Email: form, Name: "N", Type: user.External}
				if _, err := config.CreateUser(ctx, h, clk, config.Operator("test"), draft); (i == 0) != (err == nil) || i > 0 && fault.CodeOf(err) != fault.Conflict {
					t.Errorf("%s: %v", form, err)
				}
				u, err := user.ByEmail(ctx, h, form)
				if err != nil {
					t.Fatalf("%s: %v", form, err)
				}
				if acc, err := user.AccountByEmail(ctx, h, form); err != nil || acc.ID != u.ID {
					t.Errorf("%s: %v", form, err)
				}
			}
		}
		if _, err := config.CreateUser(ctx, h, clk, config.Operator("test"), config.UserDraft{Email: "a..b@x", Name: "N", Type: user.External}); fault.CodeOf(err) != fault.Validation {
			t.Errorf("an address that no mail reaches: %v", err)
		}
	})
}

// Two accounts of before, whose addresses are one, stay two: each is found by
// the form it was made with.
func TestOfTwoAccountsWithOneAddressNoneIsLockedOut(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx, h := t.Context(), d.For("acme")
		forms := []string{"eva@xn--bcher-kva.example", "eva@bücher.example"}
		write := func(fn func(tx tenant.ConfigTx) error) {
			t.Helper()
			if err := tenanttest.Change(ctx, h, fn); err != nil {
				t.Fatal(err)
			}
		}
		for i, form := range forms {
			u := &user.User{ID: user.ID(fmt.Sprint(i)), Email: form, Name: "N", Type: user.External, Active: true, CreatedAt: int64(i), UpdatedAt: int64(i)}
			write(func(tx tenant.ConfigTx) error {
				if err := user.Insert(ctx, tx, u); err != nil {
					return err
				}
				if i > 0 {
					return nil
				}
				_, err := tx.Exec(ctx, `UPDATE users SET email_key = 'elsewhere' WHERE tenant_id = $1`) // so that the other fits in
				return err
			})
		}
		write(func(tx tenant.ConfigTx) error { // as the migration leaves them
			_, err := tx.Exec(ctx, `UPDATE users SET email_key = ' eva@bücher.example' WHERE tenant_id = $1 AND user_id = '1'`)
			if err == nil {
				_, err = tx.Exec(ctx, `UPDATE users SET email_key = 'eva@xn--bcher-kva.example' WHERE tenant_id = $1 AND user_id = '0'`)
			}
			return err
		})
		found := func() {
			t.Helper()
			for form, want := range map[string]string{
				forms[0]: "0", "EVA@XN--BCHER-KVA.example": "0", forms[1]: "1", "EVA@Bücher.example": "1",
			} {
				u, err := user.ByEmail(ctx, h, form)
				acc, errAcc := user.AccountByEmail(ctx, h, form)
				if err := errors.Join(err, errAcc); err != nil || string(u.ID) != want || string(acc.ID) != want {
					t.Errorf("%s is %s and %s: %v", form, u.ID, acc.ID, err)
				}
			}
			clashes, err := user.Clashes(ctx, h)
			if err != nil || fmt.Sprint(clashes) != "map[eva@xn--bcher-kva.example:[1]]" {
				t.Errorf("%v %v", clashes, err)
			}
		}
		found()
		for _, form := range forms {
			err := tenanttest.Change(ctx, h, func(tx tenant.ConfigTx) error {
				return user.Insert(ctx, tx, &user.User{ID: "2", Email: form, Type: user.External, CreatedAt: 9, UpdatedAt: 9})
			})
			if fault.CodeOf(err) != fault.Conflict {
				t.Errorf("a third account: %v", err)
			}
		}
		write(func(tx tenant.ConfigTx) error { // a change of the account leaves its key alone
			u, err := user.ByEmail(ctx, tx, forms[1])
			if err != nil {
				return err
			}
			u.Name = "M"
			return user.Update(ctx, tx, u)
		})
		found()
	})
}
