package typings_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/internal/custom"
	"gatehouse/internal/inputs"
	"gatehouse/internal/schema"
	"gatehouse/internal/typings"
)

// shop is a tenant with a field of each type, and names that the language has, too.
func shop() []byte {
	entities := []*schema.Entity{
		{Name: "contact", Fields: []*schema.Field{
			{Name: "email", Type: schema.Text, Required: true}, {Name: "score", Type: schema.Number}, {Name: "stage", Type: schema.Select, Options: []string{"new", `"won"`}},
			{Name: "tags", Type: schema.Multiselect, Options: []string{"a", "b"}}, {Name: "since", Type: schema.Date}, {Name: "account", Type: schema.Reference, Target: "record"},
			{Name: "active", Type: schema.Boolean}, {Name: "extra", Type: schema.JSON},
		}},
		{Name: "record", Fields: []*schema.Field{{Name: "name", Type: schema.Text}}},
		{Name: "order_line"}, {Name: "orderLine"},
	}
	defs := &custom.Definitions{
		Components: map[string]*custom.Component{
			"order": {Inputs: []inputs.Declaration{{Name: "email", Type: "text", Required: true}, {Name: "n-1", Type: "number"}}, Secrets: map[string]string{"PAYMENT_KEY": "v1"}},
			"plain": {},
		},
		Modules: map[string]*custom.Module{"pricing": {}},
	}
	return typings.Declarations(schema.New(entities, nil), defs)
}

const order = `import { total } from "pricing";
/** @param {Inputs["order"]} inputs @param {Context} ctx */
export default function handler(inputs, ctx) {
  const found = records.get("contact", inputs.email);
  if (found === null) return fail("none", { status: 404 });
  const { records: list } = records.list("contact", { where: { stage: { in: ["new"] }, score: { gte: 3 } }, sort: ["-created_at"] });
  const made = records.create("contact", { email: inputs.email, stage: "new", tags: ["a"], score: inputs["n-1"] ?? null });
  records.update("contact", made.id, { score: 4 });
  records.get("record", found.account ?? "")?.name?.trim();
  const url = new URL("https://example.com/?a=1");
  url.searchParams.set("b", sha256(hmacSha256(secrets.PAYMENT_KEY, "x", "base64")));
  return { n: list.length, email: found.email.toUpperCase(), total: total(found.score), tax: config.tax, by: ctx.user.email, url: url.href };
}
`

// checked returns what tsc, which npm installs for the console, says of files. Without it
// the test is skipped.
func checked(t *testing.T, files map[string]string) string {
	t.Helper()
	tsc, err := filepath.Abs("../../web/node_modules/typescript/bin/tsc")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(tsc); err != nil {
		t.Skip("the console's packages are not installed: npm ci in web")
	}
	dir, args := t.TempDir(), []string{tsc, "--checkJs", "--noEmit", "--strict", "--pretty", "false", "--target", "es2023", "--lib", "es2023", "--module", "esnext", "--moduleResolution", "bundler"}
	for file, text := range files {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, file)
	}
	cmd := exec.CommandContext(t.Context(), "node", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState.ExitCode() != 1 && cmd.ProcessState.ExitCode() != 2 { // mistakes are 1 or 2
		t.Fatal(err, string(out))
	}
	return string(out)
}

// TestDeclarations checks components with tsc.
func TestDeclarations(t *testing.T) {
	cases := map[string]struct{ was, is, want string }{
		"right":              {},
		"a field":            {"found.email", "found.emial", "Property 'emial' does not exist on type 'Contact'"},
		"a field of a list":  {"score: { gte: 3 }", "scored: { gte: 3 }", "'scored' does not exist"},
		"a field to create":  {"tags: [", "tag: [", "'tag' does not exist"},
		"a required field":   {"{ email: inputs.email, stage", "{ stage", "Property 'email' is missing"},
		"an option":          {`stage: "new"`, `stage: "old"`, `Type '"old"' is not assignable`},
		"a type":             {"{ score: 4 }", `{ score: "4" }`, "Type 'string' is not assignable to type 'number'"},
		"an entity":          {`records.get("contact"`, `records.get("contacts"`, `'"contacts"' is not assignable`},
		"absent, unchecked":  {`if (found === null) return fail("none", { status: 404 });`, "", "'found' is possibly 'null'"},
		"an input":           {"inputs.email);", "inputs.mail);", "Property 'mail' does not exist"},
		"a secret":           {"secrets.PAYMENT_KEY", "secrets.PAYMENT", "Property 'PAYMENT' does not exist"},
		"config":             {"config.tax", "config.tax = 1", "only permits reading"},
		"a module":           {`from "pricing"`, `from "prices"`, "Cannot find module 'prices'"},
		"a helper":           {"sha256(", "sha512(", "Cannot find name 'sha512'"},
		"nothing of the web": {"return { n:", "fetch('x'); return { n:", "Cannot find name 'fetch'"},
	}
	files := map[string]string{"gatehouse.d.ts": string(shop())}
	for name, c := range cases {
		files[strings.ReplaceAll(name, " ", "_")+".js"] = strings.Replace(order, c.was, c.is, 1)
	}
	found := map[string]string{}
	file := ""
	for line := range strings.Lines(checked(t, files)) {
		if name, _, ok := strings.Cut(line, ".js("); ok {
			file = strings.ReplaceAll(name, "_", " ")
		}
		found[file] += line
	}
	if len(found) == 0 {
		t.Error("tsc found nothing")
	}
	for name, c := range cases {
		if got := found[name]; c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: told %s\nwant %s", name, got, c.want)
		}
		delete(found, name)
	}
	if len(found) > 0 {
		t.Errorf("told %v", found)
	}
}

// TestNames shows that interfaces have names of their own.
func TestNames(t *testing.T) {
	text := string(shop())
	for _, want := range []string{
		"interface Contact {\n", "interface RecordEntity {\n", "interface OrderLine {\n", "interface OrderLineEntity {\n",
		`  "record": { record: RecordEntity; fields: RecordEntityFields; sorts: "created_at" | "updated_at" | "name"; unique: never };`, `  stage: "new" | "\"won\"" | null;`, `declare module "pricing";`,
		`  "plain": Record<string, any>;`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not declared", want)
		}
	}
}
