package server

import (
	"bytes"
	"net"
	"strconv"

	"gatehouse/internal/clock"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
)

// enveloped is a listener on whose connections even net/http's own refusals of
// a malformed request (two Host headers, a header too large, …) are answers in
// the envelope. net/http writes such a refusal as text/plain in one piece
// before any handler runs; our handlers never write text/plain.
type enveloped struct {
	net.Listener
	s *Server
}

func (l enveloped) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &envelopedConn{Conn: c, s: l.s}, nil
}

type envelopedConn struct {
	net.Conn
	s *Server
}

var (
	plainRefusal = []byte("Content-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n")
	statusLine   = []byte("HTTP/1.1 ")
)

func (c *envelopedConn) Write(p []byte) (int, error) {
	if len(p) > 512 || !bytes.HasPrefix(p, statusLine) || !bytes.Contains(p, plainRefusal) {
		return c.Conn.Write(p)
	}
	status, err := strconv.Atoi(string(p[len(statusLine) : len(statusLine)+3]))
	if err != nil {
		return c.Conn.Write(p)
	}
	if _, err := c.Conn.Write(c.refusal(status, p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// refusal is the same answer in the envelope.
func (c *envelopedConn) refusal(status int, p []byte) []byte {
	_, reason, _ := bytes.Cut(p, plainRefusal)
	code := fault.Validation
	switch {
	case status == 413 || status == 431:
		code = fault.PayloadTooLarge
	case status >= 500:
		code = fault.Validation // 501, 505: the request is in a form we do not speak
	}
	e := fault.New(code, "the request is malformed: %s", bytes.TrimSpace(reason))
	e.Status = status
	body := httpapi.AppendError(nil, e)
	id := clock.NewID(c.s.clock.Now())
	line, _, _ := bytes.Cut(p, []byte("\r\n"))
	out := append([]byte{}, line...)
	for _, h := range [][2]string{
		{"Content-Type", "application/json"}, {"Content-Length", strconv.Itoa(len(body))}, {"Cache-Control", "no-store"},
		{"X-Content-Type-Options", "nosniff"}, {"X-Request-Id", id}, {"Connection", "close"},
	} {
		out = append(out, "\r\n"+h[0]+": "+h[1]...)
	}
	out = append(out, "\r\n\r\n"...)
	c.s.log.Emit("server.refused", map[string]any{"request_id": id, "status": status, "reason": string(bytes.TrimSpace(reason))})
	return append(out, body...)
}
