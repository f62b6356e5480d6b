// Package mailtest is a real mail server on loopback, for tests: it speaks
// SMTP with STARTTLS and AUTH, keeps what it is given, and fails at the step it
// is told to. It also reads the outbox, the folder into which mails go that are
// sent by no server.
package mailtest

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"
)

// What a step of Config.Fail may do other than answer.
const (
	HangUp  = "hang up" // the connection is closed
	Silence = "silence" // nothing comes until the client gives up
)

// Config says what the server offers.
type Config struct {
	TLS      bool     // from the first byte
	StartTLS bool     // offered until it is used
	Auth     []string // PLAIN, LOGIN; offered over TLS only, and required then
	User     string
	Password string
	UTF8     bool // offers SMTPUTF8
	// Fail is what happens at a step instead of success: a reply, HangUp or
	// Silence. Steps are greeting, EHLO, HELO, STARTTLS, handshake, AUTH, MAIL,
	// RCPT, DATA, middle (of the content), content (when it is complete), QUIT.
	Fail map[string]string
	// Slow is how long the server takes for its answer at a step.
	Slow map[string]time.Duration
}

// Delivery is a mail that the server has accepted.
type Delivery struct {
	From, To string // as in the envelope, with angle brackets
	Content  string // its lines end in CRLF; dots are unstuffed
	TLS      bool
	User     string // who logged in
}

// Server is a running server.
type Server struct {
	config      Config
	listener    net.Listener
	certificate tls.Certificate
	roots       *x509.CertPool
	done        sync.WaitGroup
	ending      chan struct{}

	mu         sync.Mutex
	fail       map[string]string
	deliveries []Delivery
	open       int
}

// Start runs a server until Close.
func Start(c Config) (*Server, error) {
	certificate, roots, err := selfSigned()
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{config: c, listener: l, certificate: certificate, roots: roots, fail: c.Fail, ending: make(chan struct{})}
	s.done.Go(s.accept)
	return s, nil
}

// Addr is host:port.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Roots trusts the server's certificate.
func (s *Server) Roots() *x509.CertPool { return s.roots }

// Fail replaces Config.Fail from the next session on.
func (s *Server) Fail(fail map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = fail
}

// Deliveries are the mails accepted so far.
func (s *Server) Deliveries() []Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Delivery(nil), s.deliveries...)
}

// Open is how many connections there are.
func (s *Server) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// Close ends the server and its connections.
func (s *Server) Close() error {
	close(s.ending)
	err := s.listener.Close()
	s.done.Wait()
	return err
}

func (s *Server) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.open++
		fail := s.fail
		s.mu.Unlock()
		s.done.Go(func() {
			ended := make(chan struct{})
			go func() {
				select {
				case <-s.ending:
				case <-ended:
				}
				_ = conn.Close()
			}()
			if s.config.TLS {
				conn = s.secure(conn)
			}
			x := &session{server: s, conn: conn, in: bufio.NewReader(conn), fail: fail, tls: s.config.TLS}
			x.serve()
			_ = conn.Close()
			close(ended)
			s.mu.Lock()
			s.open--
			s.mu.Unlock()
		})
	}
}

func (s *Server) secure(conn net.Conn) net.Conn {
	return tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{s.certificate}, MinVersion: tls.VersionTLS12})
}

// session is one connection.
type session struct {
	server *Server
	conn   net.Conn
	in     *bufio.Reader
	fail   map[string]string
	tls    bool
	mail   Delivery
}

func (x *session) serve() {
	if !x.step("greeting", "220 loopback ESMTP") {
		return
	}
	for {
		line, err := x.in.ReadString('\n')
		if err != nil || !x.command(strings.TrimRight(line, "\r\n")) {
			return
		}
	}
}

// step answers with success, or does what is to happen instead; false ends the
// session.
func (x *session) step(name, success string) bool {
	time.Sleep(x.server.config.Slow[name])
	switch instead, fails := x.fail[name]; {
	case !fails:
		return x.say(success)
	case instead == HangUp:
		return false
	case instead == Silence:
		_, _ = x.in.ReadString(0) // until the client or the server ends
		return false
	default:
		return x.say(instead) && name != "greeting"
	}
}

func (x *session) say(lines string) bool {
	_, err := fmt.Fprint(x.conn, strings.ReplaceAll(lines, "\n", "\r\n")+"\r\n")
	return err == nil
}

func (x *session) command(line string) bool {
	verb, rest, _ := strings.Cut(line, " ")
	needsLogin := len(x.server.config.Auth) > 0 && x.mail.User == ""
	switch verb = strings.ToUpper(verb); verb {
	case "EHLO":
		return x.step(verb, x.capabilities())
	case "HELO", "RSET", "NOOP":
		return x.step(verb, "250 fine")
	case "STARTTLS":
		return x.startTLS()
	case "AUTH":
		return x.auth(rest)
	case "MAIL", "RCPT":
		_, value, _ := strings.Cut(rest, ":")
		path, _, _ := strings.Cut(value, " ")
		switch {
		case needsLogin:
			return x.say("530 5.7.0 log in first")
		case verb == "MAIL":
			x.mail.From = path
		default:
			x.mail.To = path
		}
		return x.step(verb, "250 2.1.0 fine")
	case "DATA":
		return x.data()
	case "QUIT":
		x.step(verb, "221 bye")
		return false
	default:
		return x.say("500 5.5.1 what?")
	}
}

func (x *session) capabilities() string {
	c := x.server.config
	lines := []string{"250-loopback", "250-ENHANCEDSTATUSCODES", "250-8BITMIME"}
	if c.UTF8 {
		lines = append(lines, "250-SMTPUTF8")
	}
	if c.StartTLS && !x.tls {
		lines = append(lines, "250-STARTTLS")
	}
	if len(c.Auth) > 0 && x.tls {
		lines = append(lines, "250-AUTH "+strings.Join(c.Auth, " "))
	}
	return strings.Join(append(lines, "250 SIZE 1000000"), "\n")
}

func (x *session) startTLS() bool {
	if !x.step("STARTTLS", "220 go ahead") {
		return false
	}
	if _, fails := x.fail["STARTTLS"]; fails {
		return true
	}
	if instead, fails := x.fail["handshake"]; fails {
		return instead != HangUp && x.say(instead) && false
	}
	x.conn = x.server.secure(x.conn)
	x.in, x.tls, x.mail = bufio.NewReader(x.conn), true, Delivery{TLS: true}
	return true
}

func (x *session) auth(rest string) bool {
	if _, fails := x.fail["AUTH"]; fails {
		return x.step("AUTH", "")
	}
	c := x.server.config
	how, initial, _ := strings.Cut(rest, " ")
	var user, password string
	switch {
	case !x.tls:
		return x.say("538 5.7.11 encryption required")
	case how == "PLAIN":
		parts := strings.Split(decode(initial), "\x00")
		if len(parts) == 3 {
			user, password = parts[1], parts[2]
		}
	case how == "LOGIN":
		user = x.ask("Username:")
		password = x.ask("Password:")
	}
	if user != c.User || password != c.Password || user == "" {
		return x.say("535 5.7.8 " + user + ", your password " + password + " is wrong") // some servers are like that
	}
	x.mail.User = user
	return x.say("235 2.7.0 welcome")
}

func (x *session) ask(question string) string {
	if !x.say("334 " + base64.StdEncoding.EncodeToString([]byte(question))) {
		return ""
	}
	line, err := x.in.ReadString('\n')
	if err != nil {
		return ""
	}
	return decode(strings.TrimRight(line, "\r\n"))
}

func decode(s string) string {
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return ""
	}
	return string(b)
}

func (x *session) data() bool {
	if !x.step("DATA", "354 go ahead") {
		return false
	}
	if _, fails := x.fail["DATA"]; fails {
		return true
	}
	var content strings.Builder
	for {
		line, err := x.in.ReadString('\n')
		if err != nil {
			return false
		}
		if _, fails := x.fail["middle"]; fails && content.Len() > 100 {
			return false
		}
		if line == ".\r\n" {
			break
		}
		content.WriteString(strings.TrimPrefix(line, "."))
	}
	if _, fails := x.fail["content"]; fails {
		return x.step("content", "")
	}
	time.Sleep(x.server.config.Slow["content"])
	s := x.server
	s.mu.Lock()
	x.mail.TLS, x.mail.Content = x.tls, content.String()
	s.deliveries = append(s.deliveries, x.mail)
	s.mu.Unlock()
	return x.say("250 2.0.0 taken")
}
