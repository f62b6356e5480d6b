package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/gatetest/enginecache"
)

var update = flag.Bool("update", false, "write the golden files anew")

// cli runs commands on one data folder or PostgreSQL database.
type cli struct {
	t      *testing.T
	config db.Config
	place  []string // the flags that name it
	env    map[string]string
	stdin  string
}

const masterKey = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

func newCLI(t *testing.T, c db.Config) *cli {
	x := &cli{t: t, config: c, env: map[string]string{"GATEHOUSE_CACHE": enginecache.Dir()}, place: []string{"--data", c.Dir}}
	if c.URL != "" {
		x.place = []string{"--database", c.URL}
		x.env["GATEHOUSE_MASTER_KEY"] = masterKey
	}
	return x
}

// raw runs a command line as it is.
func (x *cli) raw(args ...string) (stdout, stderr string, code int) {
	var out, words bytes.Buffer
	code = run(x.t.Context(), args, func(name string) string { return x.env[name] }, strings.NewReader(x.stdin), &out, &words)
	return out.String(), words.String(), code
}

// ok runs a command that must succeed.
func (x *cli) ok(args ...string) (stdout, stderr string) {
	x.t.Helper()
	stdout, stderr, code := x.raw(append(args, x.place...)...)
	if code != 0 {
		x.t.Fatalf("%q: status %d: %s", args, code, stderr)
	}
	return stdout, stderr
}

// fails runs a command that must fail with one line that says why.
func (x *cli) fails(code int, why string, args ...string) {
	x.t.Helper()
	x.failsRaw(code, why, append(args, x.place...)...)
}

func (x *cli) failsRaw(code int, why string, args ...string) {
	x.t.Helper()
	stdout, stderr, got := x.raw(args...)
	if got != code || stdout != "" || !strings.HasPrefix(stderr, "gatehouse: ") || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, why) {
		x.t.Errorf("%q: status %d, want %d; stdout %q; stderr %q, want one line with %q", args, got, code, stdout, stderr, why)
	}
}

// lines reads JSON objects, one a line.
func (x *cli) lines(args ...string) []map[string]any {
	x.t.Helper()
	stdout, _ := x.ok(append(args, "--json")...)
	var list []map[string]any
	for line := range strings.Lines(stdout) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			x.t.Fatalf("%q: %v: %s", args, err, line)
		}
		list = append(list, m)
	}
	return list
}

const acmeManifest = `
tenant: acme
display_name: Acme GmbH
hosts: [acme.localhost]
public_api: {enabled: true}
entities:
  - {name: contact, label: Contact, fields: [{name: first_name, type: text, required: true}]}
roles: [{name: ceo}, {name: sales, parent: ceo}]
permission_sets:
  - {name: sales, entities: {contact: {create: true, read: true, update: true, delete: true}}}
users:
  - {email: olivia@acme.example, name: Olivia Owner, owner: true, role: ceo}
  - {email: sam@acme.example, name: Sam Seller, role: sales, permission_sets: [sales]}
`

// each runs a test on both engines with the tenant acme.
func each(t *testing.T, fn func(x *cli)) {
	for _, engine := range dbtest.Engines {
		t.Run(string(engine), func(t *testing.T) {
			x := newCLI(t, dbtest.Config(t, engine))
			x.stdin = acmeManifest
			x.ok("apply", "-f", "-")
			fn(x)
		})
	}
}

func TestHelp(t *testing.T) {
	x := newCLI(t, db.Config{Dir: filepath.Join(t.TempDir(), "none")})
	for name, args := range map[string][]string{
		"help":            {"help"},
		"help-key":        {"help", "key"},
		"help-key-create": {"help", "key", "create"},
		"help-backup":     {"backup", "--help"},
		"help-copy":       {"copy", "--help"},
	} {
		stdout, stderr, code := x.raw(args...)
		if code != 0 || stderr != "" {
			t.Errorf("%v: status %d, %s", args, code, stderr)
		}
		golden := filepath.Join("testdata", name+".golden")
		if *update {
			if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(golden, []byte(stdout), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if stdout != string(want) {
			t.Errorf("%v differs from %s (go test ./cmd/gatehouse -update writes it):\n%s", args, golden, stdout)
		}
	}
	same := func(a, b []string) {
		t.Helper()
		one, _, _ := x.raw(a...)
		two, _, code := x.raw(b...)
		if one != two || code != 0 {
			t.Errorf("%v and %v say different things", a, b)
		}
	}
	same([]string{"help"}, []string{"--help"})
	same([]string{"help", "key"}, []string{"key", "-h"})
	same([]string{"help", "key", "create"}, []string{"key", "create", "--tenant", "x", "--help"})
	if _, err := os.Stat(x.config.Dir); err == nil {
		t.Error("asking for help made a data folder")
	}
}

// Every command has help, and switches knows every flag that takes no value.
func TestEveryCommandExplainsItself(t *testing.T) {
	x := newCLI(t, db.Config{Dir: t.TempDir()})
	switches := (&env{}).switches()
	for _, c := range commands() {
		if c.declare == nil {
			continue
		}
		stdout, stderr, code := x.raw(append(strings.Fields(c.name), "--help")...)
		if code != 0 || !strings.HasPrefix(stdout, "Usage: gatehouse "+c.name) {
			t.Errorf("%s --help: status %d, %q, %q", c.name, code, stdout, stderr)
		}
		for line := range strings.Lines(stdout) {
			fields := strings.Fields(line)
			name, isFlag := strings.CutPrefix(strings.Join(fields, " "), "--")
			if !isFlag || !strings.HasPrefix(line, "      --") {
				continue
			}
			name, _, _ = strings.Cut(name, " ")
			// pflag prints the type of a value after one space, and nothing for a switch.
			_, rest, _ := strings.Cut(line, "--"+name)
			isSwitch := strings.HasPrefix(rest, "  ")
			if isSwitch != switches[name] {
				t.Errorf("%s: --%s takes no value: %v, but switches says %v", c.name, name, isSwitch, !isSwitch)
			}
		}
	}
}

func TestMistakesAreOneClearLine(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	x := newCLI(t, db.Config{Dir: dir})
	x.failsRaw(2, "no command is given")
	x.failsRaw(2, `there is no command "frobnicate"`, "frobnicate")
	x.failsRaw(2, "key needs one more word", "key")
	x.failsRaw(2, `there is no command "key frobnicate"`, "key", "frobnicate")
	x.failsRaw(2, `there is no command "run again"`, "run", "again")
	x.failsRaw(2, `there is no command "nothing"`, "help", "nothing")
	x.failsRaw(2, "--tenant is required", "key", "list")
	x.failsRaw(2, "unknown flag: --frob", "key", "list", "--frob")
	x.failsRaw(2, "unexpected argument", "tenant", "list", "acme")
	x.failsRaw(2, "FILE is required", "backup")
	x.failsRaw(2, "--tenant", "key", "list", "--tenant")
	x.failsRaw(2, "postgres://", "tenant", "list", "--database", "mysql://x")
	x.failsRaw(1, "master key: none given", "tenant", "list", "--database", "postgres://127.0.0.1:1/x")
	for _, args := range [][]string{
		{"tenant", "list"}, {"key", "list", "--tenant", "acme"}, {"key", "delete", "--tenant", "acme", "--id", "x"},
		{"key", "create", "--tenant", "acme", "--user", "a@b", "--name", "n"}, {"user", "list", "--tenant", "acme"},
		{"user", "create", "--tenant", "acme", "--email", "a@b", "--name", "n"}, {"user", "deactivate", "--tenant", "acme", "--email", "a@b"},
		{"share", "list", "--tenant", "acme", "--entity", "contact", "--record", "x"}, {"backup", filepath.Join(t.TempDir(), "b")},
		{"export", "--tenant", "acme"},
	} {
		x.fails(1, "there is no database in "+dir, args...)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("a command that reads made a data folder")
	}
}

func TestFlagsStandAnywhereAndAreReadFromTheEnvironment(t *testing.T) {
	x := newCLI(t, db.Config{Dir: t.TempDir()})
	x.stdin = acmeManifest
	x.ok("apply", "-f", "-")
	want, _ := x.ok("user", "list", "--tenant", "acme", "--json")
	if !strings.Contains(want, "sam@acme.example") {
		t.Fatal(want)
	}
	d := x.config.Dir
	for _, args := range [][]string{
		{"--data", d, "user", "list", "--tenant", "acme", "--json"},
		{"--data=" + d, "--json", "--tenant", "acme", "user", "list"},
		{"user", "--tenant=acme", "--data", d, "list", "--json"},
		{"--tenant", "acme", "user", "--json", "list", "--data", d},
	} {
		if got, stderr, code := x.raw(args...); code != 0 || got != want {
			t.Errorf("%v: status %d, %s%s", args, code, got, stderr)
		}
	}
	x.env = map[string]string{"GATEHOUSE_DATA": d, "GATEHOUSE_TENANT": "acme", "GATEHOUSE_JSON": "true"}
	if got, stderr, code := x.raw("user", "list"); code != 0 || got != want {
		t.Errorf("from the environment: status %d, %s%s", code, got, stderr)
	}
	x.failsRaw(1, `there is no tenant "globex"`, "user", "list", "--tenant", "globex")
	x.env["GATEHOUSE_JSON"] = "perhaps"
	x.failsRaw(2, "GATEHOUSE_JSON: ", "user", "list")
}

func TestAListFromTheEnvironmentIsSeparatedByCommas(t *testing.T) {
	e := &env{getenv: func(name string) string {
		return map[string]string{"GATEHOUSE_IP_ALLOW": "10.0.0.1,10.0.0.2"}[name]
	}}
	for _, c := range []struct{ args, want []string }{
		{nil, []string{"10.0.0.1", "10.0.0.2"}}, {[]string{"--ip-allow", "192.0.2.1"}, []string{"192.0.2.1"}},
	} {
		f := e.flags(command{name: "key create"})
		list := f.StringArray("ip-allow", nil, "")
		if err := f.parse(c.args); err != nil || !slices.Equal(*list, c.want) || !f.Changed("ip-allow") {
			t.Errorf("%v: %v, %v", c.args, *list, err)
		}
	}
}

func TestAnotherMasterKeyIsRefused(t *testing.T) {
	x := newCLI(t, dbtest.Config(t, db.Postgres))
	x.ok("tenant", "list")
	x.env["GATEHOUSE_MASTER_KEY"] = strings.Repeat("ab", 32)
	x.fails(1, "master key: this is another one", "tenant", "list")
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(masterKey), 0o600); err != nil {
		t.Fatal(err)
	}
	x.ok("tenant", "list", "--master-key-file", file)
}

func TestVersion(t *testing.T) {
	x := newCLI(t, db.Config{})
	for _, args := range [][]string{{"version"}, {"--version"}} {
		if stdout, stderr, code := x.raw(args...); code != 0 || stderr != "" || !strings.HasPrefix(stdout, "gatehouse ") {
			t.Errorf("%v: %d %q %q", args, code, stdout, stderr)
		}
	}
}

func TestTheVersionIsTheTagOrElseTheCommit(t *testing.T) {
	built := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: version}, Settings: settings}
	}
	commit := debug.BuildSetting{Key: "vcs.revision", Value: "0123abc"}
	for _, c := range []struct {
		given string
		info  *debug.BuildInfo
		want  string
	}{
		{"v1.2.3-4-g0123abc", built("(devel)"), "v1.2.3-4-g0123abc"}, // make
		{"", built("v1.2.3"), "v1.2.3"},                              // go install …@v1.2.3
		{"", built("(devel)", commit), "of commit 0123abc"},
		{"", built("", commit, debug.BuildSetting{Key: "vcs.modified", Value: "true"}), "of commit 0123abc, changed"},
		{"", built("(devel)"), "of an unknown commit"},
		{"", nil, "of an unknown commit"},
	} {
		if got := versionOf(c.given, c.info); got != c.want {
			t.Errorf("versionOf(%q, %v) = %q, want %q", c.given, c.info, got, c.want)
		}
	}
}

// TestMakeNamesTheVersion checks that make builds the tag or the commit into the program.
func TestMakeNamesTheVersion(t *testing.T) {
	for given, want := range map[string]string{"VERSION=v9.8.7": " -X main.version=v9.8.7'", "VERSION=": "-s -w' -o"} {
		out, err := exec.CommandContext(t.Context(), "make", "-n", "-C", "../..", "server", given).CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("make server %s: %v, no %q: %s", given, err, want, out)
		}
	}
}

func TestTenantList(t *testing.T) {
	each(t, func(x *cli) {
		list := x.lines("tenant", "list")
		if len(list) != 1 || list[0]["tenant"] != "acme" || list[0]["base_url"] != "https://acme.localhost" || list[0]["public_api"] != true {
			x.t.Errorf("%v", list)
		}
		table, _ := x.ok("tenant", "list")
		if rows := strings.Split(strings.TrimSpace(table), "\n"); len(rows) != 2 || !strings.HasPrefix(rows[0], "TENANT") || !strings.Contains(rows[1], "acme.localhost") {
			x.t.Errorf("%s", table)
		}
	})
}

// open returns the database that the commands work on, for a test to look at.
func (x *cli) open() *db.DB { return dbtest.OpenConfig(x.t, x.config) }

func (x *cli) ctx() context.Context { return x.t.Context() }

func keysOf(m map[string]any) string { return strings.Join(slices.Sorted(maps.Keys(m)), " ") }

func TestWhereTheCompiledEngineIsKept(t *testing.T) {
	t.Setenv("HOME", "/home/gh")
	own, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		f    flags
		want string
	}{
		{flags{data: "folder"}, "folder/cache/engine"},
		{flags{data: "folder", database: "postgres://db"}, filepath.Join(own, "gatehouse", "engine")},
		{flags{data: "folder", database: "postgres://db", cache: "/var/cache/gh"}, "/var/cache/gh"},
		{flags{data: "folder", cache: "/var/cache/gh"}, "/var/cache/gh"},
	} {
		if got := c.f.cacheDir(); got != c.want {
			t.Errorf("%q %q %q: %s, want %s", c.f.data, c.f.database, c.f.cache, got, c.want)
		}
	}
}
