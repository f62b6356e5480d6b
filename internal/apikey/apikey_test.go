package apikey

import (
	"context"
	"errors"
	"testing"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/tenant"
	"gatehouse/internal/tenant/tenanttest"
	"gatehouse/internal/user"
)

const (
	acme = "acme"
	host = "acme.localhost"
	sam  = "sam@acme.example"
	eva  = "eva@customer.example"
)

var epoch = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// world is one node with a tenant that has an internal and an external user.
type world struct {
	t     testing.TB
	ctx   context.Context
	d     *db.DB
	clock *clock.Fake
	dir   *access.Directory
	keys  *Service
}

func newWorld(t testing.TB, d *db.DB) *world {
	t.Helper()
	w := node(t, d)
	w.configure(func(tx tenant.ConfigTx, log *tenant.History) error {
		log.Record("tenant", acme, nil, acme)
		return tenant.Put(w.ctx, tx, &tenant.Tenant{
			ID: acme, DisplayName: "Acme", Hosts: []string{host}, BaseURL: "https://acme.example", Settings: tenant.DefaultSettings(),
		}, 1)
	})
	w.user(sam, user.Internal)
	w.user(eva, user.External)
	return w
}

func node(t testing.TB, d *db.DB) *world {
	w := &world{t: t, ctx: t.Context(), d: d, clock: clock.NewFake(epoch), dir: access.NewDirectory(d)}
	w.keys = New(d, w.clock, w.dir)
	t.Cleanup(func() {
		if err := w.keys.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return w
}

func (w *world) configure(fn func(tenant.ConfigTx, *tenant.History) error) {
	w.t.Helper()
	w.must(tenant.Configure(w.ctx, w.d.For(acme), "test", w.clock, fn))
	w.dir.Forget()
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) user(email string, kind user.Type) {
	w.t.Helper()
	u := &user.User{Email: email, Name: email, Type: kind, Active: true}
	w.must(tenanttest.Change(w.ctx, w.d.For(acme), func(tx tenant.ConfigTx) error { return user.Add(w.ctx, tx, clock.Micros(w.clock.Now()), u) }))
	w.dir.Forget()
}

func (w *world) setActive(email string, active bool) {
	w.t.Helper()
	w.must(tenanttest.Change(w.ctx, w.d.For(acme), func(tx tenant.ConfigTx) error {
		u, err := user.ByEmail(w.ctx, tx, email)
		if err != nil {
			return err
		}
		u.Active = active
		return user.Update(w.ctx, tx, u)
	}))
	w.dir.Forget()
}

func (w *world) create(spec CreateSpec) (Key, string) {
	w.t.Helper()
	if spec.Name == "" {
		spec.Name = "portal"
	}
	if spec.Email == "" {
		spec.Email = sam
	}
	if spec.RateLimitPerMinute == 0 {
		spec.RateLimitPerMinute = DefaultRateLimit
	}
	k, token, err := w.keys.Create(w.ctx, "olivia", acme, spec)
	w.must(err)
	return k, token.Reveal()
}

func (w *world) config() *access.Config {
	w.t.Helper()
	c, _, err := w.dir.ByHost(w.ctx, host)
	w.must(err)
	return c
}

func (w *world) resolve(token string) (*Resolved, error) {
	w.t.Helper()
	return w.keys.Resolve(w.ctx, w.config(), token)
}

func (w *world) wantIn(token string) *Resolved {
	w.t.Helper()
	r, err := w.resolve(token)
	if err != nil {
		w.t.Fatalf("the token is refused: %v", err)
	}
	return r
}

func (w *world) wantOut(token, why string) *Resolved {
	w.t.Helper()
	r, err := w.resolve(token)
	if !errors.Is(err, ErrUnauthorized) || err.Error() != ErrUnauthorized.Error() {
		w.t.Fatalf("%s: got %v", why, err)
	}
	if r != nil && (r.Viewer != access.Viewer{}) {
		w.t.Fatalf("%s: came with a viewer", why)
	}
	return r
}
