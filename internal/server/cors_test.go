package server_test

import (
	"strings"
	"testing"
	"time"

	"gatehouse/internal/db"
	"gatehouse/internal/gatetest"
)

const (
	app  = "https://app.example"
	evil = "https://evil.example"
)

// readable fails the test unless pages of the origin, and of no other, may read
// the answer; "" means no page may.
func readable(t *testing.T, a *gatetest.Answer, origin string) *gatetest.Answer {
	t.Helper()
	whole(t, a)
	if got := a.Header.Get("Access-Control-Allow-Origin"); got != origin || len(a.Header.Values("Access-Control-Allow-Origin")) > 1 {
		t.Errorf("%s: %d: Access-Control-Allow-Origin %q, want %q", a.Call, a.Status, got, origin)
	}
	want := ""
	if origin != "" {
		want = "X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Retry-After, X-Request-Id, ETag, Idempotent-Replay"
	}
	if got := a.Header.Get("Access-Control-Expose-Headers"); a.Status != 204 && got != want {
		t.Errorf("%s: %d: Access-Control-Expose-Headers %q, want %q", a.Call, a.Status, got, want)
	}
	return a
}

func TestAKeySaysWhichOriginsMayUseIt(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		listed := w.Key("sam@acme.example", origins(app, "http://localhost:3000", "capacitor://localhost"))
		empty := w.Key("sam@acme.example")
		for _, origin := range []string{app, "http://localhost:3000", "capacitor://localhost", "HTTPS://App.Example", app + ":443"} {
			readable(t, listed.With("Origin", origin).Get(me), origin).Want(200, "")
			readable(t, empty.With("Origin", origin).Get(me), "").Want(403, "CORS_DENIED")
		}
		for _, origin := range []string{
			evil, "null", "*", "https://app.example:8443", "http://app.example", "https://app.example.evil.example", "https://evil.example/app.example",
			"https://sub.app.example", "https://app.exampl", "app.example", "https://app.example/", "https://app.example.", "http://localhost",
			"https://user@app.example", "https://app.example, https://evil.example", "file://", "\x80",
		} {
			readable(t, listed.With("Origin", origin).Get(me), "").Want(403, "CORS_DENIED")
			readable(t, listed.With("Origin", origin).Post(contact, `{"first_name":"Ada"}`), "").Want(403, "CORS_DENIED")
		}
		// A request without Origin gets no CORS headers.
		readable(t, listed.Get(me), "").Want(200, "")
		readable(t, empty.Get(me), "").Want(200, "")
		if n := len(listed.Get(contact).Records()); n != 0 {
			t.Errorf("%d records were made for origins that are not listed", n)
		}
	})
}

// TestErrorsAreReadableToo: the key's list decides where the key is known, else
// the union of all lists (contract O5).
func TestErrorsAreReadableToo(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		faulty(w)
		w.Apply(acme)
		sam := w.Key("sam@acme.example", origins(app)).With("Origin", app)
		rita := w.Key("rita@acme.example", origins(app)).With("Origin", app)
		spent := w.Key("sam@acme.example", origins(app), gatetest.RateLimit(1)).With("Origin", app)
		spent.Get(me)
		closed := w.Key("sam@acme.example", origins(app), allowlist("10.0.0.0/8")).With("Origin", app)
		sam.Post(contact, `{"first_name":"Ada","email":"a@x.example"}`).Want(201, "")

		readable(t, sam.Get(contact+"?limit=0"), app).Want(400, "VALIDATION")
		readable(t, rita.Post(contact, `{}`), app).Want(403, "FORBIDDEN")
		readable(t, closed.Get(me), app).Want(403, "IP_DENIED")
		readable(t, sam.Get(nobody), app).Want(404, "NOT_FOUND")
		readable(t, sam.Post(contact, `{"first_name":"Ada","email":"a@x.example"}`), app).Want(409, "CONFLICT")
		readable(t, sam.Post(contact, strings.Repeat("x", 1<<20+1)), app).Want(413, "PAYLOAD_TOO_LARGE")
		readable(t, sam.With("Content-Type", "text/plain").Post(contact, `{}`), app).Want(415, "UNSUPPORTED_MEDIA_TYPE")
		readable(t, spent.Get(me), app).Want(429, "RATE_LIMITED")
		readable(t, sam.Get("/public/v1/faulty/panic"), app).Want(500, "INTERNAL")
		readable(t, sam.Get("/public/v1/faulty/full"), app).Want(503, "OVERLOADED")

		anyone := w.Anyone().With("Origin", app)
		readable(t, anyone.Get(me), app).Want(401, "UNAUTHORIZED")
		readable(t, anyone.Get("/nowhere"), app).Want(404, "NOT_FOUND")
		readable(t, anyone.Do("PUT", me, ""), app).Want(405, "METHOD_NOT_ALLOWED")
		readable(t, w.Anyone().With("Origin", evil).Get(me), "").Want(401, "UNAUTHORIZED")
		readable(t, w.Anyone().With("Origin", "null").Get("/nowhere"), "").Want(404, "NOT_FOUND")

		// A known key decides alone: another key's list does not count.
		other := w.Key("sam@acme.example", origins("https://other.example"))
		readable(t, other.With("Origin", app).Get(me), "").Want(403, "CORS_DENIED")

		w.Apply("tenant: acme\npublic_api: {enabled: false}\n")
		readable(t, sam.Get(me), app).Want(503, "API_DISABLED")
		anyone.Host = "unknown.localhost"
		readable(t, anyone.Get(me), "").Want(404, "NOT_FOUND")
	})
}

// ask sends a preflight.
func ask(a *gatetest.Actor, origin, path string) *gatetest.Answer {
	return a.With("Origin", origin).With("Access-Control-Request-Method", "PATCH").
		With("Access-Control-Request-Headers", "authorization,content-type").Do("OPTIONS", path, "")
}

func TestPreflightAnswersByTheUnion(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		w.Apply("tenant: other\nhosts: [other.localhost]\npublic_api: {enabled: true}\nusers: [{email: o@other.example, name: O, owner: true}]\n")
		anyone := w.Anyone()
		yes := func(origin string) {
			t.Helper()
			a := readable(t, ask(anyone, origin, contact), origin)
			if a.Status != 204 {
				t.Errorf("preflight of %s: %d %s", origin, a.Status, a.Body)
			}
		}
		no := func(origin string) {
			t.Helper()
			readable(t, ask(anyone, origin, contact), "").Want(403, "CORS_DENIED")
		}
		no(app) // the tenant has no key at all
		first := w.Key("sam@acme.example", origins(app))
		yes(app)
		yes("HTTPS://APP.example:443")
		for _, origin := range []string{evil, "null", "*", "http://app.example", "https://app.example.evil.example", "https://sub.app.example"} {
			no(origin)
		}
		w.Key("rita@acme.example", origins("https://rita.example"), expiresAt(w.Clock.Now().Add(time.Hour)))
		yes("https://rita.example")
		w.KeyOf("other", "other.localhost", "o@other.example", origins("https://elsewhere.example"))
		no("https://elsewhere.example") // another tenant's key

		w.Clock.Advance(time.Hour)
		no("https://rita.example") // its only key has expired
		w.Key("rita@acme.example", origins("https://rita.example"))
		yes("https://rita.example")
		w.SetActive("acme", "rita@acme.example", false)
		no("https://rita.example") // its key's user is deactivated
		w.SetActive("acme", "rita@acme.example", true)
		yes("https://rita.example")
		if err := w.Nodes[0].Server.Keys().Delete(t.Context(), "test", "acme", first.KeyID); err != nil {
			t.Fatal(err)
		}
		no(app) // its key is deleted

		// External Identity's origins, while it is on.
		const identity = "tenant: acme\nexternal_identity: {enabled: %, cors_allowed_origins: [\"https://portal.example\"]}\n"
		w.Apply(strings.Replace(identity, "%", "true", 1))
		yes("https://portal.example")
		w.Apply(strings.Replace(identity, "%", "false", 1))
		no("https://portal.example")
		w.Apply("tenant: acme\nexternal_identity: {enabled: true, app_url: \"https://portal.example:8443/app\"}\n")
		yes("https://portal.example:8443") // the default: the origin of app_url
		w.Apply("tenant: acme\nexternal_identity: {enabled: true}\n")
		yes("https://acme.localhost") // and of app_url's default, the base URL
		w.Apply("tenant: acme\nexternal_identity: {enabled: true, cors_allowed_origins: []}\n")
		no("https://acme.localhost")
	})
}

func TestAPreflightSaysWhatMayBeAsked(t *testing.T) {
	w := gatetest.New(t, db.SQLite)
	w.Apply(acme)
	sam := w.Key("sam@acme.example", origins(app))
	anyone := w.Anyone()
	for _, path := range []string{contact, nobody, me, "/public/v1/custom/anything", "/nowhere"} {
		a := ask(anyone, app, path)
		for name, want := range map[string]string{
			"Access-Control-Allow-Origin":  app,
			"Access-Control-Allow-Methods": "GET, POST, PATCH, DELETE",
			"Access-Control-Allow-Headers": "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, X-Webhook-Token",
			"Access-Control-Max-Age":       "600",
			"Vary":                         "Origin, Access-Control-Request-Method, Access-Control-Request-Headers",
			"Content-Type":                 "",
		} {
			if got := a.Header.Get(name); got != want {
				t.Errorf("%s: %s: %q, want %q", path, name, got, want)
			}
		}
		if a.Status != 204 || len(a.Body) != 0 {
			t.Errorf("%s: %d %q", path, a.Status, a.Body)
		}
	}
	// A preflight needs no credential, and a wrong one changes nothing.
	if a := ask(anyone.With("Authorization", "Bearer nonsense"), app, contact); a.Status != 204 {
		t.Errorf("with a credential: %d", a.Status)
	}
	// Without Origin, or the requested method, it is not a preflight.
	sam.Do("OPTIONS", contact, "").Want(405, "METHOD_NOT_ALLOWED")
	sam.With("Origin", app).Do("OPTIONS", contact, "").Want(405, "METHOD_NOT_ALLOWED")
	anyone.With("Access-Control-Request-Method", "GET").Do("OPTIONS", contact, "").Want(405, "METHOD_NOT_ALLOWED")
	w.Apply("tenant: acme\npublic_api: {enabled: false}\n")
	readable(t, ask(anyone, app, contact), app).Want(503, "API_DISABLED")
}
