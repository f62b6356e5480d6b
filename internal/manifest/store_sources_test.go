package manifest_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gatehouse/internal/component"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/gatetest/enginecache"
	"gatehouse/internal/manifest"
	"gatehouse/internal/tenant"
)

// TestAnySourceIsExportedAsItIs checks that every source is exported unchanged,
// including those that no literal block can represent.
func TestAnySourceIsExportedAsItIs(t *testing.T) {
	each(t, func(p *place) {
		acmePlace(p)
		sources := []string{
			"x", "x\n", "x\n\n\n", "\nx\n", "  x\n y\n", "\tx\n\ty\n", "a\n\tb\n\n  c", "trailing \nspaces  \n", "a\n   \nb\n", "${HOME}", "${HOME}\nx\n",
			"a\r\nb\r\n", "é ß 🦊\n\u2028\u2029\u0085\ufeff\nx\n", "\ufeffx\ny\n", "a\x01b\n\x7f\n", "---\n...\n", "# c\n", "%a\nb\n", "- x\n", "a: b\nc: d\n", "'\n\"\n\\n\n",
			"true", "7", "null", "~\n", "\n", " ", "a\n b\n  c\n d\n", "{{x}}\n", "  \n\n  a\n", "\u00a0\nx\n", "x\n\u00a0", "a\n#b\n", strings.Repeat("long line ", 500) + "\nx\n",
		}
		src := "tenant: acme\nlogic_components:\n"
		for i, s := range sources {
			src += fmt.Sprintf("  - {name: c%d, source: %s}\n", i, strconv.QuoteToASCII(s)) // YAML has the same escapes
		}
		p.apply(src)
		out := p.export("acme")
		p.printed(p.apply(out))
		stored := map[string]bool{}
		for _, c := range p.definitions().Components {
			stored[c.Source] = true
		}
		for _, s := range sources {
			if !stored[s] {
				p.Errorf("%q was not stored as it is; stored are %q", s, slices.Sorted(maps.Keys(stored)))
			}
		}
		if !strings.Contains(out, "source: |-\n      a\n      \tb\n\n        c\n") {
			p.Errorf("a source with a tab is no block:\n%s", out)
		}
	})
}

func TestSourceFiles(t *testing.T) {
	p := newPlace(t, dbtest.Open(t, db.SQLite))
	dir := t.TempDir()
	write := func(name, text string) {
		p.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755), os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)); err != nil {
			p.Fatal(err)
		}
	}
	write("m/js/orders.js", "export default () => \"${HOME}\"\r\n")
	write("m/binary.js", "a\n\xff")
	write("m/nul.js", "a\nb\x00")
	write("m/empty.js", "")
	write("m/large.js", strings.Repeat("//\n", 100<<10))
	write("secret.js", "export default () => 1\n")
	if err := os.Symlink("../secret.js", filepath.Join(dir, "m", "link.js")); err != nil {
		p.Fatal(err)
	}
	apply := func(file, name string, opts manifest.Options) error {
		opts.Compile = p.compile
		_, err := manifest.Apply(context.Background(), p.d, p.clock, file, []byte("tenant: acme\nlogic_components:\n  - {name: x, source_file: "+name+"}\n"), os.Getenv, opts)
		return err
	}
	if err := apply(filepath.Join(dir, "m", "acme.yaml"), "js/orders.js", manifest.Options{}); err != nil {
		p.Fatal(err)
	}
	if got := p.definitions().Components["x"].Source; got != "export default () => \"${HOME}\"\r\n" {
		p.Errorf("stored is %q", got)
	}
	p.printed(p.apply(p.export("acme")))
	for name, want := range map[string]string{
		"binary.js": "binary.js:2: expected UTF-8 text",
		"nul.js":    "nul.js:2: expected text without the character U+0000",
		"empty.js":  "empty.js:1: expected JavaScript with export default function handler(inputs, ctx)",
		"large.js":  "large.js:1: the source is larger than 256 KiB",
		"link.js":   "acme.yaml:3: source_file: cannot read link.js: path escapes from parent",
		"none.js":   "acme.yaml:3: source_file: cannot read none.js: no such file or directory",
	} {
		folder := filepath.Join(dir, "m") + string(filepath.Separator)
		if err := apply(folder+"acme.yaml", name, manifest.Options{}); err == nil || strings.TrimPrefix(err.Error(), folder) != want {
			p.Errorf("%s: told %v, want %s", name, err, want)
		}
	}
}

// TestTheEngineTellsOfTheAuthorsLine checks apply with the real engine: its
// errors name the line in the author's source.
func TestTheEngineTellsOfTheAuthorsLine(t *testing.T) {
	engine, err := component.NewEngine(context.Background(), component.Options{CacheDir: enginecache.Dir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := engine.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	p := newPlace(t, dbtest.Open(t, db.SQLite))
	opts := manifest.Options{Compile: func(ctx context.Context, tenant tenant.ID, module string, source component.Source) ([]string, error) {
		return engine.Check(ctx, string(tenant), module, source)
	}}
	const src = `tenant: acme
logic_components:
  - name: good
    source: |
      export default (inputs) => inputs
  - name: syntax
    source: |
      export default function handler(inputs) {
        return inputs..x
      }
  - name: no_handler
    source: "const x = 1"
  - name: imports
    source: |
      // a line
      import fs from "fs"
      export default () => 1
  - name: throws
    source: |
      export default () => 1

      throw new Error("at the top")
  - name: loops
    source: |
      export default () => 1
      while (true) {}
`
	for _, opts := range []manifest.Options{opts, {Compile: opts.Compile, DryRun: true}} {
		_, err = p.try(src, opts)
		var problems *manifest.Problems
		if !errors.As(err, &problems) {
			t.Fatal(err)
		}
		want := []struct {
			line int
			text string
		}{
			{9, "logic component syntax: SyntaxError: "},
			{12, "logic component no_handler: there is no handler"},
			{16, `logic component imports: there is no module "fs" (column 16)`},
			{22, "logic component throws: at the top (column "},
			{24, "logic component loops: parsing and the top level did not finish within"},
		}
		for i, one := range problems.List {
			if i < len(want) && (one.Line != want[i].line || !strings.HasPrefix(one.Text, want[i].text)) || len(problems.List) != len(want) {
				t.Errorf("line %d: %s", one.Line, one.Text)
			}
		}
	}
}
