package server_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/gatetest"
)

// members are those of a request log line (contract G1), and no others.
var members = []string{
	"api_key_id", "api_key_prefix", "auth", "duration_ms", "error_code", "event", "ip", "method", "path", "request_id", "route",
	"status", "tenant", "time", "user_id",
}

var logTime = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$`)

const (
	listRoute = "/public/v1/data/{entity}"
	oneRoute  = "/public/v1/data/{entity}/{id}"
)

func TestEachRequestIsOneLineOfTheLog(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		faulty(w)
		w.Apply(acme)
		w.Apply("tenant: off\nhosts: [off.localhost]\nusers: [{email: o@off.example, name: O, owner: true}]\n")
		w.Apply(unlogged) // the toggles do not apply here
		sam, anyone, wrong := w.Key("sam@acme.example", origins(app)), w.Anyone(), w.Anyone()
		samID := w.UserID("acme", "sam@acme.example")
		wrong.Token = "svc_api_" + strings.Repeat("ab", 32)
		other := w.Anyone()
		other.Token = "Zürich-is-no-token"
		elsewhere := w.Anyone()
		elsewhere.Host, elsewhere.Token = "unknown.localhost", sam.Token
		spent := w.Key("sam@acme.example", gatetest.RateLimit(1))
		expired := w.Key("sam@acme.example", expiresAt(w.Clock.Now().Add(time.Hour)))
		deactivated := w.Key("rita@acme.example")
		w.SetActive("acme", "rita@acme.example", false)
		off := w.KeyOf("off", "off.localhost", "o@off.example")
		w.Clock.Advance(time.Hour)

		// What the line says about the caller.
		type who = map[string]any
		by := func(a *gatetest.Actor, user string) who {
			return who{"auth": "key", "user_id": user, "api_key_id": a.KeyID, "api_key_prefix": a.Token[:12]}
		}
		none := who{"auth": "none", "user_id": nil, "api_key_id": nil, "api_key_prefix": nil}
		unknown := func(prefix string) who {
			return who{"auth": "none", "user_id": nil, "api_key_id": nil, "api_key_prefix": prefix}
		}

		type line struct {
			answer      *gatetest.Answer
			tenant      any
			route, code any
			ip          any
			who         who
		}
		lines := map[string]line{}
		total := 0
		say := func(a *gatetest.Answer, tenant, route, code any, by who) {
			total++
			lines[a.Header.Get("X-Request-Id")] = line{a, tenant, route, code, "127.0.0.1", by}
		}
		say(sam.Get(me), "acme", me, nil, by(sam, samID))
		made := sam.Post(contact, `{"first_name":"Ada"}`).Want(201, "")
		say(made, "acme", listRoute, nil, by(sam, samID))
		say(sam.Get(contact+"?limit=3"), "acme", listRoute, nil, by(sam, samID))
		say(sam.Get(contact+"/"+made.ID()), "acme", oneRoute, nil, by(sam, samID))
		say(sam.Post(contact, `{`), "acme", listRoute, "VALIDATION", by(sam, samID))
		say(sam.Get("/public/v1/data/nothing"), "acme", listRoute, "NOT_FOUND", by(sam, samID))
		say(sam.With("Origin", evil).Get(me), "acme", me, "CORS_DENIED", by(sam, samID))
		say(sam.Get("/public/v1/faulty/panic"), "acme", "/public/v1/faulty/{how}", "INTERNAL", by(sam, samID))
		say(anyone.Get(me), "acme", me, "UNAUTHORIZED", none)
		say(wrong.Get(me), "acme", me, "UNAUTHORIZED", unknown("svc_api_abab"))
		say(other.Get(me), "acme", me, "UNAUTHORIZED", unknown("Zürich"))
		say(anyone.With("Authorization", "Basic c2FtOnNhbQ==").Get(me), "acme", me, "UNAUTHORIZED", none)
		say(expired.Get(me), "acme", me, "UNAUTHORIZED", by(expired, samID))
		say(deactivated.Get(me), "acme", me, "UNAUTHORIZED", by(deactivated, w.UserID("acme", "rita@acme.example")))
		say(sam.Get("/nowhere"), "acme", nil, "NOT_FOUND", none)
		say(sam.Do("PUT", me, ""), "acme", nil, "METHOD_NOT_ALLOWED", none)
		say(ask(anyone, app, me), "acme", nil, nil, none)
		say(ask(anyone, evil, me), "acme", nil, "CORS_DENIED", none)
		say(elsewhere.Get(me), nil, nil, "NOT_FOUND", none)
		say(off.Get(me), "off", me, "API_DISABLED", none)
		say(sam.Post("/public/v1/auth/login", `{}`), "acme", "/public/v1/auth/login", "SERVICE_UNAVAILABLE", none)
		say(spent.Get(me), "acme", me, nil, by(spent, samID))
		say(spent.Get(me), "acme", me, "RATE_LIMITED", by(spent, samID))
		for hops, ip := range map[string]any{"198.51.100.1": "198.51.100.1", "::ffff:198.51.100.2": "198.51.100.2", "2001:DB8::1": "2001:db8::1"} {
			a := from(sam, hops).Get(me)
			say(a, "acme", me, nil, by(sam, samID))
			l := lines[a.Header.Get("X-Request-Id")]
			l.ip = ip
			lines[a.Header.Get("X-Request-Id")] = l
		}
		bad := from(sam, "nonsense").Get(me).Want(400, "VALIDATION")
		total++

		n := w.Nodes[0]
		n.Stop()
		requests, panics := 0, 0
		for _, got := range n.Log.Lines(t) {
			id, _ := got["request_id"].(string)
			if got["event"] == "server.panic" {
				panics++
				if stack, _ := got["stack"].(string); lines[id].code != "INTERNAL" || got["panic"] != "an inside detail" || !strings.Contains(stack, "goroutine") {
					t.Errorf("the panic's line: %v", got)
				}
			}
			if got["event"] != "public_api.request" {
				continue
			}
			requests++
			if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, members) {
				t.Errorf("members %v, want %v", names, members)
			}
			if id == bad.Header.Get("X-Request-Id") {
				if got["ip"] != nil || got["error_code"] != "VALIDATION" {
					t.Errorf("a malformed hop: %v", got)
				}
				continue
			}
			l, ok := lines[id]
			if !ok {
				t.Errorf("a line of no request: %v", got)
				continue
			}
			delete(lines, id)
			method, rest, _ := strings.Cut(l.answer.Call, " ")
			path, _, _ := strings.Cut(rest, "?")
			want := who{
				"tenant": l.tenant, "route": l.route, "error_code": l.code, "ip": l.ip, "method": method, "path": path,
				"status": float64(l.answer.Status),
			}
			maps.Copy(want, l.who)
			for name, value := range want {
				if got[name] != value {
					t.Errorf("%s: %d: %s is %v, want %v", l.answer.Call, l.answer.Status, name, got[name], value)
				}
			}
			if at, _ := got["time"].(string); !logTime.MatchString(at) {
				t.Errorf("time %v", got["time"])
			}
			if took, ok := got["duration_ms"].(float64); !ok || took < 0 || took > 60_000 {
				t.Errorf("duration_ms %v", got["duration_ms"])
			}
		}
		for _, l := range lines {
			t.Errorf("%s left no line", l.answer.Call)
		}
		if requests != total || panics != 1 {
			t.Errorf("%d lines of requests, %d of panics; want %d and 1", requests, panics, total)
		}
	})
}

// TestTheLogHoldsNoToken, whatever a caller sends, and wherever (contract G4).
func TestTheLogHoldsNoToken(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		sam := w.Key("sam@acme.example")
		sam.Get(me).Want(200, "")
		sam.Get("/public/v1/data/" + sam.Token)
		sam.Get(contact + "/" + sam.Token)
		sam.Get(contact + "?token=" + sam.Token)
		sam.Get(contact + "?" + sam.Token)
		sam.With("Origin", "https://"+sam.Token[:40]+".example").Get(me)
		sam.With("User-Agent", sam.Token).Get(me)
		sam.With("Idempotency-Key", sam.Token).Get(me)
		sam.With("X-Webhook-Token", sam.Token).Get(me)
		sam.Post(contact, `{"first_name":"`+sam.Token+`","extra":{"note":"mine is `+sam.Token+`"}}`).Want(201, "")
		// Tokens of External Identity have no prefix.
		const opaque, access = "Qm9yZWQtb2YtdGhpcy1wYXJ0aWN1bGFyX3Rva2VuIQx", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIwMTkzIn0.c2lnbmF0dXJl"
		for _, path := range []string{"/public/v1/auth/verify/", "/public/v1/me/", contact + "/", "/reset-password%3Ftoken=", "/verify;token="} {
			sam.Get(path + opaque)
			sam.Get(path + access)
		}
		for _, name := range []string{"access_token", "api_key", "token", "activationToken", "refreshToken", "code", "x-api-key"} {
			sam.Get(contact + "?" + name + "=" + opaque)
			sam.Get(contact + "?" + name + "=" + access)
		}
		secrets := []string{sam.Token[12:40], opaque, access}
		for _, e := range w.AuditLog("acme") {
			for _, secret := range secrets {
				if all := string(e.AppendJSON(nil)); strings.Contains(all, secret) {
					t.Errorf("an audit entry holds a token: %s", all)
				}
			}
		}
		for _, secret := range secrets {
			if w.Nodes[0].Log.Contains(secret) {
				t.Errorf("the request log holds %s", secret)
			}
		}
	})
}
