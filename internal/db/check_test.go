package db_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
)

// closedFile returns the file of a database that was filled, changed by the
// statements and closed.
func closedFile(t *testing.T, statements ...string) string {
	t.Helper()
	c := dbtest.Config(t, db.SQLite)
	d, err := db.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	write(t, d.For("a"), adds(t, "h", nil))
	for _, sql := range statements {
		table(t, d, sql)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(c.Dir, db.FileName)
}

func content(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Check leaves a file that it accepts unchanged and creates no files next to it.
func TestCheckLetsPass(t *testing.T) {
	d := dbtest.Open(t, db.SQLite)
	write(t, d.For("a"), adds(t, "h", nil))
	backup := filepath.Join(t.TempDir(), "50% of #1?.backup")
	if _, err := d.Backup(t.Context(), backup, true); err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string]string{
		"a backup": backup, "a closed database": closedFile(t),
		"an older database": closedFile(t, `DELETE FROM schema_migrations`),
	} {
		before := content(t, file)
		if err := db.Check(t.Context(), file); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !bytes.Equal(content(t, file), before) {
			t.Errorf("%s has changed", name)
		}
		entries, err := os.ReadDir(filepath.Dir(file))
		if err != nil || len(entries) != 1 {
			t.Errorf("%s: beside it %v, %v", name, entries, err)
		}
	}
}

func TestCheckRefuses(t *testing.T) {
	dir := t.TempDir()
	whole := content(t, closedFile(t))
	damaged := bytes.Clone(whole)
	for i := 4096 * 3; i < 4096*6; i++ {
		damaged[i] ^= 0xff
	}
	for why, contents := range map[string][][]byte{
		"it is not a gatehouse database": {nil, []byte("hello"), make([]byte, 8192)},
		"it is damaged":                  {damaged, whole[:len(whole)/2/4096*4096], whole[:5000]},
	} {
		for i, b := range contents {
			file := filepath.Join(dir, "file")
			if err := os.WriteFile(file, b, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := db.Check(t.Context(), file); err == nil || !strings.HasPrefix(err.Error(), why) {
				t.Errorf("%d: %v, want %q", i, err, why)
			}
		}
	}
	foreign := filepath.Join(dir, "foreign.db")
	conn, err := sqlite.OpenConn(foreign)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(sqlitex.ExecuteTransient(conn, "CREATE TABLE tenants (x)", nil), conn.Close()); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{foreign, dir} {
		if err := db.Check(t.Context(), file); err == nil || err.Error() != "it is not a gatehouse database" {
			t.Errorf("%s: %v", file, err)
		}
	}
	newer := closedFile(t, `INSERT INTO schema_migrations (number, name, applied_at) VALUES (9999, 'future', 0)`, `DELETE FROM installation`)
	if err := db.Check(t.Context(), newer); !errors.Is(err, db.ErrTooNew) {
		t.Errorf("newer: %v", err)
	}
	if err := db.Check(t.Context(), filepath.Join(dir, "absent")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := db.Check(ctx, newer); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestTheURIOfAFile: a drive of Windows is no host, and what a URI means by a character is no part of a
// name. Before, restore failed on Windows.
func TestTheURIOfAFile(t *testing.T) {
	for path, want := range map[string]string{
		"/data/of acme?#%/gatehouse.db":      "file:///data/of%20acme%3F%23%25/gatehouse.db?immutable=1",
		"C:/Users/olivia/data/gatehouse.db":  "file:///C:/Users/olivia/data/gatehouse.db?immutable=1",
		"//files/share/data of gatehouse.db": "file:////files/share/data%20of%20gatehouse.db?immutable=1",
	} {
		if got := db.Immutable(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
