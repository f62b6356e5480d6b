package db

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"gatehouse/internal/failpoint"
)

const (
	// maxRaces is how often a transaction that loses races is tried.
	maxRaces = 5
	// maxSpare bounds the connections beyond the pool; see places.
	maxSpare = 4
)

// sessionSettings apply to every connection unless the URL sets them. A node
// that stops in the middle of a transaction must not keep its locks.
var sessionSettings = map[string]string{
	"application_name":                    "gatehouse",
	"timezone":                            "UTC",
	"bytea_output":                        "hex", // see readBytes
	"default_transaction_isolation":       "read committed",
	"statement_timeout":                   milliseconds(statementTime),
	"lock_timeout":                        milliseconds(lockTime),
	"idle_in_transaction_session_timeout": "30s",
	// Every statement reads a few index ranges, whatever its arguments. By
	// default PostgreSQL plans a statement on large tables again for its
	// arguments, which costs more than reading.
	"plan_cache_mode": "force_generic_plan",
	// Such a plan stays until the table is analyzed. One that was made while the table
	// was empty must not read the whole of it ever after.
	"enable_seqscan": "off",
	"jit":            "off", // it takes longer than any of these statements
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) + "ms" }

// postgres is the engine for installations with many nodes.
type postgres struct {
	pool    *pgxpool.Pool
	links   *links
	watch   *watch        // nil unless the process serves
	places  *places       // decides who gets the pool's next connection
	spare   *pgxpool.Pool // for calls that hold one connection and would wait for another for ever
	start   string        // begins a transaction
	dialect *Dialect
	waiting atomic.Int64 // calls that wait for a connection
	longest maximum
	mu      sync.Mutex
	tenants map[scope]*orderedQueue // only those with ordered writes in progress
	careful map[scope]int           // of the others, those whose next transactions have savepoints, and how many have
	queued  atomic.Int64
	writes  atomic.Uint64
	commits atomic.Uint64
}

// way is what stands between a node and its data.
type way struct{ pooler, distributed bool }

func openPostgres(ctx context.Context, c Config) (engine, error) {
	for found := (way{}); ; {
		p, err := connectPostgres(ctx, c, found)
		switch {
		case err == nil:
			return p, nil
		case errors.Is(err, errPooler):
			found.pooler = true
		case errors.Is(err, errDistributed):
			found.distributed = true
		default:
			return nil, err
		}
	}
}

// connectPostgres returns errPooler if there is a pooler, and errDistributed if the database is
// distributed, unless on says so.
func connectPostgres(ctx context.Context, c Config, on way) (*postgres, error) {
	links, dialect := newLinks(), &postgresDialect
	links.pooled = on.pooler
	settings := sessionSettings
	if on.distributed {
		dialect, settings = &citusDialect, maps.Clone(sessionSettings)
		maps.Copy(settings, citusSettings)
	}
	config, err := postgresConfig(c, settings, links)
	if err != nil {
		return nil, err // pgx leaves out the password
	}
	start := "begin"
	if on.pooler {
		start = behindPooler(config, c.URL)
	}
	hosts := hostsOf(config.ConnConfig, links)
	config.BeforeConnect = func(_ context.Context, to *pgx.ConnConfig) error {
		hosts.order(to)
		return nil
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	few := config.Copy()
	few.MaxConns, few.MinConns, few.MinIdleConns, few.MaxConnIdleTime = maxSpare, 0, 0, time.Minute
	spare, err := pgxpool.NewWithConfig(ctx, few) // connects on demand
	if err != nil {
		pool.Close()
		return nil, err
	}
	p := &postgres{
		pool: pool, spare: spare, start: start, dialect: dialect, links: links, places: newPlaces(int(config.MaxConns), maxSpare), tenants: make(map[scope]*orderedQueue), careful: make(map[scope]int),
	}
	if err := p.check(ctx, on); err != nil {
		_ = p.close() // never fails
		return nil, err
	}
	if c.Serve {
		p.watch = startWatch(p, hosts)
	}
	return p, nil
}

// check makes the first connection. It returns errPooler if that is not one to a server itself, and
// errDistributed if that server's tables are distributed, unless on says so.
func (p *postgres) check(ctx context.Context, on way) error {
	conn, err := p.acquire(ctx, "")
	switch {
	case err == nil:
		defer conn.release()
	case !on.pooler && poolerRefused(err):
		return errPooler
	default:
		return err
	}
	if on.pooler {
		if ok, err := notices(ctx, conn.PgConn()); err != nil {
			return conn.failed(ctx, err)
		} else if ok {
			p.start += "; set local" + notice
		}
	} else if err := conn.isDirect(ctx); err != nil {
		return err
	}
	if err := conn.isUnicode(ctx); err != nil || on.distributed {
		return err
	}
	distributed, err := conn.isDistributed(ctx)
	if err == nil && distributed {
		err = errDistributed
	}
	return err
}

// postgresConfig returns the configuration of the URL, with our defaults for
// what it leaves out.
func postgresConfig(c Config, settings map[string]string, links *links) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(c.URL)
	if err != nil {
		return nil, err
	}
	given, err := pgx.ParseConfig(c.URL) // has the pool's settings among the parameters
	if err != nil {
		return nil, err
	}
	if given.RuntimeParams["pool_max_conns"] == "" {
		config.MaxConns = int32(c.Readers)
		if c.Readers <= 0 {
			config.MaxConns = int32(max(8, 4*runtime.GOMAXPROCS(0)))
		}
	}
	if given.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectTime
	}
	if given.RuntimeParams["pool_ping_timeout"] == "" {
		config.PingTimeout = pingTime
	}
	params := config.ConnConfig.RuntimeParams
	params[direct] = "on"
	for name, value := range settings {
		if _, own := params[name]; !own {
			params[name] = value
		}
	}
	if c.Name != "" {
		params["application_name"] = c.Name
	}
	config.ConnConfig.DialFunc = links.dial // also for requests to cancel
	config.ConnConfig.BuildContextWatcherHandler = newCanceler
	return config, nil
}

// acquire waits for the tenant's turn and borrows a connection that was alive a
// moment ago, within the time that its caller has for waiting.
func (p *postgres) acquire(ctx context.Context, tenant string) (pgConn, error) {
	return p.acquireUntil(ctx, tenant, waitEnd(ctx))
}

func (p *postgres) acquireUntil(ctx context.Context, tenant string, until time.Time) (pgConn, error) {
	if ended := ctx.Err(); ended != nil {
		return pgConn{}, ended
	}
	p.waiting.Add(1)
	defer p.waiting.Add(-1)
	extra, err := p.places.enter(ctx, tenant)
	if err != nil {
		return pgConn{}, err
	}
	leave, pool := func() { p.places.leave(tenant, extra) }, p.pool
	if extra {
		pool = p.spare
	}
	limited, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	c, err := borrow(limited, pool)
	if err == nil {
		return pgConn{Conn: c.Conn(), lent: c, link: linkOf(c.Conn().PgConn()), leave: leave, speak: p.dialect}, nil
	}
	leave()
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return pgConn{}, ctx.Err()
	case limited.Err() != nil: // err may be no more than that
		return pgConn{}, fmt.Errorf("%w: no connection came in time", ErrUnavailable)
	}
	return pgConn{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// borrow takes a connection of the pool. Where the server refuses another because it
// has too many, borrow waits for one of those that the pool has.
func borrow(ctx context.Context, pool *pgxpool.Pool) (*pgxpool.Conn, error) {
	for try := 1; ; try++ {
		c, err := pool.Acquire(ctx)
		if err == nil && linkOf(c.Conn().PgConn()).isSpoilt() { // by the pool's ping, which was answered when its time was over
			_ = c.Conn().Close(ctx) // it has no socket any more
			c.Release()
			continue
		}
		if err == nil || !full(err) || pool.Stat().AcquiredConns()+pool.Stat().IdleConns() == 0 {
			return c, err
		}
		if sleep(ctx, 4*backoff(try)) != nil {
			return nil, err
		}
	}
}

// query runs a read, and runs it once more if the connection was dead. A server
// that has restarted leaves no idle connection alive, so query then closes all. On a standby
// a read that stood in the way of a change of the primary runs once more, too.
func (p *postgres) query(ctx context.Context, to scope, st *statement, each func(Row) error, args []any) error {
	begun := time.Now()
	for attempt := 0; ; attempt++ {
		rows := 0
		err := p.queryOnce(ctx, to, st, func(r Row) error {
			rows++
			return each(r)
		}, args)
		lost := errors.Is(err, ErrUnavailable)
		if rows > 0 || attempt > 0 || !lost && !lostRace(err) || ctx.Err() != nil || time.Since(begun) > retryTime {
			return err
		}
		if lost {
			p.reset()
		}
	}
}

// reset closes all idle connections.
func (p *postgres) reset() {
	p.pool.Reset()
	p.spare.Reset()
}

func (p *postgres) queryOnce(ctx context.Context, to scope, st *statement, each func(Row) error, args []any) error {
	c, err := p.acquire(ctx, to.tenant)
	if err != nil {
		return err
	}
	defer c.release()
	return c.rows(ctx, to, st, each, args)
}

// write runs fn in one transaction, and runs it again if it lost a race.
func (p *postgres) write(ctx context.Context, to scope, fn func(Tx) error) error {
	begun := time.Now()
	for attempt := 1; ; attempt++ {
		again, err := p.writeOnce(ctx, to, fn)
		if !again || attempt == maxRaces || time.Since(begun) > retryTime && !patient(ctx) {
			return err
		}
		if sleep(ctx, backoff(attempt)) != nil {
			return err
		}
	}
}

// backoff grows and is random, so that transactions that collided do not
// collide again.
func backoff(attempt int) time.Duration {
	most := time.Millisecond << min(attempt+1, 6)
	return most/4 + rand.N(most) //nolint:gosec // a spread, not a secret
}

// writeOnce tries a write once. again reports whether nothing has happened and
// another try may help.
func (p *postgres) writeOnce(ctx context.Context, to scope, fn func(Tx) error) (again bool, err error) {
	c, err := p.acquire(ctx, to.tenant)
	if err != nil {
		return false, err
	}
	defer c.release()
	if again, err := p.begin(ctx, c); err != nil {
		return again, err
	}
	tx := &pgTx{conn: c, txState: txState{to: to}, later: &pipeline{}}
	ended := false
	defer func() {
		tx.over = true
		if !ended {
			c.rollback()
		}
	}()
	begun := time.Now()
	err = fn(tx)
	p.longest.note(time.Since(begun))
	if err == nil && tx.broken == nil {
		_ = tx.send(ctx) // which breaks it
	}
	if tx.broken != nil {
		if err == nil || lostRace(tx.broken) {
			err = tx.broken
		}
		return lostRace(tx.broken), err
	}
	if err != nil {
		return false, err
	}
	ended = true
	if err := c.commit(ctx); err != nil {
		return lostRace(err), err
	}
	p.commits.Add(1)
	p.writes.Add(1)
	return false, nil
}

// begin begins a transaction. again reports whether another connection may
// succeed, as in query.
func (p *postgres) begin(ctx context.Context, c pgConn) (again bool, err error) {
	sql := p.start
	if patient(ctx) {
		c.link.within(patience + silence)
		sql += "; set local statement_timeout = '" + milliseconds(patience) + "'; set local lock_timeout = '" + milliseconds(patience) + "'"
	}
	err = c.control(ctx, sql)
	if again = errors.Is(err, ErrUnavailable); again {
		p.reset()
	}
	if err == nil {
		failpoint.At("tx.begun")
	}
	return again, err
}

func (p *postgres) stats() Stats {
	pool := p.pool.Stat()
	return Stats{
		Engine: Postgres, Connections: int(pool.MaxConns()), InUse: int(pool.AcquiredConns()), Waiting: int(p.waiting.Load()),
		WritesQueued: int(p.queued.Load()), Writes: p.writes.Load(), Commits: p.commits.Load(),
		LongestWrite: p.longest.get(),
	}
}

// close waits until every connection has been released.
func (p *postgres) close() error {
	if p.watch != nil {
		p.watch.close()
	}
	p.pool.Close()
	p.spare.Close()
	return nil
}
