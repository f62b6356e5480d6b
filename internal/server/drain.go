package server

import (
	"errors"
	"net"
	"os"
	"time"
)

// drainingListener is a listener that closes without losing a connection.
// Closing a TCP listener resets the connections that the kernel has completed
// but that have not been accepted, although their clients may have sent a
// request. After drain is called, Accept returns those connections first.
type drainingListener struct {
	net.Listener
	draining bool
	waiting  []net.Conn // connections that waited when draining began
}

// drain makes Accept return the connections that already wait, and then
// net.ErrClosed.
func (l *drainingListener) drain() {
	if t, ok := l.Listener.(*net.TCPListener); !ok || t.SetDeadline(time.Unix(1, 0)) != nil {
		_ = l.Close() // fails only where serving failed, which Serve reports
	}
}

// Accept must be called by one goroutine only, as net/http does.
func (l *drainingListener) Accept() (net.Conn, error) {
	if !l.draining {
		c, err := l.Listener.Accept()
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return c, err
		}
		l.draining, l.waiting = true, closeAndTake(l.Listener.(*net.TCPListener))
	}
	if len(l.waiting) == 0 {
		return nil, net.ErrClosed
	}
	c := l.waiting[0]
	l.waiting = l.waiting[1:]
	return c, nil
}
