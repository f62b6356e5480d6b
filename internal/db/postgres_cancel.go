package db

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
)

// canceler cancels a statement at the server when its ctx ends, and keeps the connection: a client
// that hangs up must not cost a reconnection. The server says that it has passed such a request on
// by ending the request's own connection. Until then, and no longer than cancelTime, the canceled
// statement's connection is not used again; without that word it is closed, because
// the request could meet whatever runs on it next.
type canceler struct {
	conn *pgconn.PgConn
	done chan bool // whether the server has passed the request on
}

func newCanceler(c *pgconn.PgConn) ctxwatch.Handler { return &canceler{conn: c} }

func (c *canceler) HandleCancel(over context.Context) {
	deadline := time.Now().Add(cancelTime)
	_ = c.conn.Conn().SetDeadline(deadline) // fails on a closed connection, as the statement does
	done := make(chan bool, 1)
	c.done = done
	go func() {
		ctx, cancel := context.WithDeadline(context.WithoutCancel(over), deadline)
		defer cancel()
		err := c.conn.CancelRequest(ctx)
		done <- err == nil && ctx.Err() == nil
	}()
}

func (c *canceler) HandleUnwatchAfterCancel() {
	passed := <-c.done
	_ = c.conn.Conn().SetDeadline(time.Time{})
	if !passed {
		linkOf(c.conn).spoil()
	}
}
