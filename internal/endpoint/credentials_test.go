package endpoint_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/apikey"
	"gatehouse/internal/credential"
	"gatehouse/internal/endpoint"
	"gatehouse/internal/gatetest"
)

// echoes are endpoints of all modes that need no inputs.
var echoes = orders + endpoints(three("act", "component: act")...)

const ok = `{"do": "null"}`

// TestTokenMode: a missing or wrong token is 401 and nothing runs (contract W1); with
// both headers X-Webhook-Token counts (contract K1).
func TestTokenMode(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(orders + endpoints(append(three("act", "component: act"), "{slug: other, target: {component: act}, auth: token}",
			"{slug: fresh, target: {component: act}, auth: token}")...))
		w.Apply(strings.NewReplacer("tenant: acme", "tenant: globex", "acme.localhost", "globex.localhost").Replace(echoes))
		key := w.Key("sam@acme.example").Token
		other := w.Webhook("other").Token
		rotated := w.Webhook("token-act").Token
		good := w.Webhook("token-act").Token
		bearer := func(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }
		own := func(tokens ...string) http.Header { return http.Header{"X-Webhook-Token": tokens} }
		both := func(own, other string) http.Header {
			return http.Header{"X-Webhook-Token": {own}, "Authorization": {"Bearer " + other}}
		}
		for _, c := range []struct {
			name   string
			header http.Header
			want   int
		}{
			{"as a bearer", bearer(good), 200},
			{"in a header of its own", own(good), 200},
			{"in any case of the scheme", http.Header{"Authorization": {"bEARER " + good}}, 200},
			{"in both", both(good, good), 200},
			{"the right one in its own header, a wrong one as a bearer", both(good, "x"), 200},
			{"the right one in its own header, an API key as a bearer", both(good, key), 200},
			{"a wrong one in its own header, the right one as a bearer", both("x", good), 401},
			{"an empty one in its own header, the right one as a bearer", both("", good), 401},
			{"none", http.Header{}, 401},
			{"an empty one", own(""), 401},
			{"an empty bearer", bearer(""), 401},
			{"two", own(good, good), 401},
			{"two bearers", http.Header{"Authorization": {"Bearer " + good, "Bearer " + good}}, 401},
			{"two in one", own(good + ", " + good), 401},
			{"another scheme", http.Header{"Authorization": {"Basic " + good}}, 401},
			{"no scheme", http.Header{"Authorization": {good}}, 401},
			{"another endpoint's", own(other), 401},
			{"the one before", own(rotated), 401},
			{"in upper case", own(strings.ToUpper(good)), 401},
			{"cut", own(good[:len(good)-1]), 401},
			{"longer", own(good + "0"), 401},
			{"an API key", bearer(key), 401},
			{"an API key in the token's header", own(key), 401},
			{"what looks like a JWT", bearer("a.b.c"), 401},
		} {
			before := kept(t, w)
			a := w.Anyone()
			a.Header = c.header
			answer := a.Post(custom+"token-act", ok)
			if answer.Status != c.want || c.want == 401 && answer.Code() != "UNAUTHORIZED" {
				t.Errorf("%s: %d %s, want %d", c.name, answer.Status, answer.Body, c.want)
			}
			if ran := kept(t, w) != before; ran != (c.want == 200) {
				t.Errorf("%s: it ran: %v", c.name, ran)
			}
		}
		elsewhere := w.Webhook("token-act")
		elsewhere.Host = "globex.localhost" // another tenant, with an endpoint of the same name
		elsewhere.Post(custom+"token-act", ok).Want(401, "UNAUTHORIZED")
		// An endpoint for which no token was made has none.
		for _, h := range []http.Header{{}, own(""), bearer(""), own(good)} {
			a := w.Anyone()
			a.Header = h
			a.Post(custom+"fresh", ok).Want(401, "UNAUTHORIZED")
		}
	})
}

// TestARotatedTokenStopsAtOnceOnEveryNode (contract W1, H15).
func TestARotatedTokenStopsAtOnceOnEveryNode(t *testing.T) {
	w := gatetest.New(t, "postgres")
	w.Apply(echoes)
	second := w.AddNode()
	for range 3 {
		before := w.Webhook("token-act").At(second)
		before.Post(custom+"token-act", ok).Want(200, "")
		after := w.Webhook("token-act").At(second)
		before.Post(custom+"token-act", ok).Want(401, "UNAUTHORIZED")
		after.Post(custom+"token-act", ok).Want(200, "")
	}
}

// TestKeyMode: only a key that passes all checks may call.
func TestKeyMode(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(orders + endpoints(append(three("act", "component: act"), "{slug: all, target: {component: act}, external_users: true}")...))
		w.Apply(strings.NewReplacer("tenant: acme", "tenant: globex", "acme.localhost", "globex.localhost").Replace(echoes))
		const app, evil = "https://app.example", "https://evil.example"
		sam := w.Key("sam@acme.example")
		pages := w.Key("sam@acme.example", func(s *apikey.CreateSpec) { s.Origins = []string{app} })
		office := w.Key("sam@acme.example", func(s *apikey.CreateSpec) { s.Allowlist = []string{"198.51.100.0/24"} })
		once := w.Key("sam@acme.example", gatetest.RateLimit(1))
		gone := w.Key("sam@acme.example")
		if err := w.Nodes[0].Server.Keys().Delete(t.Context(), "test", "acme", gone.KeyID); err != nil {
			t.Fatal(err)
		}
		hook := w.Webhook("token-act")
		jwt := w.Anyone().With("Authorization", "Bearer a.b.c")
		twice := w.Anyone().With("Authorization", "Bearer "+sam.Token).With("Authorization", "Bearer "+sam.Token)
		for _, c := range []struct {
			name  string
			actor *gatetest.Actor
			want  string
		}{
			{"a key", sam, "200"},
			{"an external user's key while External Identity is off", w.Key("eva@customer.example"), "503 SERVICE_UNAVAILABLE"},
			{"nobody", w.Anyone(), "401 UNAUTHORIZED"},
			{"a deleted key", gone, "401 UNAUTHORIZED"},
			{"another tenant's key", w.KeyOf("globex", gatetest.Host, "sam@acme.example"), "401 UNAUTHORIZED"},
			{"a webhook token", hook, "401 UNAUTHORIZED"},
			{"a key in the webhook token's header", w.Anyone().With("X-Webhook-Token", sam.Token), "401 UNAUTHORIZED"},
			{"two headers", twice, "401 UNAUTHORIZED"},
			{"a JWT while External Identity is off", jwt, "503 SERVICE_UNAVAILABLE"},
			{"a page of an origin that the key lists", pages.With("Origin", app), "200"},
			{"a page of another", pages.With("Origin", evil), "403 CORS_DENIED"},
			{"a page, and the key lists none", sam.With("Origin", app), "403 CORS_DENIED"},
			{"from an address on the list", office.With("X-Forwarded-For", "198.51.100.7"), "200"},
			{"from another", office.With("X-Forwarded-For", "203.0.113.7"), "403 IP_DENIED"},
			{"the first in a minute", once, "200"},
			{"the second in a minute", once, "429 RATE_LIMITED"},
		} {
			for _, slug := range []string{"key-act", "all"} {
				if c.actor == once && slug == "all" {
					continue
				}
				before := kept(t, w)
				a := c.actor.Post(custom+slug, ok)
				if got(a) != c.want {
					t.Errorf("%s: %s, want %s", c.name, got(a), c.want)
				}
				if ran := kept(t, w) != before; ran != (c.want == "200") {
					t.Errorf("%s: it ran: %v", c.name, ran)
				}
			}
		}
		w.SetActive("acme", "sam@acme.example", false)
		sam.Post(custom+"key-act", ok).Want(401, "UNAUTHORIZED")
	})
}

// TestExternalUsers may call an endpoint in key mode with external_users, with an
// access token or an API key of theirs, while External Identity is on. For a webhook
// both are wrong tokens. The history of runs says which of the two it was.
func TestExternalUsers(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(orders + endpoints(append(three("c", "component: place"), "{slug: all, target: {component: place}, external_users: true}")...) +
			"external_identity: {enabled: true, activation_mode: none, default_permission_set: sales}\n")
		const pia = `{"email": "pia@customer.example", "password": "a long enough one"}`
		w.Anyone().Post("/public/v1/auth/register", with(pia, `"name": "Pia"`)).Want(201, "")
		token, _ := w.Anyone().Post("/public/v1/auth/login", pia).Want(200, "").Record()["accessToken"].(string)
		jwt := w.Anyone().With("Authorization", "Bearer "+token)
		a := jwt.Post(custom+"all", `{"number": "1"}`).Want(200, "")
		if a.Record()["by"] != "pia@customer.example" {
			t.Errorf("%s", a.Body)
		}
		key := w.Key("pia@customer.example")
		if a := key.Post(custom+"all", `{"number": "1, by key"}`).Want(200, ""); a.Record()["by"] != "pia@customer.example" {
			t.Errorf("%s", a.Body)
		}
		for _, pia := range []*gatetest.Actor{jwt, key} {
			pia.Post(custom+"key-c", `{"number": "2"}`).Want(403, "FORBIDDEN")
			pia.Post(custom+"token-c", `{"number": "3"}`).Want(401, "UNAUTHORIZED")
			pia.Post(custom+"signed-c", `{"number": "4"}`).Want(401, "UNAUTHORIZED")
			pia.Get("/public/v1/me").Want(200, "")
			pia.Get("/public/v1/data/order").Want(200, "")
		}
		w.Anyone().With("Authorization", "Bearer a.b.c").Post(custom+"all", `{"number": "5"}`).Want(401, "UNAUTHORIZED")
		w.Apply("tenant: acme\nexternal_identity: {enabled: false}\n")
		for _, pia := range []*gatetest.Actor{jwt, key} {
			pia.Post(custom+"all", `{"number": "6"}`).Want(503, "SERVICE_UNAVAILABLE")
			pia.Post(custom+"key-c", `{"number": "6"}`).Want(503, "SERVICE_UNAVAILABLE")
			pia.Get("/public/v1/me").Want(503, "SERVICE_UNAVAILABLE")
			pia.Get("/public/v1/data/order").Want(503, "SERVICE_UNAVAILABLE")
		}
		w.Key("sam@acme.example").Post(custom+"key-c", `{"number": "7"}`).Want(200, "") // staff need no External Identity
		if n := count(t, w, "records"); n != 3 {
			t.Errorf("%d records", n)
		}
		w.Nodes[0].Stop() // writes the queued runs
		var kinds []credential.Kind
		err := endpoint.Runs(t.Context(), w.AddNode().DB, "acme", endpoint.RunFilter{}, func(r *endpoint.Run) error {
			kinds = append(kinds, r.Auth)
			return nil
		})
		if want := []credential.Kind{credential.APIKey, credential.APIKey, credential.AccessToken}; err != nil || !slices.Equal(kinds, want) {
			t.Errorf("newest first, the runs are kept as called with %v, want %v; %v", kinds, want, err)
		}
	})
}

// TestWebhooksIgnoreOrigins (contract O6), and the allowlists of keys.
func TestWebhooksIgnoreOrigins(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(echoes)
		a := w.Webhook("token-act").With("Origin", "https://evil.example").Post(custom+"token-act", ok).Want(200, "")
		body := with(ok, `"id": "1"`)
		b := w.Anyone().With("Origin", "https://evil.example").With("X-Signature", hmacHex(shopSecret, body)).Post(custom+"signed-act", body)
		if b.Status != 202 || a.Header.Get("Access-Control-Allow-Origin")+b.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%d %s %v", b.Status, b.Body, b.Header)
		}
	})
}

// TestUnknownSlugsAndMethods: an unknown slug is 404, with and without a credential;
// only POST is served; a switched-off API makes no other check.
func TestUnknownSlugsAndMethods(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(echoes)
		sam, hook := w.Key("sam@acme.example"), w.Webhook("token-act")
		for _, a := range []*gatetest.Actor{sam, hook, w.Anyone()} {
			for _, slug := range []string{"nothing", "KEY-ACT", "key-act%2fx", "key-act ", "..", "%00"} {
				a.Post(custom+strings.ReplaceAll(slug, " ", "%20"), ok).Want(404, "NOT_FOUND")
			}
			for _, path := range []string{custom, custom + "key-act/", custom + "key-act/x", "/public/v1/custom"} {
				a.Post(path, ok).Want(404, "NOT_FOUND")
			}
			for _, method := range []string{"GET", "PUT", "PATCH", "DELETE", "OPTIONS"} {
				if answer := a.Do(method, custom+"key-act", "").Want(405, "METHOD_NOT_ALLOWED"); header(t, answer, "Allow") != "POST" {
					t.Errorf("%s: allowed: %v", method, answer.Header["Allow"])
				}
			}
		}
		call := callers(w, "sam@acme.example")
		w.Webhook("token-act") // before it is switched off
		w.Apply("tenant: acme\npublic_api: {enabled: false}\n")
		for _, mode := range modes {
			call[mode](mode+"-act", ok).Want(503, "API_DISABLED")
		}
		sam.Post(custom+"nothing", ok).Want(503, "API_DISABLED")
		if n := kept(t, w); n != "0 records, 0 events, 0 keys" {
			t.Error(n)
		}
	})
}

// fewAttempts is what an address may try without a valid credential.
const fewAttempts = "unauthenticated_per_ip_per_minute: 4\n"

// TestWrongTokensCountAgainstTheirAddress, and right ones do not (contract L2).
func TestWrongTokensCountAgainstTheirAddress(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(echoes + fewAttempts)
		at := func(a *gatetest.Actor, ip string) *gatetest.Actor { return a.With("X-Forwarded-For", ip) }
		good, wrong := at(w.Webhook("token-act"), "198.51.100.1"), at(w.Anyone(), "198.51.100.1").With("X-Webhook-Token", "svc_whk_wrong")
		for range 10 {
			good.Post(custom+"token-act", ok).Want(200, "")
		}
		for left := 3; left >= 0; left-- {
			a := wrong.Post(custom+"token-act", ok).Want(401, "UNAUTHORIZED")
			if header(t, a, "X-RateLimit-Limit") != "4" || header(t, a, "X-RateLimit-Remaining") != fmt.Sprint(left) {
				t.Errorf("%v", a.Header)
			}
		}
		a := wrong.Post(custom+"token-act", ok).Want(429, "RATE_LIMITED")
		if header(t, a, "Retry-After") != header(t, a, "X-RateLimit-Reset") || header(t, a, "X-RateLimit-Remaining") != "0" {
			t.Errorf("%v", a.Header)
		}
		good.Post(custom+"token-act", ok).Want(200, "")                                      // a valid token is accepted at any address
		at(wrong, "203.0.113.9").Post(custom+"token-act", ok)                                // the right-most hop counts
		at(w.Anyone(), "203.0.113.1").Post(custom+"token-act", ok).Want(401, "UNAUTHORIZED") // another address
		at(w.Anyone(), "198.51.100.1").Post(custom+"key-act", ok).Want(429, "RATE_LIMITED")  // all failures share one budget
		at(w.Anyone(), "198.51.100.1").Post(custom+"nothing", ok).Want(429, "RATE_LIMITED")  // unknown slugs too
		w.Clock.Advance(time.Minute)
		wrong.Post(custom+"token-act", ok).Want(401, "UNAUTHORIZED")
	})
}

// TestWebhookRateLimit: each webhook has a limit of its own, with the usual headers.
func TestWebhookRateLimit(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(orders + endpoints("{slug: token-act, target: {component: act}, auth: token, rate_limit_per_minute: 3}",
			signed("signed-act", "component: act", ", rate_limit_per_minute: 3"), "{slug: other, target: {component: act}, auth: token}"))
		call := callers(w, "sam@acme.example")
		for _, mode := range modes[1:] {
			for left := 2; left >= 0; left-- {
				a := call[mode](mode+"-act", ok)
				if a.Status >= 400 || header(t, a, "X-RateLimit-Limit") != "3" || header(t, a, "X-RateLimit-Remaining") != fmt.Sprint(left) {
					t.Errorf("%s: %d %s %v", mode, a.Status, a.Body, a.Header)
				}
			}
			before := kept(t, w)
			a := call[mode](mode+"-act", ok).Want(429, "RATE_LIMITED")
			if header(t, a, "Retry-After") != header(t, a, "X-RateLimit-Reset") || header(t, a, "X-RateLimit-Limit") != "3" {
				t.Errorf("%s: %v", mode, a.Header)
			}
			if n := kept(t, w); n != before {
				t.Errorf("%s: it ran: %s, %s before", mode, n, before)
			}
		}
		w.Anyone().Post(custom+"token-act", ok).Want(401, "UNAUTHORIZED") // the credential comes first
		if a := call["token"]("other", ok).Want(200, ""); header(t, a, "X-RateLimit-Limit") != "1000" {
			t.Errorf("the default: %v", a.Header)
		}
		w.Clock.Advance(time.Minute)
		for range 5 { // wrong tokens do not use it up
			w.Anyone().With("X-Webhook-Token", "wrong").Post(custom+"token-act", ok).Want(401, "UNAUTHORIZED")
		}
		for range 3 {
			call["token"]("token-act", ok).Want(200, "")
		}
	})
}

// TestTheOrderOfChecks (contract H3): switch, credential, addresses and
// origins, rate, permission, body. Each call also fails every later check.
func TestTheOrderOfChecks(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(orders + endpoints("{slug: key-act, target: {component: act}}", "{slug: other, target: {component: act}, auth: token}",
			"{slug: token-act, target: {component: act}, auth: token, rate_limit_per_minute: 1}",
			signed("signed-act", "component: act", ", rate_limit_per_minute: 1")))
		bad := func(a *gatetest.Actor) *gatetest.Actor {
			return a.With("Content-Type", "text/plain").With("Idempotency-Key", "").With("Origin", "https://evil.example")
		}
		large := strings.Repeat("x", 2<<20)
		key := w.Key("sam@acme.example", func(s *apikey.CreateSpec) { s.Allowlist, s.RateLimitPerMinute = []string{"198.51.100.1"}, 1 })
		inside := key.With("X-Forwarded-For", "198.51.100.1")
		hook := w.Webhook("token-act")
		for _, c := range []struct {
			name, want string
			answer     func() *gatetest.Answer
		}{
			{"no credential", "401 UNAUTHORIZED", func() *gatetest.Answer { return bad(w.Anyone()).Post(custom+"key-act", large) }},
			{"another address", "403 IP_DENIED", func() *gatetest.Answer { return bad(key).Post(custom+"key-act", large) }},
			{"another origin", "403 CORS_DENIED", func() *gatetest.Answer { return bad(inside).Post(custom+"key-act", large) }},
			{"a body in another type", "415 UNSUPPORTED_MEDIA_TYPE", func() *gatetest.Answer {
				return inside.With("Content-Type", "text/plain").Post(custom+"key-act", large)
			}},
			{"the rate", "429 RATE_LIMITED", func() *gatetest.Answer {
				return inside.With("Content-Type", "text/plain").Post(custom+"key-act", large)
			}},
			{"no token", "401 UNAUTHORIZED", func() *gatetest.Answer { return bad(w.Anyone()).Post(custom+"token-act", large) }},
			{"a bad key of the caller's", "400 VALIDATION", func() *gatetest.Answer { return bad(hook).Post(custom+"token-act", large) }},
			{"the webhook's rate", "429 RATE_LIMITED", func() *gatetest.Answer { return bad(hook).Post(custom+"token-act", large) }},
			{"no signature, the body too large", "413 PAYLOAD_TOO_LARGE", func() *gatetest.Answer { return bad(w.Anyone()).Post(custom+"signed-act", large) }},
			{"a good delivery", "202", func() *gatetest.Answer {
				body := with(ok, `"id": "first"`)
				return w.Anyone().With("X-Signature", hmacHex(shopSecret, body)).Post(custom+"signed-act", body)
			}},
			{"no signature, the webhook's rate", "429 RATE_LIMITED", func() *gatetest.Answer { return bad(w.Anyone()).Post(custom+"signed-act", large) }},
		} {
			if a := c.answer(); got(a) != c.want {
				t.Errorf("%s: %s, want %s", c.name, got(a), c.want)
			}
		}
		w.Apply("tenant: acme\npublic_api: {enabled: false}\n")
		for _, slug := range []string{"key-act", "token-act", "signed-act"} {
			bad(w.Anyone()).Post(custom+slug, large).Want(503, "API_DISABLED")
		}
	})
}
