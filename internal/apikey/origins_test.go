package apikey

import (
	"slices"
	"testing"
	"time"

	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/tenant"
)

func TestAPreflightIsAnsweredByTheUnionOfActiveKeys(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newWorld(t, d)
		want := func(why string, origins ...string) {
			t.Helper()
			got, err := w.keys.UnionOrigins(w.ctx, w.config())
			w.must(err)
			slices.Sort(origins)
			if !slices.Equal(got, origins) {
				t.Errorf("%s: union is %v, want %v", why, got, origins)
			}
			for _, o := range []string{"https://a.example", "https://b.example", "https://c.example", "https://acme.example", "null", ""} {
				ok, err := w.keys.AllowsOrigin(w.ctx, w.config(), o)
				w.must(err)
				if ok != slices.Contains(origins, o) {
					t.Errorf("%s: %s is allowed: %v", why, o, ok)
				}
			}
		}
		want("no keys")
		w.create(CreateSpec{})
		first, _ := w.create(CreateSpec{Origins: []string{"https://a.example", "https://b.example"}})
		w.create(CreateSpec{Email: eva, Origins: []string{"https://c.example"}})
		want("two keys", "https://a.example", "https://b.example", "https://c.example")
		w.create(CreateSpec{Origins: []string{"https://a.example"}, ExpiresAt: clock.Micros(epoch.Add(time.Hour))})
		w.must(w.keys.Delete(w.ctx, "olivia", acme, first.ID))
		want("one deleted", "https://a.example", "https://c.example")
		w.setActive(eva, false)
		want("one's user deactivated", "https://a.example")
		w.clock.Advance(time.Hour - time.Microsecond)
		want("just before expiry", "https://a.example")
		w.clock.Advance(time.Microsecond)
		want("expired, with no change of configuration")
		w.setActive(eva, true)

		settings := tenant.DefaultSettings()
		settings.ExternalIdentity.Enabled = true
		settings.ExternalIdentity.AppURL = "https://ACME.example:443/portal"
		w.configure(func(tx tenant.ConfigTx, log *tenant.History) error {
			log.Record("tenant", acme, 1, 2)
			return tenant.Put(w.ctx, tx, &tenant.Tenant{ID: acme, Hosts: []string{host}, BaseURL: "https://x.example", Settings: settings}, 1)
		})
		want("External Identity enabled", "https://acme.example", "https://c.example")
		if ok, err := w.keys.AllowsOrigin(w.ctx, w.config(), "HTTPS://C.example:443"); !ok || err != nil {
			t.Errorf("another form of a listed origin: %v, %v", ok, err)
		}
	})
}

func TestAKeysOriginsAreItsOwn(t *testing.T) {
	k := &Key{Origins: []string{"https://a.example"}}
	for origin, want := range map[string]bool{
		"https://a.example": true, "HTTPS://A.example:443": true, "http://a.example": false, "https://a.example:8443": false,
		"https://a.example.evil.example": false, "null": false, "": false, "*": false,
	} {
		if k.AllowsOrigin(origin) != want {
			t.Errorf("%q: %v", origin, !want)
		}
	}
	if (&Key{}).AllowsOrigin("https://a.example") {
		t.Error("an empty list allows a browser")
	}
}
