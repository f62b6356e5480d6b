package manifest_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/clock"
	"gatehouse/internal/component"
	"gatehouse/internal/custom"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/manifest"
	"gatehouse/internal/tenant"
)

// flows defines one object of each kind for the tenant acme.
const flows = `tenant: acme
dedup_retention_days: 90
logic_components:
  - name: order_total
    inputs: [{name: lines, type: json, required: true}]
    outputs: [{name: total, type: number}]
    source: |
      export default function handler(inputs, ctx) {
        return { total: inputs.lines.length, key: "${HOME}" };
      }
  - name: shop_verifier
    execution_context: {specific_user: SAM@acme.example}
    timeout_ms: 250
    source: "export default () => 1"
automations:
  - name: new_lead
    trigger: http.request
    input_schema: [{name: email, type: text, required: true, pattern: "@"}]
    outputs: [{name: contact_id, type: text}]
    execution_context: system
    nodes:
      - {id: create, type: record.create, entity: contact, fields: {first_name: "{{inputs.email}}", score: 19.90, stage: null}}
      - {id: total, type: component, component: order_total, inputs: {lines: [1, 2.50, true, "${HOME}", 2026-01-31]}}
      - {type: record.list, entity: contact, where: {score: 7}}
      - {id: out, type: output, set: {contact_id: "{{create.id}}"}}
custom_endpoints:
  - {slug: order-total, target: {component: order_total}, external_users: true, max_body_bytes: 4096}
  - {slug: lead-hook, target: {automation: new_lead}, auth: token, reply: receipt, run_as: eva@customer.example, rate_limit_per_minute: 60}
  - {slug: shop, target: {automation: new_lead}, auth: signed, verifier: shop_verifier, webhook_secret: "${SHOP_SECRET}", log_requests: false}
email_templates:
  external-user-welcome: {subject: "Welcome, {{name}}", text: "${HOME}", html: "<p>{{app_url}}</p>"}
`

func flowsPlace(p *place) *place {
	p.Helper()
	acmePlace(p)
	p.vars["SHOP_SECRET"] = "first-secret-of-the-shop"
	p.vars["HOME"] = "nobody's business"
	p.apply(flows)
	return p
}

func (p *place) definitions() *custom.Definitions {
	p.Helper()
	defs, err := custom.Load(context.Background(), p.d.For("acme"))
	if err != nil {
		p.Fatal(err)
	}
	return defs
}

func TestApplyDefinesWhatATenantRuns(t *testing.T) {
	each(t, func(p *place) {
		acmePlace(p)
		p.vars["SHOP_SECRET"] = "first-secret-of-the-shop"
		p.printed(p.apply(flows),
			"update tenant acme: dedup_retention_days 0 → 90, email_templates added",
			"create logic component order_total", "create logic component shop_verifier",
			"create automation new_lead",
			"create custom endpoint order-total", "create custom endpoint lead-hook", "create custom endpoint shop")
		defs := p.definitions()
		olivia, sam, eva := p.user("acme", "olivia@acme.example"), p.user("acme", "sam@acme.example"), p.user("acme", "eva@customer.example")
		total, verifier := defs.Components["order_total"], defs.Components["shop_verifier"]
		if !strings.Contains(total.Source, `"${HOME}"`) || total.TimeoutMS != 5000 || total.Context.Kind != custom.Caller || !total.Inputs[0].Required {
			p.Errorf("order_total is %+v", total)
		}
		if verifier.TimeoutMS != 250 || verifier.Context != (custom.Context{Kind: custom.SpecificUser, UserID: string(sam.ID)}) {
			p.Errorf("shop_verifier is %+v", verifier)
		}
		const flow = `{"name":"new_lead","input_schema":[{"name":"email","type":"text","required":true,"pattern":"@"}],"outputs":[{"name":"contact_id","type":"text"}],` +
			`"nodes":[{"id":"create","type":"record.create","entity":"contact","fields":{"first_name":"{{inputs.email}}","score":19.90,"stage":null}},` +
			`{"id":"total","type":"component","component":"order_total","inputs":{"lines":[1,2.50,true,"${HOME}","2026-01-31"]}},` +
			`{"type":"record.list","entity":"contact","where":{"score":7}},{"id":"out","type":"output","set":{"contact_id":"{{create.id}}"}}]}`
		if lead := defs.Automations["new_lead"]; string(lead.Flow) != flow || lead.Context.Kind != custom.System {
			p.Errorf("new_lead is %+v\n%s", lead, lead.Flow)
		}
		byKey, hook, shop := defs.Endpoints["order-total"], defs.Endpoints["lead-hook"], defs.Endpoints["shop"]
		if byKey.Auth != custom.APIKey || !byKey.ExternalUsers || !byKey.LogRequests || byKey.MaxBodyBytes != 4096 || byKey.RateLimitPerMinute != 1000 {
			p.Errorf("order-total is %+v", byKey)
		}
		if hook.Auth != custom.Token || hook.Reply != custom.Receipt || hook.RunAs != string(eva.ID) || hook.RateLimitPerMinute != 60 || hook.MaxBodyBytes != 1<<20 {
			p.Errorf("lead-hook is %+v", hook)
		}
		if shop.Verifier != "shop_verifier" || shop.LogRequests || shop.DefinedBy != string(olivia.ID) || shop.RunAs != "" || shop.SealedPrevious != "" {
			p.Errorf("shop is %+v", shop)
		}
		if plain, err := p.keyring().Open(custom.SecretPurpose, shop.SealedSecret); err != nil || string(plain) != "first-secret-of-the-shop" {
			p.Errorf("the secret is %q, %v", plain, err)
		}
		settings := p.config("acme").Tenant.Settings
		if settings.DedupRetentionDays != 90 || settings.EmailTemplates["external-user-welcome"].Text != "${HOME}" {
			p.Errorf("settings are %+v", settings)
		}
		if len(p.compiled) != 2 {
			p.Errorf("compiled were %q", p.compiled)
		}
	})
}

func TestDefinitionsStayAsTheyAre(t *testing.T) {
	each(t, func(p *place) {
		flowsPlace(p)
		p.compiled = nil
		sealed := p.definitions().Endpoints["shop"].SealedSecret
		p.printed(p.apply(flows))
		p.printed(p.apply(p.export("acme")))
		p.printed(p.prune(p.export("acme")))
		if p.definitions().Endpoints["shop"].SealedSecret != sealed || len(p.compiled) > 0 {
			p.Errorf("sealed anew, or compiled: %q", p.compiled)
		}
		p.printed(p.apply("tenant: acme\nlogic_components: []\nautomations: []\ncustom_endpoints: []\nemail_templates: {}\n"))
		const want = `modules: []

logic_components:
  - name: order_total
    inputs:
      - {name: lines, type: json, required: true}
    outputs:
      - {name: total, type: number}
    execution_context: caller
    timeout_ms: 5000
    source: |
      export default function handler(inputs, ctx) {
        return { total: inputs.lines.length, key: "${HOME}" };
      }
  - name: shop_verifier
    inputs: []
    outputs: []
    execution_context: {specific_user: Sam@acme.example}
    timeout_ms: 250
    source: "export default () => 1"

automations:
  - name: new_lead
    trigger: http.request
    input_schema:
      - {name: email, type: text, required: true, pattern: "@"}
    outputs:
      - {name: contact_id, type: text}
    execution_context: system
    nodes:
      - id: create
        type: record.create
        entity: contact
        fields: {first_name: "{{inputs.email}}", score: 19.90, stage: null}
      - id: total
        type: component
        component: order_total
        inputs: {lines: [1, 2.50, true, "${HOME}", "2026-01-31"]}
      - {type: record.list, entity: contact, where: {score: 7}}
      - {id: out, type: output, set: {contact_id: "{{create.id}}"}}

custom_endpoints:
  - {slug: lead-hook, target: {automation: new_lead}, auth: token, reply: receipt, run_as: eva@customer.example, log_requests: true, rate_limit_per_minute: 60, max_body_bytes: 1048576}
  - {slug: order-total, target: {component: order_total}, auth: api_key, log_requests: true, external_users: true, max_body_bytes: 4096}
  - {slug: shop, target: {automation: new_lead}, auth: signed, verifier: shop_verifier, log_requests: false, rate_limit_per_minute: 1000, max_body_bytes: 1048576}

email_templates:
  external-user-welcome:
    subject: "Welcome, {{name}}"
    text: "${HOME}"
    html: "<p>{{app_url}}</p>"
`
		out := p.export("acme")
		if _, got, _ := strings.Cut(out, "permission_sets: [portal]}\n\n"); got != want {
			p.Errorf("exported:\n%s", got)
		}
	})
}

func TestApplySaysWhatChangedInDefinitions(t *testing.T) {
	each(t, func(p *place) {
		flowsPlace(p)
		p.compiled = nil
		changed := strings.NewReplacer("lines.length,", "0,", "timeout_ms: 250", "timeout_ms: 100", "score: 19.90", "score: 20",
			"{specific_user: SAM@acme.example}", "system", "reply: receipt, run_as: eva@customer.example", "run_as: olivia@acme.example",
			"Welcome", "Hello").Replace(flows)
		lines := p.apply(changed)
		for i, line := range lines {
			if at := strings.Index(line, "sha256:"); at >= 0 {
				lines[i] = line[:at]
			}
		}
		p.printed(lines,
			"update tenant acme: email_templates.external-user-welcome.subject changed",
			"update logic component order_total: source ",
			`update logic component shop_verifier: execution_context {"specific_user":"sam@acme.example"} → system, timeout_ms 250 → 100`,
			"update automation new_lead: nodes changed",
			"update custom endpoint lead-hook: reply receipt → result, run_as eva@customer.example → olivia@acme.example")
		if len(p.compiled) != 1 {
			p.Errorf("compiled were %q", p.compiled)
		}
		for _, c := range p.history("acme") {
			if c.Kind == "automation" && c.Action == "update" {
				if before := string(c.Before.(json.RawMessage)); !strings.Contains(before, `"score":19.90`) {
					p.Errorf("before the change: %s", before)
				}
			}
		}
	})
}

func TestPruningDefinitions(t *testing.T) {
	each(t, func(p *place) {
		flowsPlace(p)
		p.refused(manifest.Options{Prune: true}, "tenant: acme\nlogic_components: []\n",
			"acme.yaml:2: logic component order_total cannot be removed: automation new_lead needs it",
			"acme.yaml:2: logic component order_total cannot be removed: custom endpoint order-total needs it",
			"acme.yaml:2: logic component shop_verifier cannot be removed: custom endpoint shop needs it")
		p.refused(manifest.Options{Prune: true}, "tenant: acme\nautomations: []\n",
			"acme.yaml:2: automation new_lead cannot be removed: custom endpoint lead-hook needs it",
			"acme.yaml:2: automation new_lead cannot be removed: custom endpoint shop needs it")
		p.refused(manifest.Options{Prune: true}, "tenant: acme\nentities: []\nsharing_rules: []\npermission_sets: [{name: portal}, {name: staff}]\n",
			"acme.yaml:2: entity contact cannot be removed: automation new_lead needs it")
		const rest = "sharing_rules: []\npermission_sets: [{name: portal}, {name: staff}]\n"
		p.apply("tenant: acme\n" + "permission_sets: [{name: portal}]\n")
		p.prune("tenant: acme\nsharing_rules: []\n")
		p.refused(manifest.Options{}, "tenant: acme\nentities:\n  - name: contact\n    fields:\n      - {name: score, type: number}\n"+rest,
			"acme.yaml:3: field first_name of contact cannot be removed: automation new_lead needs it",
			"acme.yaml:3: field stage of contact cannot be removed: automation new_lead needs it",
			"acme.yaml:5: field score of contact must stay indexed or unique: automation new_lead filters by it")
		p.refused(manifest.Options{}, "tenant: acme\nentities:\n  - name: contact\n    fields: [{name: first_name, type: text}, {name: stage, type: text}]\n"+rest,
			"acme.yaml:3: field score of contact cannot be removed: automation new_lead needs it")
		p.printed(p.prune("tenant: acme\nautomations: []\nlogic_components: []\ncustom_endpoints: []\nemail_templates: {}\n"),
			"update tenant acme: email_templates removed",
			"delete logic component order_total", "delete logic component shop_verifier", "delete automation new_lead",
			"delete custom endpoint lead-hook", "delete custom endpoint order-total", "delete custom endpoint shop")
		defs := p.definitions()
		if n := len(defs.Components) + len(defs.Automations) + len(defs.Endpoints); n > 0 {
			p.Errorf("%d definitions are left", n)
		}
	})
}

func TestAnAutomationNeedsWhatItNamesOfUsers(t *testing.T) {
	each(t, func(p *place) {
		acmePlace(p)
		p.apply("tenant: acme\nautomations: [{name: a, trigger: http.request, nodes: [" +
			"{type: record.list, entity: user, where: {email: x}}, {type: record.update, entity: user, record_id: x, fields: {company: x, name: y}}]}]\n")
		p.refused(manifest.Options{}, "tenant: acme\nuser_fields: []\n", "acme.yaml:2: field company of user cannot be removed: automation a needs it")
		p.printed(p.apply("tenant: acme\nuser_fields: [{name: company, type: text}, {name: size, type: number}]\n"),
			"update user fields: fields.size added")
	})
}

func TestWhatApplyCannotDoWithout(t *testing.T) {
	p := acmePlace(newPlace(t, dbtest.Open(t, db.SQLite)))
	for src, want := range map[string]string{
		"tenant: acme\nlogic_components: [{name: x, source: y}]\n":                                                          "Options.Compile",
		"tenant: acme\ncustom_endpoints: [{slug: x, target: {component: y}, auth: signed, verifier: z, webhook_secret: s}]": "Options.Keyring",
	} {
		_, err := manifest.Apply(context.Background(), p.d, clock.System(), "m.yaml", []byte(src), os.Getenv, manifest.Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("told %v, want %s", err, want)
		}
	}
	broken := errors.New("the engine does not start")
	_, err := p.try("tenant: acme\nlogic_components: [{name: x, source: y}]\n", manifest.Options{
		Compile: func(context.Context, tenant.ID, string, component.Source) ([]string, error) { return nil, broken },
	})
	if !errors.Is(err, broken) {
		t.Errorf("told %v", err)
	}
}

func TestEmailTemplatesAreKeptAndPruned(t *testing.T) {
	each(t, func(p *place) {
		flowsPlace(p)
		const reset = "tenant: acme\nemail_templates:\n  external-user-password-reset:\n    subject: Reset\n    text: |\n" +
			"      Dear {{name}},\n\n      {{reset_url}}\n    html: <a href=\"{{reset_url}}\">reset</a>\n"
		p.printed(p.apply(reset), "update tenant acme: email_templates.external-user-password-reset added")
		p.printed(p.apply(p.export("acme")))
		if kept := p.config("acme").Tenant.Settings.EmailTemplates; len(kept) != 2 || kept["external-user-password-reset"].Text != "Dear {{name}},\n\n{{reset_url}}\n" {
			p.Errorf("templates are %+v", kept)
		}
		p.printed(p.prune(reset), "update tenant acme: email_templates.external-user-welcome removed")
	})
}

// keep is a number of days, and says what is deleted by it.
func TestKeep(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		p := newPlace(t, d)
		const reading = "tenant: acme\nusers: [{email: olivia@acme.example, owner: true}]\nentities:\n  - name: reading\n    fields: [{name: value, type: number}]\n"
		p.refused(manifest.Options{}, reading+"    keep: 90\n", "acme.yaml:6: keep: expected a number of days as 90d, from 1d to 36500d, found a number")
		for _, wrong := range []string{"0d", "090d", "36501d", "-1d", "3 d", "12h", "d"} {
			p.refused(manifest.Options{}, reading+"    keep: "+wrong+"\n", "acme.yaml:6: keep: expected a number of days as 90d, from 1d to 36500d, found \""+wrong+"\"")
		}
		p.apply(reading)
		p.record("acme", "reading", "value", "1")
		p.clock.Advance(40 * 24 * time.Hour)
		p.record("acme", "reading", "value", "2")
		const told = "entity reading: keep 30d: 1 records are older, and are deleted within minutes, with what is below them"
		for _, dry := range []bool{true, false} {
			r, err := p.try(reading+"    keep: 30d\n", manifest.Options{DryRun: dry})
			if err != nil || len(r.Warnings) != 1 || r.Warnings[0] != told {
				t.Errorf("dry run %v: warned %q, %v", dry, r.Warnings, err)
			}
		}
		if r, err := p.try(reading+"    keep: 60d\n", manifest.Options{}); err != nil || len(r.Warnings) != 0 {
			t.Errorf("longer: warned %q, %v", r.Warnings, err)
		}
		if text := p.export("acme"); !strings.Contains(text, "    keep: \"60d\"\n") {
			t.Errorf("export: %s", text)
		}
		p.printed(p.apply(reading), "update entity reading: keep 60d → none")
	})
}

// Only texts of records are searchable, five of an entity type.
func TestWhatIsSearchable(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		p := newPlace(t, d)
		p.refused(manifest.Options{}, "tenant: acme\nentities:\n  - name: contact\n    fields:\n      - {name: score, type: number, searchable: true}\n",
			"acme.yaml:5: entity contact: field score: only a text is searchable, not a number")
		p.refused(manifest.Options{}, "tenant: acme\nuser_fields:\n  - {name: desk, type: text, searchable: true}\n",
			"acme.yaml:3: user_fields: desk: unique, indexed and searchable are not available for fields of users")
		six := "tenant: acme\nentities:\n  - name: contact\n    fields:\n"
		for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
			six += "      - {name: " + name + ", type: text, searchable: true}\n"
		}
		p.refused(manifest.Options{}, six, "acme.yaml:3: entity contact: 6 fields are searchable: expected at most 5")
	})
}
