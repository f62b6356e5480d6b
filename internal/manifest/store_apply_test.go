package manifest_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"gatehouse/internal/clock"
	"gatehouse/internal/fault"
	"gatehouse/internal/manifest"
	"gatehouse/internal/secret"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

func TestApplyMakesATenant(t *testing.T) {
	each(t, func(p *place) {
		p.vars["OLIVIA_PASSWORD"] = "correct horse battery"
		p.printed(p.apply(acme),
			"create tenant acme",
			"create entity account", "create entity contact", "create user fields",
			"create role ceo", "create role sales", "create role support",
			"create permission set portal", "create permission set staff",
			"create sharing rule contact owned by sales → support",
			"create sharing rule contact where score=7, stage=won → support",
			"create user olivia@acme.example", "create user Sam@acme.example", "create user eva@customer.example")
		c := p.config("acme")
		if got := strings.Join(c.Tenant.Hosts, " "); got != "acme.localhost shop.acme.example" {
			p.Errorf("hosts %q are not canonical", got)
		}
		if c.Tenant.BaseURL != "https://acme.localhost" {
			p.Errorf("base_url %q is not made from the first host", c.Tenant.BaseURL)
		}
		s := c.Tenant.Settings
		if !s.PublicAPI.Enabled || !s.PublicAPI.LogStandardRequests || s.ExternalIdentity.Limits.LoginPerIPPerMinute != 7 ||
			s.ExternalIdentity.Limits.LoginBlockMinutes != 30 || s.ExternalIdentity.ActivationMode != "svc_email" {
			p.Errorf("settings are not the given ones and the defaults: %+v", s)
		}
		if e := c.Schema.Entity("account"); e.Label != "Account" || e.Sharing != "private" || !e.Field("name").Unique {
			p.Errorf("entity account is %+v", e)
		}
		if below := c.Roles.Below("ceo"); len(below) != 2 {
			p.Errorf("below ceo are %v", below)
		}
		if len(c.Rules) != 2 {
			p.Errorf("there are %d sharing rules", len(c.Rules))
		}
		olivia, sam, eva := p.user("acme", "OLIVIA@acme.example"), p.user("acme", "sam@acme.example"), p.user("acme", "eva@customer.example")
		if !olivia.Owner || !olivia.Active || !olivia.EmailVerified || !secret.VerifyPassword(olivia.PasswordHash, "correct horse battery") {
			p.Errorf("olivia is %+v", olivia)
		}
		if sam.PasswordHash != "" || sam.Role != "sales" || len(sam.Sets) != 1 || eva.Type != user.External || eva.Locale != "de" || eva.Name != "eva" {
			p.Errorf("sam is %+v, eva is %+v", sam, eva)
		}
		if olivia.ID >= sam.ID || sam.ID >= eva.ID || olivia.CreatedAt >= sam.CreatedAt {
			p.Error("ids are not in the order of the users' ticks")
		}
	})
}

func TestApplyingTwiceChangesNothing(t *testing.T) {
	each(t, func(p *place) {
		acmePlace(p)
		version, entries := p.config("acme").Tenant.Version, len(p.history("acme"))
		p.printed(p.apply(acme))
		p.printed(p.prune(acme))
		if now := p.config("acme").Tenant.Version; now != version {
			p.Errorf("the version moved from %d to %d", version, now)
		}
		if now := len(p.history("acme")); now != entries {
			p.Errorf("the change history grew from %d to %d", entries, now)
		}
	})
}

func TestApplySaysWhatChanged(t *testing.T) {
	each(t, func(p *place) {
		acmePlace(p)
		p.printed(p.apply(`tenant: acme
public_api: {enabled: false}
unauthenticated_per_ip_per_minute: 50
entities:
  - name: contact
    label: Contact person
    fields:
      - {name: score, type: number, indexed: true, required: true}
      - {name: stage, type: select, options: [new, won]}
      - {name: since, type: date}
      - {name: account, type: reference, entity: account}
  - {name: order_line}
roles: [{name: support, parent: sales}]
permission_sets: [{name: staff, system: [manage_users]}]
sharing_rules: [{entity: contact, owned_by_role: sales, share_with_role: support, access: edit}]
users:
  - {email: sam@acme.example, name: Sam S., role: support}
`),
			"update tenant acme: public_api.enabled true → false, unauthenticated_per_ip_per_minute 1000 → 50",
			"update entity contact: fields.first_name removed, fields.score.required none → true, fields.since added,"+
				" fields.stage.options [new, won, lost] → [new, won], sharing public_read → private",
			"create entity order_line",
			"update role support: parent ceo → sales",
			"update permission set staff: all_entity_access true → false, system [manage_users, tenant_settings] → [manage_users]",
			"update sharing rule contact owned by sales → support: access read → edit",
			"update user sam@acme.example: email Sam@acme.example → sam@acme.example, name Sam Seller → Sam S.,"+
				" permission_sets [staff] → [], role sales → support")
		p.printed(p.apply("tenant: acme\nuser_fields: [{name: company, type: text}, {name: size, type: number}]\n"+
			"users: [{email: olivia@acme.example, owner: true, role: ceo, password: another secret}]\n"),
			"update user fields: fields.size added", "update user olivia@acme.example: password changed")
		if u := p.user("acme", "olivia@acme.example"); u.Name != "Olivia Owner" {
			p.Errorf("a name that the manifest does not give became %q", u.Name)
		}
		p.printed(p.apply("tenant: acme\nuser_fields: [{name: size, type: number}, {name: company, type: text}]\n"),
			"update user fields: fields reordered")
	})
}

func TestAbsentKeysKeepWhatIsStored(t *testing.T) {
	each(t, func(p *place) {
		acmePlace(p)
		before := p.export("acme")
		p.printed(p.apply("tenant: acme\n"))
		p.printed(p.prune("tenant: acme\n"))
		p.printed(p.apply("tenant: acme\nusers: []\nroles: []\nentities: []\n"))
		if after := p.export("acme"); after != before {
			p.Errorf("the tenant became\n%s", after)
		}
	})
}

func TestTheBaseURLFollowsALostHost(t *testing.T) {
	each(t, func(p *place) {
		acmePlace(p)
		p.printed(p.apply("tenant: acme\nhosts: [new.example, acme.localhost]\n"),
			"update tenant acme: hosts [acme.localhost, shop.acme.example] → [acme.localhost, new.example]")
		p.printed(p.apply("tenant: acme\nhosts: [new.example]\n"),
			"update tenant acme: base_url https://acme.localhost → https://new.example,"+
				" hosts [acme.localhost, new.example] → [new.example]")
	})
}

func TestPrune(t *testing.T) {
	each(t, func(p *place) {
		acmePlace(p)
		const small = `tenant: acme
external_identity: {enabled: true}
entities: [{name: account, fields: [{name: name, type: text, required: true, unique: true}]}]
roles: [{name: support}]
permission_sets: [{name: portal}]
sharing_rules: []
users:
  - {email: olivia@acme.example, owner: true}
`
		p.printed(p.prune(small),
			"update tenant acme: external_identity.default_permission_set portal → none, external_identity.limits.login_per_ip_per_minute 7 → 10",
			"delete entity contact",
			"update role support: parent ceo → none", "delete role ceo", "delete role sales",
			"update permission set portal: entities.contact removed", "delete permission set staff",
			p.ruleGone("owned by sales"), p.ruleGone("where score=7, stage=won"),
			"update user olivia@acme.example: role ceo → none",
			"update user Sam@acme.example: active true → false, permission_sets [staff] → [], role sales → none")
		if eva := p.user("acme", "eva@customer.example"); !eva.Active || eva.Role != "support" {
			p.Errorf("an external user was pruned: %+v", eva)
		}
		p.printed(p.prune(small))
		p.printed(p.apply("tenant: acme\nusers: [{email: sam@acme.example, name: Sam Seller}]\n"),
			"update user sam@acme.example: email Sam@acme.example → sam@acme.example")
		if p.user("acme", "sam@acme.example").Active {
			p.Error("a deactivated user came back without active: true")
		}
		p.printed(p.apply("tenant: acme\nusers: [{email: sam@acme.example, active: true}]\n"),
			"update user sam@acme.example: active false → true")
	})
}

// ruleGone returns the line for a deleted rule. The two rules of acme are
// printed in the order of their IDs.
func (p *place) ruleGone(what string) string {
	return "delete sharing rule contact " + what + " → support"
}

func TestDryRunKeepsNothing(t *testing.T) {
	each(t, func(p *place) {
		p.vars["OLIVIA_PASSWORD"] = "correct horse battery"
		dry := p.with(manifest.Options{DryRun: true}, acme)
		if _, err := manifest.Export(context.Background(), p.d, "acme"); fault.CodeOf(err) != fault.NotFound {
			p.Fatalf("after a dry run, export says %v", err)
		}
		p.printed(dry, p.apply(acme)...)
		before := p.export("acme")
		p.printed(p.with(manifest.Options{DryRun: true, Prune: true}, "tenant: acme\nsharing_rules: []\n"),
			p.ruleGone("owned by sales"), p.ruleGone("where score=7, stage=won"))
		if p.export("acme") != before {
			p.Error("a dry run changed something")
		}
	})
}

func TestAllOrNothing(t *testing.T) {
	each(t, func(p *place) {
		acmePlace(p)
		before, entries := p.export("acme"), len(p.history("acme"))
		p.refused(manifest.Options{}, "tenant: acme\ndisplay_name: Other\nroles: [{name: boss}]\nusers: [{email: x@y.z, role: nobody}]\n",
			`acme.yaml:4: user x@y.z: there is no role "nobody"`)
		p.apply("tenant: other\nhosts: [taken.example]\n")
		p.refused(manifest.Options{}, "tenant: acme\ndisplay_name: Other\nroles: [{name: boss}]\nhosts:\n  - taken.example\n",
			`acme.yaml:4: host taken.example already belongs to a tenant`)
		if p.export("acme") != before || len(p.history("acme")) != entries {
			p.Error("a refused manifest changed something")
		}
	})
}

func TestTheChangeHistoryHoldsNoSecret(t *testing.T) {
	each(t, func(p *place) {
		acmePlace(p)
		p.vars["OLIVIA_PASSWORD"] = "another secret"
		p.printed(p.apply(acme), "update user olivia@acme.example: password changed")
		list := p.history("acme")
		all, err := json.Marshal(list)
		if err != nil {
			p.Fatal(err)
		}
		for _, hidden := range []string{"correct horse", "another secret", "argon2id"} {
			if strings.Contains(string(all), hidden) {
				p.Errorf("the change history tells %q", hidden)
			}
		}
		newest := list[0]
		if newest.Actor != "operator: apply" || newest.Kind != "user" || newest.Action != "update" || newest.Name != "olivia@acme.example" {
			p.Errorf("the newest entry is %+v", newest)
		}
		if after := string(newest.After.(json.RawMessage)); !strings.Contains(after, `"password":"(changed)"`) {
			p.Errorf("after the change: %s", after)
		}
	})
}

func TestPasswords(t *testing.T) {
	each(t, func(p *place) {
		acmePlace(p)
		hash := p.user("acme", "olivia@acme.example").PasswordHash
		p.apply(acme)
		if p.user("acme", "olivia@acme.example").PasswordHash != hash {
			p.Error("the same password was hashed anew")
		}
		p.printed(p.apply("tenant: acme\nusers: [{email: olivia@acme.example, owner: true, role: ceo}]\n"))
		if p.user("acme", "olivia@acme.example").PasswordHash != hash {
			p.Error("an absent password did not keep the stored one")
		}
		p.printed(p.apply("tenant: acme\nusers:\n"+
			"  - {email: ann@acme.example, password: the same for both}\n  - {email: bob@acme.example, password: the same for both}\n"),
			"create user ann@acme.example", "create user bob@acme.example")
		if p.user("acme", "ann@acme.example").PasswordHash == p.user("acme", "bob@acme.example").PasswordHash {
			p.Error("two users share a salt")
		}
	})
}

func TestAnOwnerIsMissed(t *testing.T) {
	each(t, func(p *place) {
		for _, c := range []struct {
			src  string
			want int
		}{
			{"tenant: acme\nhosts: [a.example]\n", 1},
			{"tenant: acme\nusers: [{email: o@a.example, owner: true}]\n", 0},
			{"tenant: acme\ndisplay_name: A\n", 0},
			{"tenant: acme\nusers: [{email: o@a.example, owner: true, active: false}]\n", 1},
		} {
			r, err := p.try(c.src, manifest.Options{})
			if err != nil {
				p.Fatal(err)
			}
			if len(r.Warnings) != c.want {
				p.Errorf("%s: warnings %q", c.src, r.Warnings)
			}
		}
	})
}

func TestTwoFirstAppliesAtOnce(t *testing.T) {
	each(t, func(p *place) {
		manifests := []string{
			"tenant: acme\nhosts: [a.example]\nroles: [{name: one}]\nusers: [{email: o@a.example, owner: true, role: one}]\n",
			"tenant: acme\ndisplay_name: Two\nroles: [{name: two}]\nusers: [{email: t@a.example, role: two}]\n",
			"tenant: acme\nroles: [{name: three}]\nentities: [{name: thing}]\n",
		}
		var wg sync.WaitGroup
		for _, src := range manifests {
			wg.Go(func() {
				_, err := manifest.Apply(context.Background(), p.d, clock.System(), "m.yaml", []byte(src),
					func(string) string { return "" }, manifest.Options{})
				if err != nil {
					p.Errorf("%v", err)
				}
			})
		}
		wg.Wait()
		c := p.config("acme")
		if len(c.Roles.List) != 3 || c.Tenant.DisplayName != "Two" || len(c.Tenant.Hosts) != 1 || c.Schema.Entity("thing") == nil {
			p.Errorf("not all three were applied one after another: %s", p.export("acme"))
		}
		history, err := tenant.Changes(context.Background(), p.d.For("acme"), 100)
		made := 0
		for _, change := range history {
			if change.Kind == "tenant" && change.Action == "create" {
				made++
			}
		}
		if err != nil || made != 1 {
			p.Errorf("the tenant was made %d times: %v", made, err)
		}
		for _, src := range manifests {
			p.printed(p.apply(src))
		}
	})
}

func TestExportOfNobody(t *testing.T) {
	each(t, func(p *place) {
		_, err := manifest.Export(context.Background(), p.d, "nobody")
		if !errors.Is(err, fault.New(fault.NotFound, "")) {
			p.Errorf("export says %v", err)
		}
	})
}

func TestASecondTenantIsAnother(t *testing.T) {
	each(t, func(p *place) {
		acmePlace(p)
		before := p.export("acme")
		p.apply(strings.NewReplacer("tenant: acme", "tenant: other", "acme.localhost", "other.localhost", "Shop.Acme", "shop.other").Replace(acme))
		p.prune("tenant: other\nusers: []\nsharing_rules: []\n")
		if p.export("acme") != before {
			p.Error("a change of one tenant changed another")
		}
		ids, err := tenant.List(context.Background(), p.d)
		if err != nil || len(ids) != 2 {
			p.Errorf("tenants %v, %v", ids, err)
		}
	})
}
