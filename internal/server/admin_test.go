package server_test

import (
	"strings"
	"testing"

	"gatehouse/internal/db"
	"gatehouse/internal/gatetest"
)

const administered = `
tenant: acme
hosts: [acme.localhost]
public_api: {enabled: true}
external_identity: {enabled: true}
permission_sets:
  - {name: users, system: [manage_users]}
users:
  - {email: olivia@acme.example, name: Olivia Owner, owner: true}
  - {email: ursula@acme.example, name: Ursula, permission_sets: [users]}
  - {email: sam@acme.example, name: Sam}
  - {email: eva@customer.example, name: Eva, type: external}
`

func TestStaffSignInWithAPassword(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(administered)
		const session = "/admin/v1/session"
		olivia := w.Staff("olivia@acme.example")
		me := olivia.Get(session).Want(200, "").Record()
		if me["stage"] != "full" || me["owner"] != true || me["user"].(map[string]any)["email"] != "olivia@acme.example" {
			t.Errorf("the owner's session: %v", me)
		}
		if got := w.Staff("ursula@acme.example").Get(session).Want(200, "").Member("system"); got != `["manage_users"]` {
			t.Errorf("Ursula may %s", got)
		}
		anyone := w.Anyone()
		anyone.Get(session).Want(401, "UNAUTHORIZED")
		wrong := string(anyone.SignIn("sam@acme.example", "not the password").Want(401, "INVALID_CREDENTIALS").Body)
		w.SetPassword("acme", "eva@customer.example")
		for _, email := range []string{"eva@customer.example", "nobody@acme.example"} {
			if got := string(anyone.SignIn(email, gatetest.StaffPassword).Want(401, "INVALID_CREDENTIALS").Body); got != wrong {
				t.Errorf("%s is told %s, a wrong password %s", email, got, wrong)
			}
		}
		olivia.Delete(session).Want(200, "")
		olivia.Get(session).Want(401, "UNAUTHORIZED")
	})
}

func TestTheAdministrationIsAtItsHostsAlone(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(administered)
		w.Staff("olivia@acme.example").Get("/admin/v1/session").Want(200, "")
		w.Apply(administered + "admin_hosts: [admin.acme.localhost]\n")
		w.Staff("olivia@acme.example").Get("/admin/v1/session").Want(404, "NOT_FOUND")
		at := w.Staff("olivia@acme.example")
		at.Host = "admin.acme.localhost"
		at.Get("/admin/v1/session").Want(200, "")
		at.Get("/public/v1/me").Want(404, "NOT_FOUND")
	})
}

// TestAChangeComesFromThePagesOfThisHost: any other is refused, whatever cookie it has.
func TestAChangeComesFromThePagesOfThisHost(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(administered)
		olivia := w.Staff("olivia@acme.example")
		for what, a := range map[string]*gatetest.Answer{
			"a foreign origin":   olivia.With("Origin", "https://evil.example").Delete("/admin/v1/session"),
			"another port":       olivia.With("Origin", "http://acme.localhost:81").Delete("/admin/v1/session"),
			"the origin null":    olivia.With("Origin", "null").Delete("/admin/v1/session"),
			"a cross-site fetch": olivia.With("Sec-Fetch-Site", "cross-site").Delete("/admin/v1/session"),
			"a same-site fetch":  olivia.With("Sec-Fetch-Site", "same-site").Delete("/admin/v1/session"),
			"no header":          w.Anyone().With("Cookie", olivia.Cookie).Delete("/admin/v1/session"),
			"both, one foreign":  olivia.With("Sec-Fetch-Site", "same-origin").With("Origin", "https://evil.example").Delete("/admin/v1/session"),
		} {
			if a.Status != 403 || a.Code() != "CORS_DENIED" {
				t.Errorf("%s: %d %s", what, a.Status, a.Body)
			}
		}
		for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/json; charset=latin1"} {
			olivia.With("Content-Type", kind).Post("/admin/v1/session", `{"email":"a","password":"b"}`).Want(415, "UNSUPPORTED_MEDIA_TYPE")
		}
		olivia.Get("/admin/v1/session").Want(200, "")
		if a := olivia.With("Origin", "http://acme.localhost").Get("/admin/v1/session"); strings.Contains(a.Header.Get("Access-Control-Allow-Origin"), "acme") {
			t.Error("the administration has CORS headers")
		}
	})
}

func TestTheConsoleIsBesideTheAdminAPI(t *testing.T) {
	w := gatetest.New(t, db.SQLite)
	w.Apply(administered)
	anyone := w.Anyone()
	for _, path := range []string{"/admin", "/admin/", "/admin/settings/keys?limit=5"} {
		a := anyone.Get(path)
		if a.Status != 200 || a.Header.Get("Content-Type") != "text/html; charset=utf-8" || a.Header.Get("Cache-Control") != "no-store" ||
			!strings.Contains(a.Header.Get("Content-Security-Policy"), "script-src 'self';") || a.Header.Get("X-Request-Id") == "" {
			t.Errorf("%s: %d %v", path, a.Status, a.Header)
		}
	}
	if a := anyone.Do("HEAD", "/admin", ""); a.Status != 200 || len(a.Body) > 0 || a.Header.Get("Content-Length") == "0" {
		t.Errorf("HEAD: %d %v", a.Status, a.Header)
	}
	anyone.Post("/admin", "{}").Want(405, "METHOD_NOT_ALLOWED")
	anyone.Get("/administrator").Want(404, "NOT_FOUND")
	anyone.Get("/admin/v1/nothing").Want(404, "NOT_FOUND")
	w.Apply(administered + "admin_hosts: [admin.acme.localhost]\n")
	anyone.Get("/admin").Want(404, "NOT_FOUND")
	anyone.Host = "admin.acme.localhost"
	if a := anyone.Get("/admin"); a.Status != 200 {
		t.Errorf("at the admin host: %d", a.Status)
	}
}
