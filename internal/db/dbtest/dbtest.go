// Package dbtest gives each test a new, migrated database of each engine.
//
// The PostgreSQL server is the one that GATEHOUSE_TEST_POSTGRES names (a superuser's URL),
// or else a private one that the test process starts and that ends with it. Without
// PostgreSQL tests fail, because the product supports both engines.
package dbtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"gatehouse/internal/db"
)

// Engines are the engines that tests run on.
var Engines = []db.Engine{db.SQLite, db.Postgres}

// Each runs fn as a subtest for each engine, on a new database.
func Each(t *testing.T, fn func(t *testing.T, d *db.DB)) {
	t.Helper()
	for _, engine := range Engines {
		t.Run(string(engine), func(t *testing.T) { fn(t, Open(t, engine)) })
	}
}

// Open opens a new database, which is closed when the test ends.
func Open(t testing.TB, engine db.Engine) *db.DB {
	t.Helper()
	return OpenConfig(t, Config(t, engine))
}

// OpenConfig opens a database until the test ends. Two calls with one Config are like two
// nodes or processes that share the database.
func OpenConfig(t testing.TB, c db.Config) *db.DB {
	t.Helper()
	d, err := db.Open(t.Context(), c)
	if err != nil {
		t.Fatalf("open test database: %v", err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("close test database: %v", err)
		}
	})
	return d
}

// Config names a new database, which is dropped when the test ends.
func Config(t testing.TB, engine db.Engine) db.Config {
	t.Helper()
	if engine == db.SQLite {
		return db.Config{Dir: migrated(t)}
	}
	return fresh(t, (*server).copyTemplate)
}

// copyTemplate makes a migrated database.
func (s *server) copyTemplate(name string) error {
	return s.admin("CREATE DATABASE "+name+" TEMPLATE "+s.template+s.strategy, true)
}

// migrated returns a folder with a new, migrated SQLite database. It is a copy, because
// the migrations take a hundred times as long, under the race detector most of all.
func migrated(t testing.TB) string {
	t.Helper()
	file, err := template()
	if err != nil {
		t.Fatalf("make the SQLite template: %v", err)
	}
	dir := folder(t)
	if err := os.WriteFile(filepath.Join(dir, db.FileName), file, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// template returns the file of a new, migrated SQLite database.
var template = sync.OnceValues(func() (file []byte, err error) {
	dir, err := os.MkdirTemp("", "gatehouse-template-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	d, err := db.Open(context.Background(), db.Config{Dir: dir})
	if err != nil {
		return nil, err
	}
	if err := d.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(dir, db.FileName))
})

// folder returns an empty folder, which is removed when the test ends. It is in memory if
// there is room, because only package prove, which has folders of its own, needs commits
// that wait for the disk.
func folder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp(roomyMemory(), "gatehouse-sqlite-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove test database: %v", err)
		}
	})
	return dir
}

// Empty names a PostgreSQL database that nothing has migrated yet.
func Empty(t testing.TB) db.Config {
	t.Helper()
	return fresh(t, (*server).create)
}

// fresh names a PostgreSQL database that create makes. It is dropped when the test ends.
func fresh(t testing.TB, create func(s *server, name string) error) db.Config {
	t.Helper()
	s, err := postgres()
	if err != nil {
		t.Fatal(err)
	}
	name := "t_" + strings.ToLower(rand.Text())
	all := append([]*server{s}, s.workers...)
	t.Cleanup(func() {
		if err := drop(all, name); err != nil {
			t.Errorf("drop test database: %v", err)
		}
	})
	for _, one := range all {
		if err := create(one, name); err != nil {
			t.Fatalf("create test database: %v", err)
		}
	}
	return db.Config{URL: s.url(name)}
}

// drop drops a database that is on all servers, if it is there.
func drop(all []*server, name string) error {
	var errs []error
	if len(all) > 1 { // each server of Citus goes on connecting to the others
		for _, one := range all {
			errs = append(errs, one.close(name))
		}
	}
	for _, one := range all {
		errs = append(errs, one.admin("DROP DATABASE IF EXISTS "+name+" WITH (FORCE)", true))
	}
	return errors.Join(errs...)
}

// admin runs one statement on the server's default database. If patience is set, it waits
// while another process uses the template.
func (s *server) admin(sql string, patience bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if s.conn == nil || s.conn.IsClosed() {
			conn, err := pgx.Connect(ctx, s.url("postgres"))
			if err != nil {
				return err
			}
			s.conn = conn
		}
		_, err := s.conn.Exec(ctx, sql)
		// The connection may be one to a server that was started again meanwhile.
		if err == nil || !patience || !s.conn.IsClosed() && !strings.Contains(err.Error(), "55006") {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// create makes an empty database whose locale does not sort by bytes, so that tests fail
// for a column without COLLATE "C".
func (s *server) create(name string) error {
	err := s.admin("CREATE DATABASE "+name+" TEMPLATE template0 ENCODING 'UTF8' LOCALE_PROVIDER icu ICU_LOCALE 'en-US'", false)
	if err != nil { // a server without ICU, or before PostgreSQL 15
		err = s.admin("CREATE DATABASE "+name+" TEMPLATE template0 ENCODING 'UTF8'", false)
	}
	return err
}

// makeTemplate makes the migrated database that tests copy, unless it exists for this set
// of migrations.
func (s *server) makeTemplate() error {
	s.template = "gatehouse_template_" + db.MigrationsHash()
	making := s.template + "_" + strings.ToLower(rand.Text()[:8])
	var there bool
	if err := s.admin("SELECT 1", false); err != nil {
		return err
	}
	err := s.conn.QueryRow(context.Background(), "SELECT EXISTS (SELECT 1 FROM pg_database WHERE datname = $1)", s.template).Scan(&there)
	if err != nil || there {
		return err
	}
	if err := s.create(making); err != nil {
		return err
	}
	d, err := db.Open(context.Background(), db.Config{URL: s.url(making)})
	if err != nil {
		return fmt.Errorf("migrate template: %w", err)
	}
	if err := d.Close(); err != nil {
		return err
	}
	// If several processes do this, one wins and the others use its template.
	if err := s.admin("ALTER DATABASE "+making+" RENAME TO "+s.template, true); err != nil {
		if !strings.Contains(err.Error(), "42P04") {
			return err
		}
		return s.admin("DROP DATABASE "+making, true)
	}
	return nil
}
