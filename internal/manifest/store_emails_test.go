package manifest_test

import (
	"strings"
	"testing"

	"gatehouse/internal/db"
	"gatehouse/internal/manifest"
)

// rekey stores another key for a user's address, as older versions did.
func (p *place) rekey(id, key string) {
	p.Helper()
	err := p.d.For("acme").Write(p.Context(), func(tx db.Tx) error {
		_, err := tx.Exec(p.Context(), `UPDATE users SET email_key = $3 WHERE tenant_id = $1 AND user_id = $2`, id, key)
		return err
	})
	if err != nil {
		p.Fatal(err)
	}
}

// TestFormsOfAnAddress checks that all forms of one address name the same user,
// and that a user whose address cannot receive mail is not created.
func TestFormsOfAnAddress(t *testing.T) {
	each(t, func(p *place) {
		p.apply("tenant: acme\nusers: [{email: eva@bücher.example, name: Eva}]\n")
		p.printed(p.apply("tenant: acme\nusers: [{email: EVA@xn--bcher-kva.example}]\n"),
			"update user EVA@xn--bcher-kva.example: email eva@bücher.example → EVA@xn--bcher-kva.example")
		p.refused(manifest.Options{}, "tenant: acme\nusers:\n  - {email: a@bücher.example}\n  - {email: a@xn--bcher-kva.example}\n",
			"acme.yaml:4: user a@xn--bcher-kva.example is declared twice, first on line 3")
		p.refused(manifest.Options{}, "tenant: acme\nusers:\n  - {email: a..b@x.example}\n",
			`acme.yaml:3: user "a..b@x.example": email: expected an e-mail address whose part before the @ does not begin or end with a dot, and has no two dots in a row`)

		p.apply("tenant: acme\nusers: [{email: bot@x.example}]\n")
		err := p.d.For("acme").Write(p.Context(), func(tx db.Tx) error { // older versions accepted it
			_, err := tx.Exec(p.Context(), `UPDATE users SET email = 'b..t@x.example', email_key = 'b..t@x.example' WHERE tenant_id = $1 AND email = 'bot@x.example'`)
			return err
		})
		if err != nil {
			p.Fatal(err)
		}
		p.printed(p.apply(p.export("acme")))
	})
}

// TestTwoUsersWithOneAddress checks two users with one address, created before
// addresses had a single canonical form: a manifest can name neither, does not
// mistake one for the other, and prunes neither.
func TestTwoUsersWithOneAddress(t *testing.T) {
	each(t, func(p *place) {
		p.apply("tenant: acme\nusers: [{email: eva@xn--bcher-kva.example, name: Old}, {email: sam@acme.example, owner: true}]\n")
		old := p.user("acme", "eva@xn--bcher-kva.example").ID
		p.rekey(string(old), "elsewhere")
		p.apply("tenant: acme\nusers: [{email: eva@bücher.example, name: New}]\n")
		p.rekey(string(p.user("acme", "eva@bücher.example").ID), " eva@bücher.example")
		p.rekey(string(old), "eva@xn--bcher-kva.example")

		export := p.export("acme")
		if !strings.Contains(export, "Old") || !strings.Contains(export, "New") {
			p.Errorf("the export lacks one:\n%s", export)
		}
		for _, form := range []string{"eva@bücher.example", "eva@xn--bcher-kva.example"} {
			p.refused(manifest.Options{}, "tenant: acme\nusers:\n  - {email: "+form+"}\n",
				`acme.yaml:3: two users have the e-mail address "eva@xn--bcher-kva.example", each in a form of its own: leave it out of the manifest`)
		}
		p.printed(p.prune("tenant: acme\nusers: [{email: sam@acme.example, owner: true}]\n"))
		for form, name := range map[string]string{"eva@bücher.example": "New", "eva@xn--bcher-kva.example": "Old"} {
			if u := p.user("acme", form); u.Name != name || !u.Active {
				p.Errorf("%s is %s, active %v", form, u.Name, u.Active)
			}
		}
	})
}
