package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/tenant"
	"gatehouse/internal/tenant/tenanttest"
	"gatehouse/internal/user"
)

func makeTenant(t testing.TB, d *db.DB, id string) db.Handle {
	t.Helper()
	h := d.For(tenant.ID(id))
	err := tenanttest.Change(t.Context(), h, func(tx tenant.ConfigTx) error {
		return tenant.Put(t.Context(), tx, &tenant.Tenant{ID: tenant.ID(id), Hosts: []string{id + ".localhost"}, Settings: tenant.DefaultSettings()}, 1)
	})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func makeUser(t testing.TB, h db.Handle, id, email string) {
	t.Helper()
	err := tenanttest.Change(t.Context(), h, func(tx tenant.ConfigTx) error {
		tick, err := tenant.Tick(t.Context(), tx, 1)
		if err != nil {
			return err
		}
		return user.Insert(t.Context(), tx, &user.User{ID: user.ID(id), Email: email, Type: user.Internal, Active: true, CreatedAt: tick, UpdatedAt: tick})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// number returns the single number that a query selects.
func number(t *testing.T, h db.Handle, sql string, args ...any) (n int64) {
	t.Helper()
	if err := h.Query(t.Context(), sql, func(r db.Row) error { n = r.Int(0); return nil }, args...); err != nil {
		t.Fatal(err)
	}
	return n
}

func ids(t *testing.T, d *db.DB, tenant tenant.ID, f Filter) (list []string) {
	t.Helper()
	err := (&Log{DB: d, Tenant: tenant}).Query(t.Context(), f, func(e *Entry) error { list = append(list, e.RequestID); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestNothingIsLostOnEitherEngine(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		r := NewRecorder(d, clock.System(), Options{})
		var wait sync.WaitGroup
		const callers, each = 64, 60
		for c := range callers {
			wait.Go(func() {
				for i := range each {
					r.Record(entry(tenant.ID(fmt.Sprintf("t%d", c%4)), int64(c*each+i)))
				}
			})
		}
		wait.Wait()
		closeRecorder(t, r)
		for n := range 4 {
			h := d.For(tenant.ID(fmt.Sprintf("t%d", n)))
			const want = callers * each / 4
			if got := ids(t, d, h.Tenant(), Filter{}); len(got) != want {
				t.Errorf("%d entries of %d", len(got), want)
			}
			if got := number(t, h, `SELECT CAST(SUM(requests) AS BIGINT) FROM usage_minutes WHERE tenant_id = $1`); got != want {
				t.Errorf("%d requests of %d", got, want)
			}
		}
	})
}

// Two nodes count in one database.
func TestUsageOfTwoNodesAddsUp(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		var wait sync.WaitGroup
		const each = 2000
		for range 2 {
			wait.Go(func() {
				r := NewRecorder(d, clock.System(), Options{})
				for i := range each {
					ev := entry("t", int64(i)*50_000)
					ev.Persist, ev.Status, ev.Endpoint = false, 200+200*(i%2), fmt.Sprintf("/data/e%d", i%30)
					r.Record(ev)
					if i%100 == 0 {
						time.Sleep(10 * time.Millisecond)
					}
				}
				closeRecorder(t, r)
			})
		}
		wait.Wait()
		h := d.For("t")
		for sql, want := range map[string]int64{
			"requests": 2 * each, "errors": each, "latency_us": 2 * each * 1000, "le_1": 2 * each, "failed + limited": 0,
			"le_2 + le_5 + le_10 + le_25 + le_50 + le_100 + le_250 + le_500 + le_1000 + le_2500 + le_5000 + slower": 0,
		} {
			if got := number(t, h, `SELECT CAST(SUM(`+sql+`) AS BIGINT) FROM usage_minutes WHERE tenant_id = $1`); got != want {
				t.Errorf("%s: %d, want %d", sql, got, want)
			}
		}
	})
}

func TestHostileTextIsStoredByBothEngines(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		r := NewRecorder(d, clock.System(), Options{})
		makeTenant(t, d, "t")
		hostile := "a\x00b\xff\u2028\x1b" + strings.Repeat("é", 5000)
		ev := entry("t", 1)
		ev.Method, ev.Path, ev.Query, ev.IP, ev.RequestID, ev.UserID, ev.Endpoint = hostile, hostile, hostile, hostile, hostile, user.ID(hostile), hostile
		ev.RequestHeader = map[string][]string{"Origin": {hostile}, hostile: {hostile}}
		ev.RequestBody, ev.ResponseBody, ev.ContentType = []byte(hostile), []byte(`{"a":"`+"\\u0000"+`"}`), hostile
		r.Record(ev)
		short := entry("t", 2)
		short.Path, short.Endpoint, short.UserID = hostile[:10], hostile[:10], user.ID(hostile[:10])
		r.Record(short)
		closeRecorder(t, r)
		if r.Stats().Failures > 0 {
			t.Errorf("%+v", r.Stats())
		}
		n := 0
		err := (&Log{DB: d, Tenant: "t"}).Query(t.Context(), Filter{}, func(e *Entry) error {
			n++
			line := append(e.AppendJSON(nil), '\n')
			checkLine(t, line)
			return nil
		})
		if err != nil || n != 2 {
			t.Errorf("%d entries, %v", n, err)
		}
	})
}

func TestRetentionDropsWholeDaysAndNothingElse(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		midnight := noon.Truncate(24 * time.Hour)
		clk := clock.NewFake(noon)
		names := []string{"a", "b"}
		r := NewRecorder(d, clk, Options{})
		const old, fresh = 1200, 50
		for _, name := range names {
			makeUser(t, makeTenant(t, d, name), "gone-"+name, "gone@"+name)
			for i := range old {
				ev := entry(tenant.ID(name), 0)
				ev.Start, ev.UserID = midnight.Add(-Retention-time.Duration(i+1)*time.Minute*2), user.ID("gone-"+name)
				r.Record(ev)
			}
			for i := range fresh { // from the first moment of the day in which Retention ends
				ev := entry(tenant.ID(name), 0)
				ev.Start, ev.RequestID = midnight.Add(-Retention+time.Duration(i)*time.Microsecond), "fresh"
				r.Record(ev)
			}
			counted := entry(tenant.ID(name), 0)
			counted.Start, counted.Persist = noon.Add(-Retention), false
			r.Record(counted)
		}
		closeRecorder(t, r)
		if days, err := d.Days().List(t.Context()); err != nil || len(days) != 3 {
			t.Fatalf("%v %v", days, err)
		}
		clk.Advance(2 * time.Hour) // addresses last as long as entries
		nodes, stop := context.WithCancel(t.Context())
		var wait sync.WaitGroup
		r2 := NewRecorder(d, clock.NewFake(noon), Options{})
		for range 3 { // three nodes at once
			wait.Go(func() { r2.RunRetention(nodes) })
		}
		deadline := time.Now().Add(20 * time.Second)
		for time.Now().Before(deadline) {
			if days, err := d.Days().List(t.Context()); err != nil {
				t.Fatal(err)
			} else if len(days) == 1 {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		stop()
		wait.Wait() // RunRetention returns
		if days, err := d.Days().List(t.Context()); err != nil || len(days) != 1 || days[0] != db.DayOf(noon.Add(-Retention)) {
			t.Errorf("left: %v %v", days, err)
		}
		for _, name := range names {
			if got := ids(t, d, tenant.ID(name), Filter{}); len(got) != fresh || slices.ContainsFunc(got, func(id string) bool { return id != "fresh" }) {
				t.Errorf("%d entries are left: %v", len(got), got)
			}
		}
		if err := (dbStore{d: d}).expire(t.Context(), noon.Add(-Retention)); err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			h := d.For(tenant.ID(name))
			if n := number(t, h, `SELECT COUNT(*) FROM usage_minutes WHERE tenant_id = $1`); n != 1 {
				t.Errorf("%d minutes of usage are left, want the one that is not over", n)
			}
			if n := number(t, h, `SELECT COUNT(*) FROM audit_users WHERE tenant_id = $1`); n != 1 {
				t.Errorf("%d addresses", n)
			}
		}
		if err := (dbStore{d: d}).expire(t.Context(), noon.Add(24*time.Hour)); err != nil {
			t.Fatal(err)
		}
		for _, table := range []string{"audit_users", "usage_writers", "usage_minutes", "usage_keys"} {
			if n := number(t, d.For("a"), `SELECT COUNT(*) FROM `+table+` WHERE tenant_id = $1`); n != 0 {
				t.Errorf("%d rows of %s are left", n, table)
			}
		}
		closeRecorder(t, r2)
	})
}

// A commit whose answer was lost is run again; nothing counts twice.
func TestAWriteThatIsRunAgainCountsOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := makeTenant(t, d, "acme")
		b := blockOf(entry("acme", 1), entry("acme", 2))
		u := newUsage()
		u.count(entry("acme", 1))
		u.count(entry("acme", 2))
		usage := u.take(func(tenant.ID) bool { return false })["acme"]
		s := dbStore{d: d, writer: "w"}
		for range 3 {
			if err := s.write(t.Context(), "acme", b.day, []packed{b.pack()}); err != nil {
				t.Fatal(err)
			}
			if err := s.count(t.Context(), "acme", 1, usage); err != nil {
				t.Fatal(err)
			}
		}
		if n := number(t, h, `SELECT requests FROM usage_minutes WHERE tenant_id = $1`); n != 2 || len(ids(t, d, "acme", Filter{})) != 2 {
			t.Errorf("%d requests counted, %d entries", n, len(ids(t, d, "acme", Filter{})))
		}
		if err := s.count(t.Context(), "acme", 2, usage); err != nil {
			t.Fatal(err)
		}
		if err := (dbStore{d: d, writer: "another"}).count(t.Context(), "acme", 1, usage); err != nil {
			t.Fatal(err)
		}
		if n := number(t, h, `SELECT requests FROM usage_minutes WHERE tenant_id = $1`); n != 6 {
			t.Errorf("%d requests counted, want 6", n)
		}
	})
}

// blockOf is a block with entries.
func blockOf(events ...*Event) *block {
	b := &block{tenant: events[0].Tenant, day: int64(db.DayOf(events[0].Start))}
	for _, ev := range events {
		enc := &encoder{}
		enc.encode(ev)
		enc.addTo(b)
	}
	return b
}

// refusing fails the writes that it is told to fail.
type refusing struct {
	dbStore
	fails func(blocks []packed) error
}

func (s refusing) write(ctx context.Context, tenant tenant.ID, day int64, blocks []packed) error {
	if err := s.fails(blocks); err != nil {
		return err
	}
	return s.dbStore.write(ctx, tenant, day, blocks)
}

// Entries that are written one by one, because their block is refused, are not
// written again with it, and the others are not given up, when that fails half-way.
func TestSalvageGoesOnWhereItFailed(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		makeTenant(t, d, "acme")
		tries, singles := 0, 0
		s := refusing{dbStore{d, clock.NewID(noon)}, func(blocks []packed) error {
			tries++
			if blocks[0].entries == 1 {
				singles++
			}
			// The block is refused until three of its entries are written; then
			// everything is refused for a time, and then nothing.
			if tries < 11 && (blocks[0].entries > 1 || singles > 3) {
				return errors.New("refused")
			}
			return nil
		}}
		r := newRecorder(s, clock.System(), Options{})
		var want []string
		for i := range 6 {
			ev := entry("acme", 0)
			// The newest one ends first: the block has its id.
			ev.Start, ev.RequestID = noon.Add(-time.Duration(i)*time.Second), fmt.Sprint(i)
			want = append(want, ev.RequestID)
			r.Record(ev)
		}
		closeRecorder(t, r)
		if got := ids(t, d, "acme", Filter{}); !slices.Equal(got, want) || singles <= 3 {
			t.Errorf("%v after %d tries, %d of them of one entry; want %v", got, tries, singles, want)
		}
	})
}
