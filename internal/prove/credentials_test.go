package prove

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"gatehouse/internal/db"
)

// claim is a credential, or what else a client may keep of a server, with the answer that it still
// must have, or must not have any more, wherever the data goes.
type claim struct {
	what         string
	status       int
	method, path string
	body         string
	headers      []string // pairs of name and value
	has          string   // in the answer's header or body
}

// Whatever clients hold works after a backup is restored, and after a copy to PostgreSQL and back:
// keys, tokens of every kind, passwords, sessions, second factors, signatures, cursors and
// Idempotency-Keys; and what is over stays over. The backup is taken beside logins and writers.
func TestProveCredentialsOutliveAMove(t *testing.T) {
	asShipped(t)
	together(t)
	p := begin(t, "DUR-11", db.SQLite)
	s := &vault{p: p, w: newPortal(t, db.SQLite), known: map[string]string{}}
	s.provider, s.earlier, s.payment = s.password("webhook secret"), s.password("previous webhook secret"), s.password("a component's secret")
	s.apply("svc_email", often)
	s.n = s.w.serve()
	s.v = s.n.visitor()
	defer s.v.close()
	claims := s.claims()

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		v := s.n.visitor()
		defer v.close()
		for ctx.Err() == nil { // load, whose answers do not matter
			a, err := v.send("POST", auth+"login", members("email", eva, "password", s.w.passwords[eva]))
			if err != nil || a.status != 200 {
				continue
			}
			refresh, _ := dataOf[map[string]any](s, a)["refreshToken"].(string)
			_, _ = v.send("POST", auth+"refresh", members("refreshToken", refresh))
		}
	}()
	time.Sleep(p.between(50*time.Millisecond, 500*time.Millisecond))
	file := filepath.Join(s.w.logs, "loaded.backup")
	s.w.must("backup", file)
	cancel()
	<-ended
	s.n.terminate()
	if code := s.n.end(grace); code != 0 {
		t.Fatalf("exit %d: %s", code, s.n.stderr())
	}
	s.made(s.w.restored(file), "restored", claims)

	post := bare(t, db.Postgres)
	key, err := os.ReadFile(filepath.Join(s.w.dir, "master.key"))
	if err != nil {
		t.Fatal(err)
	}
	post.env = append(post.env, "GATEHOUSE_MASTER_KEY="+strings.TrimSpace(string(key)))
	back := bare(t, db.SQLite)
	for _, way := range [][]string{{"copy", "--data", s.w.dir}, {"copy", "--to-data", back.dir}} {
		if stdout, stderr, code := post.run(way...); code != 0 {
			t.Fatalf("%v: exit %d: %s%s", way, code, stdout, stderr)
		}
	}
	if err := os.WriteFile(filepath.Join(back.dir, "master.key"), key, 0o600); err != nil {
		t.Fatal(err)
	}
	s.made(post, "copied to PostgreSQL", claims)
	s.made(back, "copied back", claims)
	s.made(s.w.world, "where it was", claims) // which shows that the claims are right
}

// made serves a world and makes all claims there.
func (s *vault) made(w *world, where string, claims []claim) {
	s.w.t.Helper()
	n := (&portal{world: w}).serve()
	v := n.visitor()
	defer v.close()
	for _, c := range claims {
		s.p.tried(1)
		a, err := v.send(c.method, c.path, c.body, c.headers...)
		if err != nil || a.status != c.status {
			s.p.fail("%s: %s: %v %v, expected %d", where, c.what, a, err, c.status)
		} else if !strings.Contains(string(a.body), c.has) && a.header.Get(c.has) == "" {
			s.p.fail("%s: %s: no %q in %v", where, c.what, c.has, a)
		}
	}
	n.terminate()
	if code := n.end(grace); code != 0 || n.panicked() {
		s.p.fail("%s: exit %d: %s%s", where, code, n.stdout(), n.stderr())
	}
}

// claims makes and ends credentials of every kind.
func (s *vault) claims() (all []claim) {
	s.w.t.Helper()
	claimed := func(what string, status int, method, path, body, has string, headers ...string) {
		all = append(all, claim{what, status, method, path, body, headers, has})
	}
	bearer := func(token string) []string { return []string{"Authorization", "Bearer " + token} }

	key, gone := s.key(owner), s.key(rita)
	s.deleteKeys(rita)
	claimed("a key", 200, "GET", contact, "", "data", bearer(key)...)
	claimed("a deleted key", 401, "GET", contact, "", "", bearer(gone)...)

	_, ended := s.login(eva, s.w.passwords[eva])
	s.v.post(200, "logout", "refreshToken", ended)
	before, refresh := s.login(eva, s.w.passwords[eva])
	s.w.must("tenant", "rotate-jwt-key", "--tenant", "acme")
	time.Sleep(soon)
	after, next := s.login(eva, s.w.passwords[eva])
	_, rotated := s.tokens(eva, s.v.post(200, "refresh", "refreshToken", next))
	claimed("an access token of the key before, for its hour", 200, "GET", auth+"me", "", eva, bearer(before)...)
	claimed("an access token", 200, "GET", auth+"me", "", eva, bearer(after)...)
	claimed("a refresh token", 200, "POST", auth+"refresh", members("refreshToken", refresh), "refreshToken")
	claimed("the successor of one", 200, "POST", auth+"refresh", members("refreshToken", rotated), "refreshToken")
	claimed("one that was logged out", 401, "POST", auth+"refresh", members("refreshToken", ended), "")
	claimed("a password", 200, "POST", auth+"login", members("email", eva, "password", s.w.passwords[eva]), "accessToken")
	claimed("a wrong password", 401, "POST", auth+"login", members("email", eva, "password", "a wrong password"), "")

	const anna = "anna@customer.example"
	s.v.post(201, "register", "email", anna, "password", "the password of Anna", "name", "Anna")
	used := s.mailed(anna, 1)
	s.v.post(200, "verify", "token", used)
	s.w.letter(anna, 2) // welcome
	s.v.post(200, "request-password-reset", "email", anna)
	reset := s.mailed(anna, 3)
	s.v.post(201, "register", "email", pending, "password", "the password of Paul", "name", "Paul")
	claimed("a used token of a mail", 400, "POST", auth+"verify", members("token", used), "")
	claimed("a token to verify", 200, "POST", auth+"verify", members("token", s.mailed(pending, 1)), "")
	claimed("a token to set a password", 200, "POST", auth+"password-reset", members("token", reset, "newPassword", "the next password of Anna"), "")
	claimed("the new password", 200, "POST", auth+"login", members("email", anna, "password", "the next password of Anna"), "accessToken")
	claimed("the password before", 401, "POST", auth+"login", members("email", anna, "password", "the password of Anna"), "")

	hook := func() string {
		return strings.TrimSpace(s.w.must("endpoint", "token", "--tenant", "acme", "--slug", "token"))
	}
	replaced, present := hook(), hook()
	claimed("a webhook's token", 200, "POST", "/public/v1/custom/token", `{}`, "", "X-Webhook-Token", present)
	claimed("a replaced one", 401, "POST", "/public/v1/custom/token", `{}`, "", "X-Webhook-Token", replaced)
	for i, secret := range []string{s.provider, s.earlier} {
		body := fmt.Sprintf(`{"n":%d}`, i)
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte(body))
		claimed("a signature", 202, "POST", "/public/v1/custom/signed", body, "", "X-Signature", hex.EncodeToString(mac.Sum(nil)))
	}
	claimed("a component's secret", 200, "POST", "/public/v1/custom/pay", `{}`, "[redacted]", bearer(key)...)

	batch := `{"items":[{"op":"create","fields":{"first_name":"one"}},{"op":"create","fields":{"first_name":"two"}}]}`
	known := append(bearer(key), "Idempotency-Key", "made before")
	s.v.want(200, "POST", contact+"/batch", batch, known...)
	claimed("an Idempotency-Key", 200, "POST", contact+"/batch", batch, "Idempotent-Replay", known...)
	claimed("one of another request", 422, "POST", contact+"/batch", strings.Replace(batch, "one", "other", 1), "IDEMPOTENCY_KEY_REUSED", known...)
	a, err := s.v.send("GET", contact+"?limit=1", "", bearer(key)...)
	if err != nil || a.status != 200 {
		s.w.t.Fatal(a, err)
	}
	_, cursor, _ := strings.Cut(string(a.body), `"nextCursor":"`)
	cursor, _, _ = strings.Cut(cursor, `"`)
	claimed("a cursor", 200, "GET", contact+"?limit=1&cursor="+url.QueryEscape(cursor), "", `"first_name":"one"`, bearer(key)...)

	return append(all, s.sessions()...)
}

// sessions are those of the console, and a second factor.
func (s *vault) sessions() (all []claim) {
	s.w.t.Helper()
	origin := []string{"Origin", "http://" + host}
	signIn := func() { s.staff(200, "POST", "session", members("email", owner, "password", s.w.passwords[owner])) }
	signIn()
	over := s.cookie
	s.staff(200, "DELETE", "session", "")
	s.cookie = ""
	signIn()
	secret := s.staff(200, "POST", "account/factor", members("currentPassword", s.w.passwords[owner]))["secret"].(string)
	code, err := totp.GenerateCode(secret, time.Now())
	if err != nil {
		s.w.t.Fatal(err)
	}
	made := s.staff(200, "POST", "account/factor/confirm", members("code", code))
	recovery := made["recoveryCodes"].([]any)[1].(string)
	lasting := s.cookie
	s.cookie = ""
	signIn()
	half := s.cookie // the password was right, and no code was given yet
	return []claim{
		{"a session", 200, "GET", adminAPI + "overview", "", append(origin, "Cookie", lasting), ""},
		{"one that was ended", 401, "GET", adminAPI + "overview", "", append(origin, "Cookie", over), ""},
		{"one without its code", 403, "GET", adminAPI + "overview", "", append(origin, "Cookie", half), "code"},
		{"a code that was used", 401, "POST", adminAPI + "session/code", members("code", code), append(origin, "Cookie", half), ""},
		{"a recovery code", 200, "POST", adminAPI + "session/code", members("recoveryCode", recovery), append(origin, "Cookie", half), ""},
	}
}
