package manifest_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/manifest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestMistakes applies every invalid manifest in testdata/mistakes.txt to the
// tenant acme and compares the messages with those that follow it in the file.
// With -update it rewrites the file; review the diff.
func TestMistakes(t *testing.T) {
	const golden = "testdata/mistakes.txt"
	b, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(string(b), "=== ")
	cases := strings.Split(rest, "\n=== ")
	if len(cases) < 40 {
		t.Fatalf("only %d mistakes", len(cases))
	}
	p := acmePlace(newPlace(t, dbtest.Open(t, db.SQLite)))
	p.vars["SHORT"], p.vars["WORD"] = "seven77", "a word in the environment"
	before := p.export("acme")
	out := head
	for i, c := range cases {
		name, body, _ := strings.Cut(c, "\n")
		src, want, _ := strings.Cut(body, "--- told\n")
		opts := manifest.Options{Prune: strings.HasPrefix(name, "prune: ")}
		_, err := p.try(src, opts)
		told := "nothing: it was applied"
		if err != nil {
			told = err.Error()
		}
		if got := strings.TrimRight(want, "\n"); told != got && !*update {
			t.Errorf("%s: told:\n%s\nwant:\n%s", name, told, got)
		}
		if strings.Contains(told, p.vars["WORD"]) || strings.Contains(told, p.vars["SHORT"]) {
			t.Errorf("%s: the message tells what was in the environment: %s", name, told)
		}
		if i > 0 {
			out += "\n"
		}
		out += "=== " + name + "\n" + src + "--- told\n" + told + "\n"
	}
	if p.export("acme") != before {
		t.Error("a refused manifest changed the tenant")
	}
	if *update {
		if err := os.WriteFile(golden, []byte(out), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMistakesBelowTheText(t *testing.T) {
	for src, want := range map[string]string{
		"tenant: acme\n\nlabel: \xff\n":                         "m.yaml:3: expected UTF-8 text",
		"tenant: acme\nroles:\n- {name: \"\x01\"}\n":            "m.yaml:3: not YAML: control characters are not allowed",
		"tenant: a\n" + strings.Repeat("#", 8<<20):              "m.yaml:1: the manifest is larger than 8 MiB",
		"tenant: a\nroles: " + strings.Repeat("[", 20_000):      "m.yaml:2: not YAML: exceeded max depth of 10000",
		"tenant: a\nroles: [a]\n? [x]\n: y\n":                   "m.yaml:2: roles: expected a role as a mapping, found text\nm.yaml:3: expected a name as key of the manifest, found a list",
		"tenant: a\nusers: [{email: \"${X}\", password: ${X}}]": "m.yaml:2: not YAML: ${X} needs quotes inside of {…} and […]: write \"${X}\"",
	} {
		err := manifest.Check("m.yaml", []byte(src), func(string) string { return "" })
		if err == nil || err.Error() != want {
			t.Errorf("%.60q: told %v, want %s", src, err, want)
		}
	}
}
