package apikey

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/fault"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

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
		user user.ID
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
