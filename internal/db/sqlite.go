package db

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// FileName is the database file in a data folder; SQLite keeps FileName-wal
// and FileName-shm beside it.
const FileName = "gatehouse.db"

const (
	busyTimeout = 10 * time.Second
	// overflowAfter is how long a read waits for a connection before it opens
	// one of its own: a read inside the row callback of another holds two, and
	// when all hold one and want another, nobody would ever move.
	overflowAfter = 250 * time.Millisecond
	// maxOverflow bounds those extra connections.
	maxOverflow = 64
)

// tuning are the PRAGMAs in which the main file and a day's differ.
type tuning struct{ writer, reader []string }

// mainTuning makes a commit durable before it is answered.
var mainTuning = tuning{
	writer: []string{"journal_mode = WAL", "synchronous = FULL", "cache_size = -32768", "journal_size_limit = 67108864"},
	reader: []string{"query_only = ON", "mmap_size = 536870912", "cache_size = -8192"},
}

// sqliteEngine reads through a pool of connections and writes through one.
type sqliteEngine struct {
	path    string
	tuning  tuning
	lock    io.Closer     // the serving lock, nil without
	writer  *sqliteWriter // nil for a file that is only read
	readers int

	idle     chan *sqliteConn
	mu       sync.Mutex
	opened   int // of the pool, at most readers
	overflow int
	closed   bool
	waiting  atomic.Int64
}

func openSQLite(ctx context.Context, c Config) (engine, error) {
	if c.Dir == "" {
		return nil, errors.New("neither a data folder nor a database URL is given")
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make data folder: %w", err)
	}
	e := &sqliteEngine{path: filepath.Join(c.Dir, FileName), tuning: mainTuning, readers: c.Readers}
	if e.readers <= 0 {
		e.readers = max(4, 2*runtime.GOMAXPROCS(0))
	}
	e.idle = make(chan *sqliteConn, e.readers)
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

// startWriter makes the file unless it is there, and begins to write.
func (e *sqliteEngine) startWriter(ctx context.Context) error {
	// SQLite gives its -wal and -shm files the database's permissions.
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

// openWriter opens the writing connection. Turning WAL on needs the file for
// itself and ignores the busy timeout at times, so it is tried again.
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

// open opens a connection and sets it up.
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
	c, extra, err := e.take(ctx)
	if err != nil {
		return err
	}
	defer e.give(c, extra)
	return c.run(ctx, to, st, each, args)
}

// take borrows a reader: an idle one, a new one while there are few, or, after
// a wait, an extra one that give closes.
func (e *sqliteEngine) take(ctx context.Context) (c *sqliteConn, extra bool, err error) {
	select {
	case c = <-e.idle:
		return c, false, nil
	default:
	}
	if c, full, err := e.openOne(&e.opened, e.readers); !full {
		return c, false, err
	}
	e.waiting.Add(1)
	defer e.waiting.Add(-1)
	timer := time.NewTimer(overflowAfter)
	defer timer.Stop()
	for {
		select {
		case c = <-e.idle:
			return c, false, nil
		case <-ctx.Done():
			return nil, false, ctx.Err()
		case <-timer.C:
			if c, full, err := e.openOne(&e.overflow, maxOverflow); !full {
				return c, true, err
			}
			timer.Reset(overflowAfter)
		}
	}
}

// openOne opens a reader and adds it to the number of its kind, unless that is
// at its limit.
func (e *sqliteEngine) openOne(n *int, limit int) (c *sqliteConn, full bool, err error) {
	if full, err = e.count(n, limit); full || err != nil {
		return nil, full, err
	}
	c, err = e.open(e.tuning.reader...)
	if err != nil {
		e.uncount(n)
	}
	return c, false, err
}

func (e *sqliteEngine) count(n *int, limit int) (full bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.closed:
		return false, fmt.Errorf("%w: it is closed", ErrUnavailable)
	case *n >= limit:
		return true, nil
	}
	*n++
	return false, nil
}

func (e *sqliteEngine) uncount(n *int) {
	e.mu.Lock()
	*n--
	e.mu.Unlock()
}

func (e *sqliteEngine) give(c *sqliteConn, extra bool) {
	if extra {
		_ = c.Close() // it only read
		e.uncount(&e.overflow)
		return
	}
	e.idle <- c
}

func (e *sqliteEngine) write(ctx context.Context, to scope, fn func(Tx) error) error {
	return e.writer.write(newTurn(ctx, to, fn))
}

func (e *sqliteEngine) writeOrdered(ctx context.Context, to scope, fn func(Tx) error) error {
	return e.write(ctx, to, fn) // the only writer orders all
}

func (e *sqliteEngine) stats() Stats {
	e.mu.Lock()
	opened, overflow := e.opened, e.overflow
	e.mu.Unlock()
	return Stats{
		Engine: SQLite, Connections: e.readers, InUse: opened + overflow - len(e.idle), Waiting: int(e.waiting.Load()),
		WritesQueued: len(e.writer.queue), Writes: e.writer.writes.Load(), Commits: e.writer.commits.Load(),
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

// sleep waits, or until ctx ends.
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
