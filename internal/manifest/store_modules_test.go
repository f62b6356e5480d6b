package manifest_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"gatehouse/internal/component"
	"gatehouse/internal/custom"
	"gatehouse/internal/gatetest/enginecache"
	"gatehouse/internal/manifest"
	"gatehouse/internal/tenant"
)

// shopManifest has a component that uses a module, which uses another.
const shopManifest = `tenant: acme
modules:
  - name: pricing
    source: |
      import { tax } from "rates"
      export const total = (net) => net * (1 + tax)
  - {name: rates, source: "export const tax = 0.5"}
  - {name: alone, source: "export const unused = 1"}
logic_components:
  - name: order
    source: |
      import { total } from "pricing"
      export default ({ net }) => total(net)
  - {name: plain, source: "export default () => 1"}
`

// withEngine returns options whose Compile uses the engine and lists what it is asked.
func withEngine(t *testing.T) (manifest.Options, *[]string) {
	engine, err := component.NewEngine(t.Context(), component.Options{CacheDir: enginecache.Dir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	asked := &[]string{}
	return manifest.Options{Compile: func(ctx context.Context, tenant tenant.ID, module string, source component.Source) ([]string, error) {
		*asked = append(*asked, strings.TrimSpace(module+" "+strings.SplitN(source.Text, "\n", 2)[0]))
		return engine.Check(ctx, string(tenant), module, source)
	}}, asked
}

func TestModulesAreBuiltWithWhatImportsThem(t *testing.T) {
	opts, asked := withEngine(t)
	each(t, func(p *place) {
		opts.Keyring = p.keyring()
		p.printed(p.with(opts, shopManifest), "create tenant acme", "create module pricing", "create module rates", "create module alone", "create logic component order", "create logic component plain")
		defs := p.definitions()
		if !slices.Equal(defs.Components["order"].Imports, []string{"pricing", "rates"}) || !slices.Equal(defs.Modules["pricing"].Imports, []string{"rates"}) || defs.Components["plain"].Imports != nil {
			p.Errorf("imports %+v %+v", defs.Components["order"], defs.Modules["pricing"])
		}
		*asked = nil
		p.printed(p.with(opts, shopManifest))
		p.printed(p.with(opts, p.export("acme")))
		if len(*asked) > 0 {
			p.Errorf("compiled %q though nothing had changed", *asked)
		}
		lines := p.with(opts, "tenant: acme\nmodules: [{name: rates, source: 'export const tax = 0.25'}]\n")
		if len(lines) != 3 || !strings.HasPrefix(lines[0], "update module rates: source sha256:") ||
			!strings.HasPrefix(lines[1], "update module pricing: imports.rates sha256:") || !strings.HasPrefix(lines[2], "update logic component order: imports.rates sha256:") {
			p.Errorf("printed %q", lines)
		}
		if want := []string{"pricing", "rates", `import { total } from "pricing"`}; !slices.Equal(*asked, want) {
			p.Errorf("compiled %q, want %q", *asked, want)
		}
		prune := opts
		prune.Prune = true
		last := p.with(prune, strings.Replace(shopManifest, `  - {name: alone, source: "export const unused = 1"}`+"\n", "", 1))
		if len(last) != 4 || last[2] != "delete module alone" {
			p.Errorf("printed %q", last)
		}
	})
}

func TestMistakesInModules(t *testing.T) {
	opts, _ := withEngine(t)
	each(t, func(p *place) {
		opts.Keyring = p.keyring()
		const head, handler = "tenant: acme\n", "; export default () => 1"
		p.with(opts, shopManifest)
		for _, c := range []struct{ src, want string }{
			{"modules:\n  - name: rates\n    source: |\n      export const other = 1\n", "acme.yaml:3: module pricing: line 1, column 10: module rates does not export tax"},
			{"modules:\n  - name: rates\n    source: |\n      export const tax = 1\n      export const = 2\n", "acme.yaml:6: module rates: SyntaxError: variable name expected (column 14)"},
			{"modules:\n  - name: rates\n    source: |\n      import { total } from 'pricing'\n      export const tax = 1\n", `modules import each other: `},
			{"modules:\n  - name: rates\n    source: |\n      export const tax = null.x\n", "acme.yaml:5: module rates: TypeError: cannot read property 'x' of null (column 1) (in logic component order)"},
			{"logic_components:\n  - name: more\n    source: |\n      const a = 1\n      import { b } from 'prices'" + handler + "\n", `acme.yaml:6: logic component more: there is no module "prices" (column 19)`},
			{"logic_components:\n  - name: order\n    source: |\n      import { nett } from 'pricing'" + handler + "\n", "acme.yaml:5: logic component order: module pricing does not export nett (column 10)"},
			{"modules: [{name: Rates, source: '1'}]\n", `acme.yaml:2: module "Rates": expected snake_case of at most 63 characters`},
			{"modules: [{name: a, source: '1'}, {name: a, source: '2'}]\n", "module a is declared twice"},
			{"modules: [{name: a}]\n", "module a needs exactly one of source and source_file"},
			{"modules: [{name: a, source: ''}]\n", "source: expected JavaScript that exports something"},
		} {
			if _, err := p.try(head+c.src, opts); err == nil || !strings.Contains(err.Error(), c.want) {
				p.Errorf("%s\ntold %v\nwant %s", c.src, err, c.want)
			}
		}
		prune := opts
		prune.Prune = true
		_, err := p.try(head+"modules: [{name: alone, source: 'export const unused = 1'}, {name: pricing, source: 'export const total = 1'}]\n", prune)
		if err != nil {
			p.Errorf("a module that nothing imports any more stays: %v", err)
		}
		_, err = p.try(head+"modules: []\n", prune)
		if err == nil || !strings.HasSuffix(err.Error(), "acme.yaml:2: module pricing cannot be removed: logic component order imports it") {
			p.Errorf("told %v", err)
		}
		var many strings.Builder
		for range component.MaxModuleBytes/(200<<10) + 1 {
			many.WriteString("  - {name: m" + strings.Repeat("x", many.Len()/(200<<10)+1) + ", source: '" + strings.Repeat(" ", 200<<10) + "'}\n")
		}
		if _, err := p.try(head+"modules:\n"+many.String(), opts); err == nil || !strings.Contains(err.Error(), "expected at most 64 with 1024 KiB") {
			p.Errorf("told %v", err)
		}
	})
}

// TestModulesOfTwoChanges: a component that another apply makes while this one compiles
// is compiled with the module that this one changes.
func TestModulesOfTwoChanges(t *testing.T) {
	opts, _ := withEngine(t)
	each(t, func(p *place) {
		opts.Keyring = p.keyring()
		p.with(opts, "tenant: acme\nmodules: [{name: rates, source: 'export const tax = 1'}]\n")
		meanwhile := opts
		meanwhile.Compile = func(ctx context.Context, tenant tenant.ID, module string, source component.Source) ([]string, error) {
			if module == "rates" {
				p.with(opts, "tenant: acme\nlogic_components: [{name: order, source: 'import { tax } from \"rates\"; export default () => tax'}]\n")
			}
			return opts.Compile(ctx, tenant, module, source)
		}
		_, err := p.try("tenant: acme\nmodules:\n  - {name: rates, source: 'export const rate = 1'}\n", meanwhile)
		if err == nil || !strings.Contains(err.Error(), "module rates does not export tax") {
			p.Errorf("told %v", err)
		}
		if defs := p.definitions(); defs.Modules["rates"].Source != "export const tax = 1" || defs.Components["order"] == nil {
			p.Errorf("stored %+v", defs.Modules["rates"])
		}
	})
}

func TestConfigAndSecretsOfComponents(t *testing.T) {
	opts, _ := withEngine(t)
	each(t, func(p *place) {
		opts.Keyring = p.keyring()
		pay := func(rest string) string {
			return "tenant: acme\nlogic_components:\n  - {name: pay, source: 'export default () => secrets.KEY.length + config.tax'" + rest + "}\n"
		}
		var lines []string
		did := func(rest string, want ...string) {
			p.Helper()
			got := p.with(opts, pay(rest))
			lines = append(lines, got...)
			p.printed(got, want...)
		}
		p.vars["PAYMENT_KEY"], p.vars["OTHER"] = "sk_live_0123456789", "sk_live_9876543210"
		did(`, config: {tax: 0.19, of: "${OTHER}"}, secrets: {KEY: "${PAYMENT_KEY}", PLAIN: in-the-manifest}`, "create tenant acme", "create logic component pay")
		stored := p.definitions().Components["pay"]
		if plain, err := custom.OpenSecrets(p.keyring(), stored); err != nil || plain["KEY"] != "sk_live_0123456789" || plain["PLAIN"] != "in-the-manifest" || string(stored.Config) != `{"tax":0.19,"of":"${OTHER}"}` {
			p.Errorf("%v %s %v", plain, stored.Config, err)
		}
		did(`, config: {tax: 0.19, of: "${OTHER}"}`)
		did(`, config: {tax: 0.19, of: "${OTHER}"}, secrets: {KEY: "${PAYMENT_KEY}", PLAIN: null}`)
		p.printed(p.with(opts, p.export("acme")))
		if text := p.export("acme"); !strings.Contains(text, "    config: {tax: 0.19, of: \"${OTHER}\"}\n    secrets:\n      KEY: null\n      PLAIN: null\n") {
			p.Errorf("exported\n%s", text)
		}
		did(`, config: {tax: 0.2}, secrets: {KEY: "${OTHER}", NEW: "${PAYMENT_KEY}"}`,
			`update logic component pay: config.of ${OTHER} → none, config.tax 0.19 → 0.2, secrets.KEY changed, secrets.NEW set, secrets.PLAIN removed`)
		did(`, secrets: {}`, "update logic component pay: config removed, secrets removed")

		delete(p.vars, "OTHER")
		long := strings.Repeat("a", 17<<10)
		for rest, want := range map[string]string{
			`, secrets: {KEY: "${OTHER}"}`:   "acme.yaml:3: KEY: the environment variable OTHER is not set, or empty",
			`, secrets: {KEY: null}`:         "acme.yaml:3: logic component pay: secrets: KEY: there is none to keep: expected its text, or ${KEY}",
			`, secrets: {KEY: short77}`:      "acme.yaml:3: KEY: expected a secret of at least 8 characters: a shorter one could not be redacted",
			`, secrets: {KEY: 1234567890}`:   "acme.yaml:3: KEY: expected text, found a number (in quotes it is a text)",
			`, secrets: {KEY: ` + long + `}`: "acme.yaml:3: KEY: expected a secret of at most 8 KiB",
			`, secrets: {a-b: long-enough}`:  `acme.yaml:3: secrets: expected a name of at most 63 letters, digits and _, like PAYMENT_KEY, found "a-b"`,
			`, secrets: [KEY]`:               "acme.yaml:3: secrets: expected a mapping, found a list",
			`, config: {a: ` + long + `}`:    "acme.yaml:3: config: expected at most 16 KiB of JSON, found 17416 bytes",
			`, config: [1]`:                  "acme.yaml:3: config: expected a JSON object, found a list",
			`, config: {a: .inf}`:            "acme.yaml:3: a: expected a finite number, found \".inf\"",
		} {
			if _, err := p.try(pay(rest), opts); err == nil || err.Error() != want {
				p.Errorf("%.60s\ntold %v\nwant %s", rest, err, want)
			}
		}
		history, err := json.Marshal(p.history("acme"))
		if err != nil {
			p.Fatal(err)
		}
		for _, hidden := range []string{"sk_live", "in-the-manifest", "v1."} {
			if strings.Contains(string(history)+strings.Join(lines, "\n"), hidden) {
				p.Errorf("%q is told", hidden)
			}
		}
	})
}

// TestSecretsNeedTheirMasterKey, when what they are given to is compiled anew.
func TestSecretsNeedTheirMasterKey(t *testing.T) {
	opts, _ := withEngine(t)
	each(t, func(p *place) {
		opts.Keyring = p.keyring()
		p.with(opts, "tenant: acme\nlogic_components: [{name: pay, source: 'export default () => 1', secrets: {KEY: long-enough}}]\n")
		without := opts
		without.Keyring = nil
		_, err := p.try("tenant: acme\nlogic_components: [{name: pay, source: 'export default () => 2'}]\n", without)
		if err == nil || !strings.Contains(err.Error(), "Options.Keyring is needed") || errors.As(err, new(*manifest.Problems)) {
			p.Errorf("told %v", err)
		}
	})
}
