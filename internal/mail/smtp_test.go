package mail

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/textproto"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/mail/mailtest"
)

var hello = Message{
	From: "Acme <no-reply@acme.example>", To: "eva@customer.example",
	Subject: "Grüße", Text: "Hello\n.\nthe end", HTML: "<p>Hello</p>",
}

func serve(t *testing.T, c mailtest.Config) *mailtest.Server {
	t.Helper()
	s, err := mailtest.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// client is a Sender that trusts the test's server.
func client(t *testing.T, s *mailtest.Server, scheme, login, query string) *server {
	t.Helper()
	sender, err := SMTP(scheme + "://" + login + s.Addr() + query)
	if err != nil {
		t.Fatal(err)
	}
	sender.(*server).roots = s.Roots()
	return sender.(*server)
}

func TestAMailArrives(t *testing.T) {
	login := func(how string) mailtest.Config {
		return mailtest.Config{StartTLS: true, Auth: []string{how}, User: "mailer@acme", Password: "p@ss word"}
	}
	overTLS := login("PLAIN")
	overTLS.TLS = true
	for name, c := range map[string]struct {
		server          mailtest.Config
		scheme, login   string
		wantTLS, wantIn bool
	}{
		"plain":             {mailtest.Config{}, "smtp", "", false, false},
		"starttls offered":  {mailtest.Config{StartTLS: true}, "smtp", "", true, false},
		"tls":               {mailtest.Config{TLS: true}, "smtps", "", true, false},
		"starttls and auth": {login("PLAIN"), "smtp", "mailer%40acme:p%40ss%20word@", true, true},
		"auth login":        {login("LOGIN"), "smtp", "mailer%40acme:p%40ss%20word@", true, true},
		"tls and auth":      {overTLS, "smtps", "mailer%40acme:p%40ss%20word@", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, c.server)
			if err := client(t, s, c.scheme, c.login, "").Send(t.Context(), hello); err != nil {
				t.Fatal(err)
			}
			got := s.Deliveries()
			if len(got) != 1 || got[0].From != "<no-reply@acme.example>" || got[0].To != "<eva@customer.example>" ||
				got[0].TLS != c.wantTLS || (got[0].User == "mailer@acme") != c.wantIn {
				t.Fatalf("deliveries: %+v", got)
			}
			if m := parse(t, got[0].Content); m.text != "Hello\n.\nthe end" || m.html != "<p>Hello</p>" || m.subject != "Grüße" {
				t.Errorf("arrived as %+v", m)
			}
		})
	}
}

func TestAServerThatFailsAtAStep(t *testing.T) {
	secure := mailtest.Config{StartTLS: true, Auth: []string{"PLAIN"}, User: "mailer", Password: "hunter2"}
	for _, c := range []struct {
		step, happens string
		want          string
		permanent     bool
	}{
		{"greeting", "554 5.3.2 go away eva@customer.example", "greeting: 554 5.3.2", false},
		{"greeting", "421 busy", "greeting: 421", false},
		{"greeting", mailtest.HangUp, "greeting: the server closed the connection", false},
		{"greeting", "nonsense", "greeting: the reply is not SMTP", false},
		{"greeting", mailtest.Silence, "greeting: timed out", false},
		{"EHLO", mailtest.HangUp, "ehlo: the server closed the connection", false},
		{"EHLO", "502 5.5.1 no", "starttls: the server does not offer it, and a password is sent over TLS only", false}, // HELO works
		{"STARTTLS", "454 4.7.0 not now", "starttls: 454 4.7.0", false},
		{"STARTTLS", mailtest.HangUp, "starttls: the server closed the connection", false},
		{"handshake", mailtest.HangUp, "starttls: the server closed the connection", false},
		{"handshake", "no TLS here", "starttls: ", false},
		{"AUTH", "535 5.7.8 hunter2 is wrong", "auth: 535 5.7.8", false},
		{"AUTH", "454 4.7.0 later", "auth: 454 4.7.0", false},
		{"AUTH", mailtest.HangUp, "auth: the server closed the connection", false},
		{"MAIL", "550 5.1.8 not from you", "sender: 550 5.1.8", false},
		{"MAIL", "451 4.3.0 later", "sender: 451 4.3.0", false},
		{"RCPT", "450 4.2.0 eva@customer.example is grey", "recipient: 450 4.2.0", false},
		{"RCPT", "550 5.1.1 eva@customer.example unknown", "recipient: 550 5.1.1", true},
		{"RCPT", "550 no", "recipient: 550", true},
		{"RCPT", "503 5.5.1 order", "recipient: 503 5.5.1", false},
		{"RCPT", "530 5.7.0 log in", "recipient: 530 5.7.0", false},
		{"RCPT", mailtest.HangUp, "recipient: the server closed the connection", false},
		{"RCPT", mailtest.Silence, "recipient: timed out", false},
		{"DATA", "451 4.3.0 later", "data: 451 4.3.0", false},
		{"DATA", "554 5.5.1 no valid recipients", "data: 554 5.5.1", true},
		{"middle", mailtest.HangUp, "content: ", false},
		{"content", "452 4.3.1 full", "content: 452 4.3.1", false},
		{"content", "554 5.7.1 spam: Hello", "content: 554 5.7.1", true},
		{"content", mailtest.HangUp, "content: the server closed the connection", false},
		{"content", mailtest.Silence, "content: timed out", false},
	} {
		t.Run(c.step+" "+c.happens, func(t *testing.T) {
			config := secure
			config.Fail = map[string]string{c.step: c.happens}
			s := serve(t, config)
			sender := client(t, s, "smtp", "mailer:hunter2@", "")
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			if c.happens == mailtest.Silence {
				ctx, cancel = context.WithTimeout(t.Context(), 200*time.Millisecond)
			}
			defer cancel()
			err := sender.Send(ctx, hello)
			var permanent *Permanent
			var failure *Failure
			if !errors.As(err, &failure) || errors.As(err, &permanent) != c.permanent || !strings.HasPrefix(err.Error(), c.want) {
				t.Fatalf("error %v (permanent: %v), want %q", err, errors.As(err, &permanent), c.want)
			}
			for _, private := range []string{"eva", "hunter2", "Hello", "127.0.0.1"} {
				if strings.Contains(fmt.Sprintf("%v %+v", err, failure), private) {
					t.Errorf("the error tells %q: %v", private, err)
				}
			}
			if d := s.Deliveries(); len(d) != 0 {
				t.Errorf("it was delivered: %v", d)
			}
			for end := time.Now().Add(5 * time.Second); s.Open() > 0; time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("the connection is left open")
				}
			}
			s.Fail(nil)
			if err := sender.Send(t.Context(), hello); err != nil {
				t.Errorf("then: %v", err)
			}
		})
	}
}

func TestWhatHappensAfterTheServerTookTheMailDoesNotMatter(t *testing.T) {
	for _, happens := range []string{"421 no", mailtest.HangUp, mailtest.Silence} {
		s := serve(t, mailtest.Config{Fail: map[string]string{"QUIT": happens}})
		if err := client(t, s, "smtp", "", "").Send(t.Context(), hello); err != nil || len(s.Deliveries()) != 1 {
			t.Errorf("%s: %v, %d deliveries", happens, err, len(s.Deliveries()))
		}
	}
}

func TestAPasswordGoesToTheRightServerEncryptedOrNowhere(t *testing.T) {
	offersNone := serve(t, mailtest.Config{Auth: []string{"PLAIN"}, User: "u", Password: "hunter2"})
	err := client(t, offersNone, "smtp", "u:hunter2@", "").Send(t.Context(), hello)
	if want := "starttls: the server does not offer it"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	for scheme, config := range map[string]mailtest.Config{"smtp": {StartTLS: true}, "smtps": {TLS: true}} {
		s := serve(t, config)
		sender := client(t, s, scheme, "u:hunter2@", "")
		sender.roots = nil
		err := sender.Send(t.Context(), hello)
		if err == nil || !strings.HasSuffix(err.Error(), "the server's certificate is not trusted") {
			t.Errorf("%s, not trusted: %v", scheme, err)
		}
		sender.login = nil
		if err := sender.Send(t.Context(), hello); err == nil {
			t.Errorf("%s: STARTTLS was offered, failed and was done without", scheme)
		}
	}
	s := serve(t, mailtest.Config{StartTLS: true, Auth: []string{"XOAUTH2"}})
	err = client(t, s, "smtp", "u:hunter2@", "").Send(t.Context(), hello)
	if err == nil || !strings.HasPrefix(err.Error(), "auth: the server offers none") {
		t.Error(err)
	}
}

func TestAWrongPasswordIsNotRepeated(t *testing.T) {
	for _, how := range []string{"PLAIN", "LOGIN"} {
		s := serve(t, mailtest.Config{StartTLS: true, Auth: []string{how}, User: "u", Password: "right"})
		err := client(t, s, "smtp", "u:hunter2@", "").Send(t.Context(), hello)
		if err == nil || err.Error() != "auth: 535 5.7.8" {
			t.Error(err)
		}
	}
}

func TestNoServerIsAFailureThatIsTriedAgain(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]string{
		"smtp://" + gone:               "connect: connection refused",
		"smtp://no-such-host.invalid.": "connect: the host was not found",
	} {
		sender, err := SMTP(address)
		if err != nil {
			t.Fatal(err)
		}
		err = sender.Send(t.Context(), hello)
		var permanent *Permanent
		if err == nil || err.Error() != want || errors.As(err, &permanent) {
			t.Errorf("%s: %v, want %s", address, err, want)
		}
	}
}

func TestAnAddressBeyondASCIINeedsAServerThatTakesIt(t *testing.T) {
	m := hello
	m.To = "zoë@müller.example"
	s := serve(t, mailtest.Config{})
	err := client(t, s, "smtp", "", "").Send(t.Context(), m)
	var permanent *Permanent
	if !errors.As(err, &permanent) || err.Error() != "recipient: the server accepts ASCII addresses only" {
		t.Error(err)
	}
	s = serve(t, mailtest.Config{UTF8: true})
	if err := client(t, s, "smtp", "", "").Send(t.Context(), m); err != nil || s.Deliveries()[0].To != "<zoë@müller.example>" {
		t.Errorf("%v, %+v", err, s.Deliveries())
	}
}

func TestTheServersOwnSenderKeepsTheName(t *testing.T) {
	s := serve(t, mailtest.Config{})
	sender := client(t, s, "smtp", "", "?from=Service+%3Cmailer%40service.example%3E")
	for from, want := range map[string]string{
		"Acme <no-reply@acme.example>": `"Acme" <mailer@service.example>`,
		"no-reply@acme.example":        `"Service" <mailer@service.example>`,
		"":                             `"Service" <mailer@service.example>`,
	} {
		m := hello
		m.From = from
		if err := sender.Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		all := s.Deliveries()
		got := all[len(all)-1]
		header := parse(t, got.Content).header
		if got.From != "<mailer@service.example>" || header.Get("From") != want || !strings.HasSuffix(header.Get("Message-Id"), "@service.example>") {
			t.Errorf("from %q: envelope %s, header %v", from, got.From, header)
		}
	}
}

func TestAnAddressOfAServerIsChecked(t *testing.T) {
	for _, good := range []string{
		"smtp://localhost", "smtp://user:pass@host:587", "smtps://user:pass@host", "smtp://[::1]:25/", "smtp://h?from=a@b.example",
		"smtp://u:%23%2F%40@h",
	} {
		if _, err := SMTP(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "host:25", "host", "http://u:hunter2@host", "smtp://", "smtp://u:hunter2@", "smtp://u:hunter2@:25", "smtp://u@host", "smtp://:hunter2@host",
		"smtp://u:@host", "smtp://u:hunter2@host:0", "smtp://u:hunter2@host:66000", "smtp://u:hunter2@host:x", "smtp://u:hun#ter2@host",
		"smtp://u:hun/ter2@host", "smtp://u:hunter2%@host", "smtp://u:hunter2@host/path", "smtp://u:hunter2@host?tls=no",
		"smtp://u:hunter2@host?from=", "smtp://u:hunter2@host?from=a@b&from=c@d", "smtp://u:hunter2@host?from=nobody", "smtp://u:hunter2@host?%zz",
		"smtp:u:hunter2@host", "smtp://u:hunter2@host#x", "smtp://u:hunter2@host\n", "smtps:hunter2",
	} {
		_, err := SMTP(bad)
		if err == nil || !strings.HasPrefix(err.Error(), errAddress+": ") || strings.Contains(err.Error(), "hun") || strings.Contains(err.Error(), "ter2") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestASenderPrintsWithoutItsPassword(t *testing.T) {
	sender, err := SMTP("smtps://boss:hunter2@mail.example")
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "sender", sender)
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "sender", sender)
	asJSON, err := json.Marshal(map[string]Sender{"sender": sender})
	if err != nil {
		t.Fatal(err)
	}
	shown := log.String() + string(asJSON)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		shown += fmt.Sprintf(verb, sender) + fmt.Sprintf(verb, struct{ S Sender }{sender}) + fmt.Sprintf(verb, struct{ s Sender }{sender})
	}
	if strings.Contains(shown, "hunter2") || strings.Contains(shown, "boss") || strings.Contains(shown, fmt.Sprintf("%x", "hunter2")) ||
		!strings.Contains(shown, "smtps://mail.example:465") {
		t.Error(shown)
	}
}

func TestEachErrorHasAReasonThatTellsNothing(t *testing.T) {
	for want, err := range map[string]error{
		"timed out":                fmt.Errorf("eva: %w", context.DeadlineExceeded),
		"interrupted":              context.Canceled,
		"the reply is not SMTP":    textproto.ProtocolError("eva"),
		"unknown error":            errors.New("eva@customer.example"),
		"the host was not found":   &net.DNSError{Name: "eva", IsTimeout: true},
		"connection reset by peer": fmt.Errorf("x: %w", &net.OpError{Op: "read", Err: errReset}),
	} {
		if got := reason(err); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}

// Each step has the time that RFC 5321, 4.5.3.2, asks for, whatever the others
// took: a server that takes its time to accept a mail gets it once.
func TestAServerMayTakeItsTime(t *testing.T) {
	for step, least := range map[string]time.Duration{
		StepGreeting: 5 * time.Minute, StepSender: 5 * time.Minute, StepRecipient: 5 * time.Minute, StepData: 2 * time.Minute,
		StepContent: 3 * time.Minute, stepAnswer: 10 * time.Minute,
	} {
		if rfc5321[step] < least {
			t.Errorf("%s may take %v", step, rfc5321[step])
		}
	}
	const brief = 1500 * time.Millisecond
	patience := map[string]time.Duration{stepAnswer: time.Minute}
	for step := range rfc5321 {
		if step != stepAnswer {
			patience[step] = brief
		}
	}
	slow := map[string]time.Duration{"greeting": brief / 2, "MAIL": brief / 2, "RCPT": brief / 2, "content": brief + brief/2}
	s := serve(t, mailtest.Config{Slow: slow})
	sender := client(t, s, "smtp", "", "")
	sender.patience = patience
	if err := sender.Send(t.Context(), hello); err != nil {
		t.Errorf("each step was in time, but: %v", err)
	}
	slow["RCPT"] = 2 * brief
	s = serve(t, mailtest.Config{Slow: slow})
	sender = client(t, s, "smtp", "", "")
	sender.patience = patience
	if err := sender.Send(t.Context(), hello); err == nil || err.Error() != "recipient: timed out" {
		t.Errorf("a step that takes too long: %v", err)
	}
	if n := len(s.Deliveries()); n != 0 {
		t.Errorf("%d mails", n)
	}
}
