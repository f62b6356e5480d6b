package manifest_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gatehouse/internal/manifest"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

func (p *place) exportFor(r *rapid.T, id string) string {
	b, err := manifest.Export(context.Background(), p.d, tenant.ID(id))
	if err != nil {
		r.Fatal(err)
	}
	return string(b)
}

type yamlMap = map[string]any

// drawText draws texts that YAML, JSON or the environment might misread.
func drawText(r *rapid.T, name string) string {
	return rapid.OneOf(
		rapid.SampledFrom([]string{
			"yes", "no", "true", "null", "~", "0x1F", "1_000", "1e3", "${HOME}", "$${HOME}", "2026-01-31", "<<", "a: b", "- x", "# c", "é\u2028ß",
			"'", `"`, `\`, "|", ">", "!!str x", "*a", "&a", "%", "@", "`", " lead", "trail ", "tab\there", "line\nbreak", "\u0085", "\ufeff", "🦊", "{}", "[]", "?",
		}),
		rapid.StringMatching(`[A-Za-z0-9 .,:;#{}\[\]&*!|>'"%@\x60äß→$-]{1,20}`)).Draw(r, name)
}

// drawName draws a user's name: a text as from drawText that is one line and
// not blank.
func drawName(r *rapid.T) string {
	return rapid.Custom(func(r *rapid.T) string { return drawText(r, "name") }).
		Filter(func(name string) bool { return user.CheckName(name) == nil }).Draw(r, "name")
}

func drawNames(r *rapid.T, what string, most int, gen *rapid.Generator[string]) []string {
	return rapid.SliceOfNDistinct(gen, 0, most, rapid.ID[string]).Draw(r, what)
}

var (
	identifiers = rapid.StringMatching(`[a-z][a-z0-9_]{0,6}[a-z]x`) // never a reserved name
	titles      = rapid.Custom(func(r *rapid.T) string {
		return "R" + strings.TrimSpace(rapid.StringMatching(`[A-Za-z0-9 :#{},'"&ä→-]{0,12}`).Draw(r, "title"))
	})
)

// drawManifest draws a manifest with every section. It declares everything that
// it refers to.
func drawManifest(r *rapid.T, id string) yamlMap {
	m := yamlMap{"tenant": id}
	entities, fields := drawEntities(r)
	roles := drawNames(r, "roles", 4, titles)
	sets := drawNames(r, "sets", 3, titles)
	m["entities"], m["user_fields"] = entities, []any{
		yamlMap{"name": "company", "type": "text"}, yamlMap{"name": "region", "type": "text", "managed": true},
		yamlMap{"name": "levels", "type": "multiselect", "options": []string{"a", "b"}, "managed": true},
	}
	m["roles"], m["permission_sets"] = drawRoles(r, roles), drawSets(r, sets, fields)
	m["sharing_rules"] = drawRules(r, roles, fields)
	users := drawUsers(r, roles, sets)
	m["users"] = users
	drawDefinitions(r, m, users)
	m["external_identity"] = yamlMap{
		"enabled": rapid.Bool().Draw(r, "enabled"), "activation_mode": rapid.SampledFrom([]string{"svc_email", "app_managed", "none"}).Draw(r, "mode"),
		"limits": yamlMap{"login_block_minutes": rapid.IntRange(1, 1000).Draw(r, "block")},
	}
	if rapid.Bool().Draw(r, "settings") {
		m["display_name"] = drawText(r, "display_name")
		m["hosts"] = []string{id + ".example", "b." + id + ".example"}
		m["base_url"] = "http://" + id + ".example:8080"
		m["admin_hosts"] = []string{"admin." + id + ".example"}
		m["public_api"] = yamlMap{"enabled": true, "log_standard_requests": rapid.Bool().Draw(r, "log")}
		m["unauthenticated_per_ip_per_minute"] = rapid.IntRange(1, 5000).Draw(r, "limit")
		identity := m["external_identity"].(yamlMap)
		identity["app_url"] = "https://app." + id + ".example/x"
		identity["cors_allowed_origins"] = rapid.SampledFrom([][]string{{}, {"https://a.example"}, {"https://b.example:8443", "capacitor://localhost"}}).Draw(r, "origins")
		if len(sets) > 0 {
			identity["default_permission_set"] = sets[0]
		}
	}
	return m
}

// drawEntities returns entities and, by entity, the fields whose type can be
// compared.
func drawEntities(r *rapid.T) ([]any, map[string][]yamlMap) {
	names := drawNames(r, "entities", 4, identifiers)
	list, comparable := []any{}, map[string][]yamlMap{}
	for _, name := range names {
		fields := []any{}
		comparable[name] = nil
		for _, field := range drawNames(r, "fields", 5, identifiers) {
			kind := rapid.SampledFrom([]string{"text", "number", "boolean", "date", "datetime", "select", "multiselect", "reference", "json"}).Draw(r, "type")
			f := yamlMap{"name": field, "type": kind, "required": rapid.Bool().Draw(r, "required")}
			switch kind {
			case "select", "multiselect":
				f["options"] = append(drawNames(r, "options", 3, rapid.Custom(func(r *rapid.T) string { return "o" + drawText(r, "option") })), "always")
				f["options"] = slices.Compact(slices.Sorted(slices.Values(f["options"].([]string))))
			case "reference":
				f["entity"] = rapid.SampledFrom(names).Draw(r, "target")
			}
			if kind != "multiselect" && kind != "json" {
				f["unique"], f["indexed"] = rapid.Bool().Draw(r, "unique"), rapid.Bool().Draw(r, "indexed")
				comparable[name] = append(comparable[name], f)
			}
			if kind == "text" {
				f["searchable"] = rapid.Bool().Draw(r, "searchable")
			}
			fields = append(fields, f)
		}
		e := yamlMap{"name": name, "fields": fields, "sharing": rapid.SampledFrom([]string{"private", "public_read", "public_read_write"}).Draw(r, "sharing")}
		if rapid.Bool().Draw(r, "labelled") {
			e["label"] = drawText(r, "label")
			e["keep"] = rapid.SampledFrom([]string{"", "1d", "90d", "36500d"}).Draw(r, "keep")
		}
		list = append(list, e)
	}
	return list, comparable
}

func drawRoles(r *rapid.T, names []string) []any {
	list := []any{}
	for i, name := range names {
		role := yamlMap{"name": name}
		if i > 0 && rapid.Bool().Draw(r, "below") {
			role["parent"] = rapid.SampledFrom(names[:i]).Draw(r, "parent")
		}
		list = append(list, role)
	}
	slices.Reverse(list) // parents may follow their children
	return list
}

func drawSets(r *rapid.T, names []string, fields map[string][]yamlMap) []any {
	list := []any{}
	for _, name := range names {
		entities := yamlMap{"user": yamlMap{"read": true, "fields": yamlMap{"company": yamlMap{"edit": true}}}}
		for _, entity := range slices.Sorted(maps.Keys(fields)) {
			g, declared := yamlMap{"assign_owner": rapid.Bool().Draw(r, "assign")}, fields[entity]
			for _, verb := range []string{"create", "read", "update", "delete"} {
				g[verb] = rapid.Bool().Draw(r, verb)
			}
			if len(declared) > 0 {
				g["fields"] = yamlMap{declared[0]["name"].(string): yamlMap{"read": rapid.Bool().Draw(r, "read"), "edit": rapid.Bool().Draw(r, "edit")}}
			}
			entities[entity] = g
		}
		list = append(list, yamlMap{"name": name, "all_entity_access": rapid.Bool().Draw(r, "all"), "entities": entities,
			"system": rapid.Permutation([]string{"login_as", "manage_users", "tenant_settings"}).Draw(r, "system")})
	}
	return list
}

func drawRules(r *rapid.T, roles []string, fields map[string][]yamlMap) []any {
	list, seen := []any{}, map[string]bool{}
	if len(roles) == 0 {
		return list
	}
	for _, entity := range slices.Sorted(maps.Keys(fields)) {
		declared := fields[entity]
		rule := yamlMap{"entity": entity, "share_with_role": rapid.SampledFrom(roles).Draw(r, "with"),
			"access": rapid.SampledFrom([]string{"read", "edit"}).Draw(r, "access")}
		if len(declared) > 0 && rapid.Bool().Draw(r, "by value") {
			where := yamlMap{}
			for _, f := range declared {
				where[f["name"].(string)] = drawValue(r, f)
				if f["type"] == "text" && (f["unique"] == true || f["indexed"] == true) && rapid.Bool().Draw(r, "of the viewer") {
					where[f["name"].(string)] = rapid.SampledFrom([]string{"{{user.id}}", "{{user.email}}", "{{user.region}}", "{{ user.levels }}"}).Draw(r, "viewer")
				}
			}
			rule["where"] = where
		} else {
			rule["owned_by_role"] = rapid.SampledFrom(roles).Draw(r, "of")
		}
		if rapid.Bool().Draw(r, "audience") {
			delete(rule, "share_with_role")
			rule["share_with"] = rapid.SampledFrom([]string{"internal", "external", "everyone"}).Draw(r, "share_with")
		}
		if key := fmt.Sprint(rule); !seen[key] {
			seen[key] = true
			list = append(list, rule)
		}
	}
	return list
}

func drawValue(r *rapid.T, f yamlMap) any {
	switch f["type"] {
	case "number":
		return rapid.OneOf(rapid.SampledFrom([]any{0, -7, 1e21 / 1e18, 0.1, 1e-9, 9007199254740992, 123456.5})).Draw(r, "number")
	case "boolean":
		return rapid.Bool().Draw(r, "boolean")
	case "date":
		return "2026-01-31"
	case "datetime":
		return rapid.SampledFrom([]string{"2026-01-31T12:00:00Z", "2026-01-31T12:00:00.5+02:00"}).Draw(r, "datetime")
	case "select":
		return rapid.SampledFrom(f["options"].([]string)).Draw(r, "option")
	case "reference":
		return "01998a7e-0000-7000-8000-000000000000"
	}
	return "a " + drawText(r, "value")
}

func drawUsers(r *rapid.T, roles, sets []string) []any {
	list := []any{}
	kinds := []string{"internal", "internal", "external"}
	for i := range rapid.IntRange(0, 4).Draw(r, "users") {
		kind := kinds[i%3]
		u := yamlMap{"email": fmt.Sprintf("user%d@%s.example", i, kind), "type": kind, "owner": i == 0}
		if rapid.Bool().Draw(r, "named") {
			u["name"], u["locale"] = drawName(r), rapid.SampledFrom([]string{"", "de", "en-GB"}).Draw(r, "locale")
		}
		if len(roles) > 0 && kind == "internal" { // a second manifest must not take a role from an external user
			u["role"] = rapid.SampledFrom(roles).Draw(r, "role")
		}
		if kind == "internal" {
			u["permission_sets"] = sets
		}
		if rapid.Bool().Draw(r, "has") {
			u["managed"] = yamlMap{"region": "a " + drawText(r, "region"), "levels": rapid.SampledFrom([]any{nil, []string{}, []string{"b", "a"}}).Draw(r, "levels")}
		}
		if rapid.Bool().Draw(r, "activity") {
			u["active"] = rapid.Bool().Draw(r, "active")
		}
		list = append(list, u)
	}
	return list
}

// TestExportReadsWell checks the export of acme as an operator sees it.
func TestExportReadsWell(t *testing.T) {
	each(t, func(p *place) {
		acmePlace(p)
		const want = `tenant: acme
display_name: Acme GmbH
hosts: [acme.localhost, shop.acme.example]
admin_hosts: []
base_url: "https://acme.localhost"
public_api: {enabled: true, log_standard_requests: true}
staff: {second_factor: optional}
unauthenticated_per_ip_per_minute: 1000
dedup_retention_days: 0

external_identity:
  enabled: true
  open_registration: true
  activation_mode: svc_email
  default_permission_set: portal
  welcome_email: false
  rate_limit_per_minute: 1000
  limits:
    register_per_ip_per_hour: 5
    register_per_tenant_per_hour: 30
    login_per_ip_per_minute: 7
    login_per_email_per_15_minutes: 5
    login_block_minutes: 30
    reset_per_email_per_hour: 3
    reset_per_tenant_per_hour: 30
    refresh_per_token_per_minute: 60
    verify_per_ip_per_minute: 30
    password_reset_per_ip_per_minute: 30

entities:
  - name: account
    label: Account
    sharing: private
    fields:
      - {name: name, type: text, required: true, unique: true}
  - name: contact
    label: Contact person
    sharing: public_read
    fields:
      - {name: first_name, type: text, required: true}
      - {name: score, type: number, indexed: true}
      - {name: stage, type: select, options: [new, won, lost]}
      - {name: account, type: reference, entity: account}

user_fields:
  - {name: company, type: text}

roles:
  - {name: ceo}
  - {name: sales, parent: ceo}
  - {name: support, parent: ceo}

permission_sets:
  - name: portal
    system: []
    all_entity_access: false
    entities:
      contact: {create: true, read: true, update: false, delete: false, fields: {score: {read: true, edit: false}}}
  - name: staff
    system: [manage_users, tenant_settings]
    all_entity_access: true
    entities: {}

sharing_rules:
  - {entity: contact, owned_by_role: sales, share_with_role: support, access: read}
  - {entity: contact, where: {score: 7, stage: won}, share_with_role: support, access: edit}

users:
  - {email: olivia@acme.example, name: Olivia Owner, owner: true, role: ceo}
  - {email: Sam@acme.example, name: Sam Seller, role: sales, permission_sets: [staff]}
  - {email: eva@customer.example, name: eva, locale: de, type: external, role: support, permission_sets: [portal]}

modules: []
logic_components: []
automations: []
custom_endpoints: []
email_templates: {}
`
		if got := p.export("acme"); got != want {
			p.Errorf("exported:\n%s", got)
		}
	})
}

// TestNamesAreNotTheEnvironment checks that a user whose name looks like a
// variable keeps that name when the export is applied.
func TestNamesAreNotTheEnvironment(t *testing.T) {
	each(t, func(p *place) {
		acmePlace(p)
		p.apply("tenant: acme\nusers: [{email: eva@customer.example, type: external, role: support, permission_sets: [portal]," +
			" name: !!str \"${OLIVIA_PASSWORD}\"}]\n")
		if name := p.user("acme", "eva@customer.example").Name; name != "${OLIVIA_PASSWORD}" {
			p.Fatalf("eva is called %q", name)
		}
		p.printed(p.apply(p.export("acme")))
	})
}

// TestRuleValuesOfHTML checks that a rule's value is stored unchanged, although
// JSON encoding would escape HTML.
func TestRuleValuesOfHTML(t *testing.T) {
	each(t, func(p *place) {
		acmePlace(p)
		p.apply("tenant: acme\nsharing_rules: [{entity: contact, where: {first_name: \"A & B\"}, share_with_role: ceo, access: read}]\n")
		p.printed(p.apply(p.export("acme")))
	})
}

func FuzzApplyNeverPanics(f *testing.F) {
	f.Add(acme)
	f.Add("tenant: a\nusers: [{email: ${X}}]\n")
	f.Add("&a [*a]")
	f.Add("tenant: a\n? [x]\n: y\n")
	f.Fuzz(func(t *testing.T, src string) {
		if err := manifest.Check("m.yaml", []byte(src), func(string) string { return "" }); err != nil &&
			!strings.HasPrefix(err.Error(), "m.yaml:") {
			t.Errorf("%v has no place", err)
		}
	})
}
