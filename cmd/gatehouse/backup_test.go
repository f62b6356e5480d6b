package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"gatehouse/internal/audit"
	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
)

func backedUp(t *testing.T) (x *cli, file string) {
	x = newCLI(t, db.Config{Dir: t.TempDir()})
	x.stdin = acmeManifest
	x.ok("apply", "-f", "-")
	file = filepath.Join(t.TempDir(), "acme.backup")
	_, words := x.ok("backup", file)
	if !strings.Contains(words, "without the master key") {
		t.Errorf("words: %q", words)
	}
	return x, file
}

func TestABackupRestores(t *testing.T) {
	x, file := backedUp(t)
	x.ok("user", "create", "--tenant", "acme", "--email", "late@acme.example", "--name", "Late")
	x.fails(1, "exists already", "backup", file)

	at := newCLI(t, db.Config{Dir: filepath.Join(t.TempDir(), "new", "data")})
	_, words := at.ok("restore", file)
	if !strings.Contains(words, "put the old one at") {
		t.Errorf("words: %q", words)
	}
	if list := at.lines("user", "list", "--tenant", "acme"); len(list) != 2 {
		t.Errorf("%v", list)
	}
	at.ok("user", "create", "--tenant", "acme", "--email", "late@acme.example", "--name", "Late")
	entries, err := os.ReadDir(at.config.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.Contains(e.Name(), "restore") {
			t.Errorf("left behind: %s", e.Name())
		}
	}
	if info, err := os.Stat(filepath.Join(at.config.Dir, db.FileName)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	at.fails(1, "is not empty ("+db.FileName, "restore", file)
	x.fails(1, "is not empty", "restore", file)
}

// recorded writes entries of two days to the audit log of a data folder.
func recorded(t *testing.T, dir string) {
	t.Helper()
	d, err := db.Open(t.Context(), db.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	r := audit.NewRecorder(d, clock.System(), audit.Options{})
	for i := range 48 {
		r.Record(&audit.Event{
			Tenant: "acme", RequestID: fmt.Sprint("request-", i), Method: "GET", Path: "/public/v1/me", Endpoint: "/me", Status: 200,
			Start: time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC).Add(time.Duration(i) * time.Hour), Class: audit.Standard, Persist: true,
		})
	}
	if err := errors.Join(r.Close(t.Context()), d.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestABackupHoldsTheLogsUnlessItIsToldNotTo(t *testing.T) {
	x := newCLI(t, db.Config{Dir: t.TempDir()})
	x.stdin = acmeManifest
	x.ok("apply", "-f", "-")
	recorded(t, x.config.Dir)
	for _, c := range []struct {
		args    []string
		says    string
		restore string
		entries int
	}{
		{nil, ", with the audit log,", "days of the audit log: 2", 48},
		{[]string{"--without-logs"}, ", without the audit log,", "days of the audit log: 0", 0},
	} {
		file := filepath.Join(t.TempDir(), "acme.backup")
		if _, words := x.ok(append([]string{"backup", file}, c.args...)...); !strings.Contains(words, c.says) {
			t.Errorf("words: %q", words)
		}
		at := newCLI(t, db.Config{Dir: filepath.Join(t.TempDir(), "data")})
		if _, words := at.ok("restore", file); !strings.Contains(words, c.restore) {
			t.Errorf("words: %q", words)
		}
		out, words := at.ok("audit", "--tenant", "acme", "--json")
		if n := strings.Count(out, "\n"); n != c.entries || words != "" {
			t.Errorf("%d entries, want %d: %s", n, c.entries, words)
		}
	}
}

// Both the log and the backup report a day that cannot be read.
func TestADamagedDayIsLeftOutAndTold(t *testing.T) {
	x := newCLI(t, db.Config{Dir: t.TempDir()})
	x.stdin = acmeManifest
	x.ok("apply", "-f", "-")
	recorded(t, x.config.Dir)
	if err := os.WriteFile(filepath.Join(x.config.Dir, db.DaysFolder, "2026-11-20.db"), []byte(strings.Repeat("garbage ", 2000)), 0o600); err != nil {
		t.Fatal(err)
	}
	out, words := x.ok("audit", "--tenant", "acme", "--json")
	if n := strings.Count(out, "\n"); n != 24 || !strings.Contains(words, "Of the audit log of 2026-11-20, what cannot be read is left out") {
		t.Errorf("%d entries: %q", n, words)
	}
	file := filepath.Join(t.TempDir(), "acme.backup")
	if _, words := x.ok("backup", file); !strings.Contains(words, "without a day of the audit log that cannot be read") || !strings.Contains(words, "2026-11-20") {
		t.Errorf("words: %q", words)
	}
	at := newCLI(t, db.Config{Dir: filepath.Join(t.TempDir(), "data")})
	if _, words := at.ok("restore", file); !strings.Contains(words, "days of the audit log: 1") {
		t.Errorf("words: %q", words)
	}
}

func TestARestoreKeepsTheMasterKeyThatWasPutThere(t *testing.T) {
	_, file := backedUp(t)
	x := newCLI(t, db.Config{Dir: t.TempDir()})
	key := filepath.Join(x.config.Dir, "master.key")
	if err := os.WriteFile(key, []byte(masterKey), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, words := x.ok("restore", file); strings.Contains(words, "put the old one") {
		t.Errorf("words: %q", words)
	}
	if b, err := os.ReadFile(key); err != nil || string(b) != masterKey {
		t.Errorf("the key became %q, %v", b, err)
	}
}

func TestARestoreRefusesWhatIsNoBackupAndLeavesNothing(t *testing.T) {
	_, good := backedUp(t)
	dir := t.TempDir()
	whole, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(dir, "foreign.db")
	conn, err := sqlite.OpenConn(foreign)
	if err != nil {
		t.Fatal(err)
	}
	if err := sqlitex.ExecuteTransient(conn, "CREATE TABLE tenants (x)", nil); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	damaged := append([]byte{}, whole...)
	for i := 4096 * 3; i < 4096*6; i++ {
		damaged[i] ^= 0xff
	}
	files := map[string]string{foreign: "not a gatehouse database"}
	for name, c := range map[string]struct {
		content []byte
		why     string
	}{
		"empty": {nil, "not a gatehouse database"}, "text": {[]byte("hello"), "not a gatehouse database"}, "zeros": {make([]byte, 8192), "not a gatehouse database"},
		"cut": {whole[:len(whole)/2/4096*4096], "it is damaged"}, "damaged": {damaged, "it is damaged"},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, c.content, 0o600); err != nil {
			t.Fatal(err)
		}
		files[path] = c.why
	}
	files[filepath.Join(dir, "absent")] = "no such file"
	files[dir] = "is a folder"
	used := dbtest.OpenConfig(t, db.Config{Dir: filepath.Join(dir, "used"), Serve: true})
	if _, err := used.Once(t.Context(), "written", "and not closed"); err != nil {
		t.Fatal(err)
	}
	files[filepath.Join(dir, "used", db.FileName)] = "in use or was not closed"
	for path, why := range files {
		x := newCLI(t, db.Config{Dir: filepath.Join(dir, "data")})
		x.fails(1, why, "restore", path)
		if _, err := os.Stat(x.config.Dir); err == nil {
			t.Errorf("%s: a data folder is left behind", path)
		}
	}
}

func TestAFolderThatIsServedIsNotRestoredInto(t *testing.T) {
	_, file := backedUp(t)
	c := db.Config{Dir: t.TempDir(), Serve: true}
	dbtest.OpenConfig(t, c)
	x := newCLI(t, db.Config{Dir: c.Dir})
	x.fails(1, "serves this data folder", "restore", file)
}

func TestBackupIsForSQLite(t *testing.T) {
	x := newCLI(t, db.Config{})
	x.place = []string{"--database", "postgres://127.0.0.1:1/x"}
	x.fails(2, "pg_dump", "backup", "x")
	x.fails(2, "pg_restore", "restore", "x")
}
