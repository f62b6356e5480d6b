package db_test

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

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

// TestWhatIsNotThereIsNotMade: with Config.Existing nothing is made, and a copy does not begin in a database of
// something else. Before, a command that only reads filled a mistyped database with tables.
func TestWhatIsNotThereIsNotMade(t *testing.T) {
	for _, engine := range dbtest.Engines {
		t.Run(string(engine), func(t *testing.T) {
			c := db.Config{Dir: t.TempDir()}
			if engine == db.Postgres {
				c = dbtest.Empty(t)
			}
			existing, target := c, c
			existing.Existing, target.Target = true, true
			if _, err := db.Open(t.Context(), existing); !errors.Is(err, db.ErrNone) {
				t.Errorf("nothing: %v", err)
			}
			if d, err := db.Open(t.Context(), target); err != nil || d.Close() != nil { // marked, so that nothing serves it
				t.Fatal(err)
			}
			if _, err := db.Open(t.Context(), existing); !errors.Is(err, db.ErrUnfinished) {
				t.Errorf("the target of a copy that did not begin: %v", err)
			}
			if d, err := db.Open(t.Context(), target); err != nil || d.Close() != nil {
				t.Errorf("again: %v", err)
			}
		})
	}
	t.Run("an empty file", func(t *testing.T) {
		c := db.Config{Dir: filepath.Join(t.TempDir(), "data"), Existing: true}
		if _, err := db.Open(t.Context(), c); !errors.Is(err, db.ErrNone) {
			t.Errorf("no folder: %v", err)
		}
		if _, err := os.Stat(c.Dir); err == nil {
			t.Error("the folder was made")
		}
		write := func(name, text string) {
			if err := errors.Join(os.MkdirAll(c.Dir, 0o700), os.WriteFile(filepath.Join(c.Dir, name), []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		write(db.FileName, "")
		if _, err := db.Open(t.Context(), c); !errors.Is(err, db.ErrNone) {
			t.Errorf("an empty file: %v", err)
		}
		write(db.LockFileName, "it was served")
		if _, err := db.Open(t.Context(), c); !errors.Is(err, db.ErrLost) {
			t.Errorf("one that was served: %v", err)
		}
	})
	t.Run("of something else", func(t *testing.T) {
		c := dbtest.Empty(t)
		conn := connect(t, c)
		if _, err := conn.Exec(t.Context(), `CREATE TABLE orders (id int)`); err != nil {
			t.Fatal(err)
		}
		c.Target = true
		if _, err := db.Open(t.Context(), c); !errors.Is(err, db.ErrOccupied) || !strings.Contains(err.Error(), "orders") {
			t.Error(err)
		}
		var tables int
		if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_tables WHERE schemaname = 'public'`).Scan(&tables); err != nil || tables != 1 {
			t.Errorf("%d tables: %v", tables, err)
		}
	})
}

func connect(t *testing.T, c db.Config) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), c.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// TestADatabaseOfAnotherEncodingIsRefused: there dumps and length() would make something else of texts.
func TestADatabaseOfAnotherEncodingIsRefused(t *testing.T) {
	c := dbtest.Empty(t)
	conn := connect(t, c)
	for _, encoding := range []string{"LATIN1", "SQL_ASCII"} {
		name := "t_" + strings.ToLower(rand.Text())
		if _, err := conn.Exec(t.Context(), `CREATE DATABASE `+name+` ENCODING '`+encoding+`' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0`); err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(c.URL)
		if err != nil {
			t.Fatal(err)
		}
		u.Path = "/" + name
		if _, err := db.Open(t.Context(), db.Config{URL: u.String()}); err == nil || !strings.Contains(err.Error(), encoding) || !strings.Contains(err.Error(), "UTF8") {
			t.Errorf("%s: %v", encoding, err)
		}
		if _, err := conn.Exec(t.Context(), `DROP DATABASE `+name+` WITH (FORCE)`); err != nil {
			t.Error(err)
		}
	}
}

// TestARoleThatOnlyReadsDoesNotServe: before, a node of such a role was ready and answered every write 500.
func TestARoleThatOnlyReadsDoesNotServe(t *testing.T) {
	c := dbtest.Config(t, db.Postgres)
	conn, role := connect(t, c), "r_"+strings.ToLower(rand.Text())
	t.Cleanup(func() {
		if _, err := conn.Exec(context.Background(), `DROP OWNED BY `+role+`; DROP ROLE `+role); err != nil {
			t.Error(err)
		}
	})
	if _, err := conn.Exec(t.Context(), `CREATE ROLE `+role+` LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO `+role); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(c.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(role)
	reads, err := db.Open(t.Context(), db.Config{URL: u.String(), Existing: true})
	if err != nil {
		t.Fatal(err)
	}
	defer reads.Close()
	err = reads.For("a").Write(t.Context(), adds(t, "h", nil))
	if !errors.Is(err, db.ErrUnavailable) {
		t.Errorf("a write: %v", err)
	}
	if _, err := db.Open(t.Context(), db.Config{URL: u.String(), Serve: true}); err == nil || !strings.Contains(err.Error(), role) {
		t.Errorf("served: %v", err)
	}
}
