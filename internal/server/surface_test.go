package server_test

import (
	"context"
	"flag"
	"os"
	"strings"
	"testing"

	"gatehouse/internal/db"
	"gatehouse/internal/gatetest"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/server"
)

var update = flag.Bool("update", false, "write testdata/*.golden anew")

// TestGoldenSurface keeps the whole HTTP surface, each route with its policy,
// in a golden file (lock 2).
func TestGoldenSurface(t *testing.T) {
	w := gatetest.New(t, db.SQLite)
	var b strings.Builder
	for _, r := range w.Nodes[0].Server.Surface() {
		b.WriteString(strings.TrimRight(r.Policy(), " ") + "\n")
	}
	const file = "testdata/surface.golden"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.String(); got != string(want) {
		t.Errorf("the surface changed; if it is meant, run: go test ./internal/server -run Golden -update\ngot:\n%swant:\n%s", got, want)
	}
}

func TestARouteWithoutAPolicyIsNotServed(t *testing.T) {
	handler := func(context.Context, *httpapi.Authed) (httpapi.Reply, error) { return httpapi.Reply{}, nil }
	open := func(context.Context, *httpapi.Call) (httpapi.Reply, error) { return httpapi.Reply{}, nil }
	whole := httpapi.Route{
		Method: "GET", Pattern: "/public/v1/test", Auth: httpapi.KeyOrJWT, Limit: httpapi.PerCredential,
		Audit: httpapi.AuditStandard, Handler: handler,
	}
	panics := func(r httpapi.Route) (did bool) {
		defer func() { did = recover() != nil }()
		server.CheckRoutes([]httpapi.Route{r})
		return false
	}
	if panics(whole) {
		t.Error("a route that lacks nothing is refused")
	}
	for lacks, change := range map[string]func(*httpapi.Route){
		"method":                          func(r *httpapi.Route) { r.Method = "" },
		"pattern":                         func(r *httpapi.Route) { r.Pattern = "" },
		"credential":                      func(r *httpapi.Route) { r.Auth = 0 },
		"rate limit":                      func(r *httpapi.Route) { r.Limit = 0 },
		"audit class":                     func(r *httpapi.Route) { r.Audit = 0 },
		"handler":                         func(r *httpapi.Route) { r.Handler = nil },
		"a handler of its own credential": func(r *httpapi.Route) { r.Handler, r.Open = nil, open },
		"anonymity's handler":             func(r *httpapi.Route) { r.Auth = httpapi.Anonymous },
		"one handler alone":               func(r *httpapi.Route) { r.Open = open },
	} {
		r := whole
		change(&r)
		if !panics(r) {
			t.Errorf("a route that lacks its %s is served", lacks)
		}
	}
}
