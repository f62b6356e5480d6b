package tenant_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/fault"
	"gatehouse/internal/tenant"
	"gatehouse/internal/tenant/tenanttest"
)

func put(t *testing.T, d *db.DB, id string, hosts ...string) error {
	t.Helper()
	return tenanttest.Change(t.Context(), d.For(tenant.ID(id)), func(tx tenant.ConfigTx) error {
		return tenant.Put(t.Context(), tx, &tenant.Tenant{ID: tenant.ID(id), Hosts: hosts, Settings: tenant.DefaultSettings()}, 1)
	})
}

func TestConfigure(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx, h := t.Context(), d.For("acme")
		if err := put(t, d, "acme", "acme.example"); err != nil {
			t.Fatal(err)
		}
		version := func() int64 {
			v, ok, err := tenant.Version(ctx, h)
			if err != nil || !ok {
				t.Fatal(ok, err)
			}
			return v
		}
		errRefused := errors.New("refused")
		var leaked tenant.ConfigTx
		for _, c := range []struct {
			what    string
			fn      func(tx tenant.ConfigTx, log *tenant.History) error
			raises  int64
			history int
			err     error
		}{
			{"nothing recorded", func(tenant.ConfigTx, *tenant.History) error { return nil }, 0, 0, nil},
			{"equal to nothing", func(_ tenant.ConfigTx, log *tenant.History) error { log.Record("role", "x", nil, nil); return nil }, 0, 0, nil},
			{"kept", func(_ tenant.ConfigTx, log *tenant.History) error { log.Keep(); return nil }, 1, 0, nil},
			{"recorded", func(tx tenant.ConfigTx, log *tenant.History) error {
				leaked = tx
				log.Record("role", "x", nil, map[string]string{"parent": ""})
				log.Record("role", "x", map[string]string{"parent": ""}, nil)
				return nil
			}, 1, 2, nil},
			{"refused", func(_ tenant.ConfigTx, log *tenant.History) error { log.Record("role", "y", nil, 1); return errRefused }, 0, 2, errRefused},
		} {
			before := version()
			if err := tenant.Configure(ctx, h, "test", clock.System(), c.fn); !errors.Is(err, c.err) {
				t.Errorf("%s: %v", c.what, err)
			}
			if raised := version() - before; raised != c.raises {
				t.Errorf("%s: the version was raised by %d", c.what, raised)
			}
			changes, err := tenant.Changes(ctx, h, 0)
			if err != nil || len(changes) != c.history {
				t.Errorf("%s: %d changes, %v", c.what, len(changes), err)
			}
			for _, ch := range changes {
				if ch.Actor != "test" || (ch.Before == nil) != (ch.Action == "create") || (ch.After == nil) != (ch.Action == "delete") {
					t.Errorf("%s: %+v", c.what, ch)
				}
			}
		}
		if _, err := leaked.Exec(ctx, `DELETE FROM tenants WHERE tenant_id = $1`); err == nil {
			t.Error("a ConfigTx outlives its Configure")
		}
	})
}

func TestAHostBelongsToOneTenant(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		if err := errors.Join(put(t, d, "acme", "one.example"), put(t, d, "globex", "two.example")); err != nil {
			t.Fatal(err)
		}
		if err := put(t, d, "globex", "one.example"); fault.CodeOf(err) != fault.Conflict || !strings.Contains(err.Error(), "one.example") {
			t.Errorf("a host that another tenant has: %v", err)
		}
		id, _, _, ok, err := tenant.ByHost(t.Context(), d, "two.example")
		if err != nil || !ok || id != "globex" {
			t.Errorf("%s %v %v", id, ok, err)
		}
	})
}

func TestADeletedTenantIsGoneAndItsNameTaken(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx := t.Context()
		if _, err := tenant.Delete(ctx, d, "acme"); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("a tenant that never was: %v", err)
		}
		if err := put(t, d, "acme", "acme.example"); err != nil {
			t.Fatal(err)
		}
		if _, err := tenant.Delete(ctx, d, "acme"); err != nil {
			t.Fatal(err)
		}
		if _, _, _, ok, err := tenant.ByHost(ctx, d, "acme.example"); ok || err != nil {
			t.Error("its host leads to it", err)
		}
		if _, err := tenant.Load(ctx, d.For("acme")); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("it is there: %v", err)
		}
		if err := put(t, d, "acme", "acme.example"); fault.CodeOf(err) != fault.Conflict {
			t.Errorf("its name is free at once: %v", err)
		}
	})
}

func TestTicksGrowWhateverTheClockSays(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		var got []int64
		for _, now := range []int64{100, 100, 50} {
			err := d.For("acme").Write(t.Context(), func(tx db.Tx) error {
				first, err := tenant.Ticks(t.Context(), tx, now, 3)
				got = append(got, first)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if got[0] != 100 || got[1] != 103 || got[2] != 106 {
			t.Error(got)
		}
	})
}

// Instants that writes draw at once, some of which share a transaction and some of which fail, are drawn once each,
// and the clock that stands still goes on after the last of them.
func TestTicksOfSharedTransactions(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		const now, writers, each = 100, 8, 25
		failed := errors.New("failed")
		var mu sync.Mutex
		drawn := map[int64]bool{}
		var all sync.WaitGroup
		for w := range writers {
			all.Go(func() {
				for n := range each {
					var first int64
					write := d.For("acme").WriteOrdered
					if n%5 == 4 {
						write = d.For("acme").Write
					}
					err := write(t.Context(), func(tx db.Tx) (err error) {
						if first, err = tenant.Ticks(t.Context(), tx, now, 2); err != nil || (w+n)%7 > 0 {
							return err
						}
						return failed
					})
					mu.Lock()
					if (w+n)%7 == 0 {
						if !errors.Is(err, failed) {
							t.Error(err)
						}
					} else if err != nil || drawn[first] || drawn[first+1] {
						t.Errorf("%d was drawn twice, or %v", first, err)
					} else {
						drawn[first], drawn[first+1] = true, true
					}
					mu.Unlock()
				}
			})
		}
		all.Wait()
		most := slices.Max(slices.Collect(maps.Keys(drawn)))
		err := d.For("acme").Write(t.Context(), func(tx db.Tx) error {
			next, err := tenant.Tick(t.Context(), tx, now)
			if next <= most {
				t.Errorf("%d comes after %d", next, most)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestCheckID(t *testing.T) {
	for id, good := range map[string]bool{
		"acme": true, "a-1": true, strings.Repeat("a", 63): true,
		"": false, "1a": false, "Acme": false, "a_b": false, "a b": false, "a\n": false, "ä": false, strings.Repeat("a", 64): false,
	} {
		if (tenant.CheckID(id) == nil) != good {
			t.Errorf("%q: good is %v", id, !good)
		}
	}
}
