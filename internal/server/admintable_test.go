package server_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"gatehouse/internal/access"
	"gatehouse/internal/gatetest"
	"gatehouse/internal/httpapi"
)

// adminManifest has a user for each system permission, who holds that one alone.
func adminManifest() string {
	var b strings.Builder
	b.WriteString(`
tenant: acme
hosts: [acme.localhost]
public_api: {enabled: true}
external_identity: {enabled: true, activation_mode: none}
entities: [{name: ticket, fields: [{name: title, type: text}]}]
logic_components: [{name: hello, source: "export default function handler() { return {} }"}]
custom_endpoints: [{slug: hook, target: {component: hello}, auth: token}]
permission_sets:
`)
	for _, p := range access.SystemPermissions {
		fmt.Fprintf(&b, "  - {name: %s, system: [%s]}\n", p, p)
	}
	b.WriteString("users:\n  - {email: owner@acme.example, owner: true}\n  - {email: none@acme.example}\n  - {email: other@acme.example}\n  - {email: eva@customer.example, type: external}\n")
	for _, p := range access.SystemPermissions {
		fmt.Fprintf(&b, "  - {email: %s@acme.example, permission_sets: [%s]}\n", p, p)
	}
	return b.String()
}

// adminRoutes are the routes of the admin API.
func adminRoutes(w *gatetest.World) (routes []httpapi.Route) {
	for _, r := range w.Nodes[0].Server.Surface() {
		if strings.HasPrefix(r.Pattern, "/admin/") {
			routes = append(routes, r)
		}
	}
	return routes
}

// ended are routes that change or end the caller's session: the table calls them last.
var ended = []string{"POST /admin/v1/session/acting", "POST /admin/v1/session", "DELETE /admin/v1/session/acting", "DELETE /admin/v1/session"}

// adminCall returns a call of a route that, where it is let in, changes nothing: it names
// what does not exist, and its body is an empty object.
func adminCall(r httpapi.Route) (path, body string) {
	segments := strings.Split(r.Pattern, "/")
	for i, s := range segments {
		if strings.HasPrefix(s, "{") {
			segments[i] = "nothing"
		}
	}
	if r.BodyCap > 0 {
		body = "{}"
	}
	return strings.Join(segments, "/"), body
}

// TestGoldenAdminRights calls every route of the admin API as the owner, as staff with
// each system permission, as staff who act as another user, as an external user, with keys
// and access tokens, and as nobody. What a route names in Needs decides who is let in, and
// the table says what each gets. A route that is added is in the table at once.
func TestGoldenAdminRights(t *testing.T) { gatetest.Each(t, adminRights) }

func adminRights(t *testing.T, w *gatetest.World) {
	w.Apply(adminManifest())
	staff := map[string]*gatetest.Actor{}
	for _, name := range append([]string{"owner", "none"}, access.SystemPermissions...) {
		staff[name] = w.Staff(name + "@acme.example")
	}
	acting := *staff["owner"]
	acting.Cookie = from(w.Anyone(), "198.51.100.7").SignIn("owner@acme.example", gatetest.StaffPassword).Want(200, "").Cookie()
	acting.Post("/admin/v1/session/acting", fmt.Sprintf(`{"userId":%q}`, w.UserID("acme", "other@acme.example"))).Want(200, "")
	strangers := map[string]*gatetest.Actor{"nobody": w.Anyone(), "owner's key": w.Key("owner@acme.example"), "external user's key": w.Key("eva@customer.example")}
	w.Anyone().Post("/public/v1/auth/register", `{"email": "new@customer.example", "password": "a good password", "name": "New"}`).Want(201, "")
	jwt := w.Anyone()
	jwt.Token = w.Anyone().Post("/public/v1/auth/login", `{"email": "new@customer.example", "password": "a good password"}`).Want(200, "").Record()["accessToken"].(string)
	strangers["access token"] = jwt
	garbage := w.Anyone()
	garbage.Cookie = "gatehouse_session=" + strings.Repeat("a", 43)
	strangers["made-up session"] = garbage

	routes := adminRoutes(w)
	slices.SortStableFunc(routes, func(a, b httpapi.Route) int {
		return slices.Index(ended, a.Method+" "+a.Pattern) - slices.Index(ended, b.Method+" "+b.Pattern)
	})
	lines := map[string]string{}
	unexpected := 0
	call := func(r httpapi.Route, a *gatetest.Actor) *gatetest.Answer {
		path, body := adminCall(r)
		return a.With("Origin", "http://"+a.Host).Do(r.Method, path, body)
	}
	for _, r := range routes {
		name := r.Method + " " + r.Pattern
		var b strings.Builder
		note := func(who string, a *gatetest.Answer, let bool) {
			fmt.Fprintf(&b, "  %-26s %d %s\n", who, a.Status, a.Code())
			if !let && a.Status < 300 {
				unexpected++
				t.Errorf("%s is open to %s: %d %.200s", name, who, a.Status, a.Body)
			}
		}
		for _, who := range slices.Sorted(maps.Keys(staff)) {
			note(who, call(r, staff[who]), r.Auth == httpapi.Anonymous || letsIn(r.Needs, who))
		}
		note("owner, acting as none", call(r, &acting), r.Auth == httpapi.Anonymous || letsIn(r.Needs, "none"))
		for _, who := range slices.Sorted(maps.Keys(strangers)) {
			a := call(r, strangers[who])
			note(who, a, false)
			if r.Auth == httpapi.Staff && a.Status != http.StatusUnauthorized {
				t.Errorf("%s answers %s with %d", name, who, a.Status)
			}
		}
		lines[name] = b.String()
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		b.WriteString(name + "\n" + lines[name])
	}
	golden(t, "testdata/admin.golden", b.String())
	t.Logf("%d routes, %d unexpected successes", len(routes), unexpected)
}

func letsIn(n httpapi.Needs, who string) bool {
	return who == "owner" || slices.Contains(n, who) || slices.Equal(n, httpapi.AnyStaff) || n.BeforeFactor()
}

// TestNoChangeIsAcceptedFromElsewhere sends every request for a change as other sites could
// make a browser send it, with the owner's cookie, and with a session of another tenant.
func TestNoChangeIsAcceptedFromElsewhere(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(adminManifest())
		w.Apply(strings.NewReplacer("tenant: acme", "tenant: other", "acme.localhost", "other.localhost").Replace(adminManifest()))
		owner, stranger := w.Staff("owner@acme.example"), w.StaffOf("other", "other.localhost", "owner@acme.example")
		bare := w.Anyone().With("Cookie", owner.Cookie)
		count := 0
		for i, r := range adminRoutes(w) {
			if r.Method == http.MethodGet {
				continue
			}
			path, _ := adminCall(r)
			at := func(a *gatetest.Actor) *gatetest.Actor { // addresses of their own: refusals count against them
				return a.With("X-Forwarded-For", fmt.Sprintf("198.51.%d.%d", 100+i/250, i%250))
			}
			other := *owner
			other.Cookie = stranger.Cookie
			for what, a := range map[string]*gatetest.Actor{
				"a foreign origin":         at(owner).With("Origin", "https://evil.example"),
				"a neighbour's origin":     at(owner).With("Origin", "http://evil.acme.localhost"),
				"a foreign fetch":          at(bare).With("Sec-Fetch-Site", "cross-site").With("Content-Type", "application/json"),
				"a neighbour's fetch":      at(bare).With("Sec-Fetch-Site", "same-site").With("Content-Type", "application/json"),
				"a form of our own origin": at(owner).With("Origin", "http://acme.localhost").With("Content-Type", "text/plain"),
				"a form, url-encoded":      at(owner).With("Origin", "http://acme.localhost").With("Content-Type", "application/x-www-form-urlencoded"),
				"a form, no content type":  at(bare).With("Origin", "null"),
				"no header":                at(bare).With("Content-Type", "application/json"),
				"another tenant's cookie":  at(&other),
			} {
				if what == "another tenant's cookie" && r.Auth == httpapi.Anonymous {
					continue // no cookie is looked at
				}
				count++
				got := a.Do(r.Method, path, `{"x":1}`)
				if want := map[bool]int{true: 401, false: 403}[what == "another tenant's cookie"]; got.Status != want && got.Status != 415 {
					t.Errorf("%s %s by %s: %d %s", r.Method, r.Pattern, what, got.Status, got.Body)
				}
			}
		}
		owner.Get("/admin/v1/session").Want(200, "")
		t.Logf("%d attempts, 0 accepted", count)
	})
}
