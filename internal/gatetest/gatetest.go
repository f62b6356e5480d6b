// Package gatetest runs a whole server, on either engine, for tests that read
// like the contract:
//
//	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
//		w.Apply(manifest)
//		sam := w.Key("sam@acme.example")
//		sam.Get("/public/v1/data/contact/" + id).Want(404, "NOT_FOUND")
//	})
package gatetest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/apikey"
	"gatehouse/internal/audit"
	"gatehouse/internal/clock"
	"gatehouse/internal/component"
	"gatehouse/internal/config"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/endpoint"
	"gatehouse/internal/gatetest/enginecache"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/manifest"
	"gatehouse/internal/records"
	"gatehouse/internal/secret"
	"gatehouse/internal/server"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// Host is the host of a World's first tenant.
const Host = "acme.localhost"

// World is a database and the nodes that serve it.
type World struct {
	T     testing.TB
	Nodes []*Node
	Clock *Clock
	Mails *Mails

	config  db.Config
	keyring *secret.Keyring
	staff   staffSessions
}

// Node is a server, with a database connection and a log of its own.
type Node struct {
	DB     *db.DB
	Server *server.Server
	Log    *Buffer // what it wrote to standard output
	URL    string
	stop   func()
}

// Clock is the system's clock plus an offset that a test can change.
type Clock struct {
	mu      sync.Mutex
	offset  time.Duration
	stopped time.Time // zero while it runs
}

// Now returns the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopped.IsZero() {
		return c.stopped.Add(c.offset)
	}
	return clock.System().Now().Add(c.offset)
}

// Stop stops the clock: from now on only Advance moves it, so that a test does not depend
// on how long it takes.
func (c *Clock) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = clock.System().Now()
}

// Offset returns how far the clock was moved; see clock.OffsetOf.
func (c *Clock) Offset() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.offset
}

// Advance moves the clock by d.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += d
}

// engine runs the components of all worlds of a process, and more of them at once than a
// server would.
var engine = sync.OnceValue(func() *component.Engine {
	e, err := component.NewEngine(context.Background(), component.Options{CacheDir: enginecache.Dir(), PerTenant: 32, MaxWait: 20 * time.Second})
	if err != nil {
		panic(err)
	}
	return e
})

// Each runs a test on each engine, with one node.
func Each(t *testing.T, fn func(t *testing.T, w *World)) {
	t.Helper()
	for _, engine := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(string(engine), func(t *testing.T) { fn(t, New(t, engine)) })
	}
}

// New starts one node over a fresh database.
func New(t testing.TB, engine db.Engine) *World {
	t.Helper()
	keyring, err := secret.NewKeyring(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	w := &World{T: t, Clock: &Clock{}, Mails: &Mails{}, config: dbtest.Config(t, engine), keyring: keyring}
	w.AddNode()
	return w
}

// NodeOptions are what a node has for itself. The zero NodeOptions are those of the first.
type NodeOptions struct {
	Clock    clock.Clock // nil for the World's
	Database string      // the address of something between the node and the database server, "" for nothing
}

// DatabaseAddress returns the address of the PostgreSQL server.
func (w *World) DatabaseAddress() string {
	w.T.Helper()
	u, err := url.Parse(w.config.URL)
	if err != nil {
		w.T.Fatal(err)
	}
	return u.Host
}

// AddNode starts another node on the same database, which must be PostgreSQL if there is a
// node already.
func (w *World) AddNode() *Node {
	w.T.Helper()
	return w.AddNodeWith(NodeOptions{})
}

// AddNodeWith is AddNode for a node that differs from the others.
func (w *World) AddNodeWith(o NodeOptions) *Node {
	w.T.Helper()
	config := w.config
	config.Serve = true
	if o.Database != "" {
		config.URL = strings.Replace(config.URL, w.DatabaseAddress(), o.Database, 1)
	}
	if o.Clock == nil {
		o.Clock = w.Clock
	}
	d, err := db.Open(context.Background(), config)
	if err != nil {
		w.T.Fatal(err)
	}
	n := &Node{DB: d, Log: &Buffer{}}
	proxies, err := httpapi.ParseTrustedProxies("127.0.0.0/8")
	if err != nil {
		w.T.Fatal(err)
	}
	n.Server = server.New(server.Options{DB: d, Keyring: w.keyring, Clock: o.Clock, Log: n.Log, Proxies: proxies, Engine: engine(), Mail: w.Mails, Patience: time.Minute})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.T.Fatal(err)
	}
	n.URL = "http://" + l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- n.Server.Serve(ctx, l, nil) }()
	n.stop = sync.OnceFunc(func() {
		client.CloseIdleConnections() // a drain waits 5 s for an unused connection
		cancel()
		if err := <-done; err != nil {
			w.T.Errorf("node: %v", err)
		}
		if err := d.Close(); err != nil {
			w.T.Errorf("database: %v", err)
		}
	})
	w.T.Cleanup(func() {
		n.stop()
		if w.T.Failed() {
			n.Log.explain(w.T)
		}
	})
	w.Nodes = append(w.Nodes, n)
	return n
}

// AuditLog stops every node and returns the tenant's audit log, by request id.
func (w *World) AuditLog(tenant tenant.ID) map[string]*audit.Entry {
	w.T.Helper()
	for _, n := range w.Nodes {
		n.Stop()
	}
	log := map[string]*audit.Entry{}
	d, err := db.Open(context.Background(), w.config)
	if err != nil {
		w.T.Fatal(err)
	}
	stored := audit.Log{DB: d, Tenant: tenant}
	err = stored.Query(context.Background(), audit.Filter{}, func(e *audit.Entry) error {
		if log[e.RequestID] != nil {
			w.T.Errorf("request %s has two audit entries", e.RequestID)
		}
		log[e.RequestID] = e
		return nil
	})
	if err := errors.Join(err, d.Close()); err != nil {
		w.T.Fatal(err)
	}
	return log
}

// AwaitRuns waits until the node does n runs of components and automations.
func (n *Node) AwaitRuns(t testing.TB, runs int) {
	t.Helper()
	n.AwaitStats(t, func(s endpoint.Stats) bool { return s.Running == runs })
}

// AwaitStats waits until the counts of the node's runs are as wanted.
func (n *Node) AwaitStats(t testing.TB, wanted func(endpoint.Stats) bool) {
	t.Helper()
	for begun := time.Now(); !wanted(n.Server.Endpoints().Stats()); time.Sleep(time.Millisecond) {
		if time.Since(begun) > time.Minute {
			t.Fatalf("the node's runs do not come to what is awaited: %+v", n.Server.Endpoints().Stats())
		}
	}
}

// Stop drains the node, as SIGTERM would.
func (n *Node) Stop() { n.stop() }

// DB returns the first node's database.
func (w *World) DB() *db.DB { return w.Nodes[0].DB }

// HousekeepingIsDue makes the next node that starts do all housekeeping, whichever did
// so last: for tests that advance the clock, which is not the database's.
func (w *World) HousekeepingIsDue() {
	w.T.Helper()
	err := w.DB().Unscoped("test").Write(w.T.Context(), func(tx db.Tx) error {
		_, err := tx.Exec(w.T.Context(), `DELETE FROM housekeeping`)
		return err
	})
	if err != nil {
		w.T.Fatal(err)
	}
}

// Apply provisions a tenant as `gatehouse apply` does, and makes every node notice it.
func (w *World) Apply(src string) *manifest.Result {
	w.T.Helper()
	res, err := w.TryApply(src, manifest.Options{})
	if err != nil {
		w.T.Fatalf("apply: %v", err)
	}
	return res
}

// TryApply is Apply for a manifest that may be refused.
func (w *World) TryApply(src string, o manifest.Options) (*manifest.Result, error) {
	w.T.Helper()
	o.Keyring = w.keyring
	o.Compile = func(ctx context.Context, tenant tenant.ID, module string, source component.Source) ([]string, error) {
		return engine().Check(ctx, string(tenant), module, source)
	}
	res, err := manifest.Apply(context.Background(), w.DB(), w.Clock, "test.yaml", []byte(src), func(string) string { return "" }, o)
	w.Settle()
	return res, err
}

// Settle makes every node notice what was changed in the database.
func (w *World) Settle() {
	for _, n := range w.Nodes {
		n.Server.Directory().Forget()
	}
}

// Config returns a tenant's current configuration.
func (w *World) Config(tenant tenant.ID) *access.Config {
	w.T.Helper()
	c, err := w.Nodes[0].Server.Directory().Current(context.Background(), tenant)
	if err != nil {
		w.T.Fatal(err)
	}
	return c
}

// UserID returns the id of the user with an e-mail address.
func (w *World) UserID(tenant tenant.ID, email string) string {
	w.T.Helper()
	u, err := user.ByEmail(context.Background(), w.DB().For(tenant), email)
	if err != nil {
		w.T.Fatalf("user %s: %v", email, err)
	}
	return string(u.ID)
}

// SetActive deactivates or reactivates a user as an operator does.
func (w *World) SetActive(tenant tenant.ID, email string, active bool) {
	w.T.Helper()
	if _, _, err := config.SetUserActive(context.Background(), w.DB().For(tenant), w.Clock, config.Operator("test"), email, active); err != nil {
		w.T.Fatalf("user %s: %v", email, err)
	}
	w.Settle()
}

// Share shares a record of the tenant acme as an operator does; principal is
// access.UserPrincipal or access.RolePrincipal.
func (w *World) Share(entity, id string, principal access.Principal, level access.Level) {
	w.T.Helper()
	err := w.Nodes[0].Server.Records().As(access.System(w.Config("acme"), "test")).
		Share(context.Background(), entity, id, records.Share{Principal: principal, Access: level})
	if err != nil {
		w.T.Fatalf("share: %v", err)
	}
}

// Key makes an API key for a user of the tenant acme and returns an Actor that uses it.
func (w *World) Key(email string, change ...func(*apikey.CreateSpec)) *Actor {
	w.T.Helper()
	return w.KeyOf("acme", Host, email, change...)
}

// KeyOf is Key for any tenant, at one of its hosts.
func (w *World) KeyOf(tenant tenant.ID, host, email string, change ...func(*apikey.CreateSpec)) *Actor {
	w.T.Helper()
	spec := apikey.CreateSpec{Email: email, Name: "test", RateLimitPerMinute: 1_000_000}
	for _, c := range change {
		c(&spec)
	}
	key, token, err := w.Nodes[0].Server.Keys().Create(context.Background(), "test", tenant, spec)
	if err != nil {
		w.T.Fatalf("key for %s: %v", email, err)
	}
	w.Settle()
	a := w.Anyone()
	a.Host, a.KeyID, a.Token = host, key.ID, token.Reveal()
	return a
}

// Webhook makes a webhook token for an endpoint of the tenant acme and returns an Actor
// that uses it.
func (w *World) Webhook(slug string) *Actor {
	w.T.Helper()
	token, err := endpoint.NewToken(context.Background(), w.DB(), w.Clock, "test", "acme", slug)
	if err != nil {
		w.T.Fatalf("webhook token for %s: %v", slug, err)
	}
	w.Settle()
	a := w.Anyone()
	a.Token = token.Reveal()
	return a
}

// Anyone returns an Actor without a credential.
func (w *World) Anyone() *Actor {
	return &Actor{T: w.T, Node: w.Nodes[0], Host: Host, Header: http.Header{}}
}

// Actor is a caller with a credential.
type Actor struct {
	T      testing.TB
	Node   *Node
	Host   string
	Token  string
	Cookie string // of a staff session
	KeyID  string
	Header http.Header // sent with every call
}

// With returns the same caller with one more header.
func (a *Actor) With(name, value string) *Actor {
	b := *a
	b.Header = a.Header.Clone()
	b.Header.Add(name, value)
	return &b
}

// At returns the same caller at another node.
func (a *Actor) At(n *Node) *Actor {
	b := *a
	b.Node = n
	return &b
}

// Get, Post, Patch and Delete call the API; body is JSON text.
func (a *Actor) Get(path string) *Answer         { return a.Do(http.MethodGet, path, "") }
func (a *Actor) Post(path, body string) *Answer  { return a.Do(http.MethodPost, path, body) }
func (a *Actor) Patch(path, body string) *Answer { return a.Do(http.MethodPatch, path, body) }
func (a *Actor) Delete(path string) *Answer      { return a.Do(http.MethodDelete, path, "") }

// client keeps connections for the many goroutines of a test.
var client = &http.Client{
	Transport:     &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// Do calls the API.
func (a *Actor) Do(method, path, body string) *Answer {
	a.T.Helper()
	ans, err := a.Try(method, path, body)
	if err != nil {
		a.T.Fatalf("%s %s: %v", method, path, err)
	}
	return ans
}

// Try is Do for a call that may get no answer.
func (a *Actor) Try(method, path, body string) (*Answer, error) {
	r, err := http.NewRequest(method, a.Node.URL+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Host = a.Host
	r.Header = a.Header.Clone()
	if a.Token != "" && r.Header.Get("Authorization") == "" {
		r.Header.Set("Authorization", "Bearer "+a.Token)
	}
	if body != "" && r.Header.Get("Content-Type") == "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if a.Cookie != "" {
		a.asBrowser(r)
	}
	res, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") { // it has no end
		return &Answer{T: a.T, Call: method + " " + path, Status: res.StatusCode, Header: res.Header}, nil
	}
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	if res.StatusCode == http.StatusInternalServerError { // its cause is in the log alone
		for _, line := range a.Node.Log.Lines(a.T) {
			if line["request_id"] == res.Header.Get("X-Request-Id") {
				a.T.Logf("%s %s: the log has %v", method, path, line)
			}
		}
	}
	return &Answer{T: a.T, Call: method + " " + path, Status: res.StatusCode, Header: res.Header, Body: b}, nil
}

// RateLimit sets a key's requests per minute.
func RateLimit(n int) func(*apikey.CreateSpec) {
	return func(s *apikey.CreateSpec) { s.RateLimitPerMinute = n }
}
