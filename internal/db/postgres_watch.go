package db

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
)

const (
	// watchEvery is how often each server is asked whether it is there.
	watchEvery = 200 * time.Millisecond
	// watchTime is how long a server may send nothing, to nobody, while an answer to that is due, before
	// it counts as lost. With watchEvery it is less than a second.
	watchTime = 650 * time.Millisecond
	// watchLimit is how long the watch waits for the answer, or for a connection,
	// before it begins anew.
	watchLimit = 2500 * time.Millisecond
	// lostFor is how long a server must be lost before its connections are given up for
	// those to a standby.
	lostFor = 3 * time.Second
)

// watch asks the servers of the URL all the time whether they are there and can
// be written to, each on a connection of its own beside the pool. New connections try the fittest
// server first, and those to a server that was frozen, or has become a standby, are closed once
// another has taken its place.
type watch struct {
	p     *postgres
	hosts *hosts
	stop  context.CancelFunc
	all   sync.WaitGroup
	empty atomic.Bool // the pool has no connection, and gets none
}

func startWatch(p *postgres, hosts *hosts) *watch {
	ctx, stop := context.WithCancel(context.Background())
	w := &watch{p: p, hosts: hosts, stop: stop}
	for _, h := range hosts.list {
		w.all.Go(func() { w.run(ctx, h) })
	}
	w.all.Go(func() { w.fill(ctx) })
	return w
}

func (w *watch) close() {
	w.stop()
	w.all.Wait()
}

// run watches one server until ctx ends.
func (w *watch) run(ctx context.Context, h *host) {
	var conn *pgx.Conn
	defer func() { hangUp(conn) }()
	for ctx.Err() == nil {
		begun := time.Now()
		answered := make(chan struct{})
		var listens sync.WaitGroup
		listens.Go(func() { w.listen(h, begun, answered) })
		f, err := ask(ctx, h, &conn)
		if err != nil { // once more, because a connection may die that others need not follow
			f, err = ask(ctx, h, &conn)
		}
		close(answered)
		listens.Wait()
		if ctx.Err() != nil {
			return
		}
		if full(err) { // it is there, and what it was good for
			f = max(h.is(), readOnly)
		}
		w.note(h, f)
		if sleep(ctx, watchEvery-min(time.Since(begun), watchEvery)) != nil {
			return
		}
	}
}

// listen waits for the end of a question that began at an instant, and notes that the server is lost
// once it has been silent for watchTime.
func (w *watch) listen(h *host, begun time.Time, answered <-chan struct{}) {
	for left := watchTime; ; {
		select {
		case <-answered:
			return
		case <-time.After(left):
		}
		heard := h.heard(w.p.links)
		if heard.Before(begun) {
			heard = begun
		}
		if left = watchTime - time.Since(heard); left <= 0 {
			w.note(h, lost)
			return
		}
	}
}

// ask asks a server what it is good for, on conn, which it makes anew if it is nil. After an error
// conn is nil.
func ask(ctx context.Context, h *host, conn **pgx.Conn) (f fitness, err error) {
	ctx, cancel := context.WithTimeout(ctx, watchLimit)
	defer cancel()
	defer func() {
		if err != nil {
			hangUp(*conn)
			*conn = nil
		}
	}()
	if *conn == nil {
		config := h.config.Copy()
		config.ValidateConnect = nil // asked below, so that a standby keeps its connection
		config.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
			return &pgconn.DeadlineContextWatcherHandler{Conn: c.Conn()}
		}
		if *conn, err = pgx.ConnectConfig(ctx, config); err != nil {
			return lost, err
		}
	}
	pg := (*conn).PgConn()
	if fits := h.config.ValidateConnect; fits != nil {
		var less *pgconn.NotPreferredError
		switch err := fits(ctx, pg); {
		case err == nil || errors.As(err, &less):
		case pg.IsClosed():
			return lost, err
		default:
			return lost, nil
		}
	}
	results, err := pg.Exec(ctx, "show transaction_read_only").ReadAll()
	if err != nil {
		return lost, err
	}
	if len(results) == 1 && len(results[0].Rows) == 1 && string(results[0].Rows[0][0]) == "on" {
		return readOnly, nil
	}
	return writable, nil
}

// note notes what a server is good for, and closes the connections that are no good
// any more.
func (w *watch) note(h *host, f fitness) {
	was, cut := h.becomes(f), 0
	if len(w.hosts.list) > 1 {
		for _, address := range w.hosts.worse() {
			cut += w.p.links.cut(address)
		}
	}
	if cut > 0 || was != f && was != unseen && f != lost { // an address may lead elsewhere now
		w.p.reset()
	}
}

// fill gives a pool that has no connection one, so that it is known whether it can get any.
func (w *watch) fill(ctx context.Context) {
	for sleep(ctx, watchEvery) == nil {
		s := w.p.pool.Stat()
		if s.AcquiredConns()+s.IdleConns() > 0 {
			w.empty.Store(false)
			continue
		}
		if w.hosts.best() == lost {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, watchTime)
		c, err := w.p.pool.Acquire(limited)
		cancel()
		w.empty.Store(err != nil)
		if err == nil {
			c.Release()
		}
	}
}

// health returns ErrUnavailable if no server answers, or the pool has no connection and gets none.
func (w *watch) health() (readsOnly bool, err error) {
	best := w.hosts.best()
	switch {
	case best == lost:
		return false, fmt.Errorf("%w: it does not answer", ErrUnavailable)
	case w.empty.Load():
		return false, fmt.Errorf("%w: it gives no connection", ErrUnavailable)
	}
	return best == readOnly, nil
}

// hangUp closes a connection, which may be nil, and does not wait for the server.
func hangUp(conn *pgx.Conn) {
	if conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), watchTime)
	defer cancel()
	_ = conn.Close(ctx) // it is of no more use
}
