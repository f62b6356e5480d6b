package records_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/fault"
	"gatehouse/internal/records"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// moves changes a user's role. The user must not own any records.
func (h *house) moves(name, role string) {
	h.t.Helper()
	h.configure(func(ctx context.Context, tx tenant.ConfigTx) error {
		u, err := user.ByID(ctx, tx, user.ID(h.ids[name]))
		if err != nil {
			return err
		}
		u.Role = role
		return user.Update(ctx, tx, u)
	})
}

// A role with the name of a deleted role does not inherit its shares, neither
// before nor after they are swept, nor while new ones are created.
func TestARoleInheritsNoSharesFromOneOfItsName(t *testing.T) {
	const n = 120
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		guests := access.RolePrincipal("guests")
		put := func(ctx context.Context, tx tenant.ConfigTx) error {
			return access.PutRole(ctx, tx, access.Role{Name: "guests", Parent: "ceo"})
		}
		h.configure(put)
		h.user("gus", user.User{})
		h.set("gus", access.PermissionSet{Entities: map[string]access.EntityGrant{"contact": {Read: true, Update: true}}})
		h.moves("gus", "guests")
		sam := h.as("sam")
		share := func(id string) error {
			return sam.Share(t.Context(), "contact", id, records.Share{Principal: guests, Access: access.Edit})
		}
		var ids []string
		for range n {
			ids = append(ids, id(h.create(sam, "contact", `{"score": 7}`)))
			if err := share(ids[len(ids)-1]); err != nil {
				t.Fatal(err)
			}
		}
		sees := func(want int) {
			t.Helper()
			gus, got := h.as("gus"), 0
			for _, id := range ids {
				_, err := gus.Get(t.Context(), "contact", id)
				if err == nil {
					got++
					h.update(gus, "contact", id, `{"name": "seen"}`)
				} else {
					want404(t, err)
				}
			}
			all, some := len(h.list(gus, "contact")), len(h.list(gus, "contact", records.Filter{Field: "score", Value: "7"}))
			if got != want || all != want || some != want {
				t.Errorf("gus reads %d, lists %d, filters %d; want %d", got, all, some, want)
			}
		}
		shares := func(want int) {
			t.Helper()
			got := 0
			for _, id := range ids {
				list, err := sam.Shares(t.Context(), "contact", id)
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range list {
					if s.Principal != guests {
						t.Errorf("shared with %q", s.Principal)
					}
				}
				got += len(list)
			}
			if got != want {
				t.Errorf("%d shares are listed, want %d", got, want)
			}
		}
		sees(n)
		shares(n)
		h.moves("gus", "")
		h.configure(func(ctx context.Context, tx tenant.ConfigTx) error { return access.DeleteRole(ctx, tx, "guests") })
		sam = h.as("sam")
		sees(0)
		shares(0)
		want(t, share(ids[0]), fault.Validation, "role")
		want404(t, sam.Unshare(t.Context(), "contact", ids[0], guests))

		h.configure(put)
		h.moves("gus", "guests")
		sam = h.as("sam")
		sees(0)
		shares(0)
		if err := errors.Join(share(ids[3]), share(ids[n-1])); err != nil {
			t.Fatal(err)
		}
		sees(2)
		if err := records.Sweep(t.Context(), d.For(h.tenant)); err != nil {
			t.Fatal(err)
		}
		sees(2)
		shares(2)
		if rows, way, left := h.tableRows("shares", "1 = 1"), h.tableRows("field_values", "reach LIKE 's:%' AND field = 'score'"), h.tableRows("leftovers", "1 = 1"); rows != 2 || way != 2 || left != 0 {
			t.Errorf("%d shares, %d index rows and %d leftovers stand, want 2, 2 and none", rows, way, left)
		}
		if err := sam.Unshare(t.Context(), "contact", ids[3], guests); err != nil {
			t.Fatal(err)
		}
		sees(1)
	})
}

func want404(t *testing.T, err error) { t.Helper(); want(t, err, fault.NotFound) }

// A role created before roles were distinguished (access.Role.Since) keeps its
// shares. A later role of the same name does not inherit those it leaves
// behind.
func TestSharesOfOlderRolesStay(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		h.configure(func(ctx context.Context, tx tenant.ConfigTx) error {
			_, err := tx.Exec(ctx, `UPDATE roles SET since = 0 WHERE tenant_id = $1`)
			return err
		})
		one := id(h.create(h.as("sam"), "contact", `{"score": 7}`))
		if err := h.as("sam").Share(t.Context(), "contact", one, records.Share{Principal: access.RolePrincipal("support"), Access: access.ReadOnly}); err != nil {
			t.Fatal(err)
		}
		if n := h.tableRows("shares", "principal = 'role:support'"); n != 1 {
			t.Errorf("%d shares", n)
		}
		h.get(h.as("eva"), "contact", one)
		// Changing a role's parent does not make it a new role.
		h.configure(func(ctx context.Context, tx tenant.ConfigTx) error {
			return access.PutRole(ctx, tx, access.Role{Name: "support", Parent: "sales"})
		})
		h.get(h.as("eva"), "contact", one)
		h.configure(func(ctx context.Context, tx tenant.ConfigTx) error {
			return errors.Join(access.DeleteRole(ctx, tx, "support"), access.PutRole(ctx, tx, access.Role{Name: "support", Parent: "ceo"}))
		})
		_, err := h.as("eva").Get(t.Context(), "contact", one)
		want404(t, err)
		if left := h.tableRows("leftovers", "kind = 'shares' AND name = 'role:support'"); left != 1 {
			t.Errorf("%d leftovers", left)
		}
	})
}

// Shares of roles that were removed before roles were distinguished are swept.
func TestTheMigrationLeavesDanglingSharesToTheSweep(t *testing.T) {
	text, err := os.ReadFile("../db/migrations/0010_role_since.sql")
	if err != nil {
		t.Fatal(err)
	}
	_, insert, _ := strings.Cut(string(text), "DEFAULT 0;")
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		one := id(h.create(h.as("sam"), "contact", `{"score": 7}`))
		for _, p := range []access.Principal{access.RolePrincipal("support"), access.UserPrincipal(user.ID(h.ids["eva"]))} {
			if err := h.as("sam").Share(t.Context(), "contact", one, records.Share{Principal: p, Access: access.ReadOnly}); err != nil {
				t.Fatal(err)
			}
		}
		err := d.Unscoped("a migration").Write(t.Context(), func(tx db.Tx) error {
			for _, sql := range []string{
				`UPDATE roles SET since = 0`,
				`UPDATE shares SET principal = 'role:support' WHERE principal LIKE 'role#%'`,
				`INSERT INTO shares (tenant_id, entity, record_id, principal, access, record_created_at, created_at, created_by)
				SELECT tenant_id, entity, record_id, 'role:gone', access, record_created_at, created_at, created_by FROM shares WHERE principal = 'role:support'`,
				strings.TrimSuffix(strings.TrimSpace(insert), ";"),
			} {
				if _, err := tx.Exec(t.Context(), sql); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if n := h.tableRows("leftovers", "1 = 1"); n != 1 {
			t.Errorf("%d leftovers", n)
		}
		if err := records.Sweep(t.Context(), d.For(h.tenant)); err != nil {
			t.Fatal(err)
		}
		if gone, all := h.tableRows("shares", "principal = 'role:gone'"), h.tableRows("shares", "1 = 1"); gone != 0 || all != 2 {
			t.Errorf("%d of %d shares dangle", gone, all)
		}
	})
}
