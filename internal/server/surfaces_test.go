package server_test

import (
	"context"
	"testing"

	"gatehouse/internal/db"
	"gatehouse/internal/gatetest"
	"gatehouse/internal/httpapi"
)

func answerNull(context.Context, *httpapi.Call) (httpapi.Reply, error) { return httpapi.Reply{}, nil }

// TestAnAdminRouteIsServedAtAdminHostsOnly: the admin surface, once it has a
// route, takes the requests to a tenant's admin hosts, and no other.
func TestAnAdminRouteIsServedAtAdminHostsOnly(t *testing.T) {
	w := gatetest.New(t, db.SQLite)
	w.Nodes[0].Server.AddAdminRoute(httpapi.Route{
		Method: "GET", Pattern: "/admin/v1/ping", Auth: httpapi.Anonymous, Limit: httpapi.PerRule, Audit: httpapi.AuditStandard, Open: answerNull,
	})
	w.Apply(hosted)
	olivia := w.Key("olivia@acme.example", origins("https://app.example"))
	const ping = "/admin/v1/ping"
	olivia.Get(me).Want(200, "")
	olivia.Get(ping).Want(404, "NOT_FOUND")

	olivia.Host = "admin.acme.example"
	whole(t, olivia.Get(ping)).Want(200, "")
	whole(t, olivia.Post(ping, "{}")).Want(405, "METHOD_NOT_ALLOWED")
	olivia.Get(me).Want(404, "NOT_FOUND")
	olivia.Post("/public/v1/auth/login", "{}").Want(404, "NOT_FOUND")
	// It has no switch, and pages of other origins cannot read its answers.
	w.Apply(hosted + "external_identity: {enabled: false}\n")
	a := olivia.With("Origin", "https://app.example").Get(ping).Want(200, "")
	if origin := a.Header.Get("Access-Control-Allow-Origin"); origin != "" {
		t.Errorf("pages of %s may read it", origin)
	}
	olivia.With("Origin", "https://app.example").With("Access-Control-Request-Method", "GET").Do("OPTIONS", ping, "").Want(405, "METHOD_NOT_ALLOWED")

	olivia.Host = "unknown.localhost"
	olivia.Get(ping).Want(404, "NOT_FOUND")
}

// TestASurfaceTakesItsOwnRoutesOnly: a route that another surface would take, or
// with a policy that its surface does not have, is not served.
func TestASurfaceTakesItsOwnRoutesOnly(t *testing.T) {
	open := httpapi.Route{
		Method: "POST", Pattern: "/public/v1/auth/ping", Auth: httpapi.Anonymous, Limit: httpapi.PerRule, Audit: httpapi.AuditIdentity, Open: answerNull,
	}
	refused := func(surface string, change func(*httpapi.Route)) (did bool) {
		r := open
		change(&r)
		defer func() { did = recover() != nil }()
		gatetest.New(t, db.SQLite).Nodes[0].Server.AddRouteAsIs(surface, r)
		return false
	}
	handler := func(context.Context, *httpapi.Authed) (httpapi.Reply, error) { return httpapi.Reply{}, nil }
	if refused("External Identity", func(*httpapi.Route) {}) {
		t.Error("a route of External Identity is refused")
	}
	for what, c := range map[string]struct {
		surface string
		change  func(*httpapi.Route)
	}{
		"a path of External Identity in public data": {"public data", func(r *httpapi.Route) {
			r.Auth, r.Limit, r.Open, r.Handler = httpapi.KeyOrJWT, httpapi.PerCredential, nil, handler
		}},
		"an open route in public data":               {"public data", func(r *httpapi.Route) { r.Pattern = "/public/v1/ping" }},
		"a path of public data in External Identity": {"External Identity", func(r *httpapi.Route) { r.Pattern = "/public/v1/ping" }},
		"a route of keys and JWTs there":             {"External Identity", func(r *httpapi.Route) { r.Auth, r.Open, r.Handler = httpapi.KeyOrJWT, nil, handler }},
		"an open route in admin":                     {"admin", func(*httpapi.Route) {}},
	} {
		if !refused(c.surface, c.change) {
			t.Errorf("%s is served", what)
		}
	}
}

// refused checks an OVERLOADED with its Retry-After.
func refused(t *testing.T, a *gatetest.Answer) {
	t.Helper()
	whole(t, a.Want(503, "OVERLOADED"))
	if a.Header.Get("Retry-After") == "" {
		t.Errorf("%s: no Retry-After", a.Call)
	}
}
