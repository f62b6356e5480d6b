package server_test

import (
	"strings"
	"testing"

	"gatehouse/internal/fault"
	"gatehouse/internal/gatetest"
	"gatehouse/internal/tenant"
)

// flaw is one thing wrong with a request, in the order in which the server
// checks for them (contract H3).
type flaw struct {
	name string
	code fault.Code
}

var flaws = []flaw{
	{"unknown host", fault.NotFound},
	{"switched off", fault.APIDisabled},
	{"bad credential", fault.Unauthorized},
	{"address not allowed", fault.IPDenied},
	{"origin not allowed", fault.CORSDenied},
	{"rate limit used up", fault.RateLimited},
	{"no permission", fault.Forbidden},
	{"wrong content type", fault.UnsupportedMediaType},
	{"bad body", fault.Validation},
}

// flawed makes a request with exactly the flaws named.
func flawed(w *gatetest.World, has func(string) bool) *gatetest.Answer {
	name := "acme"
	if has("switched off") {
		name = "off"
	}
	email := "sam@" + name + ".example"
	if has("no permission") {
		email = "rita@" + name + ".example"
	}
	limit := 1_000_000
	if has("rate limit used up") {
		limit = 1
	}
	a := w.KeyOf(tenant.ID(name), name+".localhost", email, gatetest.RateLimit(limit), allowlist("127.0.0.1", "198.51.100.0/24"), origins("https://app.example"))
	if limit == 1 && name == "acme" {
		a.Get(me).Want(200, "")
	}
	if has("unknown host") {
		a.Host = "unknown.localhost"
	}
	if has("bad credential") {
		a.Token = "svc_api_" + strings.Repeat("0", 64)
	}
	if has("address not allowed") {
		a = from(a, "203.0.113.1")
	}
	if has("origin not allowed") {
		a = a.With("Origin", "https://evil.example")
	}
	if has("wrong content type") {
		a = a.With("Content-Type", "text/plain")
	}
	body := `{"first_name":"Ada"}`
	if has("bad body") {
		body = `{"first_name":`
	}
	return a.Post(contact, body)
}

func TestOfTwoFlawsTheEarlierIsAnswered(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		w.Apply(strings.NewReplacer("tenant: acme", "tenant: off", "acme.localhost", "off.localhost", "acme.example", "off.example",
			"enabled: true", "enabled: false").Replace(acme))
		for i, earlier := range flaws {
			// The flaw alone; with each later flaw; with all of them.
			flawed(w, func(name string) bool { return name == earlier.name }).Want(fault.Status(earlier.code), string(earlier.code))
			for _, later := range flaws[i+1:] {
				a := flawed(w, func(name string) bool { return name == earlier.name || name == later.name })
				if a.Code() != string(earlier.code) {
					t.Errorf("%s and %s: %d %s, want %s", earlier.name, later.name, a.Status, a.Code(), earlier.code)
				}
			}
			later := map[string]bool{}
			for _, f := range flaws[i:] {
				later[f.name] = true
			}
			if a := flawed(w, func(name string) bool { return later[name] }); a.Code() != string(earlier.code) {
				t.Errorf("%s and all that follow: %d %s, want %s", earlier.name, a.Status, a.Code(), earlier.code)
			}
		}
		if got := flawed(w, func(string) bool { return false }); got.Status != 201 {
			t.Errorf("no flaw: %d %s", got.Status, got.Body)
		}
	})
}

// TestWhatTheSwitchesAsk: /auth depends only on External Identity, everything
// else only on the API switch, and a JWT on both.
func TestWhatTheSwitchesAsk(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		switches := map[bool]string{false: "false", true: "true"}
		for _, api := range []bool{false, true} {
			for _, identity := range []bool{false, true} {
				w.Apply(strings.Replace(acme, "public_api: {enabled: true}",
					"public_api: {enabled: "+switches[api]+"}\nexternal_identity: {enabled: "+switches[identity]+"}", 1))
				check := func(what string, a *gatetest.Answer, want fault.Code) {
					if whole(t, a).Code() != string(want) {
						t.Errorf("API %v, identity %v: %s: %d %s, want %s", api, identity, what, a.Status, a.Code(), want)
					}
				}
				key, jwt := fault.Code(""), fault.Unauthorized       // not a JWT of ours
				login, activate := fault.Validation, fault.Forbidden // passes the switch
				if !identity {
					jwt, login, activate = fault.ServiceUnavailable, fault.ServiceUnavailable, fault.ServiceUnavailable
				}
				if !api {
					key, jwt = fault.APIDisabled, fault.APIDisabled
				}
				sam := w.Key("sam@acme.example")
				check("a key", sam.Get(me), key)
				check("a JWT", w.Anyone().With("Authorization", "Bearer e30.e30.e30").Get(me), jwt)
				check("/auth", w.Anyone().Post("/public/v1/auth/login", `{}`), login)
				check("/auth with a key", sam.Post("/public/v1/auth/users/x/activate", `{}`), activate)
			}
		}
	})
}

// TestPermissionComesBeforeWhatTheRequestSays: a viewer without permission
// learns nothing about query and body; an unknown name is reported before
// anything else.
func TestPermissionComesBeforeWhatTheRequestSays(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		rita := w.Key("rita@acme.example") // may read contacts and nothing else
		const account = "/public/v1/data/account"
		big := `{"a":"` + strings.Repeat("x", 1<<20) + `"}`
		for _, bad := range []string{"?nonsense", "?limit=0", "?limit=1&limit=1", "?cursor=x", "?%zz", "?filter[name]=x"} {
			rita.Get(account+bad).Want(403, "FORBIDDEN")
			rita.Get(account+"/x"+bad).Want(403, "FORBIDDEN")
			rita.Delete(account+"/x"+bad).Want(403, "FORBIDDEN")
			rita.Post(account+bad, `{}`).Want(403, "FORBIDDEN")
			rita.Patch(account+"/x"+bad, `{}`).Want(403, "FORBIDDEN")
			rita.Get("/public/v1/data/nothing"+bad).Want(404, "NOT_FOUND")
		}
		for _, body := range []string{`{`, `[]`, `{"a":1,"a":2}`, big} {
			rita.Post(account, body).Want(403, "FORBIDDEN")
			rita.Patch(account+"/x", body).Want(403, "FORBIDDEN")
			rita.Post("/public/v1/data/nothing", body).Want(404, "NOT_FOUND")
			rita.Post("/public/v1/data/user", body).Want(403, "FORBIDDEN")
		}
		rita.With("Content-Type", "text/plain").Post(account, `{}`).Want(403, "FORBIDDEN")
		// Media type, then size, then content.
		sam := w.Key("sam@acme.example")
		sam.With("Content-Type", "text/plain").Post(contact, big).Want(415, "UNSUPPORTED_MEDIA_TYPE")
		sam.Post(contact, `[`+big).Want(413, "PAYLOAD_TOO_LARGE")
		// An unreadable body gets the same answer whether or not its record
		// exists.
		sam.Patch(nobody, `{`).Want(400, "VALIDATION")
	})
}
