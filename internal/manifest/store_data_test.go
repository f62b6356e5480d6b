package manifest_test

import (
	"context"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/fault"
	"gatehouse/internal/manifest"
	"gatehouse/internal/tenant"
	"gatehouse/internal/tenant/tenanttest"
	"gatehouse/internal/user"
)

func TestDataStandsAgainstAChange(t *testing.T) {
	each(t, func(p *place) {
		acmePlace(p)
		for _, pairs := range [][]string{
			{"first_name", `"Ana"`, "score", `1`, "stage", `"new"`}, {"first_name", `"Ana"`, "stage", `"lost"`}, {"first_name", `"7"`, "score", `3`},
		} {
			p.record("acme", "contact", pairs...)
		}
		_, err := p.try("tenant: acme\nentities: [{name: account, fields: [{name: name, type: text}]}]\n"+
			"sharing_rules: []\npermission_sets: [{name: portal}, {name: staff}]\n", manifest.Options{Prune: true})
		if err == nil || err.Error() != "acme.yaml:2: entity contact still holds 3 records: delete them before the entity" {
			p.Errorf("removing an entity with records: %v", err)
		}
		p.prune("tenant: acme\nsharing_rules: []\npermission_sets: [{name: portal}, {name: staff}]\n")
		contact := func(fields string) string {
			return "tenant: acme\nentities:\n  - name: contact\n    fields:\n      - {name: score, type: number, indexed: true}\n" + fields
		}
		p.refused(manifest.Options{}, contact("      - {name: first_name, type: number}\n"),
			"acme.yaml:6: entity contact: field first_name cannot become number: 3 of 3 records hold a value that does not fit")
		p.refused(manifest.Options{}, contact("      - {name: first_name, type: text, unique: true}\n"),
			"acme.yaml:6: entity contact: field first_name cannot become unique: 2 of 3 records share their value with another")
		if one := asProblems(p, mustFail(p, contact("      - {name: first_name, type: date}\n"))); fault.CodeOf(one) != fault.Conflict {
			p.Errorf("the refusal of the records is lost: %v", one)
		}
		// A removed field keeps its data, which is visible again when the field
		// is restored.
		p.apply("tenant: acme\nentities: [{name: contact, fields: [{name: first_name, type: text}]}]\n")
		p.refused(manifest.Options{}, "tenant: acme\nentities:\n  - name: contact\n    fields:\n"+
			"      - {name: first_name, type: text}\n      - {name: score, type: boolean}\n",
			"acme.yaml:6: entity contact: field score cannot become boolean: 2 of 3 records hold a value that does not fit")
	})
}

func mustFail(p *place, src string) error {
	p.Helper()
	_, err := p.try(src, manifest.Options{})
	if err == nil {
		p.Fatalf("applied:\n%s", src)
	}
	return err
}

func TestUsersDataStandsAgainstAChange(t *testing.T) {
	each(t, func(p *place) {
		acmePlace(p)
		for email, custom := range map[string]string{"olivia@acme.example": `{"company":"Acme"}`, "sam@acme.example": `{"company":null}`} {
			u := p.user("acme", email)
			u.Custom = jsontext.Value(custom)
			if err := tenanttest.Change(context.Background(), p.d.For("acme"), func(tx tenant.ConfigTx) error { return user.Update(context.Background(), tx, u) }); err != nil {
				p.Fatal(err)
			}
		}
		p.refused(manifest.Options{}, "tenant: acme\nuser_fields:\n  - {name: company, type: number}\n",
			"acme.yaml:3: user_fields: field company cannot become number: 1 user(s) hold a value that does not fit")
		p.printed(p.apply("tenant: acme\nuser_fields: [{name: company, type: select, options: [Acme, Other]}]\n"),
			"update user fields: fields.company.options none → [Acme, Other], fields.company.type text → select")
		p.printed(p.apply("tenant: acme\nuser_fields: []\n"), "delete user fields")
		if custom := string(p.user("acme", "olivia@acme.example").Custom); !strings.Contains(custom, "Acme") {
			p.Errorf("a removed field took its data along: %s", custom)
		}
	})
}

func TestAUsersRoleMovesTheirRecords(t *testing.T) {
	each(t, func(p *place) {
		acmePlace(p)
		sam := p.user("acme", "sam@acme.example").ID
		p.record("acme", "contact", "first_name", `"Ana"`, "owner_id", `"`+string(sam)+`"`)
		p.apply("tenant: acme\nusers: [{email: Sam@acme.example, role: support, permission_sets: [staff]}]\n")
		if role := ownerRole(p, "acme", "contact"); role != "support" {
			p.Errorf("the record's owner has the role %q", role)
		}
	})
}
