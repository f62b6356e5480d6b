package db_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
)

// Accounts that are older than the canonical form are found by it after the
// migration, and two accounts with the same address stay separate.
func TestKeysOfEmailsAreBroughtIntoTheCanonicalForm(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx := t.Context()
		stored := []struct{ tenant, id, email, key, want string }{
			{"acme", "01", "Eva@x.example", "eva@x.example", "eva@x.example"},
			{"acme", "02", "Eva@Bücher.example", "eva@bücher.example", "eva@xn--bcher-kva.example"},
			{"acme", "03", "σοφος@x.example", "σοφος@x.example", "σοφοσ@x.example"},
			{"acme", "04", "ΣΟΦΟΣ@x.example", "σοφοσ@x.example", "σοφοσ@x.example"},
			{"acme", "05", "old@bücher.example", "old@bücher.example", "old@xn--bcher-kva.example"},
			{"acme", "06", "old@BU\u0308CHER.example", "old@bücher.example?", " old@bücher.example?"},
			{"other", "01", "eva@xn--bcher-kva.example", "eva@xn--bcher-kva.example", "eva@xn--bcher-kva.example"},
			{"other", "02", "bot@foö_bar.example", "bot@foö_bar.example", "bot@foö_bar.example"},
		}
		stored[2].want = " σοφος@x.example" // another account already has the canonical form
		for i := range 2500 {
			id := fmt.Sprintf("9%04d", i)
			stored = append(stored, struct{ tenant, id, email, key, want string }{
				"many", id, id + "@ü.example", id + "@ü.example", id + "@xn--tda.example"})
		}
		err := d.Unscoped("test").Write(ctx, func(tx db.Tx) error {
			for i, u := range stored {
				_, err := tx.Exec(ctx, `INSERT INTO users (tenant_id, user_id, email, email_key, name, locale, user_type, is_owner, active,
					email_verified, role, password_hash, custom_data, created_at, updated_at)
					VALUES ($1, $2, $3, $4, 'n', '', 'external', 0, 1, 1, '', '', '{}', $5, 1)`, u.tenant, u.id, u.email, u.key, i)
				if err != nil {
					return err
				}
				_, err = tx.Exec(ctx, `INSERT INTO audit_users (tenant_id, email_key, user_id, email, seen_at) VALUES ($1, $2, $3, $4, 1)`,
					u.tenant, u.key, u.id, u.email)
				if err != nil {
					return err
				}
			}
			_, err := tx.Exec(ctx, `INSERT INTO audit_users (tenant_id, email_key, user_id, email, seen_at)
				VALUES ('acme', 'eva@xn--bcher-kva.example', '02', 'eva@xn--bcher-kva.example', 1)`)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second time nothing is left to do
			if err := d.Unscoped("test").Write(ctx, func(tx db.Tx) error { return db.RekeyEmails(ctx, tx) }); err != nil {
				t.Fatal(err)
			}
		}
		got := map[string]string{}
		read(t, d.Unscoped("test"), `SELECT tenant_id, user_id, email_key FROM users`, func(r db.Row) error {
			got[r.Text(0)+r.Text(1)] = r.Text(2)
			return nil
		})
		for _, u := range stored {
			if is := got[u.tenant+u.id]; is != u.want {
				t.Errorf("%s is found by %q, want %q", u.email, is, u.want)
			}
		}
		var audited []string
		read(t, d.Unscoped("test"), `SELECT user_id, email_key FROM audit_users WHERE tenant_id = 'acme' ORDER BY user_id, email_key`, func(r db.Row) error {
			audited = append(audited, r.Text(0)+" "+r.Text(1))
			return nil
		})
		want := []string{
			"01 eva@x.example", "02 eva@xn--bcher-kva.example", "03 σοφοσ@x.example", "04 σοφοσ@x.example",
			"05 old@xn--bcher-kva.example", "06 old@xn--bcher-kva.example",
		}
		if !slices.Equal(audited, want) {
			t.Errorf("of the audit log:\n%s", strings.Join(audited, "\n"))
		}
	})
}
