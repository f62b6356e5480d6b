package db_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"gatehouse/internal/db"
)

// TestALostDatabaseIsNotBegunAnew: in a folder that was served, an empty or missing database
// file is refused; in a new folder it is normal.
func TestALostDatabaseIsNotBegunAnew(t *testing.T) {
	for name, lose := range map[string]func(path string) error{
		"missing": os.Remove,
		"empty":   func(path string) error { return os.Truncate(path, 0) },
	} {
		dir := t.TempDir()
		for range 2 { // twice: the second time opens the database that the first created
			d, err := db.Open(t.Context(), db.Config{Dir: dir, Serve: true})
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := lose(filepath.Join(dir, db.FileName)); err != nil {
			t.Fatal(err)
		}
		for _, serve := range []bool{true, false} {
			d, err := db.Open(t.Context(), db.Config{Dir: dir, Serve: serve})
			if !errors.Is(err, db.ErrLost) {
				t.Errorf("%s, serve %v: %v", name, serve, err)
			}
			if err == nil {
				_ = d.Close()
			}
		}
	}
}
