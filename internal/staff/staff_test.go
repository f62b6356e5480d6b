package staff_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/gatetest"
)

const acme = `
tenant: acme
display_name: Acme
hosts: [acme.localhost]
base_url: https://acme.localhost
public_api: {enabled: true}
external_identity: {enabled: true}
entities: [{name: deal, fields: [{name: title, type: text}, {name: margin, type: number}]}]
roles: [{name: ceo}, {name: sales, parent: ceo}, {name: support, parent: ceo}]
permission_sets:
  - {name: support, system: [login_as, manage_users], entities: {deal: {read: true, fields: {margin: {read: false}}}}}
  - {name: seller, entities: {deal: {read: true, fields: {margin: {read: false}}}}}
  - {name: margins, entities: {deal: {read: true}}}
  - {name: boss, system: [tenant_settings]}
  - {name: everything, all_entity_access: true}
users:
  - {email: olivia@acme.example, name: Olivia Owner, owner: true}
  - {email: sue@acme.example, name: Sue Support, role: support, permission_sets: [support]}
  - {email: sam@acme.example, name: Sam Seller, role: sales, permission_sets: [seller]}
  - {email: mara@acme.example, name: Mara, permission_sets: [margins]}
  - {email: bob@acme.example, name: Bob, permission_sets: [boss]}
  - {email: carla@acme.example, name: Carla, role: ceo}
  - {email: alma@acme.example, name: Alma, permission_sets: [everything]}
  - {email: idle@acme.example, name: Idle}
  - {email: eva@customer.example, name: Eva, type: external, permission_sets: [seller]}
`

const (
	session = "/admin/v1/session"
	good    = "another good password"
)

// from returns the same caller at another address: sign-ins are limited by address.
func from(a *gatetest.Actor, n int) *gatetest.Actor {
	return a.With("X-Forwarded-For", fmt.Sprintf("203.0.113.%d", n))
}

func with(cookie string, a *gatetest.Actor) *gatetest.Actor {
	b := *a
	b.Cookie = cookie
	return &b
}

func TestASessionEndsWithItsLifetime(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		sam := w.Staff("sam@acme.example")
		for range 15 { // used every eleven hours, it lives until its seventh day
			w.Clock.Advance(11 * time.Hour)
			sam.Get(session).Want(200, "")
		}
		w.Clock.Advance(7*24*time.Hour - 15*11*time.Hour)
		sam.Get(session).Want(401, "UNAUTHORIZED")
		w.SetPassword("acme", "sam@acme.example")
		idle := with(from(w.Anyone(), 1).SignIn("sam@acme.example", gatetest.StaffPassword).Want(200, "").Cookie(), w.Anyone())
		w.Clock.Advance(12*time.Hour - time.Minute)
		idle.Get(session).Want(200, "")
		w.Clock.Advance(12*time.Hour + time.Minute)
		idle.Get(session).Want(401, "UNAUTHORIZED")
	})
}

// TestASessionEndsAtOnce: what ends it holds from the next request on, on every node.
func TestASessionEndsAtOnce(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		anyone := w.Anyone()
		sam := w.Staff("sam@acme.example")
		stolen := *sam
		sam.Delete(session).Want(200, "")
		stolen.Get(session).Want(401, "UNAUTHORIZED") // replayed after the sign-out

		// A session is not fixed by what the browser has before the sign-in.
		planted := anyone.With("Cookie", "gatehouse_session=planted")
		if got := from(planted, 2).SignIn("sam@acme.example", gatetest.StaffPassword).Want(200, "").Cookie(); strings.Contains(got, "planted") {
			t.Error("the sign-in takes over a token that the browser had")
		}
		planted.Get(session).Want(401, "UNAUTHORIZED")

		sue := w.Staff("sue@acme.example")
		w.SetActive("acme", "sue@acme.example", false)
		sue.Get(session).Want(401, "UNAUTHORIZED")
		w.SetActive("acme", "sue@acme.example", true)
		sue.Get(session).Want(401, "UNAUTHORIZED") // it ended for good

		bob := w.Staff("bob@acme.example")
		if got := bob.Get(session).Want(200, "").Member("system"); got != `["tenant_settings"]` {
			t.Errorf("Bob may %s", got)
		}
		w.Apply(strings.Replace(acme, "permission_sets: [boss]}", "permission_sets: []}", 1))
		if got := bob.Get(session).Want(200, "").Member("system"); got != `[]` {
			t.Errorf("Bob may still %s", got)
		}
		w.SetPassword("acme", "bob@acme.example") // it is the same password: a new hash is what counts
		w.Apply(strings.Replace(acme, "email: bob@acme.example, ", "email: bob@acme.example, password: a new password, ", 1))
		bob.Get(session).Want(401, "UNAUTHORIZED")
	})
}

func TestSessionsAreListedAndRevoked(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		olivia, sam := w.Staff("olivia@acme.example"), w.Staff("sam@acme.example")
		other := with(from(w.Anyone().With("User-Agent", "a browser"), 1).SignIn("sam@acme.example", gatetest.StaffPassword).Want(200, "").Cookie(), w.Anyone())
		own := sam.Get("/admin/v1/account/sessions").Want(200, "").Records()
		if len(own) != 2 || own[1]["current"] != true || own[0]["current"] != false || own[0]["ip"] != "203.0.113.1" {
			t.Fatalf("Sam's sessions: %v", own)
		}
		oliviaID := olivia.Get(session).ID()
		sam.Delete("/admin/v1/account/sessions/"+oliviaID).Want(404, "NOT_FOUND")
		sam.Get("/admin/v1/sessions").Want(403, "FORBIDDEN")
		sam.Delete("/admin/v1/sessions/"+oliviaID).Want(403, "FORBIDDEN")
		sam.Delete("/admin/v1/account/sessions/"+own[0]["id"].(string)).Want(200, "")
		other.Get(session).Want(401, "UNAUTHORIZED")

		first := olivia.Get("/admin/v1/sessions?limit=1").Want(200, "")
		if m := first.Meta(); m.Count != 1 || !m.HasMore || m.NextCursor == nil {
			t.Fatalf("the first page: %s", first.Body)
		}
		next := olivia.Get("/admin/v1/sessions?cursor="+*first.Meta().NextCursor).Want(200, "")
		if m := next.Meta(); m.HasMore || m.Count != 1 {
			t.Errorf("the next page: %s", next.Body)
		}
		for _, query := range []string{"limit=0", "limit=x", "cursor=x", "limits=1", "limit=1&limit=2", "limit="} {
			olivia.Get("/admin/v1/sessions?"+query).Want(400, "VALIDATION")
		}
		olivia.Delete("/admin/v1/sessions/"+sam.Get(session).ID()).Want(200, "")
		sam.Get(session).Want(401, "UNAUTHORIZED")
		olivia.Delete("/admin/v1/sessions/nothing").Want(404, "NOT_FOUND")
	})
}

// TestTheNumberOfSessionsIsBounded: the oldest ones make room.
func TestTheNumberOfSessionsIsBounded(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme + "\n")
		first := w.Staff("sam@acme.example")
		anyone := w.Anyone()
		for i := range 20 {
			w.Clock.Advance(15 * time.Minute) // the limit of sign-ins by e-mail address
			from(anyone, i+1).SignIn("sam@acme.example", gatetest.StaffPassword).Want(200, "")
		}
		first.Get(session).Want(401, "UNAUTHORIZED")
	})
}

func TestACookieIsForItsHostAlone(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		w.Apply(strings.NewReplacer("tenant: acme", "tenant: other", "acme.localhost", "other.localhost").Replace(acme))
		plain := w.Anyone().SignIn("nobody@acme.example", "a wrong password").Want(401, "INVALID_CREDENTIALS")
		if plain.Header.Get("Set-Cookie") != "" {
			t.Error("a sign-in that failed sets a cookie")
		}
		w.SetPassword("acme", "sam@acme.example")
		set := w.Anyone().SignIn("sam@acme.example", gatetest.StaffPassword).Want(200, "").Header.Get("Set-Cookie")
		for _, want := range []string{"gatehouse_session=", "HttpOnly", "SameSite=Lax", "Path=/", "Max-Age=604800"} {
			if !strings.Contains(set, want) || strings.Contains(set, "Secure") || strings.Contains(set, "Domain") {
				t.Errorf("by HTTP the cookie is %s", set)
			}
		}
		for what, a := range map[string]*gatetest.Actor{
			"by the proxy's word":   w.Anyone().With("X-Forwarded-Proto", "https").With("Origin", "http://acme.localhost"),
			"by the browser's word": w.Anyone().With("Origin", "https://acme.localhost"),
		} {
			set := from(a, 1).Post(session, fmt.Sprintf(`{"email":"sam@acme.example","password":%q}`, gatetest.StaffPassword)).Want(200, "").Header.Get("Set-Cookie")
			if !strings.HasPrefix(set, "__Host-gatehouse_session=") || !strings.Contains(set, "; Secure") || !strings.Contains(set, "Path=/;") {
				t.Errorf("%s the cookie is %s", what, set)
			}
			secure := with(strings.SplitN(set, ";", 2)[0], w.Anyone())
			secure.Get(session).Want(200, "")
			secure.With("X-Forwarded-Proto", "https").Get(session).Want(200, "")
		}
		// A cookie that a neighbouring host or a page by HTTP may have planted.
		sam := w.Staff("sam@acme.example")
		sam.Get(session).Want(200, "")
		sam.With("X-Forwarded-Proto", "https").Get(session).Want(401, "UNAUTHORIZED")
		sam.With("Cookie", "gatehouse_session=planted").Get(session).Want(401, "UNAUTHORIZED")
		sam.Host = "other.localhost"
		sam.Get(session).Want(401, "UNAUTHORIZED")
		w.Key("olivia@acme.example").Get(session).Want(401, "UNAUTHORIZED")
	})
}

func TestStaffChangeAndResetTheirPasswords(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		anyone, sam := w.Anyone(), w.Staff("sam@acme.example")
		other := with(from(anyone, 1).SignIn("sam@acme.example", gatetest.StaffPassword).Want(200, "").Cookie(), anyone)
		const own = "/admin/v1/account/password"
		from(sam, 1).Post(own, `{"currentPassword":"not mine at all","newPassword":"another good password"}`).Want(401, "INVALID_CREDENTIALS")
		from(sam, 1).Post(own, fmt.Sprintf(`{"currentPassword":%q,"newPassword":"short"}`, gatetest.StaffPassword)).Want(400, "VALIDATION")
		from(sam, 1).Post(own, fmt.Sprintf(`{"currentPassword":%q,"newPassword":%q}`, gatetest.StaffPassword, good)).Want(200, "")
		sam.Get(session).Want(200, "")
		other.Get(session).Want(401, "UNAUTHORIZED")
		from(anyone, 2).SignIn("sam@acme.example", gatetest.StaffPassword).Want(401, "INVALID_CREDENTIALS")

		// Forgotten: the answer is the same whoever asks.
		const forgot, reset = "/admin/v1/password/forgot", "/admin/v1/password/reset"
		page := anyone.With("Origin", "http://acme.localhost")
		want := ""
		for _, email := range []string{"sam@acme.example", "nobody@acme.example", "eva@customer.example"} {
			got := string(page.Post(forgot, fmt.Sprintf(`{"email":%q}`, email)).Want(200, "").Body)
			if want = max(want, got); got != want {
				t.Errorf("%s is told %s", email, got)
			}
		}
		token := w.Mails.Token(t, "sam@acme.example", 1)
		if w.Mails.Count("eva@customer.example")+w.Mails.Count("nobody@acme.example") > 0 {
			t.Error("somebody else gets a mail")
		}
		page.Post(reset, fmt.Sprintf(`{"token":%q,"newPassword":"short"}`, token)).Want(400, "VALIDATION")
		page.Post(reset, fmt.Sprintf(`{"token":%q,"newPassword":"a third password"}`, token)).Want(200, "")
		page.Post(reset, fmt.Sprintf(`{"token":%q,"newPassword":"a third password"}`, token)).Want(400, "TOKEN_INVALID")
		sam.Get(session).Want(401, "UNAUTHORIZED")
		from(anyone, 3).SignIn("sam@acme.example", "a third password").Want(200, "")

		page.Post(forgot, `{"email":"sam@acme.example"}`).Want(200, "")
		old := w.Mails.Token(t, "sam@acme.example", 2)
		w.Clock.Advance(time.Hour + time.Second)
		page.Post(reset, fmt.Sprintf(`{"token":%q,"newPassword":"a fourth password"}`, old)).Want(400, "TOKEN_EXPIRED")
		page.Post(reset, `{"token":"made up","newPassword":"a fourth password"}`).Want(400, "TOKEN_INVALID")
	})
}

func TestSignInsAreLimited(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		w.SetPassword("acme", "sam@acme.example")
		anyone := w.Anyone()
		for i := range 10 {
			from(anyone, 1).SignIn(fmt.Sprintf("nobody%d@acme.example", i), "a wrong password").Want(401, "INVALID_CREDENTIALS")
		}
		from(anyone, 1).SignIn("sam@acme.example", gatetest.StaffPassword).Want(429, "TOO_MANY_REQUESTS")
		for i := range 5 {
			from(anyone, 10+i).SignIn(" SAM@acme.example ", "a wrong password").Want(401, "INVALID_CREDENTIALS")
		}
		blocked := from(anyone, 20).SignIn("sam@acme.example", gatetest.StaffPassword).Want(429, "TOO_MANY_REQUESTS")
		if blocked.Header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		w.Clock.Advance(30*time.Minute + time.Second)
		from(anyone, 20).SignIn("sam@acme.example", gatetest.StaffPassword).Want(200, "")
	})
}
