package config_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/apikey"
	"gatehouse/internal/clock"
	"gatehouse/internal/config"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/fault"
	"gatehouse/internal/records"
	"gatehouse/internal/user"
)

func (p *house) plan(edits ...config.Edit) *config.Plan {
	p.Helper()
	m := config.DecodeEdits("acme", edits, func(string) string { return "" })
	plan, err := config.NewPlan(p.Context(), p.h, p.clock, config.Operator("test"), m, p.opts)
	if err != nil {
		p.Fatal(err)
	}
	return plan
}

// A plan is shown, and written while what it changes is as it was.
func TestAPlanIsShownAndWritten(t *testing.T) {
	each(t, func(p *house) {
		support := config.Edit{Kind: "role", Value: object("name", "support", "parent", "ceo")}
		sam := config.Edit{Kind: "user", Name: "sam@acme.example", Value: object("role", "ceo", "permission_sets", list("staff"))}
		plan := p.plan(support, sam)
		var shown struct {
			Changes []struct {
				Path, Version, Name string
				Differences         []struct{ Path, Before, After, Text string }
			}
		}
		if err := json.Unmarshal(mustJSON(p, plan), &shown); err != nil {
			p.Fatal(err)
		}
		if got, want := fmt.Sprint(shown.Changes), fmt.Sprintf("[{edits[0] absent support []} {edits[1] %s sam@acme.example "+
			"[{role sales ceo role sales → ceo}]}]", p.object("user", "sam@acme.example").Version); got != want {
			p.Errorf("shown: %s\nwant:  %s", got, want)
		}
		p.done(config.Edit{Kind: "tenant", Value: object("display_name", "Another")}) // which it does not concern
		r, err := plan.Write(p.Context(), p.h, p.clock)
		if err != nil || len(r.Changes) != 2 || p.object("user", "sam@acme.example").Version == shown.Changes[1].Version {
			p.Fatalf("%+v, %v", r, err)
		}
		if _, err := plan.Write(p.Context(), p.h, p.clock); fault.CodeOf(err) != fault.Conflict {
			p.Errorf("written twice: %v", err)
		}
	})
}

func TestAPlanOfAnOlderVersionIsAConflict(t *testing.T) {
	each(t, func(p *house) {
		plan := p.plan(config.Edit{Kind: "user", Name: "sam@acme.example", Value: object("role", "ceo")})
		p.done(config.Edit{Kind: "user", Name: "sam@acme.example", Value: object("name", "Samuel")})
		_, err := plan.Write(p.Context(), p.h, p.clock)
		var f *fault.Error
		if !errors.As(err, &f) || f.Code != fault.Conflict || f.Details["version"] != p.object("user", "sam@acme.example").Version {
			p.Fatalf("%v", err)
		}
		stored, asked := string(mustJSON(p, f.Details["stored"])), string(mustJSON(p, f.Details["asked"]))
		if !strings.Contains(stored, `"Samuel"`) || !strings.Contains(asked, `"role":"ceo"`) {
			p.Errorf("stored %s\nasked %s", stored, asked)
		}
		if now := p.object("user", "sam@acme.example"); !strings.Contains(string(mustJSON(p, f.Details["version"])), now.Version) {
			p.Errorf("it was written: %+v", now)
		}
	})
}

func TestACheckWritesNothing(t *testing.T) {
	each(t, func(p *house) {
		check := func(e config.Edit) error {
			m := config.DecodeEdits("acme", []config.Edit{e}, func(string) string { return "" })
			return config.Check(p.Context(), p.h, p.clock, config.Operator("test"), m, config.Options{})
		}
		if err := check(config.Edit{Kind: "role", Value: object("name", "support")}); err != nil || p.object("role", "support").Value != nil {
			p.Errorf("%v", err)
		}
		if err := check(config.Edit{Kind: "role", Value: object("name", "support", "parent", "none")}); err == nil ||
			err.Error() != `edits[0].parent: role support: there is no role "none" to be its parent` {
			p.Errorf("%v", err)
		}
	})
}

var tokens = regexp.MustCompile(`svc_api_\w+`)

// TestAPlanHasTheWholeEffect: records, fields, users, keys and endpoints.
func TestAPlanHasTheWholeEffect(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		p := &house{T: t, h: d.For("acme"), clock: clock.NewFake(clock.FromMicros(1_800_000_000_000_000))}
		set := func(rights ...any) config.Edit {
			return config.Edit{Kind: "permission_set", Value: object("name", "staff", "entities", object("contact", object(rights...)))}
		}
		person := func(email, role string, active bool) config.Edit {
			return config.Edit{Kind: "user", Value: object("email", email, "role", role, "permission_sets", list("staff"), "active", active)}
		}
		flow := object("name", "hello", "trigger", "http.request", "nodes", list(object("id", "all", "type", "record.list", "entity", "contact")))
		endpoint := func(slug, auth, as string) config.Edit {
			v := object("slug", slug, "auth", auth, "target", object("automation", "hello"))
			if as != "" {
				v.Members = append(v.Members, config.Member{Key: value("run_as"), Value: value(as)})
			}
			return config.Edit{Kind: "custom_endpoint", Value: v}
		}
		p.done(config.Edit{Kind: "tenant", Value: object("display_name", "Acme")},
			config.Edit{Kind: "entity", Value: object("name", "contact", "fields", list(object("name", "email", "type", "text"), object("name", "note", "type", "text")))},
			config.Edit{Kind: "role", Value: object("name", "ceo")}, config.Edit{Kind: "role", Value: object("name", "sales", "parent", "ceo")},
			set("create", true, "read", true, "update", true), person("sam@acme.example", "sales", true), person("cleo@acme.example", "ceo", true),
			person("off@acme.example", "ceo", false), config.Edit{Kind: "user", Value: object("email", "olivia@acme.example", "owner", true)},
			config.Edit{Kind: "automation", Value: flow}, endpoint("by-sam", "token", "sam@acme.example"), endpoint("by-caller", "api_key", ""), endpoint("other", "token", "olivia@acme.example"))
		p.opts.Keys = apikey.New(d, p.clock, nil).OfUsers
		p.contacts(d, 3)
		p.key(d, "sam@acme.example")

		for _, c := range []struct {
			name  string
			edits []config.Edit
			want  string
		}{
			{"a label", []config.Edit{{Kind: "tenant", Value: object("display_name", "B")}}, ""},
			{
				"an indexed field in the place of another",
				[]config.Edit{{Kind: "entity", Name: "contact", Value: object("fields", list(object("name", "email", "type", "text", "unique", true)))}},
				"looks at records again: entity contact: 3; entity contact: field note; 3 of 3 records hold a value: it is kept, and is back when the field is",
			},
			{"a narrower set", []config.Edit{set("create", true, "read", true)}, "users who may do less: sam@acme.example, cleo@acme.example"},
			{"a wider set", []config.Edit{set("create", true, "read", true, "update", true, "delete", true)}, ""},
			{"a role moved out of the tree", []config.Edit{{Kind: "role", Name: "sales", Value: object()}}, "users who may do less: cleo@acme.example"},
			{
				"a user deactivated", []config.Edit{{Kind: "user", Name: "sam@acme.example"}},
				"users who may do less: sam@acme.example; API keys that stop working: portal (svc_api_…); custom endpoints that stop working for their callers: by-sam",
			},
			{
				"endpoints", []config.Edit{{Kind: "custom_endpoint", Name: "other"}, endpoint("by-caller", "token", "olivia@acme.example")},
				"custom endpoints that stop working for their callers: by-caller, other",
			},
			{"another role, with records", []config.Edit{person("sam@acme.example", "ceo", true)}, "looks at records again: entity contact: 3"},
		} {
			plan := p.plan(c.edits...)
			lines := plan.Effect.Lines()
			for _, f := range plan.Effect.Fields {
				lines = append(lines, f.String())
			}
			if got := tokens.ReplaceAllString(strings.Join(lines, "; "), "svc_api_…"); got != c.want {
				t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
			}
		}
	})
}

// contacts makes records of the entity contact that Sam owns.
func (p *house) contacts(d *db.DB, n int) { p.Helper(); p.contactsOf(d, "sam@acme.example", n) }

func (p *house) contactsOf(d *db.DB, who string, n int) {
	p.Helper()
	ctx := context.Background()
	session, _ := p.session(d, who)
	for i := range n {
		members := []records.Member{{Name: "email", Value: jsontext.Value(fmt.Sprintf(`"%d@x.example"`, i))}, {Name: "note", Value: jsontext.Value(`"n"`)}}
		if _, err := session.Create(ctx, "contact", members); err != nil {
			p.Fatal(err)
		}
	}
}

// share shares the newest contact of a user with another.
func (p *house) share(d *db.DB, of, with string) {
	p.Helper()
	session, _ := p.session(d, of)
	page, err := session.List(p.Context(), "contact", records.Query{Limit: 1})
	if err != nil {
		p.Fatal(err)
	}
	_, id := p.session(d, with)
	err = session.Share(p.Context(), "contact", records.Record(page.Records[1:len(page.Records)-1]).ID(), records.Share{Principal: access.UserPrincipal(id), Access: access.ReadOnly})
	if err != nil {
		p.Fatal(err)
	}
}

// session is that of a user, with their id.
func (p *house) session(d *db.DB, who string) (*records.Session, user.ID) {
	p.Helper()
	ctx, dir := context.Background(), access.NewDirectory(d)
	c, err := dir.Current(ctx, "acme")
	if err != nil {
		p.Fatal(err)
	}
	u, err := user.ByEmail(ctx, p.h, who)
	if err != nil {
		p.Fatal(err)
	}
	v, err := dir.Viewer(ctx, c, u.ID, false)
	if err != nil {
		p.Fatal(err)
	}
	return records.New(d, dir, p.clock, nil).As(v), u.ID
}

func (p *house) key(d *db.DB, email string) {
	p.Helper()
	keys := apikey.New(d, p.clock, access.NewDirectory(d))
	for _, name := range []string{"portal", "old"} {
		spec := apikey.CreateSpec{Email: email, Name: name, RateLimitPerMinute: 10}
		k, _, err := keys.Create(p.Context(), "test", "acme", spec)
		if err != nil {
			p.Fatal(err)
		}
		if name == "old" {
			if err := keys.Delete(p.Context(), "test", "acme", k.ID); err != nil {
				p.Fatal(err)
			}
		}
	}
	if list, err := keys.List(p.Context(), "acme"); err != nil || slices.ContainsFunc(list, func(k apikey.Key) bool { return k.Name == "old" }) {
		p.Fatal(list, err)
	}
}
