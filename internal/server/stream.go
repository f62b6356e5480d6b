package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"
)

// streamTimeout is how long a client may take to accept one piece of a stream.
const streamTimeout = 20 * time.Second

// awaitBalancers makes the server report that it is not ready, and returns after the
// drain delay, in which balancers notice it. Until then requests are served, and each
// answer ends its connection, so that the client's next one goes where the balancer
// sends it. It returns early with the error of a listener that fails.
func (s *Server) awaitBalancers(failed <-chan error) error {
	s.draining.Store(true)
	s.log.Emit("server.draining", map[string]any{"delay_ms": s.drainDelay.Milliseconds()})
	delay := time.NewTimer(s.drainDelay)
	defer delay.Stop()
	select {
	case <-delay.C:
		return nil
	case err := <-failed:
		return err
	}
}

// beginDrain makes the server report that it is not ready, and ends streams.
func (s *Server) beginDrain() {
	s.draining.Store(true)
	s.drain()
}

// sendStream sends an answer that is a stream. The headers have been written.
func (x *exchange) sendStream() {
	ctx, cancel := context.WithCancel(x.r.Context())
	defer cancel()
	defer context.AfterFunc(x.s.drained, cancel)()
	defer func() {
		if p := recover(); p != nil {
			x.s.metrics.panics.Inc()
			x.s.log.Emit("server.panic", map[string]any{
				"request_id": x.id, "method": x.r.Method, "path": x.r.URL.Path, "panic": fmt.Sprint(p), "stack": string(debug.Stack()),
			})
		}
	}()
	c := http.NewResponseController(x.w)
	_ = c.SetReadDeadline(time.Time{}) // the one of the request would end the connection
	send := func(piece []byte) error {
		if err := c.SetWriteDeadline(time.Now().Add(streamTimeout)); err != nil {
			return err
		}
		if _, err := x.w.Write(piece); err != nil {
			return err
		}
		return c.Flush()
	}
	err := x.stream(ctx, send)
	if err != nil && ctx.Err() == nil && !errors.Is(err, context.Canceled) {
		x.s.log.Emit("server.stream_ended", map[string]any{"request_id": x.id, "path": x.r.URL.Path, "error": err.Error()})
	}
}
