package db

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// link is the socket of a connection to the server. Whatever uses the connection, a
// read or write of it ends: after silence, or earlier if a deadline was set. So no
// statement, begin, commit, ping or handshake can wait for ever for a server that is
// frozen or cut off, and none needs to say so.
type link struct {
	net.Conn
	of      *links
	address string
	heard   *atomic.Int64 // of the address
	watches bool          // a connection of the watch, which cut leaves alone

	mu     sync.Mutex
	limit  time.Duration // how long the server may be silent
	until  time.Time     // set by SetDeadline; zero for none
	known  bool          // the server has answered
	sent   int64         // bytes
	failed error         // the first error of the socket, which pgx does not always return
	spoilt bool          // a request to cancel may yet meet what runs on it
}

// links are the open sockets to the servers.
type links struct {
	dialer  net.Dialer
	silence time.Duration // how long a server may be silent; a test changes it
	pooled  bool          // a pooler is in between
	heard   sync.Map      // address → *atomic.Int64, when the server sent something, in Unix nanoseconds

	mu   sync.Mutex
	open map[*link]struct{}
}

func newLinks() *links {
	return &links{
		open: map[*link]struct{}{}, silence: silence,
		// A connection that is idle notices within some 20 s that its peer is gone.
		dialer: net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 3 * time.Second, Count: 3}},
	}
}

// dial is pgconn.DialFunc.
func (ls *links) dial(ctx context.Context, network, address string) (net.Conn, error) {
	return ls.connect(ctx, network, address, false)
}

func (ls *links) connect(ctx context.Context, network, address string, watches bool) (net.Conn, error) {
	conn, err := ls.dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	l := &link{Conn: conn, of: ls, address: address, heard: ls.last(address), watches: watches, limit: ls.silence}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.open[l] = struct{}{}
	return l, nil
}

// last returns when a server last sent something.
func (ls *links) last(address string) *atomic.Int64 {
	at, _ := ls.heard.LoadOrStore(address, new(atomic.Int64))
	return at.(*atomic.Int64) //nolint:forcetypeassert // nothing else is stored
}

// cut closes the sockets to an address, and thereby ends what waits for it. It returns how many.
func (ls *links) cut(address string) (n int) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for l := range ls.open {
		if l.address == address && !l.watches {
			_ = l.Conn.Close() // whoever uses it closes the link
			delete(ls.open, l)
			n++
		}
	}
	return n
}

// Read reads, for as long as the server may be silent.
func (l *link) Read(b []byte) (int, error) {
	limit := l.arm(l.Conn.SetReadDeadline)
	n, err := l.Conn.Read(b)
	if n > 0 {
		l.heard.Store(time.Now().UnixNano())
	}
	return n, l.done(n, 0, err, limit)
}

// Write writes; it ends as Read does.
func (l *link) Write(b []byte) (int, error) {
	limit := l.arm(l.Conn.SetWriteDeadline)
	n, err := l.Conn.Write(b)
	return n, l.done(0, n, err, limit)
}

// arm sets the deadline of the read or write that follows, and returns how long it may take if that
// is its limit and no deadline of SetDeadline.
func (l *link) arm(set func(time.Time) error) (limit time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	limit = l.limit
	if !l.known {
		limit = min(limit, firstAnswer)
	}
	at := time.Now().Add(limit)
	if !l.until.IsZero() && l.until.Before(at) {
		at, limit = l.until, 0
	}
	_ = set(at) // fails on a closed connection, as what follows does
	return limit
}

// done notes the outcome of a read or write, and returns its error. It closes the socket if the
// server was silent for too long.
func (l *link) done(got, sent int, err error, limit time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent += int64(sent)
	l.known = l.known || got > 0
	interrupted := !l.until.IsZero() && !l.until.After(time.Now()) // by SetDeadline
	if limit > 0 && errors.Is(err, os.ErrDeadlineExceeded) && !interrupted {
		_ = l.Conn.Close() // an answer that comes later is nobody's
		err = errSilent{limit}
	}
	if l.failed == nil {
		l.failed = err
	}
	return err
}

// RemoteAddr returns the address to which pgx sends a request to cancel a statement when it gives a
// connection up. Behind a pooler it is none: PgBouncer 1.18 dies of such a request whose sender does
// not wait for the end (its issue 801).
func (l *link) RemoteAddr() net.Addr {
	if l.of.pooled {
		return nowhere{}
	}
	return l.Conn.RemoteAddr()
}

// nowhere is an address of a network that is not known.
type nowhere struct{}

func (nowhere) Network() string { return "none" }
func (nowhere) String() string  { return "none" }

// state returns how many bytes were sent, and the first error of the socket.
func (l *link) state() (sent int64, failed error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sent, l.failed
}

// spoil closes the socket of a connection that must not be used again.
func (l *link) spoil() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spoilt = true
	_ = l.Conn.Close()
}

func (l *link) isSpoilt() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.spoilt
}

// SetDeadline bounds what runs and what follows, until it is called with the zero time. A time
// that is later than the limit allows has no effect.
func (l *link) SetDeadline(t time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = t
	if t.IsZero() || t.After(time.Now().Add(l.limit)) {
		return nil
	}
	return l.Conn.SetDeadline(t)
}

// SetReadDeadline is SetDeadline: nothing sets one without the other.
func (l *link) SetReadDeadline(t time.Time) error { return l.SetDeadline(t) }

// SetWriteDeadline is SetDeadline, except that crypto/tls, when it closes a connection, bounds
// its last words by it.
func (l *link) SetWriteDeadline(t time.Time) error { return l.SetDeadline(t) }

// Close closes the socket.
func (l *link) Close() error {
	l.of.mu.Lock()
	delete(l.of.open, l)
	l.of.mu.Unlock()
	return l.Conn.Close()
}

// within changes how long the server may be silent, 0 for as long as usual.
func (l *link) within(limit time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limit = cmp.Or(limit, l.of.silence)
}

// linkOf returns the socket of a connection.
func linkOf(c *pgconn.PgConn) *link {
	switch conn := c.Conn().(type) {
	case *link:
		return conn
	case *tls.Conn:
		l, _ := conn.NetConn().(*link)
		return l
	default:
		return nil
	}
}
