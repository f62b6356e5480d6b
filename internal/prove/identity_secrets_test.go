package prove

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/db"
)

// workshopManifest is what the tenant has in addition to portalManifest: an endpoint for
// each way to call one, and the provider's secrets.
const workshopManifest = `
roles: [{name: sales}]
logic_components:
  - {name: echo, source: "export default (inputs, ctx) => { console.log('called'); return { by: ctx.user.email } }"}
  - name: pay
    secrets: {PAYMENT_KEY: %[3]s}
    source: |
      export default (inputs) => {
        console.log("with " + secrets.PAYMENT_KEY, { key: secrets.PAYMENT_KEY });
        if (inputs.declined) fail("declined with " + secrets.PAYMENT_KEY, { key: secrets.PAYMENT_KEY });
        if (inputs.broken) throw new Error(secrets.PAYMENT_KEY);
        return { key: secrets.PAYMENT_KEY, within: ["a " + secrets.PAYMENT_KEY + " b"] };
      }
  - {name: refuse, source: "export default () => fail('not today', { status: 500 })"}
  - name: simple
    source: |
      export default function handler({ rawBody, headers, config }) {
        const known = config.webhook_secrets.some(secret => safeCompare(hmacSha256(secret, rawBody), headers["x-signature"] ?? ""));
        if (!known) fail("wrong signature");
        return { providerEventId: rawBody, eventKind: "booking", canonicalEvent: JSON.parse(rawBody) };
      }
custom_endpoints:
  - {slug: keyed, target: {component: echo}, external_users: true}
  - {slug: token, target: {component: echo}, auth: token}
  - {slug: broken, target: {component: refuse}, auth: token}
  - {slug: signed, target: {component: echo}, auth: signed, verifier: simple, webhook_secret: %[1]s, previous_webhook_secret: %[2]s}
  - {slug: pay, target: {component: pay}}
`

// vault collects every secret that the clients learn.
type vault struct {
	p *proof
	w *portal
	n *node
	v *visitor

	known             map[string]string // secret → what it is
	provider, earlier string            // secrets shared with the provider
	payment           string            // a component's secret
	cookie            string            // the owner's session of the console
}

// A server that has received secrets in every possible way has none of them in plain
// text: neither in its files, while it runs or after it stopped, nor in what it and its
// commands print. Mails, and the answers that issue secrets, are exempt: secrets belong
// there.
func TestProveNoSecretIsLeftInPlain(t *testing.T) {
	together(t)
	asShipped(t)
	eachEngine(t, func(t *testing.T, engine db.Engine) {
		p := begin(t, "SECRETS", engine)
		s := &vault{p: p, w: newPortal(t, engine), known: map[string]string{}}
		for email := range s.w.passwords {
			s.w.passwords[email] = s.password("password of " + email)
		}
		s.provider, s.earlier = s.password("webhook secret"), s.password("previous webhook secret")
		s.payment = s.password("a component's secret")
		s.apply("svc_email", often)
		s.n = s.w.serve()
		s.v = s.n.visitor()
		defer s.v.close()

		s.byMail()
		s.byApp()
		s.withoutProof()
		s.tooOften()
		s.keys()
		s.webhooks()
		s.signed()
		s.mistakes()
		s.search("answered", s.payments())
		s.byStaff()
		if proving {
			s.theft()
		}
		time.Sleep(500 * time.Millisecond) // until the audit log and the runs are written
		s.search("shown", s.shown())
		s.search("running", s.stored(true))
		s.n.terminate()
		if code := s.n.end(grace); code != 0 {
			p.fail("exit %d: %s", code, s.n.stderr())
		}
		s.search("stopped", s.stored(false))
		s.search("printed", s.printed())
		p.set("secrets", int64(len(s.known)))
	})
}

// apply provisions the tenant, its secrets included.
func (s *vault) apply(mode string, logins int) {
	s.w.t.Helper()
	s.w.apply(s.w.manifest(mode, logins, fmt.Sprintf(workshopManifest, quoted(s.provider), quoted(s.earlier), quoted(s.payment))))
}

// keep remembers a secret and returns it.
func (s *vault) keep(what, secret string) string {
	s.w.t.Helper()
	if len(secret) < 20 {
		s.w.t.Fatalf("%s is %q", what, secret)
	}
	s.known[secret] = what
	return secret
}

// password returns a new password with characters that JSON, HTML and URLs escape.
func (s *vault) password(what string) string {
	return s.keep(what, `Pä"s <`+rand.Text()[:16]+`> \ & +/`)
}

// tokens remembers the tokens of an answer.
func (s *vault) tokens(who string, data map[string]any) (access, refresh string) {
	s.w.t.Helper()
	access, _ = data["accessToken"].(string)
	refresh, _ = data["refreshToken"].(string)
	s.keep("signature of an access token of "+who, access[strings.LastIndexByte(access, '.')+1:])
	return s.keep("access token of "+who, access), s.keep("refresh token of "+who, refresh)
}

// login logs in and remembers the tokens.
func (s *vault) login(email, password string) (access, refresh string) {
	s.w.t.Helper()
	return s.tokens(email, s.v.post(http.StatusOK, "login", "email", email, "password", password))
}

// mailed waits for the n-th mail to an address and remembers the token in it.
func (s *vault) mailed(to string, n int) string {
	s.w.t.Helper()
	return s.keep(fmt.Sprintf("token in mail %d to %s", n, to), s.w.letter(to, n).token)
}

// byMail takes the steps of an end-user who verifies the address by mail, with mistakes.
func (s *vault) byMail() {
	s.w.t.Helper()
	const anna = "anna@customer.example"
	first, second := s.password("first password of Anna"), s.password("second password of Anna")
	s.v.post(201, "register", "email", anna, "password", first, "name", "Anna Openly", "company", "ACME")
	s.v.post(409, "register", "email", anna, "password", s.password("password of a second Anna"), "name", "Anna")
	s.mailed(anna, 1)
	s.v.post(200, "resend-verification", "email", anna)
	token := s.mailed(anna, 2)
	s.v.post(403, "login", "email", anna, "password", first)
	s.v.post(200, "verify", "token", token)
	s.v.post(400, "verify", "token", token)
	s.w.letter(anna, 3) // welcome

	access, refresh := s.login(anna, first)
	s.v.post(401, "login", "email", anna, "password", s.password("wrong password of Anna"))
	s.v.want(200, "GET", auth+"me", "", "Authorization", "Bearer "+access)
	s.v.want(201, "POST", contact, `{"first_name":"Anna's"}`, "Authorization", "Bearer "+access)
	s.v.want(200, "POST", "/public/v1/custom/keyed", `{"n":1}`, "Authorization", "Bearer "+access)
	_, next := s.tokens(anna, s.v.post(200, "refresh", "refreshToken", refresh))
	s.tokens(anna, s.v.post(200, "refresh", "refreshToken", refresh)) // within the grace
	s.v.post(200, "logout", "refreshToken", next)
	s.v.post(401, "refresh", "refreshToken", next)
	s.login(anna, first) // stays

	s.v.post(200, "request-password-reset", "email", anna)
	token = s.mailed(anna, 4)
	s.v.post(400, "verify", "token", token)
	s.v.post(200, "password-reset", "token", token, "newPassword", second)
	s.v.post(401, "login", "email", anna, "password", first)
	s.login(anna, second)
	s.v.post(200, "request-password-reset", "email", anna)
	s.mailed(anna, 5) // stays

	s.w.must("tenant", "rotate-jwt-key", "--tenant", "acme")
	time.Sleep(soon)
	access, _ = s.login(anna, second)
	s.v.want(200, "GET", auth+"me", "", "Authorization", "Bearer "+access)
	_, refresh = s.login(dora, s.w.passwords[dora])
	s.w.must("user", "deactivate", "--tenant", "acme", "--email", dora)
	s.v.post(401, "refresh", "refreshToken", refresh)
	s.v.post(403, "login", "email", dora, "password", s.w.passwords[dora])
	s.v.post(401, "login", "email", rita, "password", s.w.passwords[rita])

	s.v.post(201, "register", "email", pending, "password", s.password("password of Paul"), "name", "Paul")
	s.mailed(pending, 1) // stays
	s.w.must("user", "resend", "--tenant", "acme", "--email", pending)
	s.mailed(pending, 2)
	s.create("carl@customer.example", "external")
	s.create("ines@acme.example", "internal")
}

// create makes a user by command.
func (s *vault) create(email, kind string) {
	s.w.t.Helper()
	ctx, cancel := context.WithTimeout(s.w.t.(*testing.T).Context(), time.Minute)
	defer cancel()
	c := s.w.command(ctx, "user", "create", "--tenant", "acme", "--email", email, "--name", "Created", "--type", kind, "--password-stdin")
	password := s.password("password of " + email)
	c.Stdin = strings.NewReader(password + "\n")
	if out, err := c.CombinedOutput(); err != nil {
		s.w.t.Fatalf("user create: %v: %s", err, out)
	}
	if kind == "external" {
		s.login(email, password)
	}
}

// byApp takes the steps of an end-user who is activated by the tenant's app.
func (s *vault) byApp() {
	s.w.t.Helper()
	s.apply("app_managed", often)
	time.Sleep(soon)
	key := s.key(owner)
	for i, email := range []string{"bea@customer.example", "bert@customer.example"} {
		password := s.password("password of " + email)
		data := s.v.post(201, "register", "email", email, "password", password, "name", "Bea")
		token := s.keep("activation token of "+email, data["activationToken"].(string))
		s.v.post(400, "verify", "token", token)
		if i == 0 {
			path := auth + "users/" + data["userId"].(string) + "/activate"
			s.v.want(401, "POST", path, members("activationToken", token))
			s.v.want(200, "POST", path, members("activationToken", token), "Authorization", "Bearer "+key)
			s.login(email, password)
		}
	}
}

// withoutProof registers an end-user who is active at once.
func (s *vault) withoutProof() {
	s.w.t.Helper()
	s.apply("none", often)
	time.Sleep(soon)
	password := s.password("password of Cleo")
	s.v.post(201, "register", "email", "cleo@customer.example", "password", password, "name", "Cleo")
	s.login("cleo@customer.example", password)
}

// tooOften logs in until the address is blocked.
func (s *vault) tooOften() {
	s.w.t.Helper()
	s.apply("svc_email", 2)
	time.Sleep(soon)
	for _, status := range []int{401, 401, 429, 429} {
		s.v.post(status, "login", "email", "nora@customer.example", "password", s.password("password of nobody"))
	}
	s.apply("svc_email", often)
	time.Sleep(soon)
}

// key makes an API key.
func (s *vault) key(email string) string {
	s.w.t.Helper()
	return s.keep("API key of "+email, s.w.key(email))
}

// keys uses API keys that are valid, deleted and invented.
func (s *vault) keys() {
	s.w.t.Helper()
	token := s.key(owner)
	s.v.want(201, "POST", contact, `{"first_name":"Olivia's"}`, "Authorization", "Bearer "+token)
	s.v.want(200, "POST", "/public/v1/custom/keyed", `{"n":1}`, "Authorization", "Bearer "+token)
	gone := s.key(rita)
	s.deleteKeys(rita)
	s.v.want(401, "GET", contact, "", "Authorization", "Bearer "+gone)
	never := s.keep("API key that never was", "svc_api_"+hex.EncodeToString(random(32)))
	s.v.want(401, "GET", contact, "", "Authorization", "Bearer "+never)
	s.w.token = token
}

// deleteKeys deletes the keys of a user.
func (s *vault) deleteKeys(email string) {
	s.w.t.Helper()
	for line := range strings.Lines(s.w.must("key", "list", "--tenant", "acme", "--json")) {
		var k struct{ ID, User string }
		if err := json.Unmarshal([]byte(line), &k); err != nil {
			s.w.t.Fatal(err)
		}
		if k.User == email {
			s.w.must("key", "delete", "--tenant", "acme", "--id", k.ID)
		}
	}
	time.Sleep(soon)
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return b
}

// webhooks sends deliveries with a secret token to endpoints that work and that fail.
func (s *vault) webhooks() {
	s.w.t.Helper()
	renew := func(slug string) string {
		return s.keep("webhook token of "+slug, strings.TrimSpace(s.w.must("endpoint", "token", "--tenant", "acme", "--slug", slug)))
	}
	old := renew("token")
	s.v.want(200, "POST", "/public/v1/custom/token", `{"n":1}`, "X-Webhook-Token", old)
	is, broken := renew("token"), renew("broken")
	s.v.want(401, "POST", "/public/v1/custom/token", `{"n":2}`, "X-Webhook-Token", old)
	s.v.want(200, "POST", "/public/v1/custom/token", `{"n":3}`, "Authorization", "Bearer "+is)
	secret := s.password("password in a delivery")
	s.v.want(500, "POST", "/public/v1/custom/broken", members("password", secret, "token", is), "X-Webhook-Token", broken)
}

// signed sends deliveries with a provider's signature, before and after its secret
// changes.
func (s *vault) signed() {
	s.w.t.Helper()
	for round, secret := range []string{s.provider, s.earlier} {
		body := fmt.Sprintf(`{"n":%d}`, round)
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte(body))
		a, err := s.v.send("POST", "/public/v1/custom/signed", body, "X-Signature", s.keep("signature", hex.EncodeToString(mac.Sum(nil))))
		if err != nil || a.status != 202 {
			s.w.t.Fatal(a, err)
		}
	}
	s.v.want(401, "POST", "/public/v1/custom/signed", `{"n":9}`, "X-Signature", s.keep("wrong signature", hex.EncodeToString(random(32))))
	s.earlier, s.provider = s.provider, s.password("next webhook secret")
	s.apply("svc_email", often)
}

// payments calls a component that tells its secret in every way it has, and returns the answers.
func (s *vault) payments() map[string]place {
	s.w.t.Helper()
	all := map[string]place{}
	for body, status := range map[string]int{`{}`: 200, `{"declined": true}`: 422, `{"broken": true}`: 422} {
		a, err := s.v.send("POST", "/public/v1/custom/pay", body, "Authorization", "Bearer "+s.w.token)
		if err != nil || a.status != status {
			s.w.t.Fatal(a, err)
		}
		all[body] = place{content: a.body}
	}
	all[`{}`] = place{all[`{}`].content, []string{"[redacted]"}}
	return all
}

// mistakes sends secrets where they do not belong: in bodies that cannot be parsed, in
// members of a record, in a query.
func (s *vault) mistakes() {
	s.w.t.Helper()
	key := []string{"Authorization", "Bearer " + s.w.token}
	secret := s.password("password in a record")
	_, refresh := s.login(eva, s.w.passwords[eva])
	body := members("first_name", "x", "password", secret, "newPassword", secret, "token", refresh, "refreshToken", refresh, "secret", secret)
	s.v.want(400, "POST", contact, body, key...)
	s.v.want(400, "POST", contact, body[:len(body)-1], key...)
	s.v.want(400, "POST", contact, `{"first_name":{"password":`+quoted(secret)+`}}`, key...)
	login := members("email", eva, "password", s.w.passwords[eva])
	s.v.want(400, "POST", auth+"login", login[:len(login)-1])
	s.v.want(415, "POST", auth+"login", login, "Content-Type", "text/plain")
	s.v.want(400, "POST", auth+"login", `{"email":"eva@customer.example","password":[`+quoted(s.w.passwords[eva])+`]}`)
	s.v.want(400, "POST", auth+"refresh?refreshToken="+refresh, `{}`)
	s.v.want(400, "GET", contact+"?token="+refresh, "", key...)
	s.v.want(404, "POST", auth+"signin", login)
	s.v.want(405, "PUT", auth+"login", login)
}

// theft presents a rotated refresh token after its grace.
func (s *vault) theft() {
	s.w.t.Helper()
	_, first := s.login(eva, s.w.passwords[eva])
	s.tokens(eva, s.v.post(200, "refresh", "refreshToken", first))
	time.Sleep(31 * time.Second)
	s.v.post(401, "refresh", "refreshToken", first)
}

// search looks for every secret in every place, in all of its forms. It also looks for
// what each place must contain, to show that the place was searched.
func (s *vault) search(when string, places map[string]place) {
	s.w.t.Helper()
	var size int64
	for _, name := range slices.Sorted(maps.Keys(places)) {
		at := places[name]
		size += int64(len(at.content))
		for _, text := range at.has {
			if !bytes.Contains(at.content, []byte(text)) {
				s.p.fail("%s, %s: it does not have %q, so it was not searched: %.300s", when, name, text, at.content)
			}
		}
		for secret, what := range s.known {
			s.p.tried(1)
			for form, text := range forms(secret) {
				if i := bytes.Index(at.content, []byte(text)); i >= 0 {
					s.p.fail("%s, %s: %s, %s: %q", when, name, what, form, at.content[max(0, i-120):min(len(at.content), i+len(text)+40)])
					break
				}
			}
		}
	}
	s.p.set("bytes_"+when, size)
}
