package server_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/audit"
	"gatehouse/internal/db"
	"gatehouse/internal/gatetest"
	"gatehouse/internal/tenant"
)

// shop adds to the portal a webhook that is signed, and fields of each kind.
var shop = strings.NewReplacer(
	"  - {name: echo,", `  - name: simple
    source: |
      export default function handler({rawBody, headers, config}) {
        if (!config.webhook_secrets.some(s => safeCompare(hmacSha256(s, rawBody), headers["x-signature"] ?? ""))) fail("bad signature")
        const event = JSON.parse(rawBody)
        return {providerEventId: event.id, eventKind: "order", canonicalEvent: event}
      }
  - {name: echo,`,
	"  - {slug: hook,", `  - {slug: shop, target: {component: echo}, auth: signed, verifier: simple, webhook_secret: the-secret-of-the-shop}
  - {slug: hook,`,
	"{name: internal_note, type: text}]", `{name: internal_note, type: text}, {name: code, type: text, unique: true, searchable: true},
      {name: cost, type: number, indexed: true}, {name: due, type: date}, {name: extra, type: json}]`,
).Replace(portal)

// What a tenant was given before its database was copied works behind the copy, and each
// answer is the same: there and back.
func TestACopyAnswersAsItsSource(t *testing.T) {
	w := gatetest.New(t, db.SQLite)
	w.Apply(shop)
	rita, hook := w.Key("rita@acme.example"), w.Webhook("hook")
	olivia := w.Staff("olivia@acme.example")
	eva, refresh := member(t, w, "eva@customer.example")
	deliver := func(w *gatetest.World, id string) *gatetest.Answer {
		body := fmt.Sprintf(`{"id": %q}`, id)
		mac := hmac.New(sha256.New, []byte("the-secret-of-the-shop"))
		mac.Write([]byte(body))
		return w.Anyone().With("X-Signature", hex.EncodeToString(mac.Sum(nil))).Post("/public/v1/custom/shop", body)
	}
	var ids []string
	for i := range 30 {
		body := fmt.Sprintf(`{"title": "Größe \\ %d\n\t\"x\"", "code": "c-%d", "cost": %d.50, "due": "2026-02-%02d", "extra": {"zz": [1, 2.5e3, null, {"b": 1, "a": "\u0041"}], "k": %d}}`, i, i, i-15, i%28+1, i)
		ids = append(ids, rita.With("Idempotency-Key", fmt.Sprint("key-", i)).Post("/public/v1/data/ticket", body).Want(201, "").ID())
	}
	own := eva.Post("/public/v1/data/ticket", `{"title": "Eva's"}`).Want(201, "").ID()
	rita.Patch("/public/v1/data/ticket/"+ids[3], `{"cost": 1.25e-7, "extra": null}`).Want(200, "")
	rita.Get("/public/v1/data/ticket/unknown").Want(404, "NOT_FOUND")
	rita.Post("/public/v1/custom/mine", `{}`).Want(200, "")
	hook.Post("/public/v1/custom/hook", `{}`).Want(200, "")
	deliver(w, "order-1").Want(202, "")

	asked := []struct {
		by   *gatetest.Actor
		path string
	}{
		{rita, "/public/v1/me"}, {rita, "/public/v1/data/ticket?limit=200"}, {rita, "/public/v1/data/ticket?sort=cost&limit=7"}, {rita, "/public/v1/data/ticket?sort=-cost"},
		{rita, "/public/v1/data/ticket?filter[code]=c-7"}, {rita, "/public/v1/data/ticket?filter[cost]=-0.5"}, {rita, "/public/v1/data/ticket?search=c-1"},
		{rita, "/public/v1/data/ticket/" + ids[3]}, {eva, "/public/v1/data/ticket"}, {eva, "/public/v1/data/ticket/" + own}, {eva, auth + "me"},
		{olivia, "/admin/v1/session"}, {olivia, "/admin/v1/history?limit=100"}, {olivia, "/admin/v1/config/manifest"}, {olivia, "/admin/v1/users"},
		{olivia, "/admin/v1/endpoints"}, {olivia, "/admin/v1/runs?limit=50"}, {olivia, "/admin/v1/events?limit=50"}, {olivia, "/admin/v1/keys"}, {olivia, "/admin/v1/entities"},
	}
	// What each request changes itself is left out.
	changing := regexp.MustCompile(`"(lastUsedAt|last_used_at|usedAt|used_at|usedThisMinute)": ?("[^"]*"|null|\d+)`)
	answers := func(n *gatetest.Node) (list []string) {
		for _, a := range asked {
			r := a.by.At(n).Get(a.path).Want(200, "")
			list = append(list, changing.ReplaceAllString(a.path+" "+string(r.Body), ""))
		}
		return list
	}
	entries := func(d *db.DB, before map[string]bool) (list []string) {
		log := audit.Log{DB: d, Tenant: tenant.ID("acme")}
		err := log.Query(t.Context(), audit.Filter{}, func(e *audit.Entry) error {
			if before == nil || before[e.RequestID] {
				list = append(list, fmt.Sprintf("%+v", *e))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	runs, repeats := 3, 0
	settled := func(n *gatetest.Node) []string { // runs are written beside the answers
		for begun := time.Now(); time.Since(begun) < 20*time.Second; time.Sleep(5 * time.Millisecond) {
			events := string(olivia.At(n).Get("/admin/v1/events?limit=50").Want(200, "").Body)
			if count := olivia.At(n).Get("/admin/v1/runs?limit=50").Want(200, "").Meta().Count; count == runs && !strings.Contains(events, `"run":null`) &&
				strings.Contains(events, fmt.Sprintf(`"repeats":%d,`, repeats)) {
				return answers(n)
			}
		}
		t.Fatal("the runs are not written")
		return nil
	}
	want := settled(w.Nodes[0])
	for round := range 2 {
		w.Nodes[0].Stop() // which writes the audit log
		known := w.AuditLog("acme")
		before, lines := map[string]bool{}, map[string]bool{}
		for id, e := range known {
			before[id] = true
			lines[fmt.Sprintf("%+v", *e)] = true
		}
		next := w.Copied()
		n := next.Nodes[0]
		if got := answers(n); !slices.Equal(got, want) {
			for i := range want {
				if got[i] != want[i] {
					t.Errorf("behind copy %d: %.2000s\nbefore: %.2000s", round+1, got[i], want[i])
				}
			}
		}
		log := entries(next.DB(), before)
		if len(log) != len(known) || len(log) < 40 {
			t.Errorf("the audit log has %d of %d entries", len(log), len(known))
		}
		for _, line := range log {
			if !lines[line] {
				t.Errorf("an entry that was not there: %s", line)
			}
		}
		// What was given before is taken: tokens, keys, secrets, passwords.
		var data struct{ AccessToken, RefreshToken string }
		next.Anyone().Post(auth+"refresh", fmt.Sprintf(`{"refreshToken": %q}`, refresh)).Want(200, "").Data(&data)
		refresh = data.RefreshToken
		next.Anyone().Post(auth+"login", `{"email": "eva@customer.example", "password": "a good password"}`).Want(200, "")
		next.Anyone().SignIn("olivia@acme.example", gatetest.StaffPassword).Want(200, "")
		hook.At(n).Post("/public/v1/custom/hook", `{}`).Want(200, "")
		if r := deliver(next, "order-1"); r.Status != 200 && r.Status != 202 {
			t.Errorf("a delivery that was processed: %d %s", r.Status, r.Body)
		}
		deliver(next, fmt.Sprint("order-", round+2)).Want(202, "")
		again := rita.At(n).With("Idempotency-Key", "key-5").Post("/public/v1/data/ticket", fmt.Sprintf(`{"title": "Größe \\ %d\n\t\"x\"", "code": "c-%d", "cost": %d.50, "due": "2026-02-%02d", "extra": {"zz": [1, 2.5e3, null, {"b": 1, "a": "\u0041"}], "k": %d}}`, 5, 5, -10, 6, 5))
		if again.Want(201, "").ID() != ids[5] {
			t.Error("a repeated request made another record")
		}
		rita.At(n).Post("/public/v1/data/ticket", `{"title": "x", "code": "c-7"}`).Want(409, "CONFLICT")
		newest := rita.At(n).Post("/public/v1/data/ticket", `{"title": "newest"}`).Want(201, "").ID()
		if first := rita.At(n).Get("/public/v1/data/ticket?limit=1").Want(200, "").Records()[0]["id"]; first != newest {
			t.Errorf("the newest record is %v, not %s", first, newest)
		}
		rita.At(n).Delete("/public/v1/data/ticket/"+newest).Want(200, "")
		runs, repeats = runs+2, repeats+1
		want = settled(n)
		w = next
	}
}
