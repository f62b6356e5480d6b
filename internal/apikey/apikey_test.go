package apikey

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/fault"
	"gatehouse/internal/secret"
	"gatehouse/internal/tenant"
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
	w.configure(func(tx db.Tx, log *tenant.History) error {
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

func (w *world) configure(fn func(db.Tx, *tenant.History) error) {
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
	_, err := user.Create(w.ctx, w.d.For(acme), w.clock, "test", user.Draft{Email: email, Name: email, Type: kind},
		func(context.Context, db.Querier) (user.Names, error) { return user.Names{}, nil })
	w.must(err)
	w.dir.Forget()
}

func (w *world) setActive(email string, active bool) {
	w.t.Helper()
	_, _, err := user.SetActive(w.ctx, w.d.For(acme), w.clock, "test", email, active)
	w.must(err)
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
	c, err := w.dir.ByHost(w.ctx, host)
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

func TestAKeyActsForItsUser(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newWorld(t, d)
		k, token := w.create(CreateSpec{Name: "  portal ", RateLimitPerMinute: 7, Allowlist: []string{"10.0.0.0/8"}})
		for range 2 { // from the database, then from the cache
			r := w.wantIn(token)
			if r.Viewer.UserID() != k.UserID || r.Viewer.Tenant() != acme || r.Viewer.External() {
				t.Errorf("acts as %q of %q", r.Viewer.UserID(), r.Viewer.Tenant())
			}
			if r.Key.ID != k.ID || r.Key.Name != "portal" || r.Key.RateLimitPerMinute != 7 || r.Key.Prefix != token[:12] {
				t.Errorf("resolved to %+v", r.Key)
			}
			if r.Key.Allowlist.Allows(netip.MustParseAddr("192.0.2.1")) || !r.Key.Allowlist.Allows(netip.MustParseAddr("10.1.2.3")) {
				t.Error("the allowlist was lost")
			}
		}
		_, token = w.create(CreateSpec{Email: strings.ToUpper(eva)})
		if r := w.wantIn(token); !r.Viewer.External() {
			t.Error("a key of an external user does not act as one")
		}
	})
}

func TestOnlyTheHashOfATokenIsStored(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newWorld(t, d)
		k, token := w.create(CreateSpec{Origins: []string{"https://portal.example"}})
		w.must(w.keys.Delete(w.ctx, "olivia", acme, k.ID))
		_, token2 := w.create(CreateSpec{})
		var stored strings.Builder
		for table, columns := range map[string]int{"api_keys": 12, "config_changes": 9} {
			w.must(d.For(acme).Query(w.ctx, "SELECT * FROM "+table+" WHERE tenant_id = $1", func(r db.Row) error {
				for i := range columns {
					if !r.Null(i) {
						fmt.Fprintln(&stored, r.Text(i))
					}
				}
				return nil
			}))
		}
		list, err := w.keys.List(w.ctx, acme)
		w.must(err)
		shown := stored.String() + fmt.Sprintf("%+v", list)
		for _, tok := range []string{token, token2} {
			if strings.Contains(shown, tok[12:]) || strings.Contains(shown, tok) {
				t.Error("a token can be read")
			}
		}
		if !strings.Contains(stored.String(), secret.Hash(token2)) || strings.Contains(stored.String(), secret.Hash(token)) {
			t.Error("expected the hash of the key that is there, in api_keys alone")
		}
	})
}

func TestWhoCannotBeLetInGetsTheSameAnswer(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newWorld(t, d)
		_, good := w.create(CreateSpec{})
		for _, warm := range []bool{false, true} {
			deleted, deletedToken := w.create(CreateSpec{})
			_, expired := w.create(CreateSpec{ExpiresAt: clock.Micros(w.clock.Now().Add(time.Minute))})
			_, orphan := w.create(CreateSpec{Email: eva})
			if warm {
				for _, token := range []string{deletedToken, expired, orphan} {
					w.wantIn(token)
				}
			}
			w.must(w.keys.Delete(w.ctx, "olivia", acme, deleted.ID))
			w.setActive(eva, false)
			if warm {
				w.wantIn(expired)
			}
			w.clock.Advance(time.Minute - 1e3)
			w.wantIn(expired)
			w.clock.Advance(1e3)
			if r := w.wantOut(deletedToken, "deleted"); r != nil {
				t.Error("a deleted key is named")
			}
			for why, token := range map[string]string{"expired": expired, "deactivated": orphan} {
				if r := w.wantOut(token, why); r == nil || r.Key.Prefix != token[:12] {
					t.Errorf("%s: the key is not named for the log", why)
				}
			}
			w.setActive(eva, true)
			w.wantIn(orphan)
		}
		w.wantOut(secret.NewAPIToken().Reveal(), "unknown")
		w.wantIn(good)
	})
}

func TestATokenThatCannotBeOursCostsNoQuestion(t *testing.T) {
	good := secret.NewAPIToken().Reveal()
	for why, token := range map[string]string{
		"empty": "", "prefix": "svc_api_", "webhook": secret.NewWebhookToken().Reveal(), "short": good[:71], "long": good + "0",
		"upper case": "svc_api_" + strings.Repeat("A", 64), "no hex": "svc_api_" + strings.Repeat("g", 64),
		"NUL": good[:71] + "\x00", "jwt": "eyJhbGciOiJIUzI1NiJ9.e30.x", "space": " " + good[:71],
	} {
		// Without a database: asking it would panic.
		if _, err := New(nil, clock.System(), nil).Resolve(t.Context(), &access.Config{}, token); !errors.Is(err, ErrUnauthorized) {
			t.Errorf("%s: %v", why, err)
		}
	}
}

func TestAnotherTenantsTokenIsUnknown(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newWorld(t, d)
		k, token := w.create(CreateSpec{})
		w.wantIn(token)
		const other = "globex"
		w.must(tenant.Configure(w.ctx, d.For(other), "test", w.clock, func(tx db.Tx, log *tenant.History) error {
			log.Record("tenant", other, nil, other)
			return tenant.Put(w.ctx, tx, &tenant.Tenant{ID: other, Hosts: []string{"globex.localhost"}, Settings: tenant.DefaultSettings()}, 1)
		}))
		c, err := w.dir.Current(w.ctx, other)
		w.must(err)
		if r, err := w.keys.Resolve(w.ctx, c, token); r != nil || !errors.Is(err, ErrUnauthorized) {
			t.Errorf("resolves to %+v, %v", r, err)
		}
		if err := w.keys.Delete(w.ctx, "x", other, k.ID); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("delete: %v", err)
		}
		if _, _, err := w.keys.Create(w.ctx, "x", other, CreateSpec{UserID: k.UserID, Name: "n", RateLimitPerMinute: 1}); fault.CodeOf(err) != fault.Validation {
			t.Errorf("create for another tenant's user: %v", err)
		}
		if _, _, err := w.keys.Create(w.ctx, "x", "nobody", CreateSpec{UserID: k.UserID, Name: "n", RateLimitPerMinute: 1}); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("create in no tenant: %v", err)
		}
		w.wantIn(token)
	})
}

func TestEveryNodeSeesAChangeWithinASecond(t *testing.T) {
	for _, engine := range dbtest.Engines {
		t.Run(string(engine), func(t *testing.T) {
			c := dbtest.Config(t, engine)
			w := newWorld(t, dbtest.OpenConfig(t, c))
			other := node(t, dbtest.OpenConfig(t, c))
			within := func(what, token string, in bool) {
				t.Helper()
				start := time.Now()
				for {
					if _, err := other.resolve(token); (err == nil) == in {
						return
					} else if err != nil && !errors.Is(err, ErrUnauthorized) {
						t.Fatal(err)
					}
					if time.Since(start) > time.Second {
						t.Fatalf("%s: not seen after %v", what, time.Since(start))
					}
					time.Sleep(2 * time.Millisecond)
				}
			}
			k, token := w.create(CreateSpec{})
			within("creation", token, true)
			w.setActive(sam, false)
			w.wantOut(token, "deactivated")
			within("deactivation", token, false)
			w.setActive(sam, true)
			within("reactivation", token, true)
			w.must(w.keys.Delete(w.ctx, "olivia", acme, k.ID))
			w.wantOut(token, "deleted")
			within("deletion", token, false)
		})
	}
}

func TestEveryFailingFieldIsNamed(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newWorld(t, d)
		w.user("gone@acme.example", user.Internal)
		w.setActive("gone@acme.example", false)
		good := CreateSpec{Email: sam, Name: "n", RateLimitPerMinute: 1}
		past := clock.Micros(w.clock.Now())
		for _, c := range []struct {
			change func(*CreateSpec)
			fields string
		}{
			{func(s *CreateSpec) {}, ""},
			{func(s *CreateSpec) { s.Name = strings.Repeat("ż", 100) }, ""},
			{func(s *CreateSpec) { s.RateLimitPerMinute = 1_000_000_000 }, ""},
			{func(s *CreateSpec) { s.Origins = []string{" https://Portal.example:443 ", "", "capacitor://localhost"} }, ""},
			{func(s *CreateSpec) { s.Allowlist = []string{"192.0.2.1", "10.0.0.0/8", ""} }, ""},
			{func(s *CreateSpec) { s.ExpiresAt = past + 1 }, ""},
			{func(s *CreateSpec) { s.Name = " " }, "name"},
			{func(s *CreateSpec) { s.Name = strings.Repeat("ż", 101) }, "name"},
			{func(s *CreateSpec) { s.Name = "a\x00b" }, "name"},
			{func(s *CreateSpec) { s.Name = "a\x1b[2Jb" }, "name"},
			{func(s *CreateSpec) { s.Name = "a\xff" }, "name"},
			{func(s *CreateSpec) { s.RateLimitPerMinute = 0 }, "rate_limit_per_minute"},
			{func(s *CreateSpec) { s.RateLimitPerMinute = -1 }, "rate_limit_per_minute"},
			{func(s *CreateSpec) { s.RateLimitPerMinute = 1_000_000_001 }, "rate_limit_per_minute"},
			{func(s *CreateSpec) { s.Origins = []string{"*"} }, "cors_allowed_origins"},
			{func(s *CreateSpec) { s.Origins = []string{"null"} }, "cors_allowed_origins"},
			{func(s *CreateSpec) { s.Origins = []string{"portal.example"} }, "cors_allowed_origins"},
			{func(s *CreateSpec) { s.Origins = []string{"https://portal.example/x"} }, "cors_allowed_origins"},
			{func(s *CreateSpec) { s.Origins = slices.Repeat([]string{"https://a.example"}, 1001) }, "cors_allowed_origins"},
			{func(s *CreateSpec) { s.Allowlist = []string{"2001:db8::/32"} }, "ip_allowlist"},
			{func(s *CreateSpec) { s.Allowlist = []string{"::ffff:10.0.0.1"} }, "ip_allowlist"},
			{func(s *CreateSpec) { s.Allowlist = []string{"10.0.0.1/8"} }, "ip_allowlist"},
			{func(s *CreateSpec) { s.Allowlist = []string{"10.0.0.0/33"} }, "ip_allowlist"},
			{func(s *CreateSpec) { s.ExpiresAt = past }, "expires_at"},
			{func(s *CreateSpec) { s.ExpiresAt = -1 }, "expires_at"},
			{func(s *CreateSpec) { s.Email = "" }, "user"},
			{func(s *CreateSpec) { s.Email = "nobody@acme.example" }, "user"},
			{func(s *CreateSpec) { s.Email = "gone@acme.example" }, "user"},
			{func(s *CreateSpec) { s.UserID = "no-such-id" }, "user"},
			{
				func(s *CreateSpec) {
					*s = CreateSpec{Origins: []string{"x"}, Allowlist: []string{"x"}, ExpiresAt: 1}
				},
				"cors_allowed_origins expires_at ip_allowlist name rate_limit_per_minute user",
			},
		} {
			spec := good
			c.change(&spec)
			k, _, err := w.keys.Create(w.ctx, "olivia", acme, spec)
			var f *fault.Error
			var names []string
			if errors.As(err, &f) && f.Code == fault.Validation {
				for name := range f.Details["fields"].(map[string]string) {
					names = append(names, name)
				}
				slices.Sort(names)
			} else if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(names, " "); got != c.fields {
				t.Errorf("%+v: names %q, want %q (%v)", spec, got, c.fields, err)
			}
			if err == nil && len(spec.Origins) > 0 && !slices.Equal(k.Origins, []string{"https://portal.example", "capacitor://localhost"}) {
				t.Errorf("origins became %v", k.Origins)
			}
		}
		list, err := w.keys.List(w.ctx, acme)
		w.must(err)
		if len(list) != 6 {
			t.Errorf("%d keys were made, want the 6 valid ones", len(list))
		}
	})
}

func TestKeysAreListedOldestFirstAndRecordedInTheHistory(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newWorld(t, d)
		if list, err := w.keys.List(w.ctx, acme); err != nil || list == nil || len(list) != 0 {
			t.Errorf("no keys: %v, %v", list, err)
		}
		a, _ := w.create(CreateSpec{Name: "a", Allowlist: []string{"10.0.0.1"}, ExpiresAt: clock.Micros(epoch.Add(time.Hour))})
		w.clock.Advance(time.Second)
		b, _ := w.create(CreateSpec{Name: "b"})
		list, err := w.keys.List(w.ctx, acme)
		w.must(err)
		if len(list) != 2 || list[0].ID != a.ID || list[1].ID != b.ID || list[0].ExpiresAt != a.ExpiresAt || list[1].ExpiresAt != 0 ||
			list[0].CreatedAt != clock.Micros(epoch) || !slices.Equal(list[0].Allowlist.Strings(), []string{"10.0.0.1/32"}) {
			t.Errorf("list: %+v", list)
		}
		w.must(w.keys.Delete(w.ctx, "pat@acme.example", acme, a.ID))
		if err := w.keys.Delete(w.ctx, "pat@acme.example", acme, a.ID); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("deleting twice: %v", err)
		}
		changes, err := tenant.Changes(w.ctx, d.For(acme), 10)
		w.must(err)
		var seen []string
		for _, c := range changes {
			if c.Kind == "api_key" {
				seen = append(seen, c.Action+" "+c.Name+" "+c.Actor)
			}
		}
		slices.Sort(seen)
		want := []string{"create a (" + a.Prefix + ") olivia", "create b (" + b.Prefix + ") olivia", "delete a (" + a.Prefix + ") pat@acme.example"}
		if !slices.Equal(seen, want) {
			t.Errorf("history: %q, want %q", seen, want)
		}
	})
}

func TestOnlyTheOwnerMakesKeysForOthers(t *testing.T) {
	w := newWorld(t, dbtest.Open(t, db.SQLite))
	c := w.config()
	viewer := func(email string) access.Viewer {
		u, err := user.ByEmail(w.ctx, w.d.For(acme), email)
		w.must(err)
		v, err := w.dir.Viewer(w.ctx, c, u.ID, false)
		w.must(err)
		return v
	}
	s, e := viewer(sam), viewer(eva)
	owner := access.System(c, "test")
	for _, x := range []struct {
		who  access.Viewer
		user string
		may  bool
	}{
		{owner, s.UserID(), true}, {s, s.UserID(), true}, {s, e.UserID(), false}, {s, "", false},
		{e, e.UserID(), false}, {access.Viewer{}, "", false}, {access.Viewer{}, s.UserID(), false},
	} {
		err := MayCreateFor(x.who, x.user)
		if (err == nil) != x.may || err != nil && fault.CodeOf(err) != fault.Forbidden {
			t.Errorf("%q for %q: %v", x.who.UserID(), x.user, err)
		}
	}
}

// Nobody is let in after a deletion was acknowledged, however many resolve
// meanwhile; run with -race.
func TestResolvingWhileKeysChange(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newWorld(t, d)
		_, steady := w.create(CreateSpec{Origins: []string{"https://portal.example"}})
		stop := make(chan struct{})
		var wait sync.WaitGroup
		for range 4 {
			wait.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					c, err := w.dir.ByHost(w.ctx, host)
					if err != nil {
						t.Error(err)
						return
					}
					r, err := w.keys.Resolve(w.ctx, c, steady)
					if err != nil {
						t.Errorf("the steady key: %v", err)
						return
					}
					w.keys.Touch(r.Key)
					if ok, err := w.keys.AllowsOrigin(w.ctx, c, "https://portal.example"); !ok || err != nil {
						t.Errorf("its origin: %v, %v", ok, err)
						return
					}
				}
			})
		}
		for range 10 {
			k, token := w.create(CreateSpec{})
			w.wantIn(token)
			w.must(w.keys.Delete(w.ctx, "olivia", acme, k.ID))
			w.wantOut(token, "deleted")
		}
		close(stop)
		wait.Wait()
	})
}

func BenchmarkResolve(b *testing.B) {
	w := newWorld(b, dbtest.Open(b, db.SQLite))
	_, plain := w.create(CreateSpec{})
	_, expiring := w.create(CreateSpec{ExpiresAt: clock.Micros(time.Now().AddDate(100, 0, 0))})
	keys := New(w.d, clock.System(), w.dir)
	c := w.config()
	for name, token := range map[string]string{"plain": plain, "expiring": expiring} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := keys.Resolve(w.ctx, c, token); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("touch", func(b *testing.B) {
		r, err := keys.Resolve(w.ctx, c, plain)
		w.must(err)
		b.ReportAllocs()
		for b.Loop() {
			keys.Touch(r.Key)
		}
	})
	w.must(keys.Close(w.ctx))
}
