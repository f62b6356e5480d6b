package server_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gatehouse/internal/db"
	"gatehouse/internal/fault"
	"gatehouse/internal/gatetest"
	"gatehouse/internal/httpapi"
)

// faulty adds a route whose handler fails in the way that its path names.
func faulty(w *gatetest.World) {
	for _, n := range w.Nodes {
		n.Server.AddRoute(httpapi.Route{
			Method: "GET", Pattern: "/public/v1/faulty/{how}", Auth: httpapi.KeyOrJWT, Limit: httpapi.PerCredential,
			Audit: httpapi.AuditStandard, Handler: func(_ context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
				switch c.Params.Get("how") {
				case "panic":
					panic("an inside detail")
				case "nil":
					var r *httpapi.Route
					return httpapi.Reply{Data: []byte(r.Pattern)}, nil //nolint:govet // nil on purpose
				case "full":
					return httpapi.Reply{}, fmt.Errorf("write: %w", db.ErrFull)
				case "busy":
					return httpapi.Reply{}, fmt.Errorf("write: %w", db.ErrBusy)
				case "away":
					return httpapi.Reply{}, fmt.Errorf("read: %w", db.ErrUnavailable)
				case "lost":
					return httpapi.Reply{}, fmt.Errorf("write: %w: %w", db.ErrUnavailable, db.ErrUnknown)
				default:
					return httpapi.Reply{}, errors.New("an inside detail")
				}
			},
		})
	}
}

// exchange is a call and the answer that the contract requires.
type exchange struct {
	who          *gatetest.Actor
	method, path string
	body         string
	status       int
	code         fault.Code
}

// later are the codes that no endpoint of this test's tenant answers with.
var later = []fault.Code{
	fault.ExecutionError, fault.ExecutionTimeout, // custom endpoints
	fault.TooManyRequests, fault.InvalidCredentials, fault.EmailTaken, fault.TokenExpired, fault.TokenInvalid,
	fault.AccountNotActive, // External Identity
	fault.QueryTooBroad,    // among 10,000 records
}

func TestEveryEndpointAnswersInTheEnvelope(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		faulty(w)
		w.Apply(acme)
		w.Apply("tenant: off\nhosts: [off.localhost]\nusers: [{email: o@off.example, name: O, owner: true}]\n")
		sam, rita, anyone := w.Key("sam@acme.example"), w.Key("rita@acme.example"), w.Anyone()
		wrong := w.Anyone()
		wrong.Token = "svc_api_" + strings.Repeat("0", 64)
		elsewhere := w.Anyone()
		elsewhere.Host = "unknown.localhost"
		off := w.KeyOf("off", "off.localhost", "o@off.example")
		spent := w.Key("sam@acme.example", gatetest.RateLimit(1))
		spent.Get(me).Want(200, "")
		one := contact + "/" + sam.Post(contact, `{"first_name":"Ada","email":"ada@x.example"}`).Want(201, "").ID()
		won := contact + "/" + sam.Post(contact, `{"first_name":"Bob","stage":"won"}`).Want(201, "").ID()
		gone := contact + "/" + sam.Post(contact, `{"first_name":"Cyd"}`).Want(201, "").ID()

		sam.With("Idempotency-Key", "used").Post(contact, `{"first_name":"Fay"}`).Want(201, "")

		seen := map[fault.Code]bool{}
		for _, x := range []exchange{
			{sam, "GET", me, "", 200, ""},
			{sam, "GET", contact, "", 200, ""},
			{sam, "GET", one, "", 200, ""},
			{sam, "POST", contact, `{"first_name":"Dee"}`, 201, ""},
			{sam, "PATCH", one, `{"score":1}`, 200, ""},
			{sam, "DELETE", gone, "", 200, ""},

			{anyone, "GET", me, "", 401, fault.Unauthorized},
			{wrong, "GET", contact, "", 401, fault.Unauthorized},
			{wrong, "GET", one, "", 401, fault.Unauthorized},
			{wrong, "POST", contact, `{}`, 401, fault.Unauthorized},
			{wrong, "PATCH", one, `{}`, 401, fault.Unauthorized},
			{wrong, "DELETE", one, "", 401, fault.Unauthorized},

			{rita, "POST", contact, `{"first_name":"Eve"}`, 403, fault.Forbidden},
			{rita, "PATCH", won, `{"first_name":"Eve"}`, 403, fault.Forbidden},
			{rita, "DELETE", won, "", 403, fault.Forbidden},
			{rita, "GET", "/public/v1/data/account", "", 403, fault.Forbidden},
			{rita, "GET", "/public/v1/data/account/x", "", 403, fault.Forbidden},
			{sam.With("Origin", "https://evil.example"), "GET", me, "", 403, fault.CORSDenied},
			{w.Key("sam@acme.example", allowlist("10.0.0.0/8")), "GET", me, "", 403, fault.IPDenied},

			{elsewhere, "GET", me, "", 404, fault.NotFound},
			{sam, "GET", "/", "", 404, fault.NotFound},
			{sam, "GET", "/public/v2/me", "", 404, fault.NotFound},
			{sam, "GET", "/public/v1/data", "", 404, fault.NotFound},
			{sam, "GET", "/public/v1/data/", "", 404, fault.NotFound},
			{sam, "GET", "/public/v1/data/contacts", "", 404, fault.NotFound},
			{sam, "POST", "/public/v1/data/nothing", `{}`, 404, fault.NotFound},
			{sam, "GET", nobody, "", 404, fault.NotFound},
			{sam, "PATCH", nobody, `{"score":1}`, 404, fault.NotFound},
			{sam, "DELETE", nobody, "", 404, fault.NotFound},
			{sam, "DELETE", gone, "", 404, fault.NotFound},
			{rita, "GET", one, "", 404, fault.NotFound}, // it exists, and she may not see it

			{sam, "POST", contact, `{}`, 400, fault.Validation},
			{sam, "PATCH", one, `{"stage":"none"}`, 400, fault.Validation},
			{sam, "GET", contact + "?limit=0", "", 400, fault.Validation},
			{sam, "GET", one + "?fields=email", "", 400, fault.Validation},
			{sam, "DELETE", one + "?force=1", "", 400, fault.Validation},
			{from(sam, "nonsense"), "GET", me, "", 400, fault.Validation},

			{sam, "PUT", one, `{}`, 405, fault.MethodNotAllowed},
			{sam, "POST", one, `{}`, 405, fault.MethodNotAllowed},
			{sam, "DELETE", contact, "", 405, fault.MethodNotAllowed},
			{sam, "POST", me, `{}`, 405, fault.MethodNotAllowed},
			{sam, "OPTIONS", me, "", 405, fault.MethodNotAllowed},
			{sam, "BREW", me, "", 405, fault.MethodNotAllowed},

			{sam, "POST", contact, `{"first_name":"` + strings.Repeat("x", 1<<20) + `"}`, 413, fault.PayloadTooLarge},
			{sam, "PATCH", one, `{"first_name":"` + strings.Repeat("x", 1<<20) + `"}`, 413, fault.PayloadTooLarge},
			{sam.With("Content-Type", "text/plain"), "POST", contact, `{}`, 415, fault.UnsupportedMediaType},
			{sam, "POST", contact, `{"first_name":"Ada","email":"ada@x.example"}`, 409, fault.Conflict},
			{sam, "PATCH", won, `{"email":"ada@x.example"}`, 409, fault.Conflict},
			{sam.With("If-Match", `"x"`), "PATCH", one, `{}`, 412, fault.PreconditionFailed},
			{sam.With("Idempotency-Key", "used"), "POST", contact, `{"first_name":"Gil"}`, 422, fault.IdempotencyKeyReused},
			{spent, "GET", me, "", 429, fault.RateLimited},

			{off, "GET", me, "", 503, fault.APIDisabled},
			{off, "GET", "/nowhere", "", 503, fault.APIDisabled},
			{sam, "POST", "/public/v1/auth/login", `{}`, 503, fault.ServiceUnavailable},
			{w.Anyone().With("Authorization", "Bearer a.b.c"), "GET", me, "", 503, fault.ServiceUnavailable},

			{sam, "GET", "/public/v1/faulty/panic", "", 500, fault.Internal},
			{sam, "GET", "/public/v1/faulty/nil", "", 500, fault.Internal},
			{sam, "GET", "/public/v1/faulty/error", "", 500, fault.Internal},
			{sam, "GET", "/public/v1/faulty/full", "", 503, fault.Overloaded},
			{sam, "GET", "/public/v1/faulty/busy", "", 503, fault.Overloaded},
			{sam, "GET", "/public/v1/faulty/away", "", 503, fault.Overloaded},
		} {
			a := whole(t, x.who.Do(x.method, x.path, x.body))
			if a.Status != x.status || a.Code() != string(x.code) {
				t.Errorf("%.80s: %d %s, want %d %s: %.200s", a.Call, a.Status, a.Code(), x.status, x.code, a.Body)
			}
			if strings.Contains(string(a.Body), "inside detail") || strings.Contains(string(a.Body), "goroutine") {
				t.Errorf("%s tells of the inside: %s", a.Call, a.Body)
			}
			if allow := a.Header.Get("Allow"); (a.Status == 405) != (allow != "") {
				t.Errorf("%s: %d with Allow %q", a.Call, a.Status, allow)
			}
			seen[x.code] = true
		}
		for _, code := range fault.Codes() {
			if seen[code] == slices.Contains(later, code) {
				t.Errorf("%s: seen %v, expected later %v", code, seen[code], !seen[code])
			}
		}
		// The server continues after a panic, and reports it in the log only.
		sam.Get(me).Want(200, "")
	})
}

func TestSuccessesAreShapedAsSpecified(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		sam := w.Key("sam@acme.example")
		made := sam.Post(contact, `{"first_name":"Ada"}`).Want(201, "")
		one := contact + "/" + made.ID()
		for _, a := range []*gatetest.Answer{made, sam.Get(one), sam.Patch(one, `{}`)} {
			if !strings.HasPrefix(string(a.Body), `{"data":{"id":"`) || !strings.HasSuffix(string(a.Body), `,"meta":{}}`) {
				t.Errorf("%s: %s", a.Call, a.Body)
			}
		}
		if got, want := string(sam.Get(contact).Body), `,"meta":{"count":1,"hasMore":false,"nextCursor":null}}`; !strings.HasSuffix(got, want) {
			t.Errorf("a list ends %s", got)
		}
		if got, want := string(sam.Delete(one).Body), `{"data":{"id":"`+made.ID()+`","deleted":true},"meta":{}}`; got != want {
			t.Errorf("deleted: %s, want %s", got, want)
		}
	})
}

func TestAllowNamesTheMethodsOfThePath(t *testing.T) {
	w := gatetest.New(t, db.SQLite)
	w.Apply(acme)
	for path, want := range map[string]string{
		me: "GET", contact: "GET, POST", nobody: "DELETE, GET, PATCH",
	} {
		if got := w.Anyone().Do("PUT", path, "").Want(405, "METHOD_NOT_ALLOWED").Header.Get("Allow"); got != want {
			t.Errorf("PUT %s: Allow: %q, want %q", path, got, want)
		}
	}
	// HEAD is not a method of the contract (H8); its answer has no body.
	if a := whole(t, w.Anyone().Do("HEAD", me, "")); a.Status != 405 || len(a.Body) != 0 {
		t.Errorf("HEAD: %d %q", a.Status, a.Body)
	}
}

func TestABodyMayBeOneMebibyteAndNoMore(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		sam := w.Key("sam@acme.example")
		const head, tail = `{"first_name":"`, `"}`
		body := func(size int) string { return head + strings.Repeat("x", size-len(head)-len(tail)) + tail }
		sam.Post(contact, body(1<<20)).Want(201, "")
		sam.Post(contact, body(1<<20+1)).Want(413, "PAYLOAD_TOO_LARGE")

		request := "POST " + contact + " HTTP/1.1\r\nHost: acme.localhost\r\nContent-Type: application/json\r\nAuthorization: Bearer " + sam.Token + "\r\n"
		chunked := func(body string) string {
			return fmt.Sprintf("%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", request, len(body), body)
		}
		whole(t, raw(t, w, chunked(body(1<<20)))).Want(201, "")
		whole(t, raw(t, w, chunked(body(1<<20+1)))).Want(413, "PAYLOAD_TOO_LARGE")
		// The announced length is enough: the server does not wait for the
		// body.
		whole(t, raw(t, w, request+"Content-Length: 1048577\r\n\r\n")).Want(413, "PAYLOAD_TOO_LARGE")
		whole(t, raw(t, w, request+"Content-Length: 9000000000000000000\r\n\r\n")).Want(413, "PAYLOAD_TOO_LARGE")
	})
}

// An answer says that the outcome of a change is unknown exactly where it is (contract E4, E6).
func TestAnUnknownOutcomeIsTold(t *testing.T) {
	w := gatetest.New(t, db.SQLite)
	faulty(w)
	w.Apply(acme)
	sam := w.Key("sam@acme.example")
	for how, unknown := range map[string]bool{"lost": true, "away": false, "busy": false, "full": false} {
		a := sam.Get("/public/v1/faulty/"+how).Want(503, string(fault.Overloaded))
		if a.Header.Get("Retry-After") == "" || strings.Contains(string(a.Body), `"details":{"outcome":"unknown"}`) != unknown {
			t.Errorf("%s: Retry-After %q, %s", how, a.Header.Get("Retry-After"), a.Body)
		}
	}
}
