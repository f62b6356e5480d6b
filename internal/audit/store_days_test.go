package audit

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// Requests end in another order than they begin, so blocks overlap in time,
// especially those of several nodes; the log is in the order in which requests
// began, across blocks and days.
func TestBlocksThatOverlapAreReadInOrder(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := makeTenant(t, d, "acme")
		for _, name := range []string{"ana", "ben", "cem"} {
			makeUser(t, h, name, name+"@acme.example")
		}
		random := rand.New(rand.NewPCG(1, 2))
		midnight := noon.Truncate(24 * time.Hour).Add(24 * time.Hour)
		type arrival struct {
			ev *Event
			at time.Time
		}
		var events []*Event
		var arrivals []arrival
		for i := range 2000 {
			ev := entry("acme", 0)
			ev.Start, ev.RequestID = midnight.Add(time.Duration(i-1000)*100*time.Millisecond), fmt.Sprint(i)
			ev.UserID = []user.ID{"ana", "ben", "ben", "ben", "cem", ""}[random.IntN(6)]
			ev.Endpoint = []string{"/data/contact", "/data/account", "/me", "/custom/a"}[random.IntN(4)]
			if random.IntN(10) == 0 {
				ev.Status = 500
			}
			events = append(events, ev)
			delay := time.Duration(random.IntN(200)) * time.Millisecond
			if random.IntN(20) == 0 {
				delay *= 300 // a minute, as the slowest requests take
			}
			arrivals = append(arrivals, arrival{ev, ev.Start.Add(delay)})
		}
		slices.SortFunc(arrivals, func(a, b arrival) int { return cmp.Compare(a.at.UnixMicro(), b.at.UnixMicro()) })
		open := map[int64]*block{} // by day
		flush := func(b *block) {
			if err := (dbStore{d: d}).write(t.Context(), "acme", b.day, []packed{b.pack()}); err != nil {
				t.Fatal(err)
			}
		}
		for _, a := range arrivals {
			day := int64(db.DayOf(a.ev.Start))
			if open[day] == nil {
				open[day] = &block{tenant: "acme", day: day}
			}
			enc := &encoder{}
			enc.encode(a.ev)
			enc.addTo(open[day])
			if open[day].entries >= 7 {
				flush(open[day])
				delete(open, day)
			}
		}
		for _, b := range open {
			flush(b)
		}
		for _, f := range []Filter{
			{}, {Limit: 50}, {User: "ana@acme.example"}, {User: "ben@acme.example", Limit: 40}, {Endpoint: "/data/*"}, {Endpoint: "/me", ErrorsOnly: true},
			{ErrorsOnly: true, Limit: 33}, {User: "cem@acme.example", Endpoint: "/data/*", ErrorsOnly: true}, {Endpoint: "/custom/none"},
		} {
			if got, want := ids(t, d, "acme", f), expected(events, f); !slices.Equal(got, want) {
				t.Errorf("%+v: %d entries %.80v…, want %d %.80v…", f, len(got), got, len(want), want)
			}
		}
		var got []string // page by page, from one entry to those before it
		for f := (Filter{Limit: 333}); ; {
			n, last := len(got), ""
			err := (&Log{DB: d, Tenant: "acme"}).Query(t.Context(), f, func(e *Entry) error { got, last = append(got, e.RequestID), e.ID; return nil })
			if err != nil {
				t.Fatal(err)
			}
			if f.Before = last; len(got) == n {
				break
			}
		}
		if want := expected(events, Filter{}); !slices.Equal(got, want) {
			t.Errorf("%d entries page by page, want %d", len(got), len(want))
		}
	})
}

// A day whose file is damaged is reported and left out; the server sets the file
// aside and continues in a new one.
func TestADamagedDayStopsNeitherQueryNorRecorder(t *testing.T) {
	c := dbtest.Config(t, db.SQLite)
	record := func(d *db.DB, from, to int) *Recorder {
		r := NewRecorder(d, clock.System(), Options{})
		for i := from; i < to; i++ {
			ev := entry("acme", int64(i))
			ev.Start = noon.Add(time.Duration(i-20) * time.Hour)
			r.Record(ev)
		}
		closeRecorder(t, r)
		return r
	}
	begun := dbtest.OpenConfig(t, c)
	makeTenant(t, begun, "acme")
	record(begun, 0, 30) // of two days
	if err := begun.Close(); err != nil {
		t.Fatal(err)
	}
	today := db.DayOf(noon)
	file := filepath.Join(c.Dir, db.DaysFolder, today.String()+".db")
	if err := os.WriteFile(file, []byte(strings.Repeat("garbage ", 5000)), 0o600); err != nil {
		t.Fatal(err)
	}
	d := dbtest.OpenConfig(t, c)
	query := func() (entries int, skipped []string) {
		log := Log{DB: d, Tenant: "acme", Skipped: func(day string, err error) { skipped = append(skipped, day) }}
		if err := log.Query(t.Context(), Filter{}, func(*Entry) error { entries++; return nil }); err != nil {
			t.Fatal(err)
		}
		return entries, slices.Compact(skipped)
	}
	if n, skipped := query(); n != 8 || !slices.Equal(skipped, []string{today.String()}) {
		t.Errorf("%d entries without %v", n, skipped)
	}
	if err := (&Log{DB: d, Tenant: "acme"}).Query(t.Context(), Filter{}, func(*Entry) error { return nil }); err == nil {
		t.Error("where nobody hears of it, it is no error")
	}
	if r := record(d, 20, 25); r.Stats().Written != 5 || r.Stats().Failures == 0 {
		t.Errorf("%+v", r.Stats())
	}
	if n, skipped := query(); n != 8+5 || len(skipped) != 0 {
		t.Errorf("%d entries without %v", n, skipped)
	}
	// A day whose blocks are all damaged has no entries left.
	err := d.Days().Write(t.Context(), "acme", today, func(tx db.Tx) error {
		_, err := tx.Exec(t.Context(), `UPDATE audit_blocks SET head = $3 WHERE tenant_id = $1 AND day = $2`, int64(today), []byte("garbage"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if n, skipped := query(); n != 8 || !slices.Equal(skipped, []string{today.String()}) {
		t.Errorf("%d entries without %v", n, skipped)
	}
}

// A damaged block loses its own entries, and no others of its day.
func TestADamagedBlockIsLeftOut(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		makeTenant(t, d, "acme")
		var blocks []string // their ids
		for i := range 4 {
			b := block{tenant: "acme", day: int64(db.DayOf(noon))}
			for n := range 3 {
				ev := entry("acme", int64(3*i+n))
				enc := &encoder{}
				enc.encode(ev)
				enc.addTo(&b)
			}
			blocks = append(blocks, b.last)
			if err := (dbStore{d: d}).write(t.Context(), "acme", b.day, []packed{b.pack()}); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []struct {
			column, block string
			want          int
		}{{"head", blocks[1], 9}, {"bodies", blocks[2], 6}} {
			err := d.Days().Write(t.Context(), "acme", db.DayOf(noon), func(tx db.Tx) error {
				_, err := tx.Exec(t.Context(), `UPDATE audit_blocks SET `+c.column+` = $4 WHERE tenant_id = $1 AND day = $2 AND last_id = $3`,
					int64(db.DayOf(noon)), c.block, []byte("garbage"))
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			n, told := 0, 0
			log := Log{DB: d, Tenant: "acme", Skipped: func(string, error) { told++ }}
			if err := log.Query(t.Context(), Filter{}, func(*Entry) error { n++; return nil }); err != nil || n != c.want || told == 0 {
				t.Errorf("%s of a block damaged: %d entries, want %d; told %d times; %v", c.column, n, c.want, told, err)
			}
		}
	})
}

// A tenant reads only its own blocks, whatever it asks for.
func TestATenantsLogHasNothingOfAnothers(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		r := NewRecorder(d, clock.System(), Options{})
		for i := range 500 {
			ev := entry(tenant.ID(fmt.Sprint("t", i%5)), int64(i))
			ev.ResponseBody, ev.Rendered = []byte(fmt.Sprintf(`{"of":"t%d"}`, i%5)), true
			r.Record(ev)
		}
		closeRecorder(t, r)
		for n := range 5 {
			seen := 0
			err := (&Log{DB: d, Tenant: tenant.ID(fmt.Sprint("t", n))}).Query(t.Context(), Filter{}, func(e *Entry) error {
				if seen++; e.Response != fmt.Sprintf(`{"body":{"of":"t%d"}}`, n) {
					t.Errorf("t%d reads %s", n, e.Response)
				}
				return nil
			})
			if err != nil || seen != 100 {
				t.Errorf("%d entries, %v", seen, err)
			}
		}
	})
}
