package db

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// copyWait is how long Copy waits for the connections of a process that was killed to end.
const copyWait = 5 * time.Second

// snapshot reads a database as it was at one instant. One goroutine may use it at a time.
type snapshot struct {
	engine Engine
	lite   *sqliteConn
	post   pgConn
	at     int64 // SQLite's data_version
	end    func() error
}

// snapshot begins a snapshot. Its end must be called.
func (d *DB) snapshot(ctx context.Context) (*snapshot, error) {
	s := &snapshot{engine: d.Engine()}
	var err error
	switch e := d.engine.(type) {
	case *sqliteEngine:
		err = s.beginSQLite(ctx, e)
	case *postgres:
		err = s.beginPostgres(ctx, e)
	}
	if err == nil { // the first read fixes the instant
		err = s.query(ctx, `SELECT count(*) FROM schema_migrations`, func(Row) error { return nil })
		if err != nil {
			err = errors.Join(err, s.end())
		}
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (s *snapshot) beginSQLite(ctx context.Context, e *sqliteEngine) (err error) {
	if s.lite, err = e.open(e.tuning.reader...); err != nil {
		return err
	}
	s.end = func() error { return s.lite.Close() } // which ends the transaction
	if s.at, err = s.version(ctx); err == nil {
		err = s.query(ctx, `BEGIN`, nil)
	}
	if err != nil {
		err = errors.Join(err, s.end())
	}
	return err
}

func (s *snapshot) beginPostgres(ctx context.Context, p *postgres) (err error) {
	if s.post, err = p.acquire(ctx, ""); err != nil {
		return err
	}
	s.end = func() error {
		s.post.rollback()
		s.post.release()
		return nil
	}
	s.post.link.within(patience + silence)
	begin := `begin isolation level repeatable read read only`
	if _, settings, some := strings.Cut(p.start, ";"); some { // behind a pooler
		begin += ";" + settings
	}
	err = s.post.control(ctx, begin+`; set local idle_in_transaction_session_timeout = 0; set local statement_timeout = '`+milliseconds(patience)+`'`)
	if err != nil {
		err = errors.Join(err, s.end())
	}
	return err
}

func (s *snapshot) query(ctx context.Context, sql string, each func(Row) error, args ...any) error {
	if s.lite != nil {
		return s.lite.run(ctx, scope{}, describe(sql), each, args)
	}
	return s.post.rows(ctx, scope{}, describe(sql), each, args)
}

// version returns SQLite's data_version, which changes when another connection commits.
func (s *snapshot) version(ctx context.Context) (v int64, err error) {
	err = s.query(ctx, `PRAGMA data_version`, func(r Row) error { v = r.Int(0); return nil })
	return v, err
}

// unchanged ends a snapshot of SQLite, and returns ErrInUse if anything was committed since
// it began. PostgreSQL does not say that of one database.
func (s *snapshot) unchanged(ctx context.Context) error {
	if s.lite == nil {
		return nil
	}
	if err := s.query(ctx, `COMMIT`, nil); err != nil {
		return err
	}
	now, err := s.version(ctx)
	if err == nil && now != s.at {
		err = fmt.Errorf("%w: the source was written to while it was copied; the target is without that: --restart begins anew", ErrInUse)
	}
	return err
}

// aloneFor returns ErrInUse if other processes of this program are connected to a PostgreSQL
// database, and stay so for the time of wait. Of SQLite the serving lock says that.
func (d *DB) aloneFor(ctx context.Context, wait time.Duration) error {
	p, ok := d.engine.(*postgres)
	if !ok {
		return nil
	}
	own := p.pool.Config().ConnConfig.RuntimeParams["application_name"]
	for end := time.Now().Add(wait); ; {
		var others []string
		err := d.Unscoped("who else is connected").Query(ctx, `SELECT application_name, COALESCE(host(client_addr), 'its own machine'), pid FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name LIKE 'gatehouse%' AND application_name <> $1::text ORDER BY pid`,
			func(r Row) error {
				others = append(others, fmt.Sprintf("%s from %s (process %s of PostgreSQL)", r.Text(0), r.Text(1), r.Text(2)))
				return nil
			}, own)
		if err != nil || len(others) == 0 {
			return err
		}
		if !time.Now().Before(end) {
			return fmt.Errorf("%w: stop every gatehouse that uses the PostgreSQL database; connected are %s", ErrInUse, strings.Join(others[:min(3, len(others))], ", "))
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}
