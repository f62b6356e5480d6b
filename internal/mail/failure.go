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

// Steps at which a mail can fail.
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

// Failure says why a mail was not sent. It may be stored and logged.
type Failure struct {
	Step     string // one of the steps
	Code     int    // the server's reply code; 0 when there was none
	Enhanced string // its enhanced code (RFC 3463), as 5.1.1; often ""
	Reason   string // a fixed phrase when there was no reply code
}

// Error is as "recipient: 550 5.1.1" or "connect: timed out".
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

// Permanent is a refusal for good: of the recipient or of the content. The mail
// is not to be tried again.
type Permanent struct{ Failure *Failure }

// Error is the failure's text.
func (p *Permanent) Error() string { return p.Failure.Error() }

// Unwrap is the failure.
func (p *Permanent) Unwrap() error { return p.Failure }

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

// refused is failed, for a step in which the server judges the recipient or the
// content. Two codes of its are about the session and not about the mail: out
// of order, and authentication wanted.
func refused(step string, err error) error {
	f := failed(step, err)
	if f.Code/100 == 5 && f.Code != 503 && f.Code != 530 {
		return &Permanent{f}
	}
	return f
}

func unsendable(reason string) error {
	return &Permanent{&Failure{Step: StepMessage, Reason: reason}}
}

// reason is what may be told of an error whose own text may tell too much.
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
		return "TLS could not be agreed on"
	case errors.As(err, &errno):
		return errno.Error()
	case errors.As(err, &timeout) && timeout.Timeout():
		return "timed out"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the server hung up"
	case errors.As(err, &protocol):
		return "the answer is not SMTP"
	default:
		return "it did not work"
	}
}
