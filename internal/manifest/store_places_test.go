package manifest_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/manifest"
)

const placesManifest = `tenant: acme
logic_components:
  - {name: apart, source_file: lib/apart.js, timeout: 1}
  - name: block
    source: |

      // a line
        export default () => oops oops
  - {name: line, source: "export default () => oops oops"}
  - name: bare
    source: |
      const x = 1
  - name: unfinished
    source: |
      export default () => {
  - {name: last, source_file: lib/last.js}
`

// TestMistakesHaveTheirPlace checks that each mistake is told at its place, in the file
// that it is in.
func TestMistakesHaveTheirPlace(t *testing.T) {
	dir := t.TempDir()
	file, apart, last := filepath.Join(dir, "acme.yaml"), filepath.Join(dir, "lib", "apart.js"), filepath.Join(dir, "lib", "last.js")
	save := func(text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(apart), 0o755), os.WriteFile(apart, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	opts, _ := withEngine(t)
	d := dbtest.Open(t, db.SQLite)
	told := func(src string) []string {
		t.Helper()
		_, err := manifest.Apply(t.Context(), d, clock.System(), file, []byte(src), func(string) string { return "" }, opts)
		var p *manifest.Problems
		if !errors.As(err, &p) {
			t.Fatalf("%v is no *manifest.Problems", err)
		}
		return p.Places()
	}
	want := func(got []string, begins ...string) {
		t.Helper()
		if !slices.EqualFunc(got, begins, strings.HasPrefix) {
			t.Errorf("told\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(begins, "\n"))
		}
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(last), 0o755), os.WriteFile(last, []byte("export default () => {\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	save("// a line\nexport default () => oops oops\n")
	all := []string{
		file + `:3:46: unknown key "timeout"`, file + ":8:35: logic component block: SyntaxError: ", file + ":9:26: logic component line: line 1 of the source: SyntaxError: ",
		file + ":11:13: logic component bare: there is no handler",
		file + ":16:1: logic component unfinished: SyntaxError: ", apart + ":2:27: SyntaxError: ", last + ":2:1: SyntaxError: ",
	}
	want(told(placesManifest), all...)
	want(told(strings.ReplaceAll(placesManifest, "\n", "\r\n")), all...)
	save("\x00")
	want(told(placesManifest), all[0], all[1], all[2], all[3], all[4], apart+":1:1: expected text without the character U+0000", all[6])
	want(told("tenant: acme\nroles: [{name: a\n"), file+":2:1: not YAML: ")
	want(told("\n"), file+":1:1: the manifest is empty")
	want(told("tenant: acme\nroles:\n  - &a {name: a}\n"), file+":3:5: anchors")
}

// TestTheFilesOfAManifest checks that the files are found that a manifest names, whatever
// else is wrong with it.
func TestTheFilesOfAManifest(t *testing.T) {
	const src = `tenant: acme
rolls: []
modules: [{name: a, source_file: lib/a.js}, {name: b, source: "1"}, {name: c, source_file: ../c.js}]
logic_components:
  - {name: a, source_file: "${FILE}", inputs: 1}
  - {name: b, source_file: lib/a.js}
  - {name: c, source_file: c.js, source: "1"}
  - {source_file: 1}
`
	getenv := func(name string) string { return map[string]string{"FILE": "b.js"}[name] }
	if got, want := manifest.Files("conf/acme.yaml", []byte(src), getenv), []string{"conf/lib/a.js", "conf/b.js"}; !slices.Equal(got, want) {
		t.Errorf("files %q, want %q", got, want)
	}
	if got := manifest.Files("acme.yaml", []byte("tenant: ["), getenv); got != nil {
		t.Errorf("files %q of what is no YAML", got)
	}
}
