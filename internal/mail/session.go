package mail

import (
	"context"
	"net"
	"net/mail"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/wneessen/go-mail/smtp"
)

// quitTimeout is how long a server that has taken the mail may take to say
// good-bye.
const quitTimeout = 2 * time.Second

// deliver talks to the server step by step, so that a failure can name its
// step. The mail is delivered once the server has answered to its content; what
// happens afterwards does not matter.
func (s *server) deliver(ctx context.Context, l *letter) error {
	conn, err := s.dial(ctx)
	if err != nil {
		return failed(StepConnect, err)
	}
	defer conn.Close()
	// Ending ctx ends whatever waits for the server, at its deadline or before.
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()

	client, err := smtp.NewClient(conn, s.host)
	if err != nil {
		return failed(StepGreeting, err)
	}
	if err := s.open(client); err != nil {
		return err
	}
	if err := transfer(client, l); err != nil {
		return err
	}
	bye(conn, client)
	return nil
}

// open takes a session to where mails can be sent.
func (s *server) open(client *smtp.Client) error {
	name, err := os.Hostname()
	if err != nil || name == "" {
		name = "localhost"
	}
	if err := client.Hello(name); err != nil {
		return failed(StepHello, err)
	}
	if !s.implicitTLS {
		offered, _ := client.Extension("STARTTLS")
		switch {
		case offered:
			if err := client.StartTLS(s.tls()); err != nil {
				return failed(StepTLS, err)
			}
		case s.login != nil:
			return &Failure{Step: StepTLS, Reason: "the server does not offer it, and a password goes nowhere without"}
		}
	}
	if s.login == nil {
		return nil
	}
	how, err := s.auth(client)
	if err != nil {
		return err
	}
	if err := client.Auth(how); err != nil {
		return failed(StepAuth, err)
	}
	return nil
}

// auth chooses how to log in. The connection is encrypted and the server is
// who it should be, so the plain ways, which every server gets right, come first.
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

// transfer is one mail.
func transfer(client *smtp.Client, l *letter) error {
	if isASCII(l.from) && isASCII(l.to) {
		client.SkipSMTPUTF8(true) // who asks for it where it is not needed is bounced by the next server without it
	} else if ok, _ := client.Extension("SMTPUTF8"); !ok {
		return &Permanent{&Failure{Step: StepRecipient, Reason: "the server takes ASCII addresses only"}}
	}
	if err := client.Mail(path(l.from)); err != nil {
		return failed(StepSender, err)
	}
	if err := client.Rcpt(path(l.to)); err != nil {
		return refused(StepRecipient, err)
	}
	w, err := client.Data()
	if err != nil {
		return refused(StepData, err)
	}
	if _, err := w.Write(l.content); err != nil { // not closed: that would end the mail as if it were whole
		return failed(StepContent, err)
	}
	if err := w.Close(); err != nil {
		return refused(StepContent, err)
	}
	return nil
}

// path is an address as the envelope wants it.
func path(address string) string {
	a := mail.Address{Address: address}
	return a.String()
}

// bye ends the session decently if the server is quick about it.
func bye(conn net.Conn, client *smtp.Client) {
	if err := conn.SetDeadline(time.Now().Add(quitTimeout)); err == nil {
		_ = client.Quit() // the mail is accepted
	}
}
