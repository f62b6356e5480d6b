package component_test

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"gatehouse/internal/component"
)

// compileAll compiles a source with modules and settings.
func compileAll(t *testing.T, s component.Source) (*component.Program, error) {
	t.Helper()
	return engine(t).CompileFor(t.Context(), "t", s)
}

// TestModules shows what a component gets from modules, which import others.
func TestModules(t *testing.T) {
	p, err := compileAll(t, component.Source{
		Text: `import { total } from "pricing"; import * as rates from "rates"; export default ({ n }) => [total(n), rates.tax]`,
		Modules: map[string]string{
			"pricing": `import { tax } from "rates"; export const total = (n) => n * (1 + tax)`,
			"rates":   `export const tax = config.tax`, "unused": `throw 1`,
		},
		Config: []byte(`{"tax":0.5}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Imports(); !slices.Equal(got, []string{"pricing", "rates"}) {
		t.Errorf("imports %v", got)
	}
	r, err := p.Run(t.Context(), component.Run{Tenant: "t", Inputs: []byte(`{"n":2}`)})
	if err != nil || string(r.Value) != "[3,0.5]" {
		t.Error(string(r.Value), r.Failed, err)
	}
}

// TestModuleErrors shows what is said of each mistake in an import, and of which source.
func TestModuleErrors(t *testing.T) {
	const handler = "; export default () => 1"
	for name, c := range map[string]struct {
		text    string
		modules map[string]string
		want    string
	}{
		"unknown": {"\nimport { total } from 'prices'" + handler, nil, `line 2, column 23: there is no module "prices"`},
		"a path": {"import { total } from './pricing.js'" + handler, map[string]string{"pricing": "1"},
			`line 1, column 23: there is no module "./pricing.js": a module is imported by its name, as in import {total} from "pricing"`},
		"unknown, in a module": {"import 'a'" + handler, map[string]string{"a": "\n\n import 'b'"}, `module a: line 3, column 9: there is no module "b"`},
		"caught":               {"try { await import('a') } catch {}" + handler, nil, `line 1, column 20: there is no module "a"`},
		"no such export": {"import {\n  net,\n  total,\n} from 'pricing'" + handler, map[string]string{"pricing": "export const net = 1"},
			"line 3, column 3: module pricing does not export total"},
		"re-exported":      {"import 'a'" + handler, map[string]string{"a": "export { x } from 'b'", "b": "export const y = 1"}, "module a: line 1, column 10: module b does not export x"},
		"cycle":            {"import 'a'" + handler, map[string]string{"a": "import 'b'", "b": "import 'c'", "c": "\nimport 'a'"}, "module c: line 2, column 8: modules import each other: c → a → b → c"},
		"itself":           {"import 'a'" + handler, map[string]string{"a": "import 'a'"}, "module a: line 1, column 8: modules import each other: a → a"},
		"no default":       {"\nimport total, {net} from 'pricing'" + handler, map[string]string{"pricing": "export const net = 1"}, "line 2, column 8: module pricing does not export default"},
		"a $ in it":        {"import {\n$total as x} from 'pricing'" + handler, map[string]string{"pricing": "1"}, "line 2, column 1: module pricing does not export $total"},
		"not ASCII":        {"import {x, été} from 'pricing'" + handler, map[string]string{"pricing": "export const x = 1"}, "line 1, column 12: module pricing does not export été"},
		"escaped":          {`import {t\u006ftal} from 'pricing'` + handler, map[string]string{"pricing": "1"}, "line 1, column 26: module pricing does not export total"},
		"after its name":   {"const a = 1 /* from 'm' */; import {a as b, importer} from 'm'" + handler, map[string]string{"m": "export const importer = 1"}, "line 1, column 37: module m does not export a"},
		"component":        {"import 'component'" + handler, map[string]string{"component": "\nimport 'a'", "a": "import 'component'"}, "module a: line 1, column 8: modules import each other: a → component → a"},
		"component itself": {"import 'component'" + handler, map[string]string{"component": "import 'component'"}, "module component: line 1, column 8: modules import each other: component → component"},
		"syntax":           {"import 'a'" + handler, map[string]string{"a": "export const x = 1\nexport const y = (2"}, "module a: line 2, column 20: SyntaxError"},
		"its top level":    {"import 'a'" + handler, map[string]string{"a": "\n\nnull.x"}, "module a: line 3, column 1: TypeError: cannot read property 'x' of null"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := compileAll(t, component.Source{Text: c.text, Modules: c.modules})
			var wrong *component.SourceError
			if !errors.As(err, &wrong) || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

// TestImportPlaceOfLargeSource shows that a mistake is found in a source that seems to
// import its module everywhere, which took minutes when each place was searched from the
// beginning.
func TestImportPlaceOfLargeSource(t *testing.T) {
	text := "/*" + strings.Repeat(`from"m"`, 36_000) + "*/ import {a} from 'm'; export default () => 1"
	_, err := compileAll(t, component.Source{Text: text, Modules: map[string]string{"m": "1"}})
	if err == nil || err.Error() != "line 1, column 252014: module m does not export a" {
		t.Error(err)
	}
}

// TestModuleCalledComponent shows that a module of this name is none but itself: its
// imports are its own, and so are its lines.
func TestModuleCalledComponent(t *testing.T) {
	modules := map[string]string{"component": "import 'other'\n\nexport const fail = () => { console.log('here'); null.x }", "other": "1"}
	used, err := engine(t).Check(t.Context(), "t", "component", component.Source{Modules: modules})
	if err != nil || !slices.Equal(used, []string{"other"}) {
		t.Error(used, err)
	}
	p, err := compileAll(t, component.Source{Text: "import { fail } from 'component'\nexport default () => fail()", Modules: modules})
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Run(t.Context(), component.Run{Tenant: "t"})
	if err != nil || r.Failed == nil || r.Failed.Line != 2 || len(r.Console) != 1 || r.Console[0].Line != 2 {
		t.Errorf("%+v %+v %v", r.Failed, r.Console, err)
	}
}

// TestCheck shows that a module is checked with what it imports, and not run.
func TestCheck(t *testing.T) {
	modules := map[string]string{
		"right": "import { x } from 'other'; throw config.missing.x", "other": "for (;;) {}; export const x = 1",
		"wrong": "import { y } from 'other'", "broken": "export const = 1",
	}
	used, err := engine(t).Check(t.Context(), "t", "right", component.Source{Modules: modules})
	if err != nil || !slices.Equal(used, []string{"other"}) {
		t.Error(used, err)
	}
	for name, want := range map[string]string{
		"wrong": "module wrong: line 1, column 10: module other does not export y", "broken": "module broken: line 1, column 14: SyntaxError",
	} {
		if _, err := engine(t).Check(t.Context(), "t", name, component.Source{Modules: modules}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

// TestModuleStack shows that a stack trace names the module and its line, and that the
// place of a failure is in the component's own source.
func TestModuleStack(t *testing.T) {
	p, err := compileAll(t, component.Source{
		Text: "import { total } from 'pricing'\nexport default () => total()", Modules: map[string]string{"pricing": "\nexport function total() {\n  console.log('here')\n  null.x\n}"},
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Run(t.Context(), component.Run{Tenant: "t"})
	if err != nil || r.Failed == nil || !strings.Contains(r.Failed.Stack, "at total (modules/pricing.js:4:") || r.Failed.Line != 2 {
		t.Errorf("%+v %v", r.Failed, err)
	}
	if len(r.Console) != 1 || r.Console[0].Line != 2 {
		t.Errorf("console %+v", r.Console)
	}
}

// TestModuleBounds shows the bounds of modules, and that a run imports nothing.
func TestModuleBounds(t *testing.T) {
	const text = "export default () => 1"
	many := map[string]string{}
	for n := range component.MaxModules + 1 {
		many[strings.Repeat("a", n+1)] = "1"
	}
	if _, err := compileAll(t, component.Source{Text: text, Modules: many}); err == nil || !strings.Contains(err.Error(), "expected at most 64") {
		t.Error(err)
	}
	large := map[string]string{"a": strings.Repeat(" ", component.MaxModuleBytes+1)}
	if _, err := compileAll(t, component.Source{Text: text, Modules: large}); err == nil || !strings.Contains(err.Error(), "1024 KiB") {
		t.Error(err)
	}
	p, err := compileAll(t, component.Source{Text: "import 'a'; export default async () => { await import('a') }", Modules: map[string]string{"a": "1"}})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := p.Run(t.Context(), component.Run{Tenant: "t"}); err != nil || r.Failed == nil || !strings.Contains(r.Failed.Message, "import modules at the top") {
		t.Errorf("%+v %v", r.Failed, err)
	}
}

// TestSettings shows the globals config and secrets: frozen, there when the top level
// runs, and those of their component alone.
func TestSettings(t *testing.T) {
	p, err := compileAll(t, component.Source{
		Text: `const tax = config.tax;
		const refused = (f) => { try { f(); return false } catch { return true } };
		export default () => ({ tax, length: secrets.PAYMENT_KEY.length, names: Object.keys(secrets),
			frozen: [() => { config.tax = 1 }, () => { config.deep.list.push(1) }, () => { secrets.X = '1' }].map(refused) })`,
		Config: []byte(`{"tax":0.19,"deep":{"list":[]}}`), Secrets: map[string]string{"PAYMENT_KEY": "sk_live_0123456789"},
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"tax":0.19,"length":18,"names":["PAYMENT_KEY"],"frozen":[true,true,true]}`
	if r, err := p.Run(t.Context(), component.Run{Tenant: "t"}); err != nil || string(r.Value) != want {
		t.Error(string(r.Value), r.Failed, err)
	}
	bare, err := compileAll(t, component.Source{Text: `export default () => [config, secrets, Object.isFrozen(config)]`})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := bare.Run(t.Context(), component.Run{Tenant: "t"}); err != nil || string(r.Value) != "[{},{},true]" {
		t.Error(string(r.Value), r.Failed, err)
	}
}

// TestRedaction shows that a secret is in nothing that a run returns.
func TestRedaction(t *testing.T) {
	secrets := map[string]string{"KEY": "sk_live_0123456789", "PEM": "-----BEGIN-----\n\"quoted\"\n-----END-----", "PIN": "1234567890"}
	for name, body := range map[string]string{
		"value":         `return secrets.KEY`,
		"inside":        `return { note: 'the key is ' + secrets.KEY + '.', list: [secrets.PEM], n: 12345 }`,
		"number":        `return { n: Number(secrets.PIN), m: -Number(secrets.PIN) }`,
		"JSON in JSON":  `return { text: JSON.stringify({ pem: secrets.PEM }) }`,
		"base64":        `return btoa(secrets.KEY)`,
		"respond":       `return respond({ status: 200, headers: { 'x-key': secrets.KEY }, body: secrets.PEM })`,
		"name":          `return { [secrets.KEY]: 1 }`,
		"console":       `console.log(secrets.KEY, secrets); console.error(new Error(secrets.PEM)); return 1`,
		"cut console":   `console.log('x'.repeat(8180) + secrets.KEY); return 1`,
		"fail":          `fail('no ' + secrets.KEY, { code: 'A1', details: { key: secrets.KEY, list: [secrets.PEM], [secrets.KEY]: 1, pin: Number(secrets.PIN) } })`,
		"code":          `fail('no', { code: 'A' + secrets.PIN })`,
		"error":         `throw new TypeError(secrets.KEY)`,
		"cut error":     `throw new Error('x'.repeat(8180) + secrets.KEY)`,
		"thrown":        `throw { secrets }`,
		"async":         `return (async () => { await 1; throw secrets.PEM })()`,
		"name of class": `throw Object.assign(new Error('x'), { name: secrets.KEY })`,
	} {
		t.Run(name, func(t *testing.T) {
			p, err := compileAll(t, component.Source{Text: "export default function handler() {" + body + "}", Secrets: secrets})
			if err != nil {
				t.Fatal(err)
			}
			r, err := p.Run(t.Context(), component.Run{Tenant: "t"})
			if err != nil {
				t.Fatal(err)
			}
			said := everything(t, r)
			if !strings.Contains(said, component.Redacted) && name != "code" && name != "name" {
				t.Errorf("nothing is redacted: %s", said)
			}
			for _, part := range []string{"sk_liv", "quoted", "1234567890", "c2tfbGl2ZV8wMTIzNDU2Nzg5"} {
				if strings.Contains(said, part) {
					t.Errorf("%s is in %s", part, said)
				}
			}
		})
	}
}

// TestRedactionOfWhatIsCut shows that nothing of a secret stays where a text is cut in the
// middle of it.
func TestRedactionOfWhatIsCut(t *testing.T) {
	secrets := map[string]string{"LONG": strings.Repeat("LONG_KEY_", 30), "WIDE": "abcdefghijklmnopqrst\U0001F389uv"}
	for name, body := range map[string]string{
		"name of an error": `throw Object.assign(new Error('x'), { name: secrets.LONG })`,
		"stack":            `throw Object.assign(new Error('x'), { stack: 'at q (native)\n' + 'x'.repeat(8100) + secrets.LONG })`,
		"console":          `console.log('x'.repeat(8189 - 20) + secrets.WIDE)`,
		"half of a pair":   `throw new Error('x'.repeat(8191 - 20) + secrets.WIDE)`,
		"base64":           `throw new Error('x'.repeat(8100) + btoa(secrets.LONG))`,
		"behind another":   `throw new Error('x'.repeat(7000) + secrets.LONG.repeat(9))`,
		"many":             `throw new Error(secrets.LONG.repeat(99))`,
	} {
		t.Run(name, func(t *testing.T) {
			p, err := compileAll(t, component.Source{Text: "export default function handler() {" + body + "}", Secrets: secrets})
			if err != nil {
				t.Fatal(err)
			}
			r, err := p.Run(t.Context(), component.Run{Tenant: "t"})
			if err != nil {
				t.Fatal(err)
			}
			said := everything(t, r)
			for _, part := range []string{"LONG", "abcd", "TE9ORw"} {
				if strings.Contains(said, part) {
					t.Errorf("%s is in %s", part, said)
				}
			}
		})
	}
}

// TestRedactionTellsNoBeginning shows that a caller whose text is said again cannot find
// out how a secret begins: a text that is cut is shown alike whatever it ends with.
func TestRedactionTellsNoBeginning(t *testing.T) {
	p, err := compileAll(t, component.Source{
		Text: "export default ({ code }) => { console.log(code); throw new Error(code) }", Secrets: map[string]string{"KEY": "sk_live_0123456789"},
	})
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]bool{}
	for _, guess := range []string{"sk_live_01234567", "sk_live_01234568", "no_part_of_it_at"} {
		code := strings.Repeat("-", component.MaxConsoleLine-len(guess)) + guess
		r, err := p.Run(t.Context(), component.Run{Tenant: "t", Inputs: []byte(`{"code":"` + code + `"}`)})
		if err != nil || r.Failed == nil {
			t.Fatal(r.Failed, err)
		}
		said[r.Failed.Message+r.Console[0].Text] = true
	}
	if len(said) != 1 {
		t.Errorf("%d different answers: %v", len(said), slices.Collect(maps.Keys(said)))
	}
}

// TestRedactionOfOverlaps shows that no end of a secret stays behind another.
func TestRedactionOfOverlaps(t *testing.T) {
	p, err := compileAll(t, component.Source{
		Text: "export default () => 'the abcdefghijklmnop here'", Secrets: map[string]string{"A": "abcdefghij", "B": "ghijklmnop", "C": "defghijk"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := p.Run(t.Context(), component.Run{Tenant: "t"}); err != nil || string(r.Value) != `"the [redacted] here"` {
		t.Error(string(r.Value), err)
	}
}

// TestRedactedSourceError shows that a top level does not tell of a secret either.
func TestRedactedSourceError(t *testing.T) {
	_, err := compileAll(t, component.Source{Text: "throw new Error('bad ' + secrets.KEY)", Secrets: map[string]string{"KEY": "sk_live_0123456789"}})
	if err == nil || !strings.HasSuffix(err.Error(), "bad "+component.Redacted) {
		t.Error(err)
	}
}

// everything is all text in a result.
func everything(t *testing.T, r *component.Result) string {
	t.Helper()
	said := string(r.Value)
	for _, line := range r.Console {
		said += "\n" + line.Text
	}
	if f := r.Failed; f != nil {
		said += "\n" + f.Message + f.Stack + f.Code
		for _, name := range slices.Sorted(maps.Keys(f.Details)) {
			encoded, err := json.Marshal(f.Details[name])
			if err != nil {
				t.Fatal(err)
			}
			said += name + string(encoded)
		}
	}
	return said
}
