package db

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// FileName is the database file in a data folder; SQLite keeps FileName-wal and
// FileName-shm next to it.
const FileName = "gatehouse.db"

const (
	busyTimeout = 10 * time.Second
	// maxOverflow bounds the extra connections of nested reads; see places.
	maxOverflow = 64
)

// tuning are the PRAGMAs that differ between the main file and a day's.
type tuning struct{ writer, reader []string }

// mainTuning makes a commit durable before it is answered.
var mainTuning = tuning{
	writer: []string{"journal_mode = WAL", "synchronous = FULL", "cache_size = -32768", "journal_size_limit = 67108864"},
	reader: []string{"query_only = ON", "mmap_size = 536870912", "cache_size = -4096"},
}

// sqliteEngine reads through a pool of connections and writes through one.
type sqliteEngine struct {
	path    string
	tuning  tuning
	lock    io.Closer     // the serving lock, or nil
	writer  *sqliteWriter // nil for a file that is only read
	readers *places

	idle   chan *sqliteConn
	mu     sync.Mutex
	opened int // connections of the pool, at most as many as there are places
	closed bool
}

func openSQLite(ctx context.Context, c Config) (engine, error) {
	if c.Dir == "" {
		return nil, errors.New("neither a data folder nor a database URL is given")
	}
	if c.Existing {
		if err := exists(c.Dir); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make data folder: %w", err)
	}
	readers := c.Readers
	if readers <= 0 {
		readers = max(8, 4*runtime.GOMAXPROCS(0))
	}
	e := &sqliteEngine{
		path: filepath.Join(c.Dir, FileName), tuning: mainTuning, readers: newPlaces(readers, maxOverflow), idle: make(chan *sqliteConn, readers),
	}
	if c.Serve {
		var err error
		if e.lock, err = Lock(c.Dir); err != nil {
			return nil, err
		}
	}
	if err := notLost(c.Dir); err != nil {
		return nil, errors.Join(err, e.unlock())
	}
	if err := e.startWriter(ctx); err != nil {
		return nil, errors.Join(err, e.unlock())
	}
	return e, nil
}

// exists returns an error if a folder has no database: ErrLost if it had one.
func exists(dir string) error {
	switch info, err := os.Stat(filepath.Join(dir, FileName)); {
	case err == nil && info.Size() > 0:
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return cmp.Or(notLost(dir), ErrNone)
}

// startWriter creates the file if it does not exist, and starts the writer.
func (e *sqliteEngine) startWriter(ctx context.Context) error {
	// SQLite gives its -wal and -shm files the permissions of the database.
	f, err := os.OpenFile(e.path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	conn, err := e.openWriter(ctx)
	if err != nil {
		return err
	}
	e.writer = startSQLiteWriter(conn)
	return nil
}

// openWriter opens the writing connection. Switching to WAL needs exclusive use
// of the file and sometimes ignores the busy timeout, so it retries.
func (e *sqliteEngine) openWriter(ctx context.Context) (*sqliteConn, error) {
	deadline := time.Now().Add(busyTimeout)
	for {
		conn, err := e.open(e.tuning.writer...)
		if err == nil || !errors.Is(err, ErrBusy) || time.Now().After(deadline) {
			return conn, err
		}
		if err := sleep(ctx, 5*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// open opens a connection and configures it.
func (e *sqliteEngine) open(pragmas ...string) (*sqliteConn, error) {
	raw, err := sqlite.OpenConn(e.path, sqlite.OpenReadWrite)
	if err != nil {
		return nil, classifySQLite(err)
	}
	raw.SetBusyTimeout(busyTimeout)
	for _, p := range append(slices.Clone(pragmas), "foreign_keys = OFF", "temp_store = MEMORY") {
		if err := sqlitex.ExecuteTransient(raw, "PRAGMA "+p, nil); err != nil {
			return nil, errors.Join(classifySQLite(err), raw.Close())
		}
	}
	return newSQLiteConn(raw), nil
}

func (e *sqliteEngine) query(ctx context.Context, to scope, st *statement, each func(Row) error, args []any) error {
	c, extra, err := e.take(ctx, to.tenant)
	if err != nil {
		return err
	}
	defer e.give(to.tenant, c, extra)
	return c.run(ctx, to, st, each, args)
}

// take waits for the tenant's turn and borrows a reader: an idle one, a new one
// while there are few, or an extra one, which give closes.
func (e *sqliteEngine) take(ctx context.Context, tenant string) (c *sqliteConn, extra bool, err error) {
	if extra, err = e.readers.enter(ctx, tenant); err != nil {
		return nil, false, err
	}
	if !extra {
		select {
		case c = <-e.idle:
			return c, false, nil
		default:
		}
	}
	if c, err = e.openReader(extra); err != nil {
		e.readers.leave(tenant, extra)
	}
	return c, extra, err
}

func (e *sqliteEngine) openReader(extra bool) (*sqliteConn, error) {
	e.mu.Lock()
	closed := e.closed
	e.mu.Unlock()
	if closed {
		return nil, fmt.Errorf("%w: it is closed", ErrUnavailable)
	}
	c, err := e.open(e.tuning.reader...)
	if err == nil && !extra {
		e.mu.Lock()
		e.opened++
		e.mu.Unlock()
	}
	return c, err
}

func (e *sqliteEngine) give(tenant string, c *sqliteConn, extra bool) {
	if extra {
		_ = c.Close() // it only read
	} else {
		e.idle <- c
	}
	e.readers.leave(tenant, extra)
}

func (e *sqliteEngine) write(ctx context.Context, to scope, fn func(Tx) error) error {
	return e.writer.write(newTurn(ctx, to, fn))
}

func (e *sqliteEngine) writeOrdered(ctx context.Context, to scope, fn func(Tx) error) error {
	return e.write(ctx, to, fn) // the single writer orders all writes
}

func (e *sqliteEngine) stats() Stats {
	inUse, waiting := e.readers.counts()
	return Stats{
		Engine: SQLite, Connections: e.readers.size, InUse: inUse, Waiting: waiting,
		WritesQueued: e.writer.queue.len(), Writes: e.writer.writes.Load(), Commits: e.writer.commits.Load(),
		LongestWrite: e.writer.longest.get(),
	}
}

func (e *sqliteEngine) close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	opened := e.opened
	e.mu.Unlock()
	var errs []error
	for range opened {
		errs = append(errs, (<-e.idle).Close())
	}
	if e.writer != nil {
		errs = append(errs, e.writer.close())
	}
	errs = append(errs, e.unlock())
	return errors.Join(errs...)
}

func (e *sqliteEngine) unlock() error {
	if e.lock == nil {
		return nil
	}
	return e.lock.Close()
}

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
