package server_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/audit"
	"gatehouse/internal/db"
	"gatehouse/internal/gatetest"
	"gatehouse/internal/httpapi"
)

// TestEachRouteIsLoggedByItsClass calls every route of the surface through the
// handler that is served. Each answer must have its line in the request log, and be
// in the audit log where the class of its route says so.
func TestEachRouteIsLoggedByItsClass(t *testing.T) {
	w := gatetest.New(t, db.SQLite)
	w.Apply(acme + "external_identity: {enabled: true, default_permission_set: reader}\n")
	n := w.Nodes[0]
	handler := n.Server.HTTP().Handler
	if handler != http.Handler(n.Server) {
		t.Fatalf("a %T is served", handler)
	}
	classes := map[httpapi.AuditClass]audit.Class{
		httpapi.AuditStandard: audit.Standard, httpapi.AuditIdentity: audit.Auth, httpapi.AuditCustom: audit.Custom,
	}
	key := w.Key("sam@acme.example").Token
	type answered struct {
		route   httpapi.Route
		status  int
		persist bool
	}
	answers := map[string]answered{}
	for _, r := range n.Server.Surface() {
		path := strings.NewReplacer("{entity}", "contact", "{id}", "01890000-0000-7000-8000-000000000000", "{slug}", "nothing").Replace(r.Pattern)
		for _, token := range []string{"", "svc_api_" + strings.Repeat("ab", 32), key} {
			req := httptest.NewRequest(r.Method, "http://"+gatetest.Host+path, strings.NewReader("{"))
			req.RemoteAddr = "127.0.0.1:4000"
			if token != "" {
				req.Header.Set("Authorization", "Bearer "+token)
			}
			out := httptest.NewRecorder()
			handler.ServeHTTP(out, req)
			visit := token == "" && r.Method == http.MethodGet && r.Pattern == "/admin/v1/session" // contract Y7
			a := answered{r, out.Code, audit.Persisted(classes[r.Audit], out.Code, true, false) && !visit}
			answers[out.Header().Get("X-Request-Id")] = a
			if out.Code >= 500 && out.Code != http.StatusServiceUnavailable {
				t.Errorf("%s %s: %d %s", r.Method, path, out.Code, out.Body)
			}
		}
	}
	if want := 3 * len(n.Server.Surface()); len(answers) != want {
		t.Errorf("%d requests have an id, want %d", len(answers), want)
	}
	for n.Server.AuditStats().Queued > 0 {
		time.Sleep(time.Millisecond)
	}
	kept := map[string]bool{}
	err := (&audit.Log{DB: w.DB(), Tenant: "acme"}).Query(t.Context(), audit.Filter{}, func(e *audit.Entry) error {
		kept[e.RequestID] = true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	n.Stop()
	logged := map[string]bool{}
	for _, line := range n.Log.Lines(t) {
		id, _ := line["request_id"].(string)
		a, ok := answers[id]
		if line["event"] != "public_api.request" || !ok {
			continue
		}
		logged[id] = true
		if line["route"] != a.route.Pattern || line["method"] != a.route.Method || line["status"] != float64(a.status) {
			t.Errorf("%s: %v", a.route.Policy(), line)
		}
	}
	for id, a := range answers {
		if !logged[id] {
			t.Errorf("%s: status %d has no line in the request log", a.route.Policy(), a.status)
		}
		if kept[id] != a.persist {
			t.Errorf("%s: status %d: in the audit log %v, want %v", a.route.Policy(), a.status, kept[id], a.persist)
		}
	}
}
