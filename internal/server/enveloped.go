package server

import (
	"bytes"
	"net"
	"net/netip"
	"strconv"

	"gatehouse/internal/clock"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/ratelimit"
)

// envelopedListener makes answers in the envelope even of net/http's own
// refusals of a malformed request (two Host headers, a header that is too
// large, an unknown Expect, …). net/http writes such a refusal in one piece,
// before any handler runs, as text/plain or without a body. Our handlers never
// write text/plain, nor a 417 without a type.
type envelopedListener struct {
	net.Listener
	s *Server
}

func (l envelopedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	boundUnsent(c)
	return &envelopedConn{Conn: c, s: l.s}, nil
}

type envelopedConn struct {
	net.Conn
	s *Server
}

// CloseWrite is called by net/http after it has answered a request that it did not read
// to its end, so that the answer arrives before the reset.
func (c *envelopedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

var (
	plainRefusal = []byte("Content-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n")
	noBody       = []byte("\r\nContent-Length: 0\r\n\r\n")
	typed        = []byte("\r\nContent-Type: ")
)

// refused parses p as one of net/http's own refusals.
func refused(p []byte) (status int, reason []byte, ok bool) {
	const version = len("HTTP/1.x ")
	if len(p) > 512 || len(p) < version+3 || !bytes.HasPrefix(p, []byte("HTTP/1.")) {
		return 0, nil, false
	}
	status, err := strconv.Atoi(string(p[version : version+3]))
	if err != nil {
		return 0, nil, false
	}
	if _, reason, ok = bytes.Cut(p, plainRefusal); ok {
		return status, bytes.TrimSpace(reason), true
	}
	if status == 417 && bytes.HasSuffix(p, noBody) && !bytes.Contains(p, typed) {
		return status, []byte("417 Expectation Failed"), true
	}
	return 0, nil, false
}

func (c *envelopedConn) Write(p []byte) (int, error) {
	status, reason, ok := refused(p)
	if !ok {
		return c.Conn.Write(p)
	}
	line, _, _ := bytes.Cut(p, []byte("\r\n"))
	limit := c.s.limiter.Take(addressBudget("", c.peer()), unknownHostPerMinute, window)
	if _, err := c.Conn.Write(c.refusal(line, status, string(reason), limit)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// peer returns the address of the connection's peer: all that is known of the
// request.
func (c *envelopedConn) peer() netip.Addr {
	at, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().WithZone("").Unmap()
}

// refusal returns the same answer in the envelope, with the headers that every
// response has.
func (c *envelopedConn) refusal(line []byte, status int, reason string, limit ratelimit.Result) []byte {
	code := fault.Validation // 501 and 505 as well: the request has a form that we do not support
	if status == 413 || status == 431 {
		code = fault.PayloadTooLarge
	}
	e := fault.New(code, "the request is malformed: %s", reason)
	e.Status = status
	body := httpapi.AppendError(nil, e)
	id := clock.NewID(c.s.clock.Now())
	out := append([]byte{}, line...)
	for _, h := range [][2]string{
		{"Content-Type", "application/json"}, {"Content-Length", strconv.Itoa(len(body))}, {"Cache-Control", "no-store"},
		{"X-Content-Type-Options", "nosniff"}, {"X-Request-Id", id}, {"Vary", "Origin"},
		{"X-Ratelimit-Limit", strconv.Itoa(limit.Limit)}, {"X-Ratelimit-Remaining", strconv.Itoa(limit.Remaining)},
		{"X-Ratelimit-Reset", strconv.Itoa(seconds(limit.Reset))}, {"Connection", "close"},
	} {
		out = append(out, "\r\n"+h[0]+": "+h[1]...)
	}
	out = append(out, "\r\n\r\n"...)
	c.s.log.Emit("server.refused", map[string]any{"request_id": id, "status": status, "reason": reason})
	return append(out, body...)
}
