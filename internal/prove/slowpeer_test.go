package prove

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/internal/db"
)

// The server's timeouts for reading and writing.
const (
	headerLimit = 10 * time.Second
	bodyLimit   = 30 * time.Second
	answerLimit = 60 * time.Second
	idleLimit   = 120 * time.Second
)

// peers is a set of slow connections to one node.
type peers struct {
	p    *proof
	n    *node
	wait sync.WaitGroup
}

// Connections of peers that send slowly, read slowly or do nothing are closed in time, and
// others are served meanwhile.
func TestProveSlowPeers(t *testing.T) {
	asShipped(t)
	together(t)
	p := begin(t, "NET-slow", db.SQLite)
	w := fresh(t, db.SQLite)
	n := w.start()
	c := n.client(w.token)
	defer c.close()
	s := &peers{p: p, n: n}
	done := make(chan struct{})
	var legitimate sync.WaitGroup
	legitimate.Go(func() { s.legitimate(c, done) })

	idle := make([]net.Conn, scale(300, 5000))
	for i := range idle {
		idle[i] = s.used(w.token)
	}
	quiet := time.Now()
	for range scale(20, 50) {
		s.wait.Go(s.slowHeader)
	}
	s.floods(w.token)
	if proving {
		for range 50 {
			s.wait.Go(func() { s.slowBody(w.token) })
		}
		s.slowReaders(c, w.token, 20)
	}
	s.wait.Wait()
	if proving {
		s.idle(idle, quiet)
	}
	close(done)
	legitimate.Wait()
	for _, conn := range idle {
		_ = conn.Close() // the server may have done so
	}
	if !n.running() || n.panicked() {
		p.fail("the server did not stay: %s%s", n.stdout(), n.stderr())
	}
}

func (s *peers) dial() net.Conn {
	s.p.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.n.public, "http://"))
	if err != nil {
		s.p.fail("dial: %v", err)
		conn, _ = net.Pipe() // so that the caller can go on
	}
	return conn
}

// used returns a connection on which one request has been answered.
func (s *peers) used(token string) net.Conn {
	s.p.t.Helper()
	conn := s.dial()
	fmt.Fprintf(conn, "GET /public/v1/me HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", host, token)
	_ = conn.SetReadDeadline(time.Now().Add(patience)) // without it the test hangs, and says so
	r, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		s.p.fail("a first request: %v", err)
		return conn
	}
	defer r.Body.Close()
	if _, err := io.Copy(io.Discard, r.Body); err != nil || r.StatusCode != http.StatusOK {
		s.p.fail("a first request: %d %v", r.StatusCode, err)
	}
	return conn
}

// legitimate sends small requests until done is closed. All of them must be served.
func (s *peers) legitimate(c *client, done chan struct{}) {
	var times []time.Duration
	for {
		select {
		case <-done:
			slices.Sort(times)
			s.p.add("legitimate", len(times))
			s.p.most("legitimate_p99", times[len(times)*99/100])
			s.p.most("legitimate_max", times[len(times)-1])
			return
		case <-time.After(10 * time.Millisecond):
		}
		a, err := c.do("GET", "/public/v1/me", "")
		if err != nil || a.status != http.StatusOK {
			s.p.fail("a request of somebody else: %v %v", a, err)
			continue
		}
		times = append(times, a.at.Sub(a.sent))
	}
}

// closed reads until the server closes, and checks that it does so in time.
func (s *peers) closed(what string, conn net.Conn, since time.Time, limit time.Duration) {
	s.p.tried(1)
	_ = conn.SetReadDeadline(since.Add(limit + 10*time.Second)) // without it the test hangs, and says so
	_, err := io.Copy(io.Discard, conn)
	took := time.Since(since)
	s.p.most(what+"_closed", took)
	if timeout, ok := err.(net.Error); ok && timeout.Timeout() || took > limit+strictly(time.Second) { //nolint:errorlint // of a connection, as it is
		s.p.fail("%s: closed after %s (%v)", what, took, err)
	}
}

// slowHeader sends a byte of a header now and then.
func (s *peers) slowHeader() {
	conn := s.dial()
	defer conn.Close()
	since := time.Now()
	go func() {
		for {
			if _, err := conn.Write([]byte("G")); err != nil {
				return
			}
			time.Sleep(500 * time.Millisecond)
		}
	}()
	s.closed("slow_header", conn, since, headerLimit)
}

// slowBody sends a byte of a body now and then.
func (s *peers) slowBody(token string) {
	conn := s.dial()
	defer conn.Close()
	since := time.Now()
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n{",
		contact, host, token)
	go func() {
		for {
			if _, err := conn.Write([]byte(" ")); err != nil {
				return
			}
			time.Sleep(500 * time.Millisecond)
		}
	}()
	s.closed("slow_body", conn, since, bodyLimit)
}

// endlessMost is how much of an endless request the server and both sockets take until it is closed: the largest body,
// and what the kernel holds.
const endlessMost = 32 << 20

// floods are requests that do not end: their headers, a chunk after the other, one header line, one chunk.
func (s *peers) floods(token string) {
	get := fmt.Sprintf("GET /public/v1/me HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n", host, token)
	post := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n", contact, host, token)
	for range scale(1, 20) {
		for what, flood := range map[string][2]string{
			"headers": {get, "X-Flood: " + strings.Repeat("f", 100) + "\r\n"}, "a header": {get + "X-Flood: ", strings.Repeat("f", 4096)},
			"chunks": {post + "1\r\n{\r\n", "800\r\n" + strings.Repeat(" ", 0x800) + "\r\n"}, "a chunk": {post + "ffffffff\r\n{", strings.Repeat(" ", 4096)},
			"a request line": {"GET /", strings.Repeat("f", 4096)}, "empty lines": {"", "\r\n\r\n\r\n\r\n"}, "a chunk's extension": {post + "1;", strings.Repeat("e", 4096)},
			"trailers": {post + "2\r\n{}\r\n0\r\n", "X-Flood: " + strings.Repeat("f", 100) + "\r\n"},
		} {
			s.wait.Go(func() { s.flood(what, flood[0], flood[1]) })
		}
	}
}

// flood sends a piece again and again, until the server closes.
func (s *peers) flood(what, head, piece string) {
	s.p.tried(1)
	conn := s.dial()
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(bodyLimit + patience)) // without it the test hangs, and says so
	sent, err := conn.Write([]byte(head))
	for err == nil && sent < 4*endlessMost {
		var n int
		n, err = conn.Write([]byte(piece))
		sent += n
	}
	if timeout, ok := err.(net.Error); sent > endlessMost || ok && timeout.Timeout() { //nolint:errorlint // of a connection, as it is
		s.p.fail("endless %s: %d bytes were taken (%v)", what, sent, err)
	}
}

// slowReaders request a long list and do not read it. The server must close them.
func (s *peers) slowReaders(c *client, token string, count int) {
	s.p.t.Helper()
	for i := range 40 {
		body := fmt.Sprintf(`{"first_name":"long %d","extra":{"pad":%q}}`, i, strings.Repeat("y", 500_000))
		if a, err := c.do("POST", contact, body); err != nil || a.status != http.StatusCreated {
			s.p.fail("%v %v", a, err)
			return
		}
	}
	for range count {
		s.wait.Go(func() {
			conn := s.dial()
			defer conn.Close()
			since := time.Now()
			fmt.Fprintf(conn, "GET %s?limit=40 HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", contact, host, token)
			time.Sleep(answerLimit + 2*time.Second)
			s.p.tried(1)
			_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second)) // without it the test hangs, and says so
			r, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				return // reset: the server has closed it
			}
			defer r.Body.Close()
			if r.StatusCode == http.StatusServiceUnavailable {
				s.p.add("slow_readers_refused", 1) // the others hold the tenant's share of answers
				return
			}
			n, err := io.Copy(io.Discard, r.Body)
			if err == nil && n == r.ContentLength {
				s.p.fail("slow read: all %d bytes were still delivered after %s", n, time.Since(since))
			}
		})
	}
}

// idle checks that idle connections are closed in time.
func (s *peers) idle(conns []net.Conn, quiet time.Time) {
	for _, conn := range conns {
		s.wait.Go(func() { s.closed("idle", conn, quiet, idleLimit) })
	}
	s.wait.Wait()
}
