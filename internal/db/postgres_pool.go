package db

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// maxConnAge replaces connections in time, so that nodes spread again over
	// servers after a failover or a change of addresses.
	maxConnAge = time.Hour
	// pingAfter is how long a connection may lie idle and still be trusted.
	pingAfter = 5 * time.Second
	// closeIdleAfter gives the server its memory back when load has gone.
	closeIdleAfter = 10 * time.Minute
)

// pgPool lends connections, the latest used first, so that those not needed
// grow old and are closed.
type pgPool struct {
	config *pgx.ConnConfig
	slots  chan struct{} // one token for each connection lent
	mu     sync.Mutex
	idle   []*pgConn
	closed bool
	queue  atomic.Int64
}

type pgConn struct {
	*pgx.Conn
	born, used time.Time
}

func newPgPool(config *pgx.ConnConfig, size int) *pgPool {
	return &pgPool{config: config, slots: make(chan struct{}, size)}
}

// take lends a connection that was alive a moment ago; waiting honours ctx.
func (p *pgPool) take(ctx context.Context) (*pgConn, error) {
	p.queue.Add(1)
	select {
	case p.slots <- struct{}{}:
		p.queue.Add(-1)
	case <-ctx.Done():
		p.queue.Add(-1)
		return nil, ctx.Err()
	}
	for {
		c, err := p.pop()
		if c == nil && err == nil {
			c, err = p.connect(ctx)
		}
		if err != nil {
			<-p.slots
			return nil, err
		}
		if time.Since(c.used) < pingAfter || c.Ping(ctx) == nil {
			return c, nil
		}
		p.drop(c)
		if err := ctx.Err(); err != nil {
			<-p.slots
			return nil, err
		}
	}
}

func (p *pgPool) pop() (*pgConn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, fmt.Errorf("%w: it is closed", ErrUnavailable)
	}
	n := len(p.idle)
	if n == 0 {
		return nil, nil // the caller connects anew
	}
	c := p.idle[n-1]
	p.idle = p.idle[:n-1]
	return c, nil
}

func (p *pgPool) connect(ctx context.Context) (*pgConn, error) {
	raw, err := pgx.ConnectConfig(ctx, p.config)
	if err != nil {
		if ended := ctx.Err(); ended != nil {
			return nil, ended
		}
		return nil, classifyPostgres(err)
	}
	now := time.Now()
	return &pgConn{Conn: raw, born: now, used: now}, nil
}

// give takes a connection back; one that is broken, in a transaction or old is closed.
func (p *pgPool) give(c *pgConn) {
	defer func() { <-p.slots }()
	now := time.Now()
	if c.IsClosed() || c.PgConn().IsBusy() || c.PgConn().TxStatus() != 'I' || now.Sub(c.born) > maxConnAge {
		p.drop(c)
		return
	}
	c.used = now
	var old []*pgConn
	p.mu.Lock()
	closed := p.closed
	if !closed {
		for len(p.idle) > 0 && now.Sub(p.idle[0].used) > closeIdleAfter {
			old, p.idle = append(old, p.idle[0]), p.idle[1:]
		}
		p.idle = append(p.idle, c)
	}
	p.mu.Unlock()
	if closed {
		p.drop(c)
	}
	for _, c := range old {
		p.drop(c)
	}
}

// drop closes a connection without holding its user up for long.
func (p *pgPool) drop(c *pgConn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = c.Close(ctx) // it is given up either way
}

// close closes the idle connections now and the others as they come back.
func (p *pgPool) close() {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.closed = nil, true
	p.mu.Unlock()
	for _, c := range idle {
		p.drop(c)
	}
}
