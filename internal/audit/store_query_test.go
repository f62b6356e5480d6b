package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/clock"
	"gatehouse/internal/credential"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/fault"
	"gatehouse/internal/tenant"
	"gatehouse/internal/tenant/tenanttest"
	"gatehouse/internal/user"
)

// fill records n events of many kinds and returns them, oldest first.
func fill(t *testing.T, d *db.DB, n int) []*Event {
	t.Helper()
	random := rand.New(rand.NewPCG(7, 7))
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	r := NewRecorder(d, clock.System(), Options{})
	var events []*Event
	for i := range n {
		ev := entry("acme", int64(i))
		ev.Endpoint = pick("/data/contact", "/data/account", "/data/user", "/me", "/custom/a", "/custom/b", "/auth/login", "/data0", "")
		ev.UserID = user.ID(pick("ana", "ana", "ben", "cem", ""))
		if random.IntN(4) == 0 {
			ev.Status = 404
		}
		events = append(events, ev)
		r.Record(ev)
		if i%10 == 0 { // the neighbour's log is not shown
			r.Record(entry("umbrella", int64(i)))
		}
	}
	closeRecorder(t, r)
	return events
}

func TestQueryFilters(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := makeTenant(t, d, "acme")
		for _, name := range []string{"ana", "ben", "cem"} {
			makeUser(t, h, name, name+"@acme.example")
		}
		events := fill(t, d, 3000)
		for _, who := range []string{"", "ana@acme.example", " BEN@acme.example"} {
			for _, endpoint := range []string{"", "/data/*", "/me", "/custom/*", "/custom/a", "/custom/none", "/data/contact", "/auth/*"} {
				for _, errorsOnly := range []bool{false, true} {
					for _, limit := range []int{0, 1, 32, 33} {
						f := Filter{User: who, Endpoint: endpoint, ErrorsOnly: errorsOnly, Limit: limit}
						if got, want := ids(t, d, "acme", f), expected(events, f); !slices.Equal(got, want) {
							t.Errorf("%+v: %d entries %.60v…, want %d %.60v…", f, len(got), got, len(want), want)
						}
					}
				}
			}
		}
	})
}

// expected returns what a filter selects, found by a linear search.
func expected(events []*Event, f Filter) (list []string) {
	for _, ev := range slices.Backward(events) {
		matches := f.Endpoint == "" || f.Endpoint == ev.Endpoint ||
			strings.HasSuffix(f.Endpoint, "/*") && strings.HasPrefix(ev.Endpoint, strings.TrimSuffix(f.Endpoint, "*"))
		if f.User != "" && strings.TrimSpace(strings.ToLower(f.User)) != string(ev.UserID)+"@acme.example" || !matches || f.ErrorsOnly && ev.Status < 400 {
			continue
		}
		if list = append(list, ev.RequestID); len(list) == f.Limit {
			break
		}
	}
	return list
}

// TestOneRequestAndWhatCameSince: both are bounds of ids, so that no block of
// another time is opened.
func TestOneRequestAndWhatCameSince(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		makeTenant(t, d, "acme")
		r := NewRecorder(d, clock.System(), Options{})
		var events []*Event
		for day := range 3 {
			for i := range 20 {
				ev := entry("acme", 0)
				ev.Start = noon.AddDate(0, 0, day).Add(time.Duration(i) * time.Second)
				ev.RequestID = clock.NewID(ev.Start)
				events = append(events, ev)
				r.Record(ev)
			}
		}
		closeRecorder(t, r)
		for _, i := range []int{0, 19, 20, 33, 59} {
			if got, want := ids(t, d, "acme", Filter{RequestID: events[i].RequestID}), []string{events[i].RequestID}; !slices.Equal(got, want) {
				t.Errorf("the request %s: %v", want, got)
			}
			var want []string
			for _, ev := range slices.Backward(events[i:]) {
				want = append(want, ev.RequestID)
			}
			for about, since := range map[string]time.Time{"the instant": events[i].Start, "just before": events[i].Start.Add(-time.Microsecond)} {
				if got := ids(t, d, "acme", Filter{Since: since}); !slices.Equal(got, want) {
					t.Errorf("since %s of %d: %d entries, want %d", about, i, len(got), len(want))
				}
			}
		}
		if got := ids(t, d, "acme", Filter{RequestID: clock.NewID(events[5].Start)}); got != nil {
			t.Errorf("another request of the same instant: %v", got)
		}
		err := (&Log{DB: d, Tenant: "acme"}).Query(t.Context(), Filter{RequestID: "req-1"}, func(*Entry) error { return nil })
		if fault.CodeOf(err) != fault.Validation {
			t.Errorf("no id of a request: %v", err)
		}
		// A day outside the filter is not opened: damaged blocks of such a day cause no error.
		spoil := func(tx db.Tx) error {
			_, err := tx.Exec(t.Context(), `UPDATE audit_blocks SET head = $3 WHERE tenant_id = $1 AND day = $2`, int64(db.DayOf(noon)), []byte("no block"))
			return err
		}
		if err := d.Days().Write(t.Context(), "acme", db.DayOf(noon), spoil); err != nil {
			t.Fatal(err)
		}
		if got := ids(t, d, "acme", Filter{Since: events[20].Start}); len(got) != 40 {
			t.Errorf("%d entries since the second day", len(got))
		}
		if got := ids(t, d, "acme", Filter{RequestID: events[45].RequestID}); len(got) != 1 {
			t.Errorf("%d entries of a request of the third day", len(got))
		}
	})
}

func TestQueryGoesOnBeforeAnEntry(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		makeTenant(t, d, "acme")
		events := fill(t, d, 300)
		for _, endpoint := range []string{"", "/data/*", "/me"} {
			var got []string
			f := Filter{Endpoint: endpoint, Limit: 7}
			for {
				last := ""
				err := (&Log{DB: d, Tenant: "acme"}).Query(t.Context(), f, func(e *Entry) error { got, last = append(got, e.RequestID), e.ID; return nil })
				if err != nil {
					t.Fatal(err)
				}
				if last == "" {
					break
				}
				f.Before = last
			}
			if want := expected(events, Filter{Endpoint: endpoint}); !slices.Equal(got, want) {
				t.Errorf("%s: %d entries, want %d", endpoint, len(got), len(want))
			}
		}
	})
}

func TestManyEndpointsAreFoundToo(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		makeTenant(t, d, "acme")
		r := NewRecorder(d, clock.System(), Options{})
		var events []*Event
		for i := range 300 {
			ev := entry("acme", int64(i))
			ev.Endpoint = fmt.Sprintf("/custom/e%d", i)
			if i%10 == 0 {
				ev.Endpoint = "/me"
			}
			events = append(events, ev)
			r.Record(ev)
		}
		closeRecorder(t, r)
		f := Filter{Endpoint: "/custom/*"}
		if got, want := ids(t, d, "acme", f), expected(events, f); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

func TestAnEntryTellsWho(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := makeTenant(t, d, "acme")
		makeUser(t, h, "u1", "Ana@Acme.Example")
		makeUser(t, h, "u2", "gone@acme.example")
		r := NewRecorder(d, clock.System(), Options{})
		for i, who := range []string{"u1", "u2", "", "stranger"} {
			ev := readOne()
			ev.UserID, ev.RequestID, ev.Start = user.ID(who), who, noon.Add(time.Duration(i)*time.Second)
			ev.Auth = []credential.Kind{credential.APIKey, credential.AccessToken, credential.None, credential.WebhookToken}[i]
			r.Record(ev)
		}
		closeRecorder(t, r)
		if err := tenanttest.Change(t.Context(), h, func(tx tenant.ConfigTx) error { return user.Delete(t.Context(), tx, "u2") }); err != nil {
			t.Fatal(err)
		}
		var got []string
		err := (&Log{DB: d, Tenant: "acme"}).Query(t.Context(), Filter{}, func(e *Entry) error {
			line := e.AppendJSON(nil)
			names := members(t, line)
			if want := strings.Fields("time user auth method path endpoint status ip duration_ms request_id request response"); !slices.Equal(names, want) {
				t.Errorf("members %v", names)
			}
			var v struct {
				User, Auth *string
				Response   struct{ Body json.RawMessage }
				Request    struct{ Headers map[string]string }
			}
			if err := json.Unmarshal(line, &v); err != nil {
				return err
			}
			if string(v.Response.Body) != oneRecord || v.Request.Headers["user-agent"] != "curl/8.5.0" || strings.Contains(string(line), "0f0f") {
				t.Errorf("%s", line)
			}
			text := func(s *string) string {
				if s == nil {
					return "null"
				}
				return *s
			}
			got = append(got, text(v.User)+" "+text(v.Auth))
			return nil
		})
		if want := []string{"stranger TOKEN", "null null", "gone@acme.example JWT", "Ana@Acme.Example KEY"}; err != nil || !slices.Equal(got, want) {
			t.Errorf("got %q %v", got, err)
		}
		if got := ids(t, d, "acme", Filter{User: "GONE@acme.example "}); !slices.Equal(got, []string{"u2"}) {
			t.Errorf("of a deleted user: %v", got)
		}
	})
}

func TestAFilterThatMakesNoSenseIsRefused(t *testing.T) {
	d := dbtest.Open(t, db.SQLite)
	makeTenant(t, d, "acme")
	for _, endpoint := range []string{"/data", "/data/", "data/*", "*", "/*", "/me/*", "/custom/a*", "/custom/*/b", "/other/*", "GET /me"} {
		err := (&Log{DB: d, Tenant: "acme"}).Query(t.Context(), Filter{Endpoint: endpoint}, nil)
		if fault.CodeOf(err) != fault.Validation || !strings.Contains(err.Error(), "'/custom/SLUG'") {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
	if err := (&Log{DB: d, Tenant: "acme"}).Query(t.Context(), Filter{Limit: -1}, nil); fault.CodeOf(err) != fault.Validation {
		t.Error(err)
	}
	if err := (&Log{DB: d, Tenant: "acme"}).Query(t.Context(), Filter{User: "nobody@acme.example"}, nil); fault.CodeOf(err) != fault.NotFound {
		t.Error(err)
	}
	stop := errors.New("stop")
	fill(t, d, 10)
	if err := (&Log{DB: d, Tenant: "acme"}).Query(t.Context(), Filter{}, func(*Entry) error { return stop }); !errors.Is(err, stop) {
		t.Error(err)
	}
}

// The ranges of one index each: without them, a busy tenant's filters would
// read the whole log.
func TestFiltersUseTheirIndex(t *testing.T) {
	d := dbtest.Open(t, db.SQLite)
	h := makeTenant(t, d, "acme")
	makeUser(t, h, "ana", "ana@acme.example")
	fill(t, d, 500)
	day := db.DayOf(noon)
	for _, c := range []struct {
		filter Filter
		index  string
	}{
		{Filter{}, "sqlite_autoindex_audit_blocks_1"},
		{Filter{ErrorsOnly: true}, "PRIMARY KEY"},
		{Filter{Endpoint: "/me"}, "PRIMARY KEY"},
		{Filter{Endpoint: "/data/*"}, "PRIMARY KEY"},
		{Filter{User: "ana@acme.example", Endpoint: "/data/*", ErrorsOnly: true}, "PRIMARY KEY"},
		{Filter{KeyID: "k"}, "PRIMARY KEY"},
		{Filter{Auth: "TOKEN", Path: "x", Before: "0193a1b2-0000-7000-8000-000000000001"}, "PRIMARY KEY"},
		{Filter{Class: "5xx", Method: "GET"}, "PRIMARY KEY"},
		{Filter{Status: 404, IP: "1.1.1.1"}, "PRIMARY KEY"},
	} {
		var users []string
		if c.filter.User != "" {
			users = []string{"ana"}
		}
		q := &query{log: &Log{DB: d, Tenant: "acme"}, matcher: newMatcher(&c.filter, users)}
		for _, l := range q.blocks(day).lists {
			plan := ""
			err := q.read(t.Context(), day, func(h db.Querier) error {
				return h.Query(t.Context(), "EXPLAIN QUERY PLAN "+l.sql, func(row db.Row) error { plan += row.Text(3) + "\n"; return nil },
					append([]any{int64(day), l.after, afterAll, "", 10}, l.args...)...)
			})
			if err != nil || !strings.Contains(plan, c.index+" ") || strings.Contains(plan, "TEMP B-TREE") {
				t.Errorf("%+v: %v\n%s", c.filter, err, plan)
			}
		}
	}
}
