package server_test

import (
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"gatehouse/internal/db"
	"gatehouse/internal/gatetest"
)

// portal is a tenant with External Identity.
const portal = `
tenant: acme
hosts: [acme.localhost]
base_url: https://acme.localhost
public_api: {enabled: true}
external_identity:
  enabled: true
  default_permission_set: portal
  app_url: https://portal.acme.example
  limits: {register_per_ip_per_hour: 100000, register_per_tenant_per_hour: 100000, login_per_ip_per_minute: 100000,
    login_per_email_per_15_minutes: 100000, reset_per_email_per_hour: 100000, reset_per_tenant_per_hour: 100000,
    refresh_per_token_per_minute: 100000, verify_per_ip_per_minute: 100000, password_reset_per_ip_per_minute: 100000}
unauthenticated_per_ip_per_minute: 100000
entities:
  - name: ticket
    fields: [{name: title, type: text, required: true}, {name: internal_note, type: text}]
user_fields: [{name: company, type: text}]
roles: [{name: staff}, {name: customer, parent: staff}]
permission_sets:
  - name: portal
    system: [manage_users, login_as]
    all_entity_access: true
    entities: {ticket: {create: true, read: true, update: true, fields: {internal_note: {read: false}}}}
  - name: desk
    system: [can_manage_external_users]
    entities: {ticket: {create: true, read: true, update: true, delete: true}}
users:
  - {email: olivia@acme.example, name: Olivia, owner: true, role: staff, password: "olivia's password"}
  - {email: rita@acme.example, name: Rita, role: staff, permission_sets: [desk]}
  - {email: bob@acme.example, name: Bob, role: staff}
logic_components:
  - {name: echo, source: "export default (inputs, ctx) => ({by: ctx.user.email})"}
custom_endpoints:
  - {slug: mine, target: {component: echo}}
  - {slug: ours, target: {component: echo}, external_users: true}
  - {slug: hook, target: {component: echo}, auth: token}
`

const auth = "/public/v1/auth/"

// member registers, verifies and logs in an external user.
func member(t *testing.T, w *gatetest.World, email string) (who *gatetest.Actor, refresh string) {
	t.Helper()
	anyone := w.Anyone()
	anyone.Post(auth+"register", fmt.Sprintf(`{"email": %q, "password": "a good password", "name": "Eva", "company": "ACME", "userType": "internal", "isOwner": true}`, email)).
		Want(201, "")
	anyone.Post(auth+"verify", fmt.Sprintf(`{"token": %q}`, w.Mails.Token(t, email, 1))).Want(200, "")
	a := anyone.Post(auth+"login", fmt.Sprintf(`{"email": %q, "password": "a good password"}`, email)).Want(200, "")
	var data struct{ AccessToken, RefreshToken string }
	a.Data(&data)
	who = w.Anyone()
	who.Token = data.AccessToken
	return who, data.RefreshToken
}

// TestAnEndUsersLife makes the calls of a customer's portal, from registration to
// a record.
func TestAnEndUsersLife(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(portal)
		rita := w.Key("rita@acme.example")
		hidden := rita.Post("/public/v1/data/ticket", `{"title": "staff's own"}`).Want(201, "").ID()
		eva, refresh := member(t, w, "eva@customer.example")
		leo, _ := member(t, w, "leo@customer.example")

		own := eva.Post("/public/v1/data/ticket", `{"title": "broken pump"}`).Want(201, "").ID()
		eva.Patch("/public/v1/data/ticket/"+own, `{"title": "broken pump, again"}`).Want(200, "")
		eva.Patch("/public/v1/data/ticket/"+own, `{"internal_note": "x"}`).Want(400, "VALIDATION")
		eva.Get("/public/v1/data/ticket/"+hidden).Want(404, "NOT_FOUND")
		leo.Get("/public/v1/data/ticket/"+own).Want(404, "NOT_FOUND")
		if body := string(eva.Get("/public/v1/data/ticket").Want(200, "").Body); strings.Contains(body, hidden) || !strings.Contains(body, own) {
			t.Errorf("the list: %s", body)
		}
		var me struct {
			Email, Name   string
			EmailVerified bool
			CustomFields  map[string]any
		}
		eva.Get(auth+"me").Want(200, "").Data(&me)
		if me.Email != "eva@customer.example" || !me.EmailVerified || me.CustomFields["company"] != "ACME" {
			t.Errorf("/auth/me: %+v", me)
		}
		// The permission set grants more than an external user may have.
		if body := string(eva.Get("/public/v1/me").Want(200, "").Body); strings.Contains(body, "manage_users") || strings.Contains(body, `"manage"`) || strings.Contains(body, `"isOwner":true`) {
			t.Errorf("/me: %s", body)
		}
		eva.Get("/public/v1/data/user/"+w.UserID("acme", "rita@acme.example")).Want(403, "FORBIDDEN")
		eva.Post("/public/v1/custom/ours", `{}`).Want(200, "")
		eva.Post("/public/v1/custom/mine", `{}`).Want(403, "FORBIDDEN")

		var next struct{ AccessToken, RefreshToken string }
		w.Anyone().Post(auth+"refresh", fmt.Sprintf(`{"refreshToken": %q}`, refresh)).Want(200, "").Data(&next)
		w.SetActive("acme", "eva@customer.example", false)
		eva.Get("/public/v1/data/ticket/"+own).Want(200, "") // until it expires
		w.Anyone().Post(auth+"refresh", fmt.Sprintf(`{"refreshToken": %q}`, next.RefreshToken)).Want(401, "UNAUTHORIZED")
		w.Anyone().Post(auth+"login", `{"email": "eva@customer.example", "password": "a good password"}`).Want(403, "ACCOUNT_NOT_ACTIVE")
		w.SetActive("acme", "eva@customer.example", true)
		w.Anyone().Post(auth+"refresh", fmt.Sprintf(`{"refreshToken": %q}`, next.RefreshToken)).Want(401, "UNAUTHORIZED")
		w.Clock.Advance(time.Hour + time.Second)
		eva.Get("/public/v1/me").Want(401, "UNAUTHORIZED")
	})
}

// TestAPasswordIsChangedInThePortal over HTTP: only an access token is
// accepted, the portal's pages may read the answer, and neither password is in
// any log.
func TestAPasswordIsChangedInThePortal(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(portal)
		eva, refresh := member(t, w, "eva@customer.example")
		const path, body = auth + "password", `{"currentPassword": "a good password", "newPassword": "a better password"}`
		w.Anyone().Post(path, body).Want(401, "UNAUTHORIZED")
		w.Key("olivia@acme.example").Post(path, body).Want(401, "UNAUTHORIZED")
		wrong := eva.With("Origin", "https://portal.acme.example").Post(path, strings.Replace(body, "a good", "a wrong", 1)).Want(401, "INVALID_CREDENTIALS")
		a := eva.With("Origin", "https://portal.acme.example").Post(path, body).Want(200, "")
		if got := a.Header.Get("Access-Control-Allow-Origin"); got != "https://portal.acme.example" || !strings.Contains(string(a.Body), `"data":{"success":true}`) {
			t.Errorf("for %q: %s", got, a.Body)
		}
		w.Anyone().Post(auth+"refresh", fmt.Sprintf(`{"refreshToken": %q}`, refresh)).Want(200, "")
		w.Anyone().Post(auth+"login", `{"email": "eva@customer.example", "password": "a better password"}`).Want(200, "")
		entry := w.AuditLog("acme")[wrong.Header.Get("X-Request-Id")]
		if entry == nil || entry.Endpoint != "/auth/password" || entry.UserID == "" {
			t.Fatalf("the refused change is not in the audit log: %+v", entry)
		}
		for _, secret := range []string{"a good password", "a wrong password", "a better password"} {
			if strings.Contains(fmt.Sprintf("%+v", *entry), secret) || w.Nodes[0].Log.Contains(secret) {
				t.Errorf("%s is in a log: %+v", secret, *entry)
			}
		}
	})
}

// TestOriginsOfExternalIdentity: a request from an origin that is not listed is
// served, without CORS headers (contract O3).
func TestOriginsOfExternalIdentity(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(portal)
		eva, _ := member(t, w, "eva@customer.example")
		for origin, listed := range map[string]bool{"https://portal.acme.example": true, "https://evil.example": false} {
			want := map[bool]string{true: origin, false: ""}[listed]
			for _, a := range []*gatetest.Answer{
				eva.With("Origin", origin).Get("/public/v1/me").Want(200, ""),
				eva.With("Origin", origin).Get("/public/v1/data/nothing").Want(404, "NOT_FOUND"),
				w.Anyone().With("Origin", origin).Post(auth+"login", `{"email": "x@y.example", "password": "wrong one"}`).Want(401, "INVALID_CREDENTIALS"),
				w.Anyone().With("Origin", origin).Post(auth+"refresh", `{"refreshToken": "x"}`).Want(401, "UNAUTHORIZED"),
			} {
				if got := a.Header.Get("Access-Control-Allow-Origin"); got != want {
					t.Errorf("%s from %s: allowed origin %q, want %q", a.Call, origin, got, want)
				}
			}
			a := w.Anyone().With("Origin", origin).With("Access-Control-Request-Method", "POST").Do("OPTIONS", auth+"login", "")
			if (a.Status == 204) != listed || a.Header.Get("Access-Control-Allow-Origin") != want {
				t.Errorf("preflight from %s: %d", origin, a.Status)
			}
		}
	})
}

// TestGoldenCredentials calls every route with every kind of credential, valid
// and invalid, and keeps the answers in a golden file.
func TestGoldenCredentials(t *testing.T) {
	w := gatetest.New(t, db.SQLite)
	w.Apply(portal)
	w.Apply(strings.NewReplacer("tenant: acme", "tenant: other", "acme.localhost", "other.localhost", "acme.example", "other.example").Replace(portal))
	old, _ := member(t, w, "old@customer.example")
	w.Clock.Advance(time.Hour + time.Second)
	credentials := map[string]string{"expired JWT": old.Token, "none": "", "garbage": "garbage"}
	eva, refresh := member(t, w, "eva@customer.example")
	credentials["JWT"], credentials["refresh token"] = eva.Token, refresh
	w.Anyone().Post(auth+"register", `{"email": "new@customer.example", "password": "a good password", "name": "New"}`).Want(201, "")
	credentials["verification token"] = w.Mails.Token(t, "new@customer.example", 1)
	credentials["webhook token"] = w.Webhook("hook").Token
	credentials["owner's key"] = w.Key("olivia@acme.example").Token
	credentials["staff key"] = w.Key("rita@acme.example").Token
	credentials["idle key"] = w.Key("bob@acme.example").Token
	credentials["external user's key"] = w.Key("eva@customer.example").Token
	credentials["other tenant's key"] = w.KeyOf("other", "other.localhost", "olivia@other.example").Token
	maps.Copy(credentials, forged(t, w, eva.Token))

	routes := map[string]struct{ method, path, body string }{}
	for _, r := range w.Nodes[0].Server.Surface() {
		if strings.HasPrefix(r.Pattern, "/admin/") {
			continue // they have a table of their own
		}
		path := strings.NewReplacer("{entity}", "ticket", "{id}", w.UserID("acme", "new@customer.example"), "{slug}", "mine").Replace(r.Pattern)
		body := ""
		if r.Method == "POST" || r.Method == "PATCH" {
			body = `{"refreshToken": "x"}`
		}
		if strings.HasPrefix(r.Pattern, "/public/v1/data/") && body != "" {
			body = `{"title": "t"}`
		}
		routes[r.Method+" "+r.Pattern] = struct{ method, path, body string }{r.Method, path, body}
	}
	for _, slug := range []string{"ours", "hook"} {
		routes["POST /public/v1/custom/{slug} "+slug] = struct{ method, path, body string }{"POST", "/public/v1/custom/" + slug, `{}`}
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(routes)) {
		r := routes[name]
		b.WriteString(name + "\n")
		for _, kind := range slices.Sorted(maps.Keys(credentials)) {
			who := w.Anyone()
			who.Token = credentials[kind]
			a := who.Do(r.method, r.path, r.body)
			fmt.Fprintf(&b, "  %-22s %d %s\n", kind, a.Status, a.Code())
		}
	}
	golden(t, "testdata/credentials.golden", b.String())
}

// forged returns tokens that look like our access tokens and are invalid.
func forged(t *testing.T, w *gatetest.World, good string) map[string]string {
	t.Helper()
	var claims jwt.MapClaims
	parsed, _, err := jwt.NewParser().ParseUnverified(good, &claims)
	if err != nil {
		t.Fatal(err)
	}
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	sign := func(method jwt.SigningMethod, key any) string {
		token := jwt.NewWithClaims(method, claims)
		token.Header["kid"] = parsed.Header["kid"]
		text, err := token.SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	return map[string]string{
		"JWT, algorithm none":    sign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType),
		"JWT, RS256":             sign(jwt.SigningMethodRS256, private),
		"JWT, HS256, wrong key":  sign(jwt.SigningMethodHS256, []byte("a key of thirty-two bytes or more")),
		"JWT of another tenant":  otherTenants(t, w),
		"JWT without its ending": good[:len(good)-1],
	}
}

// otherTenants returns an access token of the tenant other.
func otherTenants(t *testing.T, w *gatetest.World) string {
	t.Helper()
	anyone := w.Anyone()
	anyone.Host = "other.localhost"
	anyone.Post(auth+"register", `{"email": "eva@other.example", "password": "a good password", "name": "Eva"}`).Want(201, "")
	anyone.Post(auth+"verify", fmt.Sprintf(`{"token": %q}`, w.Mails.Token(t, "eva@other.example", 1))).Want(200, "")
	var data struct{ AccessToken string }
	anyone.Post(auth+"login", `{"email": "eva@other.example", "password": "a good password"}`).Want(200, "").Data(&data)
	return data.AccessToken
}

// golden compares a text with a file that -update writes.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s changed; if it is meant, run: go test ./internal/server -run Golden -update\n%s", file, got)
	}
}
