package apikey

import (
	"errors"
	"fmt"
	"net/netip"
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
)

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
		if !strings.Contains(stored.String(), string(secret.Hash(token2))) || strings.Contains(stored.String(), string(secret.Hash(token))) {
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
		w.must(tenant.Configure(w.ctx, d.For(other), "test", w.clock, func(tx tenant.ConfigTx, log *tenant.History) error {
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
					if time.Since(start) > 10*time.Second { // TestProveCommandsTakeEffect judges the second
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
					c, _, err := w.dir.ByHost(w.ctx, host)
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
