package config_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/component"
	"gatehouse/internal/config"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/fault"
	"gatehouse/internal/secret"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

type (
	edit  = config.Edit
	edits = []config.Edit
)

func person(email string, pairs ...any) edit {
	return edit{Kind: "user", Value: object(append([]any{"email", email}, pairs...)...)}
}

func set(name string, pairs ...any) edit {
	return edit{Kind: "permission_set", Value: object(append([]any{"name", name}, pairs...)...)}
}

// contact is the entity type contact, with what is given besides its fields.
func contact(fields *config.Value, pairs ...any) edit {
	return edit{Kind: "entity", Name: "contact", Value: object(append([]any{"fields", fields}, pairs...)...)}
}

func flow(name string, pairs ...any) edit {
	node := object("id", "all", "type", "record.list", "entity", "contact")
	return edit{Kind: "automation", Value: object(append([]any{"name", name, "trigger", "http.request", "nodes", list(node)}, pairs...)...)}
}

func program(name, source string, pairs ...any) edit {
	return edit{Kind: "logic_component", Value: object(append([]any{"name", name, "source", source}, pairs...)...)}
}

func endpointOf(slug, auth string, target *config.Value, pairs ...any) edit {
	return edit{Kind: "custom_endpoint", Value: object(append([]any{"slug", slug, "auth", auth, "target", target}, pairs...)...)}
}

var (
	boss                = object("name", "boss", "type", "reference", "entity", "user")
	email, salary, note = object("name", "email", "type", "text"), object("name", "salary", "type", "text"), object("name", "note", "type", "text")
	handler             = "export default function handler() { return {} }"
	changed             = "export default function handler() { return {changed: true} }"
)

// castle is a tenant with an owner, whose staff hold one permission each, and none of
// the rights to records but ways of their own.
func castle(t *testing.T, d *db.DB) *house {
	p := &house{T: t, h: d.For("acme"), clock: clock.NewFake(clock.FromMicros(1_800_000_000_000_000))}
	p.opts.Compile = func(context.Context, tenant.ID, string, component.Source) ([]string, error) { return nil, nil }
	var err error
	if p.opts.Keyring, err = secret.NewKeyring(make([]byte, 32)); err != nil {
		t.Fatal(err)
	}
	p.done(
		edit{Kind: "tenant", Value: object("display_name", "Acme", "external_identity", object("enabled", true, "open_registration", false, "default_permission_set", "portal"))},
		contact(list(email, salary, note)), edit{Kind: "role", Value: object("name", "ceo")},
		edit{Kind: "user_fields", Value: list(object("name", "team", "type", "text", "managed", true), object("name", "friends", "type", "multireference", "entity", "contact", "managed", true))},
		edit{Kind: "role", Value: object("name", "lead", "parent", "ceo")}, edit{Kind: "role", Value: object("name", "sales", "parent", "lead")},
		edit{Kind: "role", Value: object("name", "support", "parent", "ceo")},
		set("users", "system", list("manage_users")), set("permissions", "system", list("manage_permissions")),
		set("entities", "system", list("manage_entities")), set("endpoints", "system", list("manage_endpoints")),
		set("settings", "system", list("tenant_settings")), set("helpdesk", "system", list("can_manage_external_users")),
		set("all", "all_entity_access", true, "system", list("manage_permissions", "manage_users", "manage_endpoints")),
		set("sales", "entities", object("contact", object("create", true, "read", true, "fields", object("salary", object("read", false))))),
		set("portal", "entities", object("contact", object("read", true))),
		person("olivia@acme.example", "owner", true, "role", "ceo", "password", "a long password"), person("ceo@acme.example", "role", "ceo", "permission_sets", list("sales", "portal")),
		person("sam@acme.example", "role", "sales", "permission_sets", list("sales")), person("idle@acme.example", "role", "ceo", "permission_sets", list("portal"), "active", false),
		person("uma@acme.example", "role", "lead", "permission_sets", list("users", "sales")), person("pia@acme.example", "role", "lead", "permission_sets", list("permissions", "sales")),
		person("enno@acme.example", "role", "lead", "permission_sets", list("entities", "sales")), person("emil@acme.example", "role", "lead", "permission_sets", list("endpoints")),
		person("tess@acme.example", "permission_sets", list("settings")), person("hedy@acme.example", "permission_sets", list("helpdesk")),
		person("alma@acme.example", "permission_sets", list("all")), person("nobody@acme.example"), person("rosa@acme.example"),
		person("eva@customer.example", "type", "external", "permission_sets", list("portal"), "active", false),
		program("plain", handler), program("as_system", handler, "execution_context", "system"), program("as_olivia", handler, "execution_context", object("specific_user", "olivia@acme.example")),
		program("gate", handler), flow("caller"), flow("helper"), flow("as_sam", "execution_context", object("specific_user", "sam@acme.example")))
	return p
}

// by is the author that a user is.
func (p *house) by(d *db.DB, address string) config.Author {
	p.Helper()
	dir := access.NewDirectory(d)
	c, err := dir.Current(p.Context(), "acme")
	if err != nil {
		p.Fatal(err)
	}
	u, err := user.ByEmail(p.Context(), p.h, address)
	if err != nil {
		p.Fatal(err)
	}
	v, err := dir.Viewer(p.Context(), c, u.ID, true)
	if err != nil {
		p.Fatal(err)
	}
	return config.By(v, address)
}

func (p *house) tryBy(by config.Author, dryRun bool, list edits) error {
	m := config.DecodeEdits("acme", list, func(string) string { return "" })
	opts := p.opts
	opts.DryRun = dryRun
	_, err := config.Apply(p.Context(), p.h, p.clock, by, m, opts)
	return err
}

// attempt is a change by which somebody would gain, give or borrow what they do not
// hold.
type attempt struct {
	what, who string
	before    edits // by the operator
	try       edits
}

func attempts() []attempt {
	region := object("name", "email", "type", "text", "indexed", true)
	rule := func(with string, value any) edit {
		return edit{Kind: "sharing_rule", Value: object("entity", "contact", "where", object("email", value), "share_with", with, "access", "read")}
	}
	teams, mails, outside := edits{contact(list(region, salary, note)), rule("internal", "{{user.team}}")}, rule("internal", "{{user.email}}"), rule("external", "public")
	webhook := endpointOf("hook", "token", object("automation", "helper"))
	return []attempt{
		{"a stronger set for oneself", "uma", nil, edits{person("uma@acme.example", "role", "lead", "permission_sets", list("users", "sales", "permissions"))}},
		{"ownership for oneself", "uma", nil, edits{person("uma@acme.example", "role", "lead", "owner", true, "permission_sets", list("users", "sales"))}},
		{"ownership for another", "uma", nil, edits{person("rosa@acme.example", "owner", true)}},
		{"a new owner", "alma", nil, edits{person("new@acme.example", "owner", true, "password", "a long password")}},
		{"a role above one's own", "uma", nil, edits{person("uma@acme.example", "role", "ceo", "permission_sets", list("users", "sales"))}},
		{"a role beside one's own", "uma", nil, edits{person("uma@acme.example", "role", "support", "permission_sets", list("users", "sales"))}},
		{"a new user with a stronger set", "uma", nil, edits{person("new@acme.example", "permission_sets", list("all"), "password", "a long password")}},
		{"the owner's password", "uma", nil, edits{person("olivia@acme.example", "owner", true, "role", "ceo", "password", "another password")}},
		{"the password of a user with more", "uma", nil, edits{person("ceo@acme.example", "role", "ceo", "permission_sets", list("sales", "portal"), "password", "another password")}},
		{"the address of a user with more", "uma", nil, edits{person("CEO@acme.example", "role", "ceo", "permission_sets", list("sales", "portal"))}},
		{"one's own password without the one before", "uma", nil, edits{person("uma@acme.example", "role", "lead", "permission_sets", list("users", "sales"), "password", "another password")}},
		{"the owner deactivated", "uma", nil, edits{{Kind: "user", Name: "olivia@acme.example"}}},
		{"a user with more reactivated", "uma", nil, edits{{Kind: "user", Name: "idle@acme.example", Activate: true}}},
		{"the records of somebody above, by a role below", "uma", nil, edits{person("ceo@acme.example", "role", "sales", "permission_sets", list("sales", "portal"))}},
		{"staff activated by the helpdesk", "hedy", nil, edits{{Kind: "user", Name: "idle@acme.example", Activate: true}}},
		{"a deactivated external user activated by the helpdesk", "hedy", nil, edits{{Kind: "user", Name: "eva@customer.example", Activate: true}}},
		{"a system permission in one's set", "pia", nil, edits{set("permissions", "system", list("manage_permissions", "manage_users"))}},
		{"all_entity_access in one's set", "pia", nil, edits{set("permissions", "system", list("manage_permissions"), "all_entity_access", true)}},
		{"a closed field opened", "pia", nil, edits{set("sales", "entities", object("contact", object("create", true, "read", true)))}},
		{"a verb that one lacks", "pia", nil, edits{set("sales", "entities", object("contact", object("create", true, "read", true, "delete", true, "fields", object("salary", object("read", false)))))}},
		{"naming owners", "pia", nil, edits{set("sales", "entities", object("contact", object("create", true, "read", true, "assign_owner", true, "fields", object("salary", object("read", false)))))}},
		{"a rule that matches the viewer", "pia", edits{contact(list(email, salary, note, boss))}, edits{{Kind: "sharing_rule", Value: object("entity", "contact", "where", object("boss", "{{user.id}}"), "share_with", "everyone", "access", "read")}}},
		{"a managed field of one's own", "uma", nil, edits{person("uma@acme.example", "role", "lead", "permission_sets", list("users", "sales"), "managed", object("team", "a"))}},
		{"a managed field that names what one does not see", "uma", nil, edits{person("rosa@acme.example", "managed", object("friends", list()))}},
		{"a new set with what one lacks", "pia", nil, edits{set("mine", "entities", object("contact", object("update", true, "fields", object("salary", object("edit", false)))))}},
		{"a rule for records beside one's own", "pia", nil, edits{{Kind: "sharing_rule", Value: object("entity", "contact", "owned_by_role", "support", "share_with_role", "lead", "access", "read")}}},
		{"a rule by value", "pia", nil, edits{{Kind: "sharing_rule", Value: object("entity", "contact", "where", object("email", "a@b.example"), "share_with_role", "lead", "access", "read")}}},
		{
			"a rule that gives more", "pia", edits{{Kind: "sharing_rule", Value: object("entity", "contact", "owned_by_role", "sales", "share_with_role", "support", "access", "read")}},
			edits{{Kind: "sharing_rule", Value: object("entity", "contact", "owned_by_role", "sales", "share_with_role", "support", "access", "edit")}},
		},
		{"a role moved below one's own", "pia", nil, edits{{Kind: "role", Name: "support", Value: object("parent", "lead")}}},
		{"one's role moved", "pia", nil, edits{{Kind: "role", Value: object("name", "top")}, {Kind: "role", Name: "ceo", Value: object("parent", "lead")}, {Kind: "role", Name: "lead", Value: object()}}},
		{"an entity type opened to all", "enno", nil, edits{contact(list(email, salary, note), "sharing", "public_read")}},
		{"old records deleted", "enno", nil, edits{contact(list(email, salary, note), "keep", "30d")}},
		{"records kept for less time", "enno", edits{contact(list(email, salary, note), "keep", "90d")}, edits{contact(list(email, salary, note), "keep", "89d")}},
		{"an entity type opened to change", "enno", edits{contact(list(email, salary, note), "sharing", "public_read")}, edits{contact(list(email, salary, note), "sharing", "public_read_write")}},
		{"rights in a kind of object that is another's", "enno", nil, edits{set("entities", "system", list("manage_entities"), "entities", object("contact", object("read", true)))}},
		{"run_as another", "emil", nil, edits{endpointOf("mine", "token", object("automation", "caller"), "run_as", "sam@acme.example")}},
		{"run_as nobody, to see who is there", "emil", nil, edits{endpointOf("mine", "token", object("automation", "caller"), "run_as", "nobody@acme.example")}},
		{"specific_user", "emil", nil, edits{flow("mine", "execution_context", object("specific_user", "olivia@acme.example"))}},
		{"system", "emil", nil, edits{program("mine", handler, "execution_context", "system")}},
		{"other code as the system", "emil", nil, edits{program("as_system", changed, "execution_context", "system")}},
		{"other code as another", "emil", nil, edits{program("as_olivia", changed, "execution_context", object("specific_user", "olivia@acme.example"))}},
		{"all_entity_access is not to be another", "alma", nil, edits{program("as_olivia", changed, "execution_context", object("specific_user", "olivia@acme.example"))}},
		{"an endpoint on what runs as another", "emil", nil, edits{endpointOf("mine", "token", object("automation", "as_sam"))}},
		{"an endpoint on what runs as the system", "emil", nil, edits{endpointOf("mine", "api_key", object("component", "as_system"))}},
		{"another target for what the owner defined", "emil", edits{webhook}, edits{endpointOf("hook", "token", object("automation", "caller"))}},
		{"other steps in what the owner defined", "emil", edits{webhook}, edits{flow("helper", "outputs", list(object("name", "x", "type", "text")))}},
		{"what a webhook answers", "emil", edits{endpointOf("hook", "token", object("automation", "helper"), "reply", "receipt")}, edits{webhook}},
		{
			"another verifier", "emil", edits{endpointOf("hook", "signed", object("automation", "helper"), "verifier", "gate", "webhook_secret", "a very long secret")},
			edits{program("gate", changed)},
		},
		{"a flow that calls what runs as another", "emil", nil, edits{{Kind: "automation", Value: object("name", "mine", "trigger", "http.request", "nodes", list(object("id", "a", "type", "component", "component", "as_olivia")))}}},
		{"hosts", "tess", nil, edits{{Kind: "tenant", Value: object("hosts", list("victim.example"))}}},
		{"where the links of mails lead", "tess", nil, edits{{Kind: "tenant", Value: object("base_url", "https://evil.example")}}},
		{"the switch of the API", "tess", nil, edits{{Kind: "tenant", Value: object("public_api", object("enabled", true))}}},
		{"the settings by who has the switch", "emil", nil, edits{{Kind: "tenant", Value: object("display_name", "Mine")}}},
		{"registration with a set that one lacks", "tess", nil, edits{{Kind: "tenant", Value: object("external_identity", object("enabled", true, "open_registration", true, "default_permission_set", "portal"))}}},
		{"a stronger set for who registers", "tess", nil, edits{{Kind: "tenant", Value: object("external_identity", object("enabled", true, "open_registration", false, "default_permission_set", "sales"))}}},
		{"a managed field by which a rule opens records", "uma", teams, edits{person("rosa@acme.example", "managed", object("team", "a"))}},
		{"a new user with such a field", "uma", nil, edits{person("new@acme.example", "role", "sales", "managed", object("team", "a"), "password", "a long password")}},
		{"the password of a user who has one", "uma", edits{person("nobody@acme.example", "managed", object("team", "a"))}, edits{person("nobody@acme.example", "password", "another password")}},
		{"the address that a rule matches", "uma", edits{mails}, edits{person("new@acme.example", "password", "a long password")}},
		{"a new end-user with a password, for what end-users see", "uma", edits{outside}, edits{person("new@customer.example", "type", "external", "password", "a long password")}},
		{"the password of a user with whom a record is shared", "uma", nil, edits{person("rosa@acme.example", "password", "another password")}},
		{"anything without a permission", "sam", nil, edits{{Kind: "role", Value: object("name", "mine")}}},
		{"anything by an external user", "eva@customer.example", nil, edits{{Kind: "role", Value: object("name", "mine")}}},
	}
}

// TestNobodyGainsRights: each attempt would succeed if the operator made it; by the
// user who would gain from it, each is refused, keeps nothing and tells FORBIDDEN, or
// that what they may not know is not there.
func TestNobodyGainsRights(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		p := castle(t, d)
		p.contacts(d, 1)
		p.contactsOf(d, "ceo@acme.example", 1)
		p.share(d, "ceo@acme.example", "rosa@acme.example")
		for _, a := range attempts() {
			if len(a.before) > 0 {
				p.done(a.before...)
			}
			if err := p.tryBy(config.Operator("test"), true, a.try); err != nil {
				t.Errorf("%s: the attempt is none: %v", a.what, err)
			}
			who := a.who
			if who != "eva@customer.example" {
				who += "@acme.example"
			}
			before := p.export()
			err := p.tryBy(p.by(d, who), false, a.try)
			var f *fault.Error
			if !errors.As(err, &f) || f.Code != fault.Forbidden && (f.Code != fault.NotFound || a.who != "hedy") {
				t.Errorf("%s: %v, want FORBIDDEN", a.what, err)
			}
			if p.export() != before {
				t.Fatalf("%s: something was changed", a.what)
			}
			if err := p.tryBy(p.by(d, who), true, a.try); err == nil {
				t.Errorf("%s: a plan shows it", a.what)
			}
		}
	})
}

// TestWhoHoldsARightMayGiveIt is the other side: what the rule does not stand against.
func TestWhoHoldsARightMayGiveIt(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		p := castle(t, d)
		p.done(contact(list(email, salary, note), "keep", "90d"))
		for i, a := range []attempt{
			{"a set and a role of one's own", "uma", nil, edits{person("new@acme.example", "role", "sales", "permission_sets", list("sales"), "password", "a long password")}},
			{"a first role", "uma", nil, edits{person("rosa@acme.example", "role", "sales")}},
			{"a password of a user with less", "uma", nil, edits{person("sam@acme.example", "role", "sales", "permission_sets", list("sales"), "password", "another password")}},
			{"a managed field of another", "uma", nil, edits{person("rosa@acme.example", "role", "sales", "managed", object("team", "a"))}},
			{"a user deactivated", "uma", nil, edits{{Kind: "user", Name: "sam@acme.example"}}},
			{"and back", "uma", nil, edits{{Kind: "user", Name: "sam@acme.example", Activate: true}}},
			{"an external user back", "uma", nil, edits{{Kind: "user", Name: "eva@customer.example", Activate: true}}},
			{"a set narrowed", "pia", nil, edits{set("portal", "entities", object())}},
			{"a set of what one has", "pia", nil, edits{set("readers", "entities", object("contact", object("read", true, "fields", object("salary", object("read", false)))))}},
			{"a rule from below", "pia", nil, edits{{Kind: "sharing_rule", Value: object("entity", "contact", "owned_by_role", "sales", "share_with_role", "support", "access", "read")}}},
			{"a role below", "pia", nil, edits{{Kind: "role", Value: object("name", "interns", "parent", "sales")}}},
			{"a new entity type", "enno", nil, edits{{Kind: "entity", Value: object("name", "order", "sharing", "public_read_write", "fields", list(object("name", "total", "type", "number")))}}},
			{"records kept for longer", "enno", nil, edits{contact(list(email, salary, note), "keep", "91d")}},
			{"records kept for ever", "enno", nil, edits{contact(list(email, salary, note))}},
			{"a new field", "enno", nil, edits{contact(list(email, salary, note, object("name", "phone", "type", "text")))}},
			{"a new endpoint, which runs as who made it", "emil", nil, edits{endpointOf("mine", "token", object("automation", "caller"))}},
			{"run_as oneself", "emil", nil, edits{endpointOf("self", "token", object("automation", "caller"), "run_as", "emil@acme.example")}},
			{"its limits", "emil", nil, edits{endpointOf("mine", "token", object("automation", "caller"), "log_requests", false)}},
			{"the switch", "emil", nil, edits{{Kind: "tenant", Value: object("public_api", object("enabled", true))}}},
			{"the settings", "tess", nil, edits{{Kind: "tenant", Value: object("display_name", "Acme AG")}}},
			{"a template", "tess", nil, edits{{Kind: "email_template", Name: "external-user-welcome", Value: object("subject", "Hi", "text", "Hi", "html", "Hi")}}},
			{"the system, with all_entity_access", "alma", nil, edits{program("as_system", changed, "execution_context", "system")}},
			{"everything, by the owner", "olivia", nil, edits{person("rosa@acme.example", "owner", true), program("as_sam_too", handler, "execution_context", object("specific_user", "sam@acme.example"))}},
		} {
			if err := p.tryBy(p.by(d, a.who+"@acme.example"), false, a.try); err != nil {
				t.Errorf("%d, %s: %v", i, a.what, err)
			}
		}
		if got := string(mustJSON(p, p.past("custom_endpoint", "mine"))); got == "" || !strings.Contains(got, `"defined_by":"emil@acme.example"`) {
			t.Errorf("the endpoint is defined by another: %s", got)
		}
	})
}

// A right that was taken away between the request and the change is not used.
func TestRightsAreThoseOfNow(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		p := castle(t, d)
		pia, uma := p.by(d, "pia@acme.example"), p.by(d, "uma@acme.example")
		p.done(person("pia@acme.example"), edit{Kind: "user", Name: "uma@acme.example"})
		for _, by := range []config.Author{pia, uma, {}} {
			if err := p.tryBy(by, false, edits{{Kind: "role", Value: object("name", "mine")}}); fault.CodeOf(err) != fault.Forbidden {
				t.Errorf("%v", err)
			}
		}
	})
}

// A field that comes back has the values of before: only who reaches all records
// brings it back.
func TestAFieldComesBackForWhoReachesItsRecords(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		p := castle(t, d)
		p.contacts(d, 2)
		p.done(contact(list(email, salary)))
		back := edits{contact(list(email, salary, note))}
		if err := p.tryBy(p.by(d, "enno@acme.example"), false, back); fault.CodeOf(err) != fault.Forbidden {
			t.Errorf("%v", err)
		}
		if err := p.tryBy(p.by(d, "olivia@acme.example"), false, back); err != nil {
			t.Error(err)
		}
	})
}

// What an author may not know is not in a plan, nor in a refusal.
func TestAPlanTellsWhatItsAuthorMayKnow(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		p := castle(t, d)
		p.contacts(d, 3)
		plan := func(who string, list ...edit) (*config.Plan, error) {
			m := config.DecodeEdits("acme", list, func(string) string { return "" })
			return config.NewPlan(p.Context(), p.h, p.clock, p.by(d, who+"@acme.example"), m, p.opts)
		}
		indexed := object("name", "email", "type", "text", "indexed", true)
		for who, want := range map[string]string{"enno": `[{"entity":"contact","records":0,"hidden":true}]`, "olivia": `[{"entity":"contact","records":3}]`} {
			is, err := plan(who, contact(list(indexed, salary, note)))
			if err != nil {
				t.Fatal(err)
			}
			if got := string(mustJSON(p, is.Effect.Reindexed)); got != want {
				t.Errorf("%s: %s", who, got)
			}
		}
		if _, err := plan("enno", contact(list(object("name", "email", "type", "number"), salary, note))); fault.CodeOf(err) == fault.Internal || err == nil || strings.Contains(err.Error(), "3") {
			t.Errorf("%v", err)
		}
		if _, err := plan("pia", edit{Kind: "role", Name: "sales"}); err == nil || strings.Contains(err.Error(), "sam@") {
			t.Errorf("%v", err)
		}
	})
}

func (p *house) export() string {
	p.Helper()
	v, err := config.Export(p.Context(), p.h)
	if err != nil {
		p.Fatal(err)
	}
	return string(mustJSON(p, v))
}

// past is the last state of an object in the change history.
func (p *house) past(kind, name string) any {
	p.Helper()
	list, err := tenant.Changes(p.Context(), p.h, 0)
	if err != nil {
		p.Fatal(err)
	}
	for _, c := range list {
		if c.Kind == kind && c.Name == name {
			return c.After
		}
	}
	return nil
}
