package staff_test

import (
	"fmt"
	"strings"
	"testing"

	"gatehouse/internal/gatetest"
)

const acting = "/admin/v1/session/acting"

func as(w *gatetest.World, email string) string {
	return fmt.Sprintf(`{"userId":%q}`, w.UserID("acme", email))
}

// TestNobodyActsAsOneWithRightsTheyLack is contract Y15.
func TestNobodyActsAsOneWithRightsTheyLack(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		sue := w.Staff("sue@acme.example")
		for email, want := range map[string]int{
			"olivia@acme.example":  403, // owns the tenant
			"mara@acme.example":    403, // reads a field that Sue may not read
			"bob@acme.example":     403, // has a system permission that Sue lacks
			"alma@acme.example":    403, // has all_entity_access
			"carla@acme.example":   403, // has a role above Sue's
			"eva@customer.example": 404, // is external
			"sam@acme.example":     200,
			"idle@acme.example":    200,
		} {
			a := sue.Post(acting, as(w, email))
			if a.Status != want {
				t.Errorf("Sue as %s: %d %s", email, a.Status, a.Body)
			}
			if a.Status == 200 {
				sue.Delete(acting).Want(200, "")
			}
		}
		sue.Post(acting, `{"userId":"nobody"}`).Want(404, "NOT_FOUND")
		sue.Post(acting, as(w, "sue@acme.example")).Want(400, "VALIDATION")
		w.SetActive("acme", "idle@acme.example", false)
		sue.Post(acting, as(w, "idle@acme.example")).Want(404, "NOT_FOUND")
		w.Staff("sam@acme.example").Post(acting, as(w, "idle@acme.example")).Want(403, "FORBIDDEN")
		w.Staff("olivia@acme.example").Post(acting, as(w, "bob@acme.example")).Want(200, "")
	})
}

func TestActingIsNamedAndClosesTheAccount(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		sue := w.Staff("sue@acme.example")
		own := sue.Get(session).ID()
		sue.Post(acting, as(w, "sam@acme.example")).Want(200, "")
		is := sue.Get(session).Want(200, "").Record()
		if is["user"].(map[string]any)["email"] != "sue@acme.example" || is["actingAs"].(map[string]any)["email"] != "sam@acme.example" ||
			fmt.Sprint(is["system"]) != "[]" {
			t.Errorf("Sue as Sam: %v", is)
		}
		for _, call := range []struct{ method, path, body string }{
			{"GET", "account", ""}, {"POST", "account/password", `{"currentPassword":"x","newPassword":"a good password"}`},
			{"POST", "account/factor", `{}`}, {"POST", "account/factor/confirm", `{"code":"123456"}`}, {"DELETE", "account/factor", `{"currentPassword":"x"}`},
			{"GET", "account/sessions", ""}, {"DELETE", "account/sessions/" + own, ""}, {"GET", "sessions", ""}, {"DELETE", "sessions/" + own, ""},
			{"POST", "session/acting", as(w, "idle@acme.example")},
		} {
			sue.Do(call.method, "/admin/v1/"+call.path, call.body).Want(403, "FORBIDDEN")
		}
		sue.Delete(acting).Want(200, "")
		if got := sue.Get(session).Want(200, "").Member("actingAs"); got != "null" {
			t.Errorf("still acting as %s", got)
		}
	})
}

// TestActingEndsWhenItMayNoLongerBe: with a right that the acting user loses, or the other gains.
func TestActingEndsWhenItMayNoLongerBe(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		for what, change := range map[string]func(){
			"without login_as": func() { w.Apply(strings.Replace(acme, "login_as, ", "", 1)) },
			"as one who has gained": func() {
				w.Apply(strings.Replace(acme, "role: sales, permission_sets: [seller]", "role: sales, permission_sets: [seller, boss]", 1))
			},
			"as one who is deactivated": func() { w.SetActive("acme", "sam@acme.example", false) },
		} {
			w.Apply(acme)
			w.SetActive("acme", "sam@acme.example", true)
			sue := w.Staff("sue@acme.example")
			sue.Post(acting, as(w, "sam@acme.example")).Want(200, "")
			change()
			if a := sue.Get(session); a.Status != 403 || !strings.Contains(string(a.Body), "acting_ended") {
				t.Errorf("%s: %d %s", what, a.Status, a.Body)
			}
			if got := sue.Get(session).Want(200, "").Member("actingAs"); got != "null" {
				t.Errorf("%s: acts as %s", what, got)
			}
		}
	})
}

// TestWhatOutlivesTheActingIsAllowedToBoth: acting gives nobody what they could not give
// themselves.
func TestWhatOutlivesTheActingIsAllowedToBoth(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(strings.NewReplacer(
			"system: [login_as, manage_users]", "system: [login_as, manage_users, manage_endpoints, manage_permissions]",
			"{name: seller, entities: {", "{name: seller, system: [manage_users, manage_endpoints, manage_permissions], entities: {user: {read: true, update: true}, ",
			"permission_sets: [support]}", "permission_sets: [support, seller]}", "deal: {read: true, fields", "deal: {create: true, read: true, update: true, assign_owner: true, fields",
			"users:", "user_fields: [{name: region, type: text, managed: true}]\nsharing_rules: [{entity: deal, owned_by_role: sales, share_with_role: support, access: read}]\nusers:",
			"roles:", `logic_components: [{name: hello, source: "export default function handler() { return {} }"}]
custom_endpoints: [{slug: hook, target: {component: hello}, auth: token, run_as: sam@acme.example}]
roles:`).Replace(acme))
		slugs := 0
		sam, sue := w.Staff("sam@acme.example"), w.Staff("sue@acme.example")
		lasting := map[string]func(a *gatetest.Actor) *gatetest.Answer{
			"a key of Sam's": func(a *gatetest.Actor) *gatetest.Answer { return a.Post("/admin/v1/keys", `{"name":"mine"}`) },
			"an endpoint that runs as Sam": func(a *gatetest.Actor) *gatetest.Answer {
				slugs++
				return a.Post("/admin/v1/config/apply", fmt.Sprintf(`{"edits":[{"kind":"custom_endpoint","value":{"slug":"mine%d","target":{"component":"hello"},"run_as":"sam@acme.example"}}]}`, slugs))
			},
			"a webhook token that runs as Sam": func(a *gatetest.Actor) *gatetest.Answer { return a.Post("/admin/v1/endpoints/hook/token", "") },
		}
		for what, call := range lasting {
			if a := call(sam); a.Status >= 300 {
				t.Fatalf("Sam makes %s: %d %s", what, a.Status, a.Body)
			}
		}
		deal := sam.Post("/admin/v1/data/deal", `{"title":"his"}`).Want(201, "").ID()
		sue.Post(acting, as(w, "sam@acme.example")).Want(200, "")
		for what, call := range lasting {
			if a := call(sue); a.Status != 403 {
				t.Errorf("Sue, acting as Sam, makes %s: %d %s", what, a.Status, a.Body)
			}
		}
		sams, user := "/admin/v1/data/deal/"+deal+"?version=", "/admin/v1/data/user/"+w.UserID("acme", "sue@acme.example")+"?version=1"
		sue.Patch(sams+"1", `{"title":"hers"}`).Want(200, "")
		sue.Patch(sams+"2", fmt.Sprintf(`{"owner_id":%q}`, w.UserID("acme", "sue@acme.example"))).Want(403, "FORBIDDEN")
		sue.Patch(user, `{"region":"north"}`).Want(403, "FORBIDDEN")
		w.Key("sam@acme.example").Patch("/public/v1/data/user/"+w.UserID("acme", "sue@acme.example"), `{"region":"north"}`).Want(200, "")
		sam.Patch(sams+"2", fmt.Sprintf(`{"owner_id":%q}`, w.UserID("acme", "sue@acme.example"))).Want(200, "")
		sue.Post("/admin/v1/data/deal/nothing/shares", `{"user":"sue@acme.example","access":"edit"}`).Want(403, "FORBIDDEN")

		// What both may do is done, and the history names both.
		olivia := w.Staff("olivia@acme.example")
		olivia.Post(acting, as(w, "bob@acme.example")).Want(200, "")
		olivia.Post("/admin/v1/config/apply", `{"edits":[{"kind":"tenant","value":{"tenant":"acme","display_name":"Acme GmbH"}}]}`).Want(200, "")
		olivia.Delete(acting).Want(200, "")
		last := olivia.Get("/admin/v1/history?limit=1").Want(200, "").Records()[0]
		if last["actor"] != "olivia@acme.example" || last["actedAs"] != "bob@acme.example" {
			t.Errorf("the history: %v", last)
		}
	})
}
