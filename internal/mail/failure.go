package mail

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/textproto"
	"os"
	"regexp"
	"strconv"
	"syscall"
)

// The values of Failure.Step.
const (
	StepMessage   = "message" // it cannot be composed
	StepConnect   = "connect"
	StepGreeting  = "greeting"
	StepHello     = "ehlo"
	StepTLS       = "starttls"
	StepAuth      = "auth"
	StepSender    = "sender"    // MAIL FROM
	StepRecipient = "recipient" // RCPT TO
	StepData      = "data"      // DATA
	StepContent   = "content"   // sending the content, and the answer to it
	StepFile      = "file"      // writing it to disk
)

// Failure says why a mail was not sent. Its text may be stored and logged.
type Failure struct {
	Step     string // one of the constants above
	Code     int    // the server's reply code; 0 if there was none
	Enhanced string // its enhanced code (RFC 3463), such as 5.1.1; often ""
	Reason   string // a fixed phrase, if there was no reply code
}

// Error returns a text such as "recipient: 550 5.1.1" or "connect: timed out".
func (f *Failure) Error() string {
	text := f.Step + ": "
	switch {
	case f.Code == 0:
		return text + f.Reason
	case f.Enhanced == "":
		return text + strconv.Itoa(f.Code)
	default:
		return text + strconv.Itoa(f.Code) + " " + f.Enhanced
	}
}

// Permanent is the error of a mail that should not be tried again: the server
// refuses its recipient or its content, or it cannot be composed.
type Permanent struct{ Failure *Failure }

// Error returns the failure's text.
func (p *Permanent) Error() string { return p.Failure.Error() }

// Unwrap returns the failure.
func (p *Permanent) Unwrap() error { return p.Failure }

// failed returns the Failure of a step that ended with err.
func failed(step string, err error) *Failure {
	f := &Failure{Step: step}
	var reply *textproto.Error
	if errors.As(err, &reply) {
		f.Code = reply.Code
		f.Enhanced = enhanced.FindString(reply.Msg)
		return f
	}
	f.Reason = reason(err)
	return f
}

var enhanced = regexp.MustCompile(`^[245]\.\d{1,3}\.\d{1,3}\b`)

// refused is like failed, for a step in which the server judges the recipient or
// the content: a code of 5xx is a *Permanent. The exceptions are two codes about
// the session: 503 (bad sequence of commands) and 530 (authentication required).
func refused(step string, err error) error {
	f := failed(step, err)
	if f.Code/100 == 5 && f.Code != 503 && f.Code != 530 {
		return &Permanent{f}
	}
	return f
}

// unsendable returns the *Permanent of a message that cannot be composed.
func unsendable(reason string) error {
	return &Permanent{&Failure{Step: StepMessage, Reason: reason}}
}

// reason returns a phrase for an error whose own text may not be safe to store and
// log.
func reason(err error) string {
	var (
		timeout     net.Error
		lookup      *net.DNSError
		errno       syscall.Errno
		certificate *tls.CertificateVerificationError
		authority   x509.UnknownAuthorityError
		hostname    x509.HostnameError
		record      tls.RecordHeaderError
		alert       tls.AlertError
		protocol    textproto.ProtocolError
	)
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return "timed out"
	case errors.Is(err, context.Canceled):
		return "interrupted"
	case errors.As(err, &lookup):
		return "the host was not found"
	case errors.As(err, &certificate), errors.As(err, &authority), errors.As(err, &hostname):
		return "the server's certificate is not trusted"
	case errors.As(err, &record), errors.As(err, &alert):
		return "the TLS handshake failed"
	case errors.As(err, &errno):
		return errno.Error()
	case errors.As(err, &timeout) && timeout.Timeout():
		return "timed out"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the server closed the connection"
	case errors.As(err, &protocol):
		return "the reply is not SMTP"
	default:
		return "unknown error"
	}
}
