package server_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/audit"
	"gatehouse/internal/gatetest"
)

// TestWhatTheTenantsToggleKeeps (contract G5): the toggle covers /data and /me,
// and every early failure (401, 403, 429, 503).
func TestWhatTheTenantsToggleKeeps(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		faulty(w)
		w.Apply(acme)
		type kept struct {
			answer   *gatetest.Answer
			on       bool
			endpoint string // kept with the toggle on
		}
		var all []kept
		round := func(on bool) {
			sam, rita := w.Key("sam@acme.example", origins(app)), w.Key("rita@acme.example")
			closed := w.Key("sam@acme.example", allowlist("10.0.0.0/8"))
			spent := w.Key("sam@acme.example", gatetest.RateLimit(1))
			anyone := w.Anyone()
			elsewhere := w.Anyone()
			elsewhere.Host = "unknown.localhost"
			email := map[bool]string{true: "on@x.example", false: "off@x.example"}[on]
			made := sam.Post(contact, `{"first_name":"Ada","email":"`+email+`"}`).Want(201, "")
			one := contact + "/" + made.ID()
			keep := func(endpoint string, answers ...*gatetest.Answer) {
				for _, a := range answers {
					all = append(all, kept{a, on, endpoint})
				}
			}
			const never = "never"
			keep("/data/contact", made, sam.Get(contact), sam.Get(one), sam.Patch(one, `{"score":1}`), sam.Delete(one),
				sam.Get(contact+"?limit=0"), sam.Post(contact, `{`), // 400
				anyone.Get(contact), anyone.Get(one), // 401
				rita.Post(contact, `{}`), closed.Get(contact), sam.With("Origin", evil).Get(contact), // 403
				sam.Get(nobody), sam.Get(contact+"/x"), // 404
				sam.Do("PUT", contact, ""),                                 // 405
				sam.Post(contact, strings.Repeat("x", 1<<20+1)),            // 413
				sam.With("Content-Type", "text/plain").Post(contact, `{}`), // 415
			)
			keep("/me", sam.Get(me), anyone.Get(me), spent.Get(me), spent.Get(me) /* 429 */)
			keep("/data/user", sam.Get("/public/v1/data/user"), sam.Post("/public/v1/data/user", `{}`))
			// Unknown names have an entry and no endpoint.
			keep("", sam.Get("/public/v1/data/nothing"), sam.Get("/public/v1/data/nothing/x"), sam.Get("/public/v1/faulty/panic"))
			keep("", ask(anyone, evil, contact))                         // 403
			keep("/auth/login", sam.Post("/public/v1/auth/login", `{}`)) // 503
			keep(never, sam.Get("/nowhere"), sam.Get("/public/v1/data"), ask(anyone, app, contact), elsewhere.Get(me))
			w.Apply("tenant: acme\npublic_api: {enabled: false, log_standard_requests: " + map[bool]string{true: "true", false: "false"}[on] + "}\n")
			keep("/data/contact", sam.Get(contact), sam.Get(one), sam.Do("PUT", contact, ""))
			keep("/me", sam.Get(me), anyone.Get(me))
			keep("", sam.Get("/nowhere"))
		}
		round(true)
		w.Apply(unlogged)
		round(false)

		log := w.AuditLog("acme")
		for _, k := range all {
			id := k.answer.Header.Get("X-Request-Id")
			e := log[id]
			if want := k.on && k.endpoint != "never"; (e != nil) != want {
				t.Errorf("toggle %v: %s: %d is kept: %v, want %v", k.on, k.answer.Call, k.answer.Status, e != nil, want)
			}
			if e != nil && (e.Endpoint != k.endpoint || e.Status != k.answer.Status) {
				t.Errorf("%s: %d: kept as %d of endpoint %q, want %q", k.answer.Call, k.answer.Status, e.Status, e.Endpoint, k.endpoint)
			}
			delete(log, id)
		}
		if len(log) > 0 {
			t.Errorf("%d entries of no request: %v", len(log), slices.Collect(maps.Keys(log)))
		}
	})
}

// stored returns an entry as `gatehouse audit --json` prints it.
func stored(t *testing.T, e *audit.Entry) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(e.AppendJSON(nil), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestAnEntrySaysWhoWhenWhereAndWhat(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		sam := from(w.Key("sam@acme.example"), "198.51.100.1")
		before := w.Clock.Now()
		made := sam.With("User-Agent", "probe/1").With("X-Secret-Header", "hush").Post(contact, `{"first_name":"Ada"}`).Want(201, "")
		list := sam.Get(contact+"?limit=3&filter%5Bscore%5D=4").Want(200, "")
		refused := w.Anyone().Get(contact).Want(401, "UNAUTHORIZED")
		after := w.Clock.Now()
		log := w.AuditLog("acme")

		e := log[made.Header.Get("X-Request-Id")]
		m := stored(t, e)
		for name, want := range map[string]any{
			"user": "sam@acme.example", "auth": "KEY", "method": "POST", "path": contact, "endpoint": "/data/contact", "status": 201.0,
			"ip": "198.51.100.1", "request_id": made.Header.Get("X-Request-Id"),
		} {
			if m[name] != want {
				t.Errorf("%s is %v, want %v", name, m[name], want)
			}
		}
		if e.At.Before(before) || e.At.After(after) || e.Duration <= 0 || e.Duration > time.Minute {
			t.Errorf("at %v, for %v", e.At, e.Duration)
		}
		request, _ := m["request"].(map[string]any)
		headers, _ := request["headers"].(map[string]any)
		body, _ := request["body"].(map[string]any)
		if headers["user-agent"] != "probe/1" || headers["content-type"] != "application/json" || body["first_name"] != "Ada" {
			t.Errorf("request: %v", request)
		}
		names, _ := request["header_names"].([]any)
		if !slices.Contains(names, any("x-secret-header")) || !slices.Contains(names, any("authorization")) || strings.Contains(e.Request, "hush") {
			t.Errorf("headers by name only: %v", request)
		}
		response, _ := m["response"].(map[string]any)
		answered, err := json.Marshal(response["body"])
		if err != nil || !sameJSON(t, answered, made.Body) {
			t.Errorf("response: %s, want %s", answered, made.Body)
		}
		if query := log[list.Header.Get("X-Request-Id")]; !strings.Contains(query.Request, `"query":"limit=3&filter%5Bscore%5D=4"`) {
			t.Errorf("a query: %s", query.Request)
		}
		if m := stored(t, log[refused.Header.Get("X-Request-Id")]); m["user"] != nil || m["auth"] != nil {
			t.Errorf("nobody: %v", m)
		}
	})
}

func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y any
	if err := json.Unmarshal(a, &x); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &y); err != nil {
		t.Fatal(err)
	}
	p, err1 := json.Marshal(x)
	q, err2 := json.Marshal(y)
	return err1 == nil && err2 == nil && string(p) == string(q)
}

// TestSecretsAreTakenOutBeforeAnythingIsStored: secrets are removed from the
// request and from an answer that repeats it.
func TestSecretsAreTakenOutBeforeAnythingIsStored(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		sam := w.Key("sam@acme.example")
		for _, body := range []string{
			`{"first_name":"Ada","extra":{"password":"hunter2"}}`,
			`{"first_name":"Ada","extra":[{"deep":{"newPassword":"hunter2","token":["hunter2"],"refreshToken":{"a":"hunter2"}}}]}`,
			`{"first_name":"Ada","extra":{"PASSWORD":"hunter2","access\u0054oken":"hunter2","secret":12345678,"activationToken":"hunter2"}}`,
			`{"first_name":"Ada","password":"hunter2"}`, // 400
			`{"first_name":"Ada","password":"hunter2"`,  // does not parse
			`[{"password":"hunter2"}]`,                    // not an object
			`password=hunter2&first_name=Ada`,             // not JSON
			`{"password":"hunter2","password":"hunter2"}`, // twice
		} {
			sam.Post(contact, body)
		}
		sam.Get(contact + "?password=hunter2")
		sam.Get(contact + "?token=hunter2&limit=1")
		sam.With("Content-Type", "application/x-www-form-urlencoded").Post(contact, `a=1&password=hunter2`)
		sam.Post("/public/v1/auth/login", `{"email":"a@x.example","password":"hunter2"}`)
		redacted := 0
		for _, e := range w.AuditLog("acme") {
			all := string(e.AppendJSON(nil))
			if strings.Contains(all, "hunter2") || strings.Contains(all, "12345678") {
				t.Errorf("%s %s keeps a secret: %s", e.Method, e.Path, all)
			}
			if strings.Contains(all, "[redacted]") {
				redacted++
			}
			if strings.HasPrefix(e.Path, "/public/v1/auth") && (e.Request != "{}" && strings.Contains(e.Request, "body") || strings.Contains(e.Response, "body")) {
				t.Errorf("a body of /auth is kept: %s", all)
			}
		}
		if redacted < 6 {
			t.Errorf("%d entries say [redacted]", redacted)
		}
		if w.Nodes[0].Log.Contains("hunter2") {
			t.Error("the request log keeps a secret")
		}
	})
}

// TestALongBodyIsCutAndMarked: at most 64 KiB of each body are stored.
func TestALongBodyIsCutAndMarked(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		sam := w.Key("sam@acme.example")
		a := sam.Post(contact, `{"first_name":"`+strings.Repeat("x", 200<<10)+`"}`).Want(201, "")
		e := w.AuditLog("acme")[a.Header.Get("X-Request-Id")]
		for _, part := range []string{e.Request, e.Response} {
			if len(part) > 64<<10+2048 || len(part) < 32<<10 || !strings.Contains(part, `"truncated":true`) {
				t.Errorf("%d bytes are kept: %.100s", len(part), part)
			}
		}
	})
}
