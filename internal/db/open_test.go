package db_test

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
)

func TestManyOpenAtOnce(t *testing.T) {
	for _, engine := range dbtest.Engines {
		t.Run(string(engine), func(t *testing.T) {
			c := db.Config{Dir: t.TempDir()}
			if engine == db.Postgres {
				c = dbtest.Empty(t)
			}
			var wg sync.WaitGroup
			var first atomic.Pointer[string]
			for i := range 8 {
				wg.Go(func() {
					d, err := db.Open(t.Context(), c)
					if err != nil {
						t.Error(err)
						return
					}
					stored, err := d.Once(t.Context(), "node", string(rune('a'+i)))
					if err != nil || !first.CompareAndSwap(nil, &stored) && *first.Load() != stored {
						t.Errorf("Once = %q, %v", stored, err)
					}
					if err := d.Close(); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			d := dbtest.OpenConfig(t, c)
			read(t, d.Unscoped("test"), `SELECT count(*) - count(DISTINCT number), min(number) FROM schema_migrations`, func(r db.Row) error {
				if r.Int(0) != 0 || r.Int(1) != 1 {
					t.Errorf("migrations recorded: %d twice, from %d", r.Int(0), r.Int(1))
				}
				return nil
			})
		})
	}
}

// A database of a newer version is opened if that version has stored that this one can work
// with it, and refused otherwise. It is not changed.
func TestNewerDatabase(t *testing.T) {
	newest := db.Newest()
	for _, c := range []struct {
		from string // what the newer version stored, "" for nothing
		open bool
	}{{"", false}, {strconv.Itoa(newest), true}, {strconv.Itoa(newest - 1), true}, {strconv.Itoa(newest + 1), false}, {"soon", false}} {
		for _, engine := range dbtest.Engines {
			t.Run(string(engine)+" "+c.from, func(t *testing.T) {
				config := dbtest.Config(t, engine)
				d := dbtest.OpenConfig(t, config)
				write(t, d.Unscoped("test"), func(tx db.Tx) error {
					_, err := tx.Exec(t.Context(), `INSERT INTO schema_migrations (number, name, applied_at) VALUES (9999, 'future', 0)`)
					if err == nil {
						_, err = tx.Exec(t.Context(), `DELETE FROM installation WHERE name = 'schema_compatible_from'`)
					}
					if err == nil && c.from != "" {
						_, err = tx.Exec(t.Context(), `INSERT INTO installation (name, value) VALUES ('schema_compatible_from', $1)`, c.from)
					}
					return err
				})
				older, err := db.Open(t.Context(), config)
				if !c.open {
					if !errors.Is(err, db.ErrTooNew) {
						t.Errorf("err = %v", err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				stored, err := older.Value(t.Context(), "schema_compatible_from")
				if err = errors.Join(err, older.Close()); err != nil || stored != c.from {
					t.Errorf("the older version made %q of %q: %v", stored, c.from, err)
				}
			})
		}
	}
}

func TestOneServerAFolder(t *testing.T) {
	c := db.Config{Dir: filepath.Join(t.TempDir(), "made", "here"), Serve: true}
	server, err := db.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Open(t.Context(), c); !errors.Is(err, db.ErrServed) {
		t.Fatalf("second server: %v", err)
	}
	beside := dbtest.OpenConfig(t, db.Config{Dir: c.Dir})
	if _, err := beside.Once(t.Context(), "seen", "yes"); err != nil {
		t.Fatal(err)
	}
	if stored, err := server.Once(t.Context(), "seen", "no"); err != nil || stored != "yes" {
		t.Errorf("the server reads %q, %v", stored, err)
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	dbtest.OpenConfig(t, c)
	for _, name := range []string{"", db.FileName, db.LockFileName} {
		info, err := os.Stat(filepath.Join(c.Dir, name))
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%q: %v, %v", name, info, err)
		}
	}
}

func TestWhatCannotBeOpened(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	garbage := t.TempDir()
	if err := os.WriteFile(filepath.Join(garbage, db.FileName), []byte("this is no database at all, whatever its name says"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []db.Config{{}, {Dir: file}, {URL: "postgres://127.0.0.1:x/"}} {
		if _, err := db.Open(t.Context(), c); err == nil {
			t.Errorf("%+v opens", c)
		}
	}
	for _, c := range []db.Config{{Dir: garbage}, {URL: "postgres://x@127.0.0.1:1/x?sslmode=disable"}} {
		if _, err := db.Open(t.Context(), c); !errors.Is(err, db.ErrUnavailable) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestBackup(t *testing.T) {
	d := dbtest.Open(t, db.SQLite)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() { // writes pairs of rows: a consistent copy has both rows of a pair or none
		for {
			select {
			case <-stop:
				return
			default:
			}
			write(t, d.For("a"), func(tx db.Tx) error {
				for range 2 {
					_, err := tx.Exec(t.Context(), addHost, rand.Text())
					if err != nil {
						return err
					}
				}
				return nil
			})
		}
	})
	time.Sleep(20 * time.Millisecond)
	dir := t.TempDir()
	file := filepath.Join(dir, db.FileName)
	if _, err := d.Backup(t.Context(), file, true); err != nil {
		t.Fatal(err)
	}
	close(stop)
	wg.Wait()
	if _, err := d.Backup(t.Context(), file, true); err == nil {
		t.Error("a second backup replaces the first")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Backup(cancelled, file+"2", true); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
	restored := dbtest.OpenConfig(t, db.Config{Dir: dir})
	if n := countHosts(t, restored); n == 0 || n%2 != 0 {
		t.Errorf("%d rows in the copy", n)
	}
	if _, err := dbtest.Open(t, db.Postgres).Backup(t.Context(), file+"3", true); err == nil {
		t.Error("PostgreSQL makes a backup")
	}
}

// Open returns when ctx ends, even if the server never answers.
func TestUnreachableServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // it accepts connections and never answers
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = db.Open(ctx, db.Config{URL: "postgres://x@" + l.Addr().String() + "/x?sslmode=disable"})
	if !errors.Is(err, db.ErrUnavailable) {
		t.Errorf("err = %v", err)
	}
}
