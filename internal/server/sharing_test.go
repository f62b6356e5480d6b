package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/fault"
	"gatehouse/internal/gatetest"
	"gatehouse/internal/manifest"
)

// companies is a portal whose customers see the orders of their company (contract
// A19), which a shop makes for them (A20).
const companies = `
tenant: acme
hosts: [acme.localhost]
base_url: https://acme.localhost
public_api: {enabled: true}
external_identity:
  enabled: true
  activation_mode: none
  default_permission_set: portal
  limits: {register_per_ip_per_hour: 100000, register_per_tenant_per_hour: 100000, login_per_ip_per_minute: 100000,
    login_per_email_per_15_minutes: 100000, reset_per_email_per_hour: 100000, reset_per_tenant_per_hour: 100000,
    refresh_per_token_per_minute: 100000, verify_per_ip_per_minute: 100000, password_reset_per_ip_per_minute: 100000}
unauthenticated_per_ip_per_minute: 100000
entities:
  - {name: account, fields: [{name: name, type: text}]}
  - name: order
    fields:
      - {name: title, type: text, required: true}
      - {name: account, type: reference, entity: account}
      - {name: agent, type: reference, entity: user}
      - {name: state, type: select, options: [draft, sent], indexed: true}
user_fields:
  - {name: nickname, type: text}
  - {name: account, type: reference, entity: account, managed: true}
  - {name: branches, type: multireference, entity: account, managed: true}
permission_sets:
  - name: portal
    system: [manage_users, can_manage_external_users]
    all_entity_access: true
    entities: {order: {create: true, read: true, update: true}, user: {read: true, update: true}}
  - name: shop
    system: [can_manage_external_users]
    entities: {account: {create: true, read: true}, order: {create: true, read: true, assign_owner: true}, user: {read: true, update: true}}
  - name: desk
    entities: {order: {create: true, read: true}, user: {read: true, update: true}}
sharing_rules:
  - {entity: order, where: {account: "{{user.account}}"}, share_with: external, access: read}
  - {entity: order, where: {account: "{{user.branches}}", state: sent}, share_with: external, access: edit}
  - {entity: order, where: {agent: "{{user.id}}"}, share_with: internal, access: read}
users:
  - {email: olivia@acme.example, name: Olivia, owner: true}
  - {email: shop@acme.example, name: Shop, permission_sets: [shop]}
  - {email: dan@acme.example, name: Dan, permission_sets: [desk]}
`

const order = "/public/v1/data/order"

// customer registers and logs in an external user, with further members of the body.
func customer(w *gatetest.World, email, more string) (who *gatetest.Actor, id string) {
	anyone := w.Anyone()
	body := fmt.Sprintf(`{"email": %q, "password": "a good password", "name": "C"%s}`, email, more)
	var made struct{ UserID string }
	anyone.Post(auth+"register", body).Want(201, "").Data(&made)
	var data struct{ AccessToken string }
	anyone.Post(auth+"login", fmt.Sprintf(`{"email": %q, "password": "a good password"}`, email)).Want(200, "").Data(&data)
	who = w.Anyone()
	who.Token = data.AccessToken
	return who, made.UserID
}

// titles lists the titles of the orders that somebody sees, and checks that they are
// read one by one as well.
func titles(t *testing.T, a *gatetest.Actor) string {
	t.Helper()
	var list []string
	for _, r := range a.Get(order).Want(200, "").Records() {
		list = append(list, r["title"].(string))
		a.Get(order+"/"+r["id"].(string)).Want(200, "")
	}
	return strings.Join(list, " ")
}

func TestACompanySharesItsOrders(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(companies)
		shop, dan := w.Key("shop@acme.example"), w.Key("dan@acme.example")
		a, b := shop.Post("/public/v1/data/account", `{"name": "A"}`).Want(201, "").ID(), shop.Post("/public/v1/data/account", `{"name": "B"}`).Want(201, "").ID()
		eva, evaID := customer(w, "eva@a.example", "")
		emil, emilID := customer(w, "emil@a.example", "")
		zoe, _ := customer(w, "zoe@b.example", "")
		for _, id := range []string{evaID, emilID} {
			shop.Patch("/public/v1/data/user/"+id, fmt.Sprintf(`{"account": %q}`, a)).Want(200, "")
		}
		one := shop.Post(order, fmt.Sprintf(`{"title": "one", "account": %q, "owner_id": %q}`, a, evaID)).Want(201, "").ID()
		shop.Post(order, fmt.Sprintf(`{"title": "two", "account": %q, "state": "sent"}`, b)).Want(201, "")
		dan.Post(order, fmt.Sprintf(`{"title": "three", "agent": %q}`, w.UserID("acme", "dan@acme.example"))).Want(201, "")
		for who, want := range map[*gatetest.Actor]string{eva: "one", emil: "one", zoe: "", dan: "three"} {
			if got := titles(t, who); got != want {
				t.Errorf("sees %q, want %q", got, want)
			}
		}
		eva.Patch(order+"/"+one, `{"title": "one, mine"}`).Want(200, "")
		emil.Patch(order+"/"+one, `{"title": "ours"}`).Want(403, "FORBIDDEN")
		zoe.Patch(order+"/"+one, `{"title": "x"}`).Want(404, "NOT_FOUND")
		if fields := eva.Get(auth+"me").Want(200, ""); !strings.Contains(string(fields.Body), a) {
			t.Errorf("/auth/me: %s", fields.Body)
		}
		shop.Patch("/public/v1/data/user/"+emilID, fmt.Sprintf(`{"account": null, "branches": [%q, %q]}`, a, b)).Want(200, "")
		if got := titles(t, emil); got != "two" {
			t.Errorf("emil sees %q of his branches", got)
		}
		if body := string(shop.Get("/public/v1/me").Want(200, "").Body); !strings.Contains(body, `"branches"`) && strings.Contains(body, `"subject":"user","fields"`) {
			t.Errorf("/me of the shop: %s", body)
		}
		if body := string(eva.Get("/public/v1/me").Want(200, "").Body); strings.Contains(body, `"update","subject":"user","fields":["account"`) {
			t.Errorf("/me of a customer: %s", body)
		}
	})
}

// TestNobodyChoosesWhatTheySee tries to get at the orders of another company. 0 of
// the attempts succeed.
func TestNobodyChoosesWhatTheySee(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(companies)
		w.Apply(strings.ReplaceAll(strings.Replace(companies, "hosts: [acme.localhost]", "hosts: [other.localhost]", 1), "tenant: acme", "tenant: other"))
		shop, dan, olivia := w.Key("shop@acme.example"), w.Key("dan@acme.example"), w.Key("olivia@acme.example")
		a := shop.Post("/public/v1/data/account", `{"name": "A"}`).Want(201, "").ID()
		secret := olivia.Post(order, fmt.Sprintf(`{"title": "secret", "account": %q, "state": "sent"}`, a)).Want(201, "").ID()
		claims := fmt.Sprintf(`, "account": %q, "account#managed": %[1]q, "branches": [%[1]q], "custom_data": {"account": %[1]q}, "managed": {"account": %[1]q}, "nickname": %[1]q`, a)
		eva, evaID := customer(w, "eva@a.example", claims)
		zoe, _ := customer(w, "zoe@b.example", strings.ReplaceAll(claims, "[", `["x", `))
		own := eva.Post(order, `{"title": "own"}`).Want(201, "").ID()
		far := w.KeyOf("other", "other.localhost", "shop@acme.example")
		farAccount, farUser := far.Post("/public/v1/data/account", `{"name": "far"}`).Want(201, "").ID(), w.UserID("other", "dan@acme.example")
		me := "/public/v1/data/user/" + evaID
		attempts := 0
		refused := func(answer *gatetest.Answer, codes ...string) {
			t.Helper()
			attempts++
			if answer.Status < 400 {
				t.Errorf("attempt %d succeeds: %s", attempts, answer.Body)
			}
			for _, code := range codes {
				if answer.Code() == code {
					return
				}
			}
			t.Errorf("attempt %d: %s, want %v", attempts, answer.Body, codes)
		}
		for _, body := range []string{
			`{"account": %q}`, `{"branches": [%q]}`, `{"nickname": "x", "account": %q}`, `{"account": [%q]}`, `{"account": {"id": %q}}`,
		} {
			refused(eva.Patch(me, fmt.Sprintf(body, a)), "FORBIDDEN")
		}
		for _, body := range []string{`{"account#managed": %q}`, `{"custom_data": {"account": %q}}`, `{"managed": {"account": %q}}`, `{"Account": %q}`} {
			refused(eva.Patch(me, fmt.Sprintf(body, a)), "VALIDATION")
		}
		refused(eva.Patch(me, `{"account": null}`), "FORBIDDEN")
		refused(zoe.Patch(me, fmt.Sprintf(`{"account": %q}`, a)), "NOT_FOUND")
		for _, who := range []string{"dan@acme.example", "shop@acme.example"} { // staff, of themselves and of each other
			refused(dan.Patch("/public/v1/data/user/"+w.UserID("acme", who), fmt.Sprintf(`{"account": %q}`, a)), "FORBIDDEN")
			refused(shop.Patch("/public/v1/data/user/"+w.UserID("acme", who), fmt.Sprintf(`{"account": %q}`, a)), "FORBIDDEN")
		}
		refused(olivia.Patch("/public/v1/data/user/"+w.UserID("acme", "olivia@acme.example"), fmt.Sprintf(`{"account": %q}`, a)), "FORBIDDEN")
		refused(dan.Patch(me, fmt.Sprintf(`{"account": %q}`, a)), "FORBIDDEN")
		refused(shop.Patch(me, fmt.Sprintf(`{"account": %q}`, farAccount)), "VALIDATION")
		refused(far.Patch(me, fmt.Sprintf(`{"account": %q}`, a)), "NOT_FOUND")
		refused(shop.Patch(me, fmt.Sprintf(`{"branches": [%q, %q]}`, a, farAccount)), "VALIDATION")

		// Owners whom no rule names, or who may not be named by this user.
		for _, owner := range []string{farUser, "01890000-0000-7000-8000-000000000000", "x"} {
			refused(shop.Post(order, fmt.Sprintf(`{"title": "t", "owner_id": %q}`, owner)), "VALIDATION")
			refused(eva.Post(order, fmt.Sprintf(`{"title": "t", "owner_id": %q}`, owner)), "FORBIDDEN")
		}
		refused(eva.Patch(order+"/"+own, fmt.Sprintf(`{"owner_id": %q}`, w.UserID("acme", "dan@acme.example"))), "FORBIDDEN")
		refused(shop.Patch(order+"/"+own, fmt.Sprintf(`{"owner_id": %q}`, evaID)), "FORBIDDEN")
		refused(dan.Post(order, fmt.Sprintf(`{"title": "t", "owner_id": %q}`, evaID)), "FORBIDDEN")

		// References to what one does not see make no match either.
		refused(eva.Post(order, fmt.Sprintf(`{"title": "t", "account": %q}`, a)), "VALIDATION")
		refused(eva.Patch(order+"/"+own, fmt.Sprintf(`{"agent": %q}`, w.UserID("acme", "dan@acme.example"))), "VALIDATION")
		refused(dan.Post(order, fmt.Sprintf(`{"title": "t", "agent": %q}`, farUser)), "VALIDATION")

		// A rule on a field that users may edit, and a managed field that is no longer.
		for from, to := range map[string]string{
			`{account: "{{user.account}}"}`:                    `{account: "{{user.nickname}}"}`,
			"account, type: reference, entity: account, manag": "account, type: reference, entity: account} #",
		} {
			attempts++
			_, err := w.TryApply(strings.Replace(companies, from, to, 1), manifest.Options{})
			if err == nil || !strings.Contains(err.Error(), "is not managed") && !strings.Contains(err.Error(), "cannot be equal") {
				t.Errorf("attempt %d: apply of %s: %v", attempts, to, err)
			}
		}
		if attempts < 30 {
			t.Errorf("%d attempts", attempts)
		}
		for who, want := range map[*gatetest.Actor]string{eva: "own", zoe: "", dan: "", shop: ""} {
			if got := titles(t, who); got != want {
				t.Errorf("somebody sees %q, want %q", got, want)
			}
			who.Get(order+"/"+secret).Want(404, string(fault.NotFound))
		}
		t.Logf("%d attempts, 0 succeed", attempts)
	})
}

func TestWhoSeesByARuleIsKnownOnEveryNode(t *testing.T) {
	w, first, second := twoNodes(t)
	w.Apply(companies)
	shop := w.Key("shop@acme.example")
	a := shop.Post("/public/v1/data/account", `{"name": "A"}`).Want(201, "").ID()
	eva, evaID := customer(w, "eva@a.example", "")
	emil, emilID := customer(w, "emil@a.example", "")
	olivia := w.Key("olivia@acme.example")
	one := olivia.Post(order, fmt.Sprintf(`{"title": "one", "account": %q}`, a)).Want(201, "").ID()
	sees := func(who *gatetest.Actor) func() bool {
		return func() bool {
			return who.Get(order+"/"+one).Status == 200 && len(who.Get(order).Want(200, "").Records()) == 1
		}
	}
	not := func(seen func() bool) func() bool { return func() bool { return !seen() } }
	both := func(what string, seen bool) {
		t.Helper()
		begun := time.Now()
		at, other := sees(eva.At(first)), sees(eva.At(second))
		if !seen {
			at, other = not(at), not(other)
		}
		if !at() {
			t.Errorf("%s does not hold at once on its own node", what)
		}
		within(t, what, begun, other)
	}
	both("nothing", false)
	for range 2 {
		shop.At(first).Patch("/public/v1/data/user/"+evaID, fmt.Sprintf(`{"account": %q}`, a)).Want(200, "")
		both("a field of the user", true)
		shop.At(first).Patch("/public/v1/data/user/"+evaID, `{"account": null}`).Want(200, "")
		both("a field of the user that is cleared", false)
	}
	shop.At(first).Patch("/public/v1/data/user/"+evaID, fmt.Sprintf(`{"account": %q}`, a)).Want(200, "")
	both("a field of the user", true)
	olivia.At(first).Patch(order+"/"+one, `{"account": null}`).Want(200, "")
	both("a field of the record that is cleared", false)
	olivia.At(first).Patch(order+"/"+one, fmt.Sprintf(`{"owner_id": %q}`, emilID)).Want(200, "")
	within(t, "an owner", time.Now(), sees(emil.At(second)))
	olivia.At(first).Patch(order+"/"+one, fmt.Sprintf(`{"account": %q}`, a)).Want(200, "")
	both("a field of the record", true)
	const rule = `  - {entity: order, where: {account: "{{user.account}}"}, share_with: external, access: read}` + "\n"
	for _, src := range []string{strings.Replace(companies, rule, "", 1), companies} {
		_, err := manifest.Apply(t.Context(), first.DB, w.Clock, "test.yaml", []byte(src), func(string) string { return "" }, manifest.Options{Prune: true})
		if err != nil {
			t.Fatal(err)
		}
		first.Server.Directory().Forget()
		both("the rule", src == companies)
	}
}
