package admin_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/admin"
	"gatehouse/internal/admission"
	"gatehouse/internal/clock"
	"gatehouse/internal/component"
	"gatehouse/internal/config"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/manifest"
	"gatehouse/internal/outbox"
	"gatehouse/internal/ratelimit"
	"gatehouse/internal/secret"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// office is a service without a server, whose compiler waits until it is let go.
type office struct {
	*testing.T
	d       *db.DB
	service *admin.Service
	dir     *access.Directory
	let     chan struct{}
}

func newOffice(t *testing.T, d *db.DB) *office {
	o := &office{T: t, d: d, dir: access.NewDirectory(d), let: make(chan struct{})}
	ring, err := secret.NewKeyring(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	clk := clock.System()
	o.service = admin.New(admin.Options{
		DB: d, Directory: o.dir, Clock: clk, Keyring: ring, Limiter: ratelimit.New(clk.Now, ratelimit.Options{}), Cores: admission.NewCores(1),
		Mails: outbox.New(outbox.Options{DB: d, Keyring: ring, Clock: clk}), Emit: func(string, map[string]any) {},
		Compile: func(ctx context.Context, _ tenant.ID, _ string, source component.Source) ([]string, error) {
			if !strings.Contains(source.Text, "slow") {
				return nil, nil
			}
			select {
			case <-o.let:
				return nil, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
	})
	o.service.SetPatience(0)
	t.Cleanup(func() { _ = o.service.Close(context.Background()) })
	return o
}

// call calls a route as a user.
func (o *office) call(who, method, path, body string) (httpapi.Reply, error) {
	o.Helper()
	return o.send(who, method, path, strings.NewReader(body))
}

// send is call with a body that may be slow.
func (o *office) send(who, method, path string, body io.Reader) (httpapi.Reply, error) {
	o.Helper()
	ctx := o.Context()
	c, err := o.dir.Current(ctx, "acme")
	if err != nil {
		o.Fatal(err)
	}
	u, err := user.ByEmail(ctx, o.d.For("acme"), who)
	if err != nil {
		o.Fatal(err)
	}
	v, err := o.dir.Viewer(ctx, c, u.ID, false)
	if err != nil {
		o.Fatal(err)
	}
	r := httptest.NewRequest(method, "/admin/v1/"+path, body)
	r.Header.Set("Content-Type", "application/json")
	for _, route := range o.service.AdminRoutes() {
		if route.Method == method && route.Pattern == r.URL.Path {
			call := &httpapi.Call{Request: r, Config: c, Route: &route}
			return route.Handler(ctx, &httpapi.Authed{Call: call, Viewer: v, Session: &httpapi.StaffSession{UserID: u.ID, Email: u.Email}})
		}
	}
	o.Fatalf("no route %s", path)
	return httpapi.Reply{}, nil
}

type works struct {
	ID, State, Who string
	Mine           bool
	Applied        *struct{ Changes []struct{ Text string } }
	Error          *struct{ Code string }
}

// until waits for a state of the last work.
func (o *office) until(state string) works {
	o.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		r, err := o.call("olivia@acme.example", "GET", "config/work", "")
		if err != nil {
			o.Fatal(err)
		}
		var w works
		if err := json.Unmarshal(r.Data, &w); err != nil {
			o.Fatal(err)
		}
		if w.State == state {
			return w
		}
		if time.Now().After(deadline) {
			o.Fatalf("the work is %s, want %s", w.State, state)
		}
	}
}

// A change that takes long goes on beside its request, which is answered with its id: who
// asked sees how it ended, others see that it did. A server that ends leaves it to be sent
// again.
func TestALongChangeGoesOn(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		_, err := manifest.Apply(t.Context(), d, clock.System(), "acme.yaml", []byte("tenant: acme\nhosts: [acme.localhost]\n"+
			"users:\n  - {email: olivia@acme.example, owner: true}\n  - {email: otto@acme.example, owner: true}\n"), func(string) string { return "" }, config.Options{})
		if err != nil {
			t.Fatal(err)
		}
		o := newOffice(t, d)
		o.until("none")
		slow := one("logic_component", "", "absent", m{"name": "slow", "source": "export default function slow() {}"})
		r, err := o.call("otto@acme.example", "POST", "config/apply", slow)
		if err != nil || r.Status != 202 || !strings.Contains(string(r.Data), `"work":"`) {
			t.Fatalf("%d %s %v", r.Status, r.Data, err)
		}
		if w := o.until("running"); w.Who != "otto@acme.example" || w.Mine {
			t.Errorf("%+v", w)
		}
		close(o.let)
		if w := o.until("done"); w.Applied == nil || w.Applied.Changes[0].Text != "create logic component slow" { // an owner sees it, too
			t.Errorf("%+v", w)
		}
		o.let = make(chan struct{})
		if r, err = o.call("olivia@acme.example", "POST", "config/apply", slow); err == nil && r.Status != 202 || err != nil && fault.CodeOf(err) != fault.Conflict {
			t.Fatalf("%d %v", r.Status, err)
		}
		if err == nil {
			if w := o.until("failed"); w.Error == nil || w.Error.Code != "CONFLICT" || !w.Mine {
				t.Errorf("%+v", w)
			}
		}
		other := strings.ReplaceAll(slow, `"name":"slow"`, `"name":"slower"`)
		if r, err = o.call("olivia@acme.example", "POST", "config/apply", other); err != nil || r.Status != 202 {
			t.Fatalf("%d %v", r.Status, err)
		}
		if err := o.service.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		o = newOffice(t, d)
		o.until("stopped")
		close(o.let)
		if r, err = o.call("olivia@acme.example", "POST", "config/apply", other); err != nil {
			t.Fatal(err)
		}
		if r.Status == 202 {
			o.until("done")
		}
	})
}

// A work whose server died without a word is told as stopped.
func TestAWorkWhoseServerDiedIsStopped(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		_, err := manifest.Apply(t.Context(), d, clock.System(), "acme.yaml", []byte("tenant: acme\nusers: [{email: olivia@acme.example, owner: true}]\n"),
			func(string) string { return "" }, config.Options{})
		if err != nil {
			t.Fatal(err)
		}
		err = d.For("acme").Write(t.Context(), func(tx db.Tx) error {
			_, err := tx.Exec(t.Context(), `INSERT INTO config_work (tenant_id, work_id, user_id, actor, state, entity, done, total, answer, started_at, beat_at)
				VALUES ($1, 'w', 'u', 'olivia@acme.example', 'running', 'contact', 5, 10, '', 1, `+tx.Dialect().Now+` - 16000000)`)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		newOffice(t, d).until("stopped")
	})
}

// slowBody is a body of which nothing comes until it is let go. reading is closed when it
// is asked for.
type slowBody struct {
	reading, let chan struct{}
	once         sync.Once
	io.Reader
}

func (b *slowBody) Read(p []byte) (int, error) {
	b.once.Do(func() { close(b.reading) })
	<-b.let
	return b.Reader.Read(p)
}

// Changes of all tenants are worked out in turns, and who sends a body slowly does not have
// the turn meanwhile.
func TestASlowBodyHasNoTurn(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		_, err := manifest.Apply(t.Context(), d, clock.System(), "acme.yaml", []byte("tenant: acme\nusers: [{email: olivia@acme.example, owner: true}]\n"),
			func(string) string { return "" }, config.Options{})
		if err != nil {
			t.Fatal(err)
		}
		o := newOffice(t, d)
		o.service.SetPatience(time.Minute)
		role := func(name string) string { return one("role", "", "absent", m{"name": name}) }
		for _, path := range []string{"config/plan", "config/apply"} {
			slow := &slowBody{reading: make(chan struct{}), let: make(chan struct{}), Reader: strings.NewReader(role("late"))}
			done := make(chan error, 1)
			go func() {
				_, err := o.send("olivia@acme.example", "POST", path, slow)
				done <- err
			}()
			<-slow.reading
			_, err := o.call("olivia@acme.example", "POST", "config/plan", role("early"))
			close(slow.let)
			if err != nil {
				t.Errorf("while a body for %s comes: %v", path, err)
			}
			if err := <-done; err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
	})
}

// A tenant has few of the places for changes that go on: others find one.
func TestOneTenantHasFewWorks(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		_, err := manifest.Apply(t.Context(), d, clock.System(), "acme.yaml", []byte("tenant: acme\nusers: [{email: olivia@acme.example, owner: true}]\n"),
			func(string) string { return "" }, config.Options{})
		if err != nil {
			t.Fatal(err)
		}
		o := newOffice(t, d)
		for i := range 5 {
			name := "slow_" + string(rune('a'+i))
			r, err := o.call("olivia@acme.example", "POST", "config/apply", one("logic_component", "", "absent", m{"name": name, "source": "export default function slow() {}"}))
			if i < 4 && (err != nil || r.Status != 202) || i == 4 && fault.CodeOf(err) != fault.Overloaded {
				t.Errorf("change %d: %d, %v", i, r.Status, err)
			}
		}
		close(o.let)
		o.until("done")
	})
}
