package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/gatetest/program"
)

// stocked returns a data folder with the tenant stock, records, and a log of two days.
func stocked(t *testing.T, records int) *cli {
	t.Helper()
	x := newCLI(t, db.Config{Dir: t.TempDir()})
	for _, manifest := range []string{acmeManifest, stock} {
		x.stdin = manifest
		x.ok("apply", "-f", "-")
	}
	x.imports(numbered(records), "item", "--user", "olga@stock.example")
	recorded(t, x.config.Dir)
	return x
}

// emptyPostgres returns commands on a new database, with a master key.
func emptyPostgres(t *testing.T, key string) *cli {
	x := newCLI(t, dbtest.Empty(t))
	x.env["GATEHOUSE_MASTER_KEY"] = key
	return x
}

func keyOf(t *testing.T, dir string) string {
	t.Helper()
	key, err := os.ReadFile(filepath.Join(dir, "master.key"))
	if err != nil {
		t.Fatal(err)
	}
	return string(key)
}

// facts are what commands print of a database.
func (x *cli) facts() string {
	x.t.Helper()
	var all strings.Builder
	for _, args := range [][]string{
		{"tenant", "list"}, {"export", "--tenant", "stock"}, {"user", "list", "--tenant", "acme"}, recordsOf("export", "item", "--format", "ndjson"),
		{"audit", "--tenant", "acme", "--json"}, {"history", "--tenant", "stock", "--json"},
	} {
		out, words := x.ok(args...)
		all.WriteString(out + words)
	}
	return all.String()
}

func TestCopyThereAndBack(t *testing.T) {
	first := stocked(t, 300)
	dir := first.config.Dir
	post := emptyPostgres(t, keyOf(t, dir))
	out, words, code := first.raw("copy", "--data", dir, "--database", post.config.URL, "--json")
	if code != 0 || !strings.Contains(words, "records: 300 rows.\n") || !strings.Contains(words, "are equal on both sides") ||
		!strings.Contains(words, "gatehouse serve --database …, with --master-key-file "+filepath.Join(dir, "master.key")) {
		t.Fatalf("status %d: %s", code, words)
	}
	if strings.Contains(words, "postgres:") {
		t.Errorf("the words have the URL: %s", words)
	}
	rows := map[string]float64{}
	for line := range strings.Lines(out) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil || m["equal"] != true || m["rows"] != m["target_rows"] || m["sha256"] != m["target_sha256"] {
			t.Errorf("%s: %v", line, err)
		}
		rows[m["table"].(string)] = m["rows"].(float64)
	}
	if rows["records"] != 300 || rows["audit_blocks 2026-11-20"] == 0 || rows["audit_blocks 2026-11-21"] == 0 || rows["installation"] == 0 {
		t.Errorf("%v", rows)
	}
	want := first.facts()
	if got := post.facts(); got != want {
		t.Errorf("in PostgreSQL:\n%.3000s\nwant\n%.3000s", got, want)
	}

	back := filepath.Join(t.TempDir(), "back")
	post.ok("copy", "--to-data", back)
	second := newCLI(t, db.Config{Dir: back})
	second.env["GATEHOUSE_MASTER_KEY"] = post.env["GATEHOUSE_MASTER_KEY"]
	if got := second.facts(); got != want {
		t.Errorf("back in SQLite:\n%.3000s\nwant\n%.3000s", got, want)
	}
	second.fails(1, "finished and verified", "copy", "--database", post.config.URL)
}

func TestCopyRefuses(t *testing.T) {
	x := stocked(t, 3)
	dir, key := x.config.Dir, keyOf(t, x.config.Dir)
	post := emptyPostgres(t, key)
	to := []string{"copy", "--database", post.config.URL}
	x.failsRaw(2, "--database is required", "copy", "--data", dir)
	x.failsRaw(2, "exclude each other", append(to, "--data", dir, "--to-data", t.TempDir())...)
	x.failsRaw(1, "no database in", append(to, "--data", t.TempDir())...)

	other := strings.Repeat("ab", 32)
	x.env["GATEHOUSE_MASTER_KEY"] = other
	x.fails(1, "is another one than that of", to...)
	if err := os.Remove(filepath.Join(dir, "master.key")); err != nil {
		t.Fatal(err)
	}
	x.fails(1, "another one than the database was set up with", to...)
	delete(x.env, "GATEHOUSE_MASTER_KEY")
	x.fails(1, "does not exist", to...)
	x.env["GATEHOUSE_MASTER_KEY"] = key

	d, err := db.Open(t.Context(), db.Config{Dir: dir, Serve: true})
	if err != nil {
		t.Fatal(err)
	}
	x.fails(1, "another gatehouse process serves", to...)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}

	nothing := emptyPostgres(t, key)
	for _, args := range [][]string{{"tenant", "list"}, {"copy", "--to-data", filepath.Join(t.TempDir(), "back")}} {
		nothing.fails(1, "there is no gatehouse database", args...)
	}

	filled := emptyPostgres(t, key)
	filled.stdin = acmeManifest
	filled.ok("apply", "-f", "-")
	for _, restart := range [][]string{nil, {"--restart"}} {
		if _, words, code := x.raw(append([]string{"copy", "--data", dir, "--database", filled.config.URL}, restart...)...); code != 1 || !strings.Contains(words, "it has tenants") {
			t.Errorf("a target with tenants: %d %s", code, words)
		}
	}
	filled.fails(1, "is not empty", "copy", "--to-data", occupied(t))
	if _, words, code := filled.raw("copy", "--database", filled.config.URL, "--to-data", dir); code != 1 || !strings.Contains(words, "it has tenants") {
		t.Errorf("a folder with tenants: %d %s", code, words)
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "master.key"), []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	filled.fails(1, "is another one than that of", "copy", "--to-data", folder)
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 1 {
		t.Errorf("what was refused left %v, %v", entries, err)
	}
}

// A day of the log that cannot be read ends the copy, which goes on once its file is away.
func TestCopyNamesADamagedDay(t *testing.T) {
	x := stocked(t, 3)
	post := emptyPostgres(t, keyOf(t, x.config.Dir))
	day := filepath.Join(x.config.Dir, db.DaysFolder, "2026-11-20.db")
	if err := os.WriteFile(day, []byte(strings.Repeat("garbage ", 2000)), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"copy", "--data", x.config.Dir, "--database", post.config.URL}
	if _, words, code := x.raw(args...); code != 1 || !strings.Contains(lastLine(words), "the audit log of 2026-11-20: ") {
		t.Errorf("status %d: %s", code, words)
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(day + suffix); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	if _, words, code := x.raw(args...); code != 0 {
		t.Errorf("status %d: %s", code, words)
	}
	if out, _ := post.ok("audit", "--tenant", "acme", "--json"); strings.Count(out, "\n") != 24 {
		t.Errorf("the log:\n%s", out)
	}
}

// occupied returns a folder with a file of somebody.
func occupied(t *testing.T) string {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A copy that is killed at any place is resumed, and what it left is not served.
func TestAKilledCopyIsResumed(t *testing.T) {
	binary := program.Build(t)
	x := stocked(t, 2500)
	dir, key := x.config.Dir, keyOf(t, x.config.Dir)
	post := emptyPostgres(t, key)
	back := newCLI(t, db.Config{Dir: filepath.Join(t.TempDir(), "back")})
	back.env["GATEHOUSE_MASTER_KEY"] = key
	for _, way := range []struct {
		args   []string
		target *cli
	}{
		{[]string{"copy", "--data", dir, "--database", post.config.URL}, post},
		{[]string{"copy", "--database", post.config.URL, "--to-data", back.config.Dir}, back},
	} {
		resumed := false
		// It is killed a moment after it says that it has come there: in the next large table.
		for i, place := range []string{"From ", "entities: ", "permission_sets: ", "Everything is copied"} {
			words := killedAt(t, binary, key, place, time.Duration(i%4)*5*time.Millisecond, way.args)
			resumed = resumed || strings.Contains(words, "more rows")
			if strings.HasPrefix(place, "From") {
				continue // perhaps nothing has begun
			}
			way.target.fails(1, "this database is an unfinished copy", "tenant", "list")
			if !t.Failed() {
				way.target.fails(1, "this database is an unfinished copy", "serve", "--listen", "127.0.0.1:0")
			}
		}
		way.target.env["GATEHOUSE_MASTER_KEY"] = key
		if _, words, code := way.target.raw(way.args...); code != 0 || !strings.Contains(words, "are equal on both sides") {
			t.Fatalf("status %d: %s", code, words)
		}
		if got, want := way.target.facts(), x.facts(); got != want {
			t.Errorf("%v:\n%.2000s\nwant\n%.2000s", way.args, got, want)
		}
		t.Logf("resumed in the middle of a table: %v", resumed)
	}
}

// killedAt runs the program and kills it a while after it says a line that begins so. It returns what it said.
func killedAt(t *testing.T, binary, key, place string, after time.Duration, args []string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), binary, args...)
	command.Env = append(os.Environ(), "GATEHOUSE_MASTER_KEY="+key)
	said, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	var words bytes.Buffer
	killed := false
	for lines := bufio.NewScanner(said); lines.Scan(); {
		fmt.Fprintln(&words, lines.Text())
		if !killed && strings.HasPrefix(lines.Text(), place) {
			killed = true
			time.Sleep(after)
			if err := command.Process.Kill(); err != nil {
				t.Fatalf("it has ended: %v: %s", err, words.String())
			}
		}
	}
	ended, failed := errors.AsType[*exec.ExitError](command.Wait())
	if !killed || !failed || ended.ExitCode() != -1 {
		t.Fatalf("it was not killed at %q: %s", place, words.String())
	}
	return words.String()
}
