package identity

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/config"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/mail"
	"gatehouse/internal/ratelimit"
	"gatehouse/internal/schema"
	"gatehouse/internal/secret"
	"gatehouse/internal/signin"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

const (
	acme     = "acme"
	password = "correct horse"
	olivia   = "olivia@acme.example"
	sam      = "sam@acme.example"
)

// movedClock is the system's clock plus an offset.
type movedClock struct {
	mu     sync.Mutex
	offset time.Duration
}

func (c *movedClock) Offset() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.offset
}

func (c *movedClock) Now() time.Time { return clock.System().Now().Add(c.Offset()) }

func (c *movedClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += d
}

// postbox is a Mailer that keeps all mails, including those of transactions that were
// rolled back.
type postbox struct {
	mu    sync.Mutex
	mails []mail.Message
	woken int
	fails error
}

func (p *postbox) Put(_ context.Context, _ db.Tx, m mail.Message) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fails != nil {
		return p.fails
	}
	p.mails = append(p.mails, m)
	return nil
}

func (p *postbox) Wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.woken++
}

func (p *postbox) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.mails)
}

// world is one tenant and one node that serves it.
type world struct {
	t     testing.TB
	ctx   context.Context //nolint:containedctx // it lives as long as the test
	d     *db.DB
	clock *movedClock
	dir   *access.Directory
	id    *Service
	post  *postbox
	ring  *secret.Keyring

	mu     sync.Mutex
	events []string
	ip     string
}

// cheap replaces password hashing, so that a test can take thousands of steps.
var cheap = signin.Functions{
	Hash:   func(password string) (string, error) { return "cheap:" + password, nil },
	Verify: func(phc, password string) bool { return phc == "cheap:"+password },
	Dummy:  func() string { return "dummy" },
}

func each(t *testing.T, fn func(t *testing.T, w *world)) {
	t.Helper()
	dbtest.Each(t, func(t *testing.T, d *db.DB) { fn(t, newWorld(t, d)) })
}

func newWorld(t testing.TB, d *db.DB) *world {
	t.Helper()
	w := node(t, d, &movedClock{})
	w.newTenant(acme)
	return w
}

// node returns one more node over a database that has its tenants.
func node(t testing.TB, d *db.DB, clk *movedClock) *world {
	t.Helper()
	ring, err := secret.NewKeyring(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, ctx: context.Background(), d: d, clock: clk, dir: access.NewDirectory(d), post: &postbox{}, ring: ring, ip: "192.0.2.1"}
	w.id = New(Options{
		DB: d, Directory: w.dir, Clock: clk, Keyring: ring, Limiter: ratelimit.New(clk.Now, ratelimit.Options{MaxKeys: 1 << 12}),
		Mailer: w.post, Emit: w.noted, Hasher: signin.NewHasher(nil),
	})
	w.id.hasher.Functions = cheap
	w.id.mails.Delay = 0
	t.Cleanup(func() {
		if err := w.id.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return w
}

func (w *world) noted(event string, fields map[string]any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, event+" "+fmt.Sprint(fields))
}

// newTenant makes a tenant with External Identity on, high limits, two internal users, a
// permission set and three custom fields of users.
func (w *world) newTenant(id string) {
	w.t.Helper()
	settings := tenant.DefaultSettings()
	settings.ExternalIdentity.Enabled = true
	settings.ExternalIdentity.DefaultPermissionSet = "portal"
	settings.ExternalIdentity.AppURL = "https://portal." + id + ".example"
	wide := 1_000_000
	settings.ExternalIdentity.Limits = tenant.IdentityLimits{
		RegisterPerIPPerHour: wide, RegisterPerTenantPerHour: wide, LoginPerIPPerMinute: wide, LoginPerEmailPer15Minutes: wide,
		LoginBlockMinutes: 30, ResetPerEmailPerHour: wide, ResetPerTenantPerHour: wide, RefreshPerTokenPerMinute: wide,
		VerifyPerIPPerMinute: wide, PasswordResetPerIPPerMinute: wide,
	}
	w.must(tenant.Configure(w.ctx, w.d.For(tenant.ID(id)), "test", w.clock, func(tx tenant.ConfigTx, log *tenant.History) error {
		log.Record("tenant", id, nil, id)
		err := tenant.Put(w.ctx, tx, &tenant.Tenant{
			ID: tenant.ID(id), DisplayName: "Acme GmbH", Hosts: []string{id + ".localhost"}, BaseURL: "https://" + id + ".example", Settings: settings,
		}, 1)
		if err != nil {
			return err
		}
		if err := access.PutPermissionSet(w.ctx, tx, &access.PermissionSet{Name: "portal"}); err != nil {
			return err
		}
		manage := &access.PermissionSet{Name: "managers", System: []string{access.ManageExternalUsers}}
		if err := access.PutPermissionSet(w.ctx, tx, manage); err != nil {
			return err
		}
		return schema.PutUserFields(w.ctx, tx, []*schema.Field{
			{Name: "company", Type: schema.Text}, {Name: "score", Type: schema.Number}, {Name: "extra", Type: schema.JSON},
		})
	}))
	for email, draft := range map[string]config.UserDraft{
		olivia: {Owner: true}, sam: {Sets: []string{"managers"}, Password: password},
	} {
		draft.Email, draft.Name, draft.Type = email, "Staff", user.Internal
		_, err := config.CreateUser(w.ctx, w.d.For(tenant.ID(id)), w.clock, config.Operator("test"), draft)
		w.must(err)
	}
	w.dir.Forget()
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) config() *access.Config {
	w.t.Helper()
	c, err := w.dir.Current(w.ctx, acme)
	w.must(err)
	return c
}

// settings changes the tenant's settings.
func (w *world) settings(change func(*tenant.ExternalIdentity)) {
	w.t.Helper()
	w.configure(func(t *tenant.Tenant) { change(&t.Settings.ExternalIdentity) })
}

func (w *world) configure(change func(*tenant.Tenant)) {
	w.t.Helper()
	w.must(tenant.Configure(w.ctx, w.d.For(acme), "test", w.clock, func(tx tenant.ConfigTx, log *tenant.History) error {
		log.Record("tenant", acme, "before", "after")
		t, err := tenant.Load(w.ctx, tx)
		if err != nil {
			return err
		}
		change(t)
		return tenant.Put(w.ctx, tx, t, 1)
	}))
	w.dir.Forget()
}

// do calls an anonymous route with a body of JSON text.
func (w *world) do(path, body string) answer {
	w.t.Helper()
	return w.call(w.config(), http.MethodPost, path, body, access.Viewer{})
}

// call calls a route as the server does after its own checks.
func (w *world) call(cfg *access.Config, method, path, body string, viewer access.Viewer) answer {
	w.t.Helper()
	return w.callWith(cfg, method, path, body, viewer, "")
}

// callWith is call with an access token.
func (w *world) callWith(cfg *access.Config, method, path, body string, viewer access.Viewer, token string) answer {
	w.t.Helper()
	req, err := http.NewRequest(method, "http://acme.localhost/public/v1/auth/"+path, strings.NewReader(body))
	w.must(err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for _, r := range w.id.Routes() {
		c := &httpapi.Call{Request: req, RequestID: "r", IP: netip.MustParseAddr(w.ip), Config: cfg, Route: &r}
		if !matches(r.Pattern, req.URL.Path, &c.Params) || r.Method != method {
			continue
		}
		var reply httpapi.Reply
		if r.Open != nil {
			reply, err = r.Open(w.ctx, c)
		} else {
			reply, err = r.Handler(w.ctx, &httpapi.Authed{Call: c, Viewer: viewer})
		}
		return w.answered(method+" "+path, c, reply, err)
	}
	w.t.Fatalf("there is no route %s %s", method, path)
	return answer{}
}

func (w *world) answered(call string, c *httpapi.Call, reply httpapi.Reply, err error) answer {
	w.t.Helper()
	a := answer{t: w.t, call: call, limit: c.ToldLimit()}
	if err != nil {
		if !errors.As(err, &a.err) {
			w.t.Fatalf("%s: a foreign error: %v", call, err)
		}
		a.status, a.code = a.err.HTTPStatus(), a.err.Code
		a.raw = string(httpapi.AppendError(nil, a.err))
		return a
	}
	a.status, a.raw = reply.Status, string(reply.Data)
	w.must(json.Unmarshal(reply.Data, &a.data))
	return a
}

func matches(pattern, path string, params *httpapi.Params) bool {
	want, got := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return false
	}
	*params = httpapi.Params{}
	for i := range want {
		if name, ok := strings.CutPrefix(want[i], "{"); ok {
			params.Add(strings.TrimSuffix(name, "}"), got[i])
		} else if want[i] != got[i] {
			return false
		}
	}
	return true
}

// viewer returns the viewer of a user by e-mail address.
func (w *world) viewer(email string) access.Viewer {
	w.t.Helper()
	u, err := user.ByEmail(w.ctx, w.d.For(acme), email)
	w.must(err)
	v, err := w.dir.Viewer(w.ctx, w.config(), u.ID, true)
	w.must(err)
	return v
}

func (w *world) user(email string) *user.User {
	w.t.Helper()
	u, err := user.ByEmail(w.ctx, w.d.For(acme), email)
	w.must(err)
	return u
}

func (w *world) setActive(email string, active bool) {
	w.t.Helper()
	_, _, err := config.SetUserActive(w.ctx, w.d.For(acme), w.clock, config.Operator("test"), email, active)
	w.must(err)
	w.dir.Forget()
}

// settle waits for the jobs that run after answers.
func (w *world) settle() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, 10*time.Second)
	defer cancel()
	w.must(w.id.Settle(ctx))
}

// lastMail returns the newest mail, which must be to the address, and the token in it.
func (w *world) lastMail(to string) (m mail.Message, token string) {
	w.t.Helper()
	w.settle()
	w.post.mu.Lock()
	defer w.post.mu.Unlock()
	if len(w.post.mails) == 0 {
		w.t.Fatal("no mail")
	}
	m = w.post.mails[len(w.post.mails)-1]
	if m.To != to {
		w.t.Fatalf("the mail is to %s, want %s", m.To, to)
	}
	if _, after, ok := strings.Cut(m.Text, "?token="); ok {
		token, _, _ = strings.Cut(after, "\n")
		unescaped, err := url.QueryUnescape(strings.TrimSpace(token))
		w.must(err)
		token = unescaped
	}
	return m, token
}

// join registers and activates an end-user.
func (w *world) join(email string) (id string) {
	w.t.Helper()
	id = w.do("register", fmt.Sprintf(`{"email":%q,"password":%q,"name":"Eva"}`, email, password)).want(201, "").text("userId")
	if mode := w.config().Tenant.Settings.ExternalIdentity.ActivationMode; mode == byEmail {
		_, token := w.lastMail(email)
		w.do("verify", fmt.Sprintf(`{"token":%q}`, token)).want(200, "")
	}
	return id
}

func (w *world) login(email string) (accessToken, refreshToken string) {
	w.t.Helper()
	a := w.do("login", fmt.Sprintf(`{"email":%q,"password":%q}`, email, password)).want(200, "")
	return a.text("accessToken"), a.text("refreshToken")
}

func (w *world) refresh(token string) answer {
	w.t.Helper()
	return w.do("refresh", fmt.Sprintf(`{"refreshToken":%q}`, token))
}

func (w *world) logout(token string) {
	w.t.Helper()
	if a := w.do("logout", fmt.Sprintf(`{"refreshToken":%q}`, token)).want(200, ""); a.raw != `{"success":true}` {
		w.t.Errorf("logout: %s", a.raw)
	}
}

// rows counts the rows that a statement finds.
func (w *world) rows(sql string) (n int) {
	w.t.Helper()
	w.must(w.d.For(acme).Query(w.ctx, sql, func(db.Row) error { n++; return nil }))
	return n
}

// noSessionLimit does not limit how often a session is refreshed.
var noSessionLimit = sessionLimit{check: func(string) error { return nil }, count: func(string) {}}
