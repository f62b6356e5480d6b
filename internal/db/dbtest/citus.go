package dbtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"gatehouse/internal/db"
)

// citusServers are the addresses of a coordinator of Citus and of its workers, with a space
// between them. If they are given, the databases of tests are distributed over them.
const citusServers = "GATEHOUSE_TEST_CITUS"

// citus finds the servers of Citus, nil if none are given.
func citus() (*server, error) {
	var coordinator *server
	for _, given := range strings.Fields(os.Getenv(citusServers)) {
		base, err := url.Parse(given)
		if err != nil {
			return nil, err
		}
		s := &server{base: base}
		if coordinator == nil {
			coordinator = s
		} else {
			coordinator.workers = append(coordinator.workers, s)
		}
	}
	if coordinator != nil && len(coordinator.workers) == 0 {
		return nil, errors.New(citusServers + " names no worker")
	}
	return coordinator, nil
}

// makeDistributed makes a distributed database that tests copy, on the coordinator and on each
// worker: a worker is known by its address, and asked for the database of the same name.
func (s *server) makeDistributed() error {
	s.template = "gatehouse_distributed_" + strings.ToLower(rand.Text()[:8])
	all := append([]*server{s}, s.workers...)
	for _, one := range all {
		one.template = s.template
		if err := one.create(s.template); err != nil {
			return err
		}
	}
	if err := s.introduce(s.template); err != nil {
		return err
	}
	d, err := db.Open(context.Background(), db.Config{URL: s.url(s.template)})
	if err != nil {
		return fmt.Errorf("migrate template: %w", err)
	}
	if err := errors.Join(d.Distribute(context.Background(), nil), d.Close()); err != nil {
		return err
	}
	for _, one := range all { // a database with connections, such as Citus has of its own, is not copied
		if err := one.close(s.template); err != nil {
			return err
		}
	}
	return nil
}

// close ends the connections to a database, and takes no more.
func (s *server) close(name string) error {
	err := s.admin(`ALTER DATABASE `+name+` ALLOW_CONNECTIONS false`, true)
	if err == nil {
		err = s.admin(`SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '`+name+`'`, true)
	}
	return err
}

// introduce makes a database, which is on all servers, one of Citus.
func (s *server) introduce(name string) error {
	known := []string{fmt.Sprintf(`SELECT citus_set_coordinator_host('%s', %s)`, s.base.Hostname(), s.base.Port())}
	for _, one := range append([]*server{s}, s.workers...) {
		if err := one.on(name, `CREATE EXTENSION citus`); err != nil {
			return err
		}
		if one != s {
			known = append(known, fmt.Sprintf(`SELECT citus_add_node('%s', %s)`, one.base.Hostname(), one.base.Port()))
		}
	}
	return s.on(name, known...)
}

// Citus names a database of Citus that nothing has migrated or distributed yet. Without servers
// of Citus the test is skipped.
func Citus(t testing.TB) db.Config {
	t.Helper()
	if os.Getenv(citusServers) == "" {
		t.Skip("it needs Citus: scripts/prove-citus")
	}
	c := Empty(t)
	s, err := postgres()
	if err == nil {
		err = s.introduce(c.URL[strings.LastIndex(c.URL, "/")+1 : strings.LastIndex(c.URL, "?")])
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// on runs statements on a database.
func (s *server) on(database string, list ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.url(database))
	if err != nil {
		return err
	}
	for _, sql := range list {
		if _, failed := conn.Exec(ctx, sql); failed != nil {
			err = fmt.Errorf("%s: %w", sql, failed)
			break
		}
	}
	return errors.Join(err, conn.Close(ctx))
}
