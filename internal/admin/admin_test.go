package admin_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"gatehouse/internal/gatetest"
)

const tenantManifest = `
tenant: acme
hosts: [acme.localhost]
public_api: {enabled: true}
external_identity: {enabled: true, default_permission_set: portal}
entities:
  - {name: contact, fields: [{name: email, type: text}, {name: note, type: text}]}
roles: [{name: ceo}, {name: sales, parent: ceo}]
permission_sets:
  - {name: portal, entities: {contact: {read: true}}}
  - {name: users, system: [manage_users]}
  - {name: permissions, system: [manage_permissions]}
  - {name: entities, system: [manage_entities]}
  - {name: endpoints, system: [manage_endpoints]}
  - {name: settings, system: [tenant_settings]}
  - {name: helpdesk, system: [can_manage_external_users]}
  - {name: sellers, entities: {contact: {create: true, read: true}}}
users:
  - {email: olivia@acme.example, name: Olivia, owner: true, role: ceo, password: "a very secret password"}
  - {email: uma@acme.example, permission_sets: [users]}
  - {email: pia@acme.example, permission_sets: [permissions]}
  - {email: enno@acme.example, permission_sets: [entities]}
  - {email: emil@acme.example, permission_sets: [endpoints]}
  - {email: tess@acme.example, permission_sets: [settings]}
  - {email: hedy@acme.example, permission_sets: [helpdesk]}
  - {email: sam@acme.example, role: sales, permission_sets: [sellers]}
  - {email: eva@customer.example, name: Eva, type: external, permission_sets: [portal]}
logic_components:
  - {name: gate, source: "export default function handler() { return {} }"}
automations:
  - {name: hello, trigger: http.request, nodes: [{id: all, type: record.list, entity: contact}]}
custom_endpoints:
  - {slug: shop, target: {automation: hello}, auth: signed, verifier: gate, webhook_secret: "a webhook secret of some length"}
`

func world(t *testing.T, fn func(w *gatetest.World)) {
	t.Helper()
	gatetest.Each(t, func(_ *testing.T, w *gatetest.World) {
		w.Apply(tenantManifest)
		fn(w)
	})
}

func body(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

type m = map[string]any

// one is the body of a change of one object.
func one(kind, name, against string, value any) string {
	return body(m{"edits": []m{{"kind": kind, "name": name, "against": against, "value": value}}})
}

func get[T any](a *gatetest.Actor, path string) (v T) {
	a.T.Helper()
	a.Get("/admin/v1/"+path).Want(200, "").Data(&v)
	return v
}

type object struct {
	Kind, Name, Version string
	Value               m
}

type plan struct {
	Changes []struct {
		Action, Kind, Name, Object, Version string
		Line                                int
		Differences                         []struct{ Text string }
	}
	Gone, Warnings []string
	Effect         struct {
		Reindexed []struct {
			Entity  string
			Records int
			Hidden  bool
		}
	}
}

func into[T any](a *gatetest.Answer) (v T) {
	a.T.Helper()
	a.Data(&v)
	return v
}

// details are those of an error.
func details(a *gatetest.Answer) m {
	a.T.Helper()
	var e struct{ Error struct{ Details m } }
	if err := json.Unmarshal(a.Body, &e); err != nil {
		a.T.Fatal(err)
	}
	return e.Error.Details
}

// next is the path of the next page, "" after the last one.
func next(a *gatetest.Answer, path string) string {
	a.T.Helper()
	if meta := a.Meta(); meta.NextCursor != nil {
		return path + "&cursor=" + url.QueryEscape(*meta.NextCursor)
	}
	return ""
}

// Two admins change one object at once: the second is told of both sides, and what the
// first wrote stays.
func TestTwoAdminsChangeOneObject(t *testing.T) {
	world(t, func(w *gatetest.World) {
		olivia := w.Staff("olivia@acme.example")
		was := get[object](olivia, "config/role/sales")
		if was.Value["parent"] != "ceo" || was.Version == "" {
			t.Fatalf("%+v", was)
		}
		shown := into[plan](olivia.Post("/admin/v1/config/plan", one("role", "sales", was.Version, m{})).Want(200, ""))
		if len(shown.Changes) != 1 || shown.Changes[0].Differences[0].Text != "parent ceo → none" {
			t.Errorf("%+v", shown)
		}
		if again := get[object](olivia, "config/role/sales"); again.Version != was.Version {
			t.Error("a plan changed something")
		}
		olivia.Post("/admin/v1/config/apply", one("role", "sales", was.Version, m{})).Want(200, "")
		other := w.Staff("pia@acme.example")
		e := other.Post("/admin/v1/config/apply", one("role", "sales", was.Version, m{"parent": "ceo"})).Want(409, "CONFLICT")
		both := details(e)
		now := get[object](olivia, "config/role/sales")
		if both["version"] != now.Version || fmt.Sprint(both["stored"]) != "map[name:sales]" || fmt.Sprint(both["asked"]) != "map[parent:ceo]" {
			t.Errorf("%v", both)
		}
		other.Post("/admin/v1/config/apply", one("role", "sales", "absent", m{})).Want(409, "CONFLICT")
		olivia.Get("/admin/v1/config/role/nobody").Want(404, "NOT_FOUND")
		olivia.Get("/admin/v1/config/nothing").Want(400, "VALIDATION")
	})
}

// A manifest is planned with the lines of its changes and mistakes, and applied as it was
// shown, or not at all.
func TestAManifestIsShownAndApplied(t *testing.T) {
	world(t, func(w *gatetest.World) {
		olivia := w.Staff("olivia@acme.example")
		text := get[struct{ Text string }](olivia, "config/manifest").Text
		if strings.Contains(text, "secret password") || strings.Contains(text, "some length") || !strings.Contains(text, "slug: shop") {
			t.Errorf("the manifest:\n%s", text)
		}
		if shown := into[plan](olivia.Post("/admin/v1/config/plan", body(m{"manifest": text})).Want(200, "")); len(shown.Changes) != 0 {
			t.Errorf("a manifest as it stands changes %+v", shown.Changes)
		}
		changed := "tenant: acme\nroles:\n  - {name: ceo}\n  - {name: support, parent: ceo}\nusers:\n  - {email: new@acme.example, password: \"${NEW}\"}\n"
		e := details(olivia.Post("/admin/v1/config/plan", body(m{"manifest": changed})).Want(400, "VALIDATION"))
		if got := fmt.Sprint(e["problems"]); !strings.Contains(got, "line:6") || !strings.Contains(got, "NEW is not set") {
			t.Errorf("%s", got)
		}
		variables := m{"NEW": "a very new password"}
		shown := into[plan](olivia.Post("/admin/v1/config/plan", body(m{"manifest": changed, "variables": variables})).Want(200, ""))
		if len(shown.Changes) != 2 || shown.Changes[0].Line != 4 || shown.Changes[1].Line != 6 || shown.Changes[1].Version != "absent" {
			t.Fatalf("%+v", shown.Changes)
		}
		expected := []m{}
		for _, c := range shown.Changes {
			expected = append(expected, m{"kind": c.Kind, "object": c.Object, "version": c.Version})
		}
		olivia.Post("/admin/v1/config/apply", one("role", "support", "absent", m{"name": "support"})).Want(200, "") // somebody else meanwhile
		asked := body(m{"manifest": changed, "variables": variables, "expected": expected})
		olivia.Post("/admin/v1/config/apply", asked).Want(409, "CONFLICT")
		if users := get[[]m](olivia, "users?search=new%40"); len(users) != 0 {
			t.Errorf("half of it was applied: %v", users)
		}
		expected[0]["version"] = get[object](olivia, "config/role/support").Version
		olivia.Post("/admin/v1/config/apply", body(m{"manifest": changed, "variables": variables, "expected": expected})).Want(200, "")
		if users := get[[]m](olivia, "users?search=NEW%40"); len(users) != 1 || users[0]["hasPassword"] != true {
			t.Errorf("%v", users)
		}
		olivia.Post("/admin/v1/config/plan", body(m{"manifest": "tenant: other\n"})).Want(400, "VALIDATION")
		olivia.Post("/admin/v1/config/plan", body(m{"manifest": "tenant: acme\nlogic_components: [{name: a, source_file: x.js}]\n"})).Want(400, "VALIDATION")
		olivia.Post("/admin/v1/config/plan", body(m{"manifest": "tenant: acme\n", "edits": []m{{"kind": "role"}}})).Want(400, "VALIDATION")
		olivia.Post("/admin/v1/config/plan", `{}`).Want(400, "VALIDATION")
	})
}

// Each permission reads and changes its kinds, and nothing else; what may not be read is
// not in the history either.
func TestEachPermissionHasItsKinds(t *testing.T) {
	world(t, func(w *gatetest.World) {
		w.Staff("olivia@acme.example").Post("/admin/v1/config/apply", body(m{"edits": []m{
			{"kind": "role", "value": m{"name": "support"}}, {"kind": "tenant", "value": m{"display_name": "Acme AG"}},
		}})).Want(200, "")
		all := "tenant entity user_fields role permission_set sharing_rule user logic_component automation custom_endpoint email_template"
		for who, want := range map[string]string{
			"olivia": all,
			"uma":    "entity user_fields role permission_set user",
			"pia":    "entity user_fields role permission_set sharing_rule",
			"enno":   "entity user_fields role sharing_rule",
			"emil":   "tenant entity user_fields role logic_component automation custom_endpoint",
			"tess":   "tenant entity user_fields role permission_set email_template",
		} {
			a := w.Staff(who + "@acme.example")
			var got []string
			for kind := range strings.SplitSeq(all, " ") {
				r := a.Get("/admin/v1/config/" + kind)
				switch r.Status {
				case 200:
					got = append(got, kind)
				default:
					r.Want(403, "FORBIDDEN")
				}
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s reads %v, want %s", who, got, want)
			}
			for _, entry := range get[[]m](a, "history?limit=200") {
				if !strings.Contains(" "+want+" ", " "+fmt.Sprint(entry["kind"])+" ") && who != "olivia" {
					t.Errorf("%s sees the history of %v", who, entry["kind"])
				}
			}
			if who != "olivia" {
				a.Get("/admin/v1/config/manifest").Want(403, "FORBIDDEN")
				a.Post("/admin/v1/config/plan", body(m{"manifest": "tenant: acme\n"})).Want(403, "FORBIDDEN")
			}
		}
		for _, path := range []string{"config/kinds", "config/role", "history", "entities", "config/work", "config/manifest"} {
			for _, who := range []string{"sam", "hedy"} {
				w.Staff(who+"@acme.example").Get("/admin/v1/"+path).Want(403, "FORBIDDEN")
			}
		}
		w.Staff("hedy@acme.example").Get("/admin/v1/users?type=internal").Want(403, "FORBIDDEN")
		for _, u := range get[[]m](w.Staff("hedy@acme.example"), "users") {
			if u["type"] != "external" {
				t.Errorf("the helpdesk sees %v", u["email"])
			}
		}
		w.Staff("sam@acme.example").Post("/admin/v1/config/apply", one("role", "", "", m{"name": "mine"})).Want(403, "FORBIDDEN")
		e := details(w.Staff("uma@acme.example").Post("/admin/v1/config/apply", one("user", "uma@acme.example", "", m{"permission_sets": []string{"users"}, "owner": true})).Want(403, "FORBIDDEN"))
		if !strings.Contains(fmt.Sprint(e["problems"]), "only an owner of the tenant makes another") {
			t.Errorf("%v", e)
		}
	})
}

// No answer has a secret, neither in an object nor in a plan, the history or a conflict.
func TestSecretsDoNotComeBack(t *testing.T) {
	world(t, func(w *gatetest.World) {
		olivia := w.Staff("olivia@acme.example")
		var answers strings.Builder
		see := func(a *gatetest.Answer) { answers.Write(a.Body) }
		secrets := []string{"another webhook secret", "another password", "a very secret password", "a webhook secret of some length"}
		shop := m{"target": m{"automation": "hello"}, "auth": "signed", "verifier": "gate", "webhook_secret": secrets[0]}
		sam := m{"role": "sales", "permission_sets": []string{"sellers"}, "password": secrets[1]}
		for _, change := range []string{one("custom_endpoint", "shop", "", shop), one("user", "sam@acme.example", "", sam)} {
			see(olivia.Post("/admin/v1/config/plan", change).Want(200, ""))
			see(olivia.Post("/admin/v1/config/apply", change).Want(200, ""))
		}
		see(olivia.Post("/admin/v1/config/apply", one("custom_endpoint", "shop", "0123", shop)).Want(409, "CONFLICT"))
		see(olivia.Post("/admin/v1/config/apply", one("user", "sam@acme.example", "0123", sam)).Want(409, "CONFLICT"))
		for _, path := range []string{"config/user", "config/custom_endpoint", "config/custom_endpoint/shop", "history?limit=200", "users", "config/manifest"} {
			see(olivia.Get("/admin/v1/"+path).Want(200, ""))
		}
		for _, secret := range append(secrets, "$argon2") {
			if strings.Contains(answers.String(), secret) {
				t.Errorf("an answer has %q", secret)
			}
		}
		if !strings.Contains(answers.String(), `"(changed)"`) {
			t.Error("nothing says that a secret was changed")
		}
	})
}

// The history says who, what, before and after, pages by cursor and can be filtered.
func TestTheHistoryOfChanges(t *testing.T) {
	world(t, func(w *gatetest.World) {
		olivia, pia := w.Staff("olivia@acme.example"), w.Staff("pia@acme.example")
		pia.Post("/admin/v1/config/apply", one("role", "", "absent", m{"name": "support"})).Want(200, "")
		olivia.Post("/admin/v1/config/apply", one("role", "support", "", m{"parent": "ceo"})).Want(200, "")
		type entry struct {
			Actor, Action, Kind, Name string
			Before, After             m
			Differences               []struct{ Text string }
		}
		list := get[[]entry](olivia, "history?kind=role&name=support")
		if len(list) != 2 || list[0].Actor != "olivia@acme.example" || list[0].Differences[0].Text != "parent none → ceo" || list[1].Action != "create" {
			t.Errorf("%+v", list)
		}
		if mine := get[[]entry](olivia, "history?who=pia%40acme.example"); len(mine) != 1 || mine[0].Name != "support" {
			t.Errorf("%+v", mine)
		}
		const pages = "/admin/v1/history?limit=3"
		seen := 0
		for path := pages; path != ""; {
			a := olivia.Get(path).Want(200, "")
			seen += len(into[[]entry](a))
			if path = next(a, pages); path != "" {
				olivia.Get(path+"&kind=role").Want(400, "VALIDATION")
			}
		}
		if all := len(get[[]entry](olivia, "history?limit=200")); seen != all || all < 20 {
			t.Errorf("%d of %d entries in pages", seen, all)
		}
	})
}

// Lists of users are searched and paged; those of other objects, too.
func TestUsersAreFound(t *testing.T) {
	world(t, func(w *gatetest.World) {
		olivia := w.Staff("olivia@acme.example")
		for search, want := range map[string]int{"search=ACME": 8, "search=eva": 1, "type=external": 1, "active=false": 0, "search=%25": 0, "search=_": 0, "": 9} {
			if got := get[[]m](olivia, "users?limit=100&"+search); len(got) != want {
				t.Errorf("%s: %d users, want %d", search, len(got), want)
			}
		}
		seen := map[string]bool{}
		for path := "/admin/v1/users?limit=4"; path != ""; {
			a := olivia.Get(path).Want(200, "")
			for _, u := range into[[]m](a) {
				seen[fmt.Sprint(u["email"])] = true
			}
			path = next(a, "/admin/v1/users?limit=4")
		}
		if len(seen) != 9 {
			t.Errorf("%d users in pages", len(seen))
		}
		for _, bad := range []string{"users?type=robot", "users?active=maybe", "users?limit=0", "users?cursor=x", "users?sort=name"} {
			olivia.Get("/admin/v1/"+bad).Want(400, "VALIDATION")
		}
		first := olivia.Get("/admin/v1/config/role?limit=1").Want(200, "")
		if list := into[[]object](olivia.Get(next(first, "/admin/v1/config/role?limit=1")).Want(200, "")); len(list) != 1 || list[0].Name != "sales" {
			t.Errorf("%+v", list)
		}
	})
}

// Counts of records are for whoever reaches all of them.
func TestEntitiesWithCounts(t *testing.T) {
	world(t, func(w *gatetest.World) {
		sam := w.Key("sam@acme.example")
		for i := range 3 {
			sam.Post("/public/v1/data/contact", fmt.Sprintf(`{"email": "%d@x.example"}`, i)).Want(201, "")
		}
		type line struct {
			Name    string
			Fields  int
			Records *struct {
				Count int
				More  bool
			}
		}
		if list := get[[]line](w.Staff("olivia@acme.example"), "entities"); len(list) != 1 || list[0].Records == nil || list[0].Records.Count != 3 || list[0].Fields != 2 {
			t.Errorf("%+v", list)
		}
		if list := get[[]line](w.Staff("enno@acme.example"), "entities"); len(list) != 1 || list[0].Records != nil {
			t.Errorf("%+v", list)
		}
		indexed := m{"fields": []m{{"name": "email", "type": "text", "indexed": true}, {"name": "note", "type": "text"}}}
		for who, hidden := range map[string]bool{"olivia": false, "enno": true} {
			p := into[plan](w.Staff(who+"@acme.example").Post("/admin/v1/config/plan", one("entity", "contact", "", indexed)).Want(200, ""))
			if len(p.Effect.Reindexed) != 1 || p.Effect.Reindexed[0].Hidden != hidden || (p.Effect.Reindexed[0].Records == 3) == hidden {
				t.Errorf("%s: %+v", who, p.Effect)
			}
		}
	})
}

// Templates are previewed with invented values and sent to oneself, a few times.
func TestTemplatesArePreviewedAndTried(t *testing.T) {
	world(t, func(w *gatetest.World) {
		tess := w.Staff("tess@acme.example")
		draft := m{"name": "external-user-welcome", "subject": "Hi {{name}}", "text": "Hello {{name}}", "html": "<p>{{tenant_name}}</p>"}
		type preview struct {
			To, Subject, HTML string
			Default           bool
			Draft             m
			Invalid           []struct{ Member, Reason string }
		}
		p := into[preview](tess.Post("/admin/v1/templates/preview", body(draft)).Want(200, ""))
		if p.Subject != "Hi Ada Lovelace" || p.HTML != "<p>acme</p>" || len(p.Invalid) != 0 {
			t.Errorf("%+v", p)
		}
		built := into[preview](tess.Post("/admin/v1/templates/preview", body(m{"name": "external-user-password-reset"})).Want(200, ""))
		if !built.Default || !strings.Contains(built.HTML, "/reset-password?token=sample") || built.Draft["html"] == "" {
			t.Errorf("%+v", built)
		}
		wrong := m{"name": "external-user-welcome", "subject": "Hi", "text": "{{nothing}}", "html": ""}
		p = into[preview](tess.Post("/admin/v1/templates/preview", body(wrong)).Want(200, ""))
		if len(p.Invalid) != 2 || p.Invalid[0].Member != "text" {
			t.Errorf("%+v", p.Invalid)
		}
		tess.Post("/admin/v1/templates/test", body(wrong)).Want(400, "VALIDATION")
		tess.Post("/admin/v1/templates/preview", body(m{"name": "no-such"})).Want(400, "VALIDATION")
		for range 5 {
			tess.Post("/admin/v1/templates/test", body(draft)).Want(200, "")
		}
		tess.Post("/admin/v1/templates/test", body(draft)).Want(429, "RATE_LIMITED")
		w.Staff("emil@acme.example").Post("/admin/v1/templates/test", body(draft)).Want(403, "FORBIDDEN")
	})
}
