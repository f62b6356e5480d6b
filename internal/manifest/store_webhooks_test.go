package manifest_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"gatehouse/internal/custom"
	"gatehouse/internal/manifest"
	"gatehouse/internal/tenant"
	"gatehouse/internal/tenant/tenanttest"
	"gatehouse/internal/user"
)

func TestWebhookSecretsAreKeptRotatedAndNeverTold(t *testing.T) {
	each(t, func(p *place) {
		flowsPlace(p)
		shop := func(rest string) string {
			return "tenant: acme\ncustom_endpoints:\n  - {slug: shop, target: {automation: new_lead}, auth: signed, verifier: shop_verifier, log_requests: false" + rest + "}\n"
		}
		first := p.definitions().Endpoints["shop"].SealedSecret
		p.printed(p.apply(shop("")))
		p.vars["SHOP_SECRET"], p.vars["OLD"] = "second-secret-of-the-shop", "first-secret-of-the-shop"
		var lines []string
		lines = append(lines, p.apply(shop(`, webhook_secret: "${SHOP_SECRET}", previous_webhook_secret: "${OLD}"`))...)
		p.printed(lines, "update custom endpoint shop: previous_webhook_secret set, webhook_secret changed")
		after := p.definitions().Endpoints["shop"]
		plain, err := p.keyring().Open(custom.SecretPurpose, after.SealedPrevious)
		if err != nil || string(plain) != "first-secret-of-the-shop" || after.SealedSecret == first {
			p.Errorf("the previous secret is %q, %v", plain, err)
		}
		p.printed(p.apply(shop("")))
		p.printed(p.apply(p.export("acme")))
		if again := p.definitions().Endpoints["shop"]; again.SealedPrevious != after.SealedPrevious || again.SealedSecret != after.SealedSecret {
			p.Error("absent secrets did not keep the stored ones")
		}
		p.printed(p.apply(shop(`, previous_webhook_secret: ""`)), "update custom endpoint shop: previous_webhook_secret removed")
		r, err := p.try(shop(`, webhook_secret: short-one`), manifest.Options{})
		if err != nil || !slices.Equal(r.Warnings, []string{"custom endpoint shop: webhook_secret has fewer than 16 characters: it can be guessed"}) {
			p.Errorf("warned %q, %v", r.Warnings, err)
		}
		lines = append(lines, p.apply("tenant: acme\ncustom_endpoints: [{slug: shop, target: {automation: new_lead}}]\n")...)
		if e := p.definitions().Endpoints["shop"]; e.SealedSecret != "" || e.SealedPrevious != "" || e.Verifier != "" {
			p.Errorf("an endpoint with API keys kept %+v", e)
		}
		p.refused(manifest.Options{}, shop(""), "acme.yaml:3: custom endpoint shop needs a webhook_secret")
		history, err := json.Marshal(p.history("acme"))
		if err != nil {
			p.Fatal(err)
		}
		for _, hidden := range []string{"-secret-of-the-shop", "short-one", "v1."} {
			if strings.Contains(string(history)+strings.Join(lines, "\n")+p.export("acme"), hidden) {
				p.Errorf("%q is told", hidden)
			}
		}
		if !strings.Contains(string(history), `"webhook_secret":"(changed)"`) || !strings.Contains(string(history), `"webhook_secret":"(set)"`) {
			p.Error("the change history does not tell that the secret was set and changed")
		}
	})
}

func TestWhoDefinedAWebhook(t *testing.T) {
	each(t, func(p *place) {
		const src = `tenant: new
users:
  - {email: a@new.example}
  - {email: b@new.example, owner: true, active: false}
  - {email: c@new.example, owner: true}
  - {email: d@new.example, owner: true}
logic_components: [{name: x, source: "export default () => 1"}]
custom_endpoints:
  - {slug: hook, target: {component: x}, auth: token}
`
		p.apply(src)
		definer := func(want string) {
			p.Helper()
			defs, err := custom.Load(context.Background(), p.d.For("new"))
			if err != nil {
				p.Fatal(err)
			}
			if got := defs.Endpoints["hook"].DefinedBy; got != string(p.user("new", want).ID) {
				p.Errorf("defined by %s, want %s", got, want)
			}
		}
		definer("c@new.example")
		both := strings.Replace(src, "active: false", "active: true", 1)
		p.apply(both)
		definer("c@new.example")
		p.printed(p.apply(strings.Replace(both, "{email: c@new.example, owner: true}", "{email: c@new.example, active: false}", 1)),
			"update user c@new.example: active true → false, owner true → false",
			"update custom endpoint hook: defined_by c@new.example → b@new.example")
		definer("b@new.example")
		p.printed(p.apply("tenant: new\nusers: [{email: b@new.example}, {email: c@new.example}, {email: d@new.example}]\n"),
			"update user b@new.example: owner true → false", "update user d@new.example: owner true → false")
		p.printed(p.apply(p.export("new")))
	})
}

// TestAStoredWebhookLosesItsUser checks a webhook that ran as its component's
// user after the component no longer names a user.
func TestAStoredWebhookLosesItsUser(t *testing.T) {
	each(t, func(p *place) {
		const x = "tenant: new\nlogic_components:\n  - {name: x, source: \"export default () => 1\"%}\n"
		p.apply(strings.Replace(x, "%", ", execution_context: {specific_user: a@new.example}", 1) +
			"users: [{email: a@new.example}]\ncustom_endpoints: [{slug: hook, target: {component: x}, auth: token}]\n")
		p.refused(manifest.Options{}, strings.Replace(x, "%", "", 1),
			"acme.yaml:1: custom endpoint hook: nobody to run it as: add run_as: EMAIL to it, or an active user with owner: true")
		p.printed(p.apply(strings.Replace(x, "%", "", 1)+"users: [{email: a@new.example, owner: true}]\n"),
			"update user a@new.example: owner false → true",
			"update logic component x: execution_context {\"specific_user\":\"a@new.example\"} → caller",
			"update custom endpoint hook: defined_by none → a@new.example")
	})
}

// TestAUserWhoIsGone checks that an endpoint that runs as a deleted user is
// exported in a form that lets no other user take their place.
func TestAUserWhoIsGone(t *testing.T) {
	each(t, func(p *place) {
		flowsPlace(p)
		eva := p.user("acme", "eva@customer.example").ID
		err := tenanttest.Change(context.Background(), p.d.For("acme"), func(tx tenant.ConfigTx) error { return user.Delete(context.Background(), tx, eva) })
		if err != nil {
			p.Fatal(err)
		}
		if !strings.Contains(p.export("acme"), `run_as: "`+string(eva)) {
			p.Errorf("exported %s", p.export("acme"))
		}
		p.printed(p.apply("tenant: acme\ncustom_endpoints: [{slug: order-total, target: {component: order_total}}]\n"),
			"update custom endpoint order-total: external_users true → false, max_body_bytes 4096 → 1048576")
		if _, err := p.try(p.export("acme"), manifest.Options{}); err == nil || !strings.Contains(err.Error(), "run_as: expected an e-mail address") {
			p.Errorf("apply of the export: %v", err)
		}
	})
}

// TestAllowGet: it goes with signed endpoints, is exported where it is set, and stays through an
// export; a manifest without it takes it away.
func TestAllowGet(t *testing.T) {
	each(t, func(p *place) {
		flowsPlace(p)
		shop := func(more string) string {
			return "tenant: acme\ncustom_endpoints:\n  - {slug: shop, target: {automation: new_lead}, auth: signed, verifier: shop_verifier, log_requests: false" + more + "}\n"
		}
		if strings.Contains(p.export("acme"), "allow_get") || p.definitions().Endpoints["shop"].AllowGet {
			p.Error("allow_get is there before it is set")
		}
		p.printed(p.apply(shop(", allow_get: true")), "update custom endpoint shop: allow_get none → true")
		if e := p.definitions().Endpoints["shop"]; !e.AllowGet {
			p.Errorf("stored %+v", e)
		}
		if !strings.Contains(p.export("acme"), "verifier: shop_verifier, log_requests: false, allow_get: true,") {
			p.Errorf("exported %s", p.export("acme"))
		}
		p.printed(p.apply(p.export("acme")))
		p.printed(p.apply(shop("")), "update custom endpoint shop: allow_get true → none")
		if e := p.definitions().Endpoints["shop"]; e.AllowGet {
			p.Errorf("stored %+v", e)
		}
		for _, auth := range []string{"api_key", "token"} {
			p.refused(manifest.Options{}, "tenant: acme\ncustom_endpoints: [{slug: x, target: {automation: new_lead}, auth: "+auth+", allow_get: true}]\n",
				"acme.yaml:2: custom endpoint x: allow_get goes with auth: signed only, found auth: "+auth)
		}
		p.refused(manifest.Options{}, shop(", allow_get: maybe"), "acme.yaml:3: allow_get: expected true or false, found text")
	})
}

// TestTheReplyOfSignedEndpoints is a receipt unless the manifest says otherwise, and is exported where it does.
func TestTheReplyOfSignedEndpoints(t *testing.T) {
	each(t, func(p *place) {
		flowsPlace(p)
		shop := func(more string) string {
			return "tenant: acme\ncustom_endpoints:\n  - {slug: shop, target: {automation: new_lead}, auth: signed, verifier: shop_verifier, log_requests: false" + more + "}\n"
		}
		if e := p.definitions().Endpoints["shop"]; e.Reply != custom.Receipt {
			p.Errorf("stored %+v", e)
		}
		p.printed(p.apply(shop(", reply: receipt")))
		p.printed(p.apply(shop(", reply: result")), "update custom endpoint shop: reply receipt → result")
		if !strings.Contains(p.export("acme"), "auth: signed, reply: result, verifier: shop_verifier") {
			p.Errorf("exported %s", p.export("acme"))
		}
		p.printed(p.apply(p.export("acme")))
		if e := p.definitions().Endpoints["shop"]; e.Reply != custom.Result {
			p.Errorf("stored %+v", e)
		}
		p.printed(p.apply(shop("")), "update custom endpoint shop: reply result → receipt")
		p.refused(manifest.Options{}, "tenant: acme\ncustom_endpoints: [{slug: x, target: {automation: new_lead}, reply: receipt}]\n",
			"acme.yaml:2: custom endpoint x: reply goes with auth: token or signed only, found auth: api_key")
	})
}
