package mail

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/mail"
	"net/url"
	"strconv"
	"time"
)

// errAddress begins every complaint about an address of a server. None repeats
// the address: it may hold a password.
const errAddress = "the SMTP address must look like smtp://user:password@host:587 or smtps://user:password@host:465" +
	" (user and password are optional; ?from=ADDRESS may follow)"

// SMTP returns a Sender that hands mails to the server at address:
//
//	smtp://[user:password@]host[:587][?from=ADDRESS]
//	smtps://[user:password@]host[:465][?from=ADDRESS]
//
// smtps begins with TLS. With smtp, STARTTLS is required as soon as a password
// is given, and used whenever the server offers it; a certificate that is not
// trusted is an error either way. Special characters of user and password are
// percent-encoded. With from, every mail comes from that address, for servers
// that accept no other; a mail that gives a name to its sender keeps it.
//
// A Sender prints without user and password.
func SMTP(address string) (Sender, error) {
	u, err := url.Parse(address)
	if err != nil { // its text repeats parts of the address
		return nil, errors.New(errAddress + ": it cannot be read; are special characters of the password percent-encoded?")
	}
	s := &server{host: u.Hostname(), port: u.Port()}
	switch u.Scheme {
	case "smtp":
		s.port = orElse(s.port, "587")
	case "smtps":
		s.port = orElse(s.port, "465")
		s.implicitTLS = true
	default:
		return nil, errors.New(errAddress + ": it begins otherwise")
	}
	if port, err := strconv.Atoi(s.port); err != nil || port < 1 || port > 65535 {
		return nil, errors.New(errAddress + ": the port is none")
	}
	switch {
	case s.host == "":
		return nil, errors.New(errAddress + ": the host is missing")
	case u.Path != "" && u.Path != "/", u.Opaque != "", u.Fragment != "":
		return nil, errors.New(errAddress + ": there is something after the host and port; are special characters of the password percent-encoded?")
	}
	if u.User != nil {
		user := u.User.Username()
		password, _ := u.User.Password()
		if user == "" || password == "" {
			return nil, errors.New(errAddress + ": user and password come together or not at all")
		}
		s.login = func() (string, string) { return user, password }
	}
	if err := s.query(u.RawQuery); err != nil {
		return nil, err
	}
	return s, nil
}

// query reads what follows the question mark.
func (s *server) query(raw string) error {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return errors.New(errAddress + ": what follows the question mark cannot be read")
	}
	for key, values := range query {
		if key != "from" || len(values) != 1 {
			return errors.New(errAddress + ": one from may follow the question mark and nothing else")
		}
		if s.from, err = mail.ParseAddress(values[0]); err != nil {
			return errors.New(errAddress + ": from is not an address")
		}
	}
	return nil
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// server is a mail server and how to talk to it.
type server struct {
	host, port  string
	implicitTLS bool
	// login is a function because package fmt looks into the unexported fields
	// of what is printed whole; nil without one.
	login func() (user, password string)
	from  *mail.Address  // nil: as the mail says
	roots *x509.CertPool // nil: the system's
	// patience is how long each step may take; nil: as RFC 5321 asks.
	patience map[string]time.Duration
}

// Format prints where the server is, whatever the verb, and never how to log in.
func (s *server) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// String is the address without user and password.
func (s *server) String() string {
	scheme := "smtp://"
	if s.implicitTLS {
		scheme = "smtps://"
	}
	return scheme + net.JoinHostPort(s.host, s.port)
}

// LogValue is String, for log/slog.
func (s *server) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText is String, for JSON and YAML.
func (s *server) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Send delivers one mail over a connection of its own.
func (s *server) Send(ctx context.Context, m Message) error {
	if s.from != nil {
		m.From = s.sentFrom(m.From)
	}
	l, err := compose(m)
	if err != nil {
		return err
	}
	return s.deliver(ctx, l)
}

// sentFrom is from's name at the address that the server accepts.
func (s *server) sentFrom(from string) string {
	name := s.from.Name
	if a, err := mail.ParseAddress(from); err == nil && a.Name != "" {
		name = a.Name
	}
	return Address(name, s.from.Address)
}

func (s *server) tls() *tls.Config {
	return &tls.Config{ServerName: s.host, RootCAs: s.roots, MinVersion: tls.VersionTLS12}
}

func (s *server) dial(ctx context.Context) (net.Conn, error) {
	address := net.JoinHostPort(s.host, s.port)
	if s.implicitTLS {
		d := &tls.Dialer{Config: s.tls()}
		return d.DialContext(ctx, "tcp", address)
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", address)
}
