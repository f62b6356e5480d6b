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

// errAddress is the beginning of every error about a server's address. None of
// them repeats the address, which may contain a password.
const errAddress = "the SMTP address must look like smtp://user:password@host:587 or smtps://user:password@host:465" +
	" (user and password are optional; ?from=ADDRESS may follow)"

// SMTP returns a Sender that passes mails to the server at address (contract S12):
//
//	smtp://[user:password@]host[:587][?from=ADDRESS]
//	smtps://[user:password@]host[:465][?from=ADDRESS]
//
// smtps begins with TLS. With smtp, STARTTLS is used whenever the server offers
// it, and is required with a password. A certificate that is not trusted is an
// error in both cases. Special characters of user and password must be
// percent-encoded. With from, every mail comes from that address, for servers that
// accept no other; the name of a mail's sender is kept.
//
// SMTP returns an error if address has another form; it does not connect. The
// Sender's printed forms contain neither user nor password.
func SMTP(address string) (Sender, error) {
	u, err := url.Parse(address)
	if err != nil { // its text repeats parts of the address
		return nil, errors.New(errAddress + ": it cannot be parsed; are special characters of the password percent-encoded?")
	}
	s := &server{host: u.Hostname(), port: u.Port()}
	switch u.Scheme {
	case "smtp":
		s.port = orElse(s.port, "587")
	case "smtps":
		s.port = orElse(s.port, "465")
		s.implicitTLS = true
	default:
		return nil, errors.New(errAddress + ": it must begin with smtp:// or smtps://")
	}
	if port, err := strconv.Atoi(s.port); err != nil || port < 1 || port > 65535 {
		return nil, errors.New(errAddress + ": the port must be a number from 1 to 65535")
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
			return nil, errors.New(errAddress + ": user and password must be given together")
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
		return errors.New(errAddress + ": what follows the question mark cannot be parsed")
	}
	for key, values := range query {
		if key != "from" || len(values) != 1 {
			return errors.New(errAddress + ": only one from may follow the question mark")
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

// server is a Sender that passes mails to a mail server.
type server struct {
	host, port  string
	implicitTLS bool
	// login returns user and password; nil without them. It is a function
	// because package fmt prints unexported fields of a whole struct.
	login func() (user, password string)
	from  *mail.Address  // nil for that of the mail
	roots *x509.CertPool // nil for those of the system
	// patience is how long each step may take; nil for the times of RFC 5321.
	patience map[string]time.Duration
}

// Format writes String, whatever the verb is.
func (s *server) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// String returns the address without user and password.
func (s *server) String() string {
	scheme := "smtp://"
	if s.implicitTLS {
		scheme = "smtps://"
	}
	return scheme + net.JoinHostPort(s.host, s.port)
}

// LogValue returns String, for log/slog.
func (s *server) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText returns String, for JSON and YAML.
func (s *server) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Send sends a mail over a connection of its own. It returns a *Failure or a
// *Permanent.
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

// sentFrom returns from with the address that the server accepts. The name is
// kept.
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
