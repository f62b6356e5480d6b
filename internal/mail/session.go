package mail

import (
	"context"
	"net"
	"net/mail"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wneessen/go-mail/smtp"
)

// quitTimeout bounds the end of the session after the server has accepted the
// mail.
const quitTimeout = 2 * time.Second

// stepAnswer is the wait for the server's reply to the content. A failure there is
// reported as StepContent.
const stepAnswer = "answer"

// rfc5321 is how long a client must wait in each step at least (RFC 5321, 4.5.3.2).
// A client that waits less for the reply to the content sends mails again that
// were accepted.
var rfc5321 = map[string]time.Duration{
	StepConnect: time.Minute, StepGreeting: 5 * time.Minute, StepHello: 5 * time.Minute, StepTLS: 5 * time.Minute, StepAuth: 5 * time.Minute,
	StepSender: 5 * time.Minute, StepRecipient: 5 * time.Minute, StepData: 2 * time.Minute, StepContent: 3 * time.Minute,
	stepAnswer: 10 * time.Minute,
}

// pace sets the deadline of each step of a session. end may be called while a step
// waits.
type pace struct {
	conn     net.Conn
	patience map[string]time.Duration
	mu       sync.Mutex
	ended    bool
}

// begin sets the deadline of a step.
func (p *pace) begin(step string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		_ = p.conn.SetDeadline(time.Now().Add(p.patience[step]))
	}
}

// end makes the current step and later ones fail.
func (p *pace) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	_ = p.conn.SetDeadline(time.Unix(1, 0))
}

// deliver sends a mail step by step, so that a failure can name its step. The mail
// counts as sent once the server has accepted its content; errors after that are
// ignored. deliver returns a *Failure or a *Permanent.
func (s *server) deliver(ctx context.Context, l *letter) error {
	patience := s.patience
	if patience == nil {
		patience = rfc5321
	}
	connecting, cancel := context.WithTimeout(ctx, patience[StepConnect])
	defer cancel()
	conn, err := s.dial(connecting)
	if err != nil {
		return failed(StepConnect, err)
	}
	defer conn.Close()
	p := &pace{conn: conn, patience: patience}
	defer context.AfterFunc(ctx, p.end)()

	p.begin(StepGreeting)
	client, err := smtp.NewClient(conn, s.host)
	if err != nil {
		return failed(StepGreeting, err)
	}
	if err := s.open(client, p); err != nil {
		return err
	}
	if err := transfer(client, l, p); err != nil {
		return err
	}
	bye(conn, client)
	return nil
}

// open greets the server, begins TLS and logs in, as far as the address asks for
// that.
func (s *server) open(client *smtp.Client, p *pace) error {
	name, err := os.Hostname()
	if err != nil || name == "" {
		name = "localhost"
	}
	p.begin(StepHello)
	if err := client.Hello(name); err != nil {
		return failed(StepHello, err)
	}
	if !s.implicitTLS {
		offered, _ := client.Extension("STARTTLS")
		switch {
		case offered:
			p.begin(StepTLS)
			if err := client.StartTLS(s.tls()); err != nil {
				return failed(StepTLS, err)
			}
		case s.login != nil:
			return &Failure{Step: StepTLS, Reason: "the server does not offer it, and a password is sent over TLS only"}
		}
	}
	if s.login == nil {
		return nil
	}
	how, err := s.auth(client)
	if err != nil {
		return err
	}
	p.begin(StepAuth)
	if err := client.Auth(how); err != nil {
		return failed(StepAuth, err)
	}
	return nil
}

// auth chooses how to log in. The connection is encrypted and the server's
// certificate was verified, so the plain mechanisms come first: every server
// implements them correctly.
func (s *server) auth(client *smtp.Client) (smtp.Auth, error) {
	_, offered := client.Extension("AUTH")
	user, password := s.login()
	ways := strings.Fields(strings.ToUpper(offered))
	switch {
	case slices.Contains(ways, "PLAIN"):
		return smtp.PlainAuth("", user, password, s.host, false), nil
	case slices.Contains(ways, "LOGIN"):
		return smtp.LoginAuth(user, password, s.host, false), nil
	case slices.Contains(ways, "SCRAM-SHA-256"):
		return smtp.ScramSHA256Auth(user, password), nil
	case slices.Contains(ways, "CRAM-MD5"):
		return smtp.CRAMMD5Auth(user, password), nil
	}
	return nil, &Failure{Step: StepAuth, Reason: "the server offers none of PLAIN, LOGIN, SCRAM-SHA-256 and CRAM-MD5"}
}

// transfer sends one mail in an open session.
func transfer(client *smtp.Client, l *letter, p *pace) error {
	if isASCII(l.from) && isASCII(l.to) {
		client.SkipSMTPUTF8(true) // a mail that asks for it without need is bounced by a later server that lacks it
	} else if ok, _ := client.Extension("SMTPUTF8"); !ok {
		return &Permanent{&Failure{Step: StepRecipient, Reason: "the server accepts ASCII addresses only"}}
	}
	p.begin(StepSender)
	if err := client.Mail(path(l.from)); err != nil {
		return failed(StepSender, err)
	}
	p.begin(StepRecipient)
	if err := client.Rcpt(path(l.to)); err != nil {
		return refused(StepRecipient, err)
	}
	p.begin(StepData)
	w, err := client.Data()
	if err != nil {
		return refused(StepData, err)
	}
	p.begin(StepContent)
	if _, err := w.Write(l.content); err != nil { // not closed: that would end the mail as if it were whole
		return failed(StepContent, err)
	}
	p.begin(stepAnswer)
	if err := w.Close(); err != nil {
		return refused(StepContent, err)
	}
	return nil
}

// path returns an address in the form of the envelope.
func path(address string) string {
	a := mail.Address{Address: address}
	return a.String()
}

// bye ends the session. It waits for the server for a short time only.
func bye(conn net.Conn, client *smtp.Client) {
	if err := conn.SetDeadline(time.Now().Add(quitTimeout)); err == nil {
		_ = client.Quit() // the mail is accepted
	}
}
