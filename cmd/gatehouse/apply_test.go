package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gatehouse/internal/db"
)

func TestApplyAndExport(t *testing.T) {
	each(t, func(x *cli) {
		if stdout, stderr := x.ok("apply", "-f", "-"); stdout != "nothing changed\n" || stderr != "" {
			t.Errorf("the second apply printed %q and said %q", stdout, stderr)
		}
		file := filepath.Join(t.TempDir(), "acme.yaml")
		exported, _ := x.ok("export", "--tenant", "acme")
		if err := os.WriteFile(file, []byte(exported), 0o600); err != nil {
			t.Fatal(err)
		}
		if stdout, _ := x.ok("apply", "-f", file); stdout != "nothing changed\n" {
			t.Errorf("apply of the export printed %q", stdout)
		}
		x.env["ACME_NAME"] = "Acme & Sons"
		x.stdin = "tenant: acme\ndisplay_name: ${ACME_NAME}\nroles: [{name: support, parent: ceo}]\n"
		dry, words := x.ok("apply", "--dry-run", "-f", "-")
		if want := "update tenant acme: display_name Acme GmbH → Acme & Sons\ncreate role support\n"; dry != want {
			t.Errorf("the dry run printed %q, want %q", dry, want)
		}
		if words != "dry run: nothing was kept\n" {
			t.Errorf("the dry run said %q", words)
		}
		if again, _ := x.ok("export", "--tenant", "acme"); again != exported {
			t.Errorf("the dry run changed the tenant:\n%s", again)
		}
		lines := x.lines("apply", "-f", "-")
		if len(lines) != 2 || lines[1]["action"] != "create" || lines[1]["kind"] != "role" || lines[1]["name"] != "support" || lines[1]["before"] != nil {
			t.Errorf("apply --json printed %v", lines)
		}
		if lines := x.lines("apply", "-f", "-"); len(lines) != 0 {
			t.Errorf("apply --json of what is there printed %v", lines)
		}
		x.stdin = "tenant: acme\nusers: []\n"
		if _, words := x.ok("apply", "--prune", "--dry-run", "-f", "-"); !strings.Contains(words, "users who may do less: olivia@acme.example, sam@acme.example\n") {
			t.Errorf("the dry run of the prune said %q", words)
		}
		stdout, words := x.ok("apply", "--prune", "-f", "-")
		if !slices.Contains(strings.Split(stdout, "\n"), "update user sam@acme.example: active true → false") {
			t.Errorf("the prune printed %q", stdout)
		}
		if !strings.Contains(words, "warning: tenant acme has no active owner") {
			t.Errorf("the prune said %q", words)
		}
	})
}

func TestADryRunMakesNoFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	x := newCLI(t, db.Config{Dir: dir})
	x.stdin = acmeManifest
	if dry, words := x.ok("apply", "--dry-run", "-f", "-"); !strings.Contains(dry, "create tenant acme") || words != "dry run: nothing was kept\n" {
		t.Errorf("printed %q, said %q", dry, words)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the data folder: %v", err)
	}
	x.ok("apply", "-f", "-")
	if stdout, _ := x.ok("apply", "--dry-run", "-f", "-"); stdout != "nothing changed\n" {
		t.Errorf("a dry run on what is there printed %q", stdout)
	}
}

func TestApplyTellsOfMistakes(t *testing.T) {
	each(t, func(x *cli) {
		x.stdin = "tenant: acme\nrolls: []\n"
		x.fails(1, `<stdin>:2: unknown key "rolls"`, "apply", "-f", "-")
		x.stdin = "tenant: acme\nroles: [{name: a, parent: b}]\nusers:\n  - {email: x, role: y}\n"
		stdout, stderr, code := x.raw(append([]string{"apply", "-f", "-"}, x.place...)...)
		want := "<stdin>:2: role a: there is no role \"b\" to be its parent\n" +
			"<stdin>:4: email: expected an e-mail address, found \"x\"\n" +
			"<stdin>:4: user x: there is no role \"y\"\n" +
			"gatehouse: <stdin>: 3 mistakes; nothing was changed\n"
		if stdout != "" || stderr != want || code != 1 {
			t.Errorf("status %d, printed %q, said %q", code, stdout, stderr)
		}
		x.fails(2, "apply: expected -f FILE", "apply")
		x.fails(2, "apply: expected -f FILE", "apply", "acme.yaml")
		x.fails(1, "no such file", "apply", "-f", filepath.Join(t.TempDir(), "none.yaml"))
		x.fails(1, `there is no tenant "nobody"`, "export", "--tenant", "nobody")
	})
}
