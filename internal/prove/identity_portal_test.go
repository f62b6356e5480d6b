package prove

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/db"
	"gatehouse/internal/mail/mailtest"
)

const auth = "/public/v1/auth/"

// portalManifest is the manifest of a tenant whose customers log in themselves, with
// limits that a test reaches only on purpose. Its parameters are the activation mode,
// the limit of logins per e-mail address, and the passwords of its users.
const portalManifest = `
tenant: acme
hosts: [acme.localhost]
public_api: {enabled: true, log_standard_requests: true}
unauthenticated_per_ip_per_minute: 100000000
external_identity:
  enabled: true
  activation_mode: %s
  default_permission_set: portal
  welcome_email: true
  app_url: https://portal.acme.example
  rate_limit_per_minute: 100000000
  limits: {register_per_ip_per_hour: 1000000, register_per_tenant_per_hour: 1000000, login_per_ip_per_minute: 1000000,
    login_per_email_per_15_minutes: %d, reset_per_email_per_hour: 100000, reset_per_tenant_per_hour: 1000000,
    refresh_per_token_per_minute: 1000000, verify_per_ip_per_minute: 1000000, password_reset_per_ip_per_minute: 1000000}
entities: [{name: contact, fields: [{name: first_name, type: text, required: true}]}]
user_fields: [{name: company, type: text}]
permission_sets:
  - name: portal
    entities: {contact: {create: true, read: true}}
users:
  - {email: olivia@acme.example, name: Olivia Owner, owner: true, password: %s}
  - {email: rita@acme.example, name: Rita Reader, password: %s}
  - {email: eva@customer.example, name: Eva, type: external, permission_sets: [portal], password: %s}
  - {email: dora@customer.example, name: Dora, type: external, permission_sets: [portal], password: %s}
`

// portal is a world with that tenant. Olivia and Rita are staff; Eva and Dora are
// customers.
type portal struct {
	*world
	passwords map[string]string // by e-mail address
}

const (
	rita = "rita@acme.example"
	eva  = "eva@customer.example"
	dora = "dora@customer.example"
)

func newPortal(t testing.TB, engine db.Engine) *portal {
	t.Helper()
	p := &portal{world: bare(t, engine), passwords: map[string]string{}}
	for _, email := range []string{owner, rita, eva, dora} {
		p.passwords[email] = "the password of " + email
	}
	return p
}

// manifest returns the tenant's manifest with an activation mode and a limit of logins
// per address; more is the text that follows it.
func (p *portal) manifest(mode string, logins int, more string) string {
	return fmt.Sprintf(portalManifest, mode, logins, quoted(p.passwords[owner]), quoted(p.passwords[rita]),
		quoted(p.passwords[eva]), quoted(p.passwords[dora])) + more
}

// often is a limit of logins that no test reaches.
const often = 100_000

// serve starts a server that writes its mails to the world's folder.
func (p *portal) serve() *node {
	p.t.Helper()
	if p.engine == db.Postgres {
		return p.start("--data", p.dir)
	}
	return p.start()
}

// visitor sends requests with the given headers and no others.
type visitor struct {
	t      testing.TB
	base   string
	http   *http.Client
	mailed bool // the last request was one that sends a mail
}

func (n *node) visitor() *visitor {
	return &visitor{t: n.w.t, base: n.public, http: &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
}

func (v *visitor) close() { v.http.CloseIdleConnections() }

// send sends a body, as JSON unless the headers say otherwise; headers are pairs
// of name and value.
func (v *visitor) send(method, path, body string, headers ...string) (*answer, error) {
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
	}
	r, err := http.NewRequest(method, v.base+path, in)
	if err != nil {
		return nil, err
	}
	r.Host = host
	r.Header.Set("Content-Type", "application/json")
	for pair := range slices.Chunk(headers, 2) {
		r.Header.Set(pair[0], pair[1])
	}
	return exchange(v.http, r)
}

// members returns a JSON object with the given names and values.
func members(pairs ...string) string {
	m := map[string]string{}
	for pair := range slices.Chunk(pairs, 2) {
		m[pair[0]] = pair[1]
	}
	b, _ := json.Marshal(m) // strings cannot fail
	return string(b)
}

// want sends a request and returns the answer's data. It ends the test unless the answer
// has the status.
func (v *visitor) want(status int, method, path, body string, headers ...string) map[string]any {
	v.t.Helper()
	a, err := v.send(method, path, body, headers...)
	if err != nil || a.status != status {
		v.t.Fatalf("%v %v; expected %d", a, err, status)
	}
	var env struct {
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(a.body, &env); err != nil {
		v.t.Fatal(a, err)
	}
	var data map[string]any
	_ = json.Unmarshal(env.Data, &data) // a list has no members
	return data
}

func (v *visitor) post(status int, use string, pairs ...string) map[string]any {
	v.t.Helper()
	return v.want(status, "POST", auth+use, members(pairs...))
}

// letter is a mail that was written to the outbox.
type letter struct{ to, token string } // token is that of the link in the mail, "" if it has none

var tokenInLink = regexp.MustCompile(`\?token=([A-Za-z0-9_-]+)`)

// outbox returns the files of the mails written so far.
func (p *portal) outbox() []string {
	p.t.Helper()
	files, err := filepath.Glob(filepath.Join(p.dir, "outbox", "*.eml"))
	if err != nil {
		p.t.Fatal(err)
	}
	return files
}

// letters returns the mails written so far, in order.
func (p *portal) letters() []letter {
	p.t.Helper()
	read, err := mailtest.Letters(filepath.Join(p.dir, "outbox"))
	if err != nil {
		p.t.Fatal(err)
	}
	var all []letter
	for _, one := range read {
		l := letter{to: one.To}
		if found := tokenInLink.FindStringSubmatch(one.Text); found != nil {
			l.token = found[1]
		}
		all = append(all, l)
	}
	return all
}

// letter waits for the n-th mail to an address, counted from 1.
func (p *portal) letter(to string, n int) letter {
	p.t.Helper()
	for begun := time.Now(); time.Since(begun) < patience; time.Sleep(10 * time.Millisecond) {
		seen := 0
		for _, l := range p.letters() {
			if l.to == to {
				if seen++; seen == n {
					return l
				}
			}
		}
	}
	p.t.Fatalf("no mail number %d to %s", n, to)
	return letter{}
}
