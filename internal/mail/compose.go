package mail

import (
	"bytes"
	"crypto/rand"
	"net/mail"
	"regexp"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"
)

// letter is a composed mail: its content, as in RFC 5322, and its envelope.
type letter struct {
	from, to string // plain addresses
	content  []byte
	date     time.Time
}

var messageID = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)

// compose returns the mail, or a *Permanent if the message cannot be composed.
func compose(m Message) (*letter, error) {
	from, err := mail.ParseAddress(m.From)
	if err != nil {
		return nil, unsendable("From is not an address")
	}
	from.Name = headerText(from.Name, maxName)
	to, err := recipient(m.To)
	if err != nil {
		return nil, err
	}
	if m.ID == "" {
		m.ID = strings.ToLower(rand.Text())
	}
	if !messageID.MatchString(m.ID) {
		return nil, unsendable("ID must consist of letters, digits and hyphens")
	}
	if m.Date.IsZero() {
		m.Date = time.Now()
	}

	msg := gomail.NewMsg(gomail.WithCharset(gomail.CharsetUTF8), gomail.WithEncoding(gomail.EncodingQP), gomail.WithNoDefaultUserAgent())
	msg.FromMailAddress(from)
	msg.ToMailAddress(to)
	msg.Subject(headerText(m.Subject, maxSubject))
	msg.SetDateWithValue(m.Date.UTC())
	msg.SetMessageIDWithValue(m.ID + "@" + idDomain(from.Address))
	msg.SetGenHeader("Auto-Submitted", "auto-generated") // asks out-of-office assistants not to answer
	switch {
	case m.Text == "" && m.HTML == "":
		return nil, unsendable("it has no content")
	case m.HTML == "":
		msg.SetBodyString(gomail.TypeTextPlain, m.Text)
	case m.Text == "":
		msg.SetBodyString(gomail.TypeTextHTML, m.HTML)
	default:
		msg.SetBodyString(gomail.TypeTextPlain, m.Text)
		msg.AddAlternativeString(gomail.TypeTextHTML, m.HTML)
	}
	var content bytes.Buffer
	if _, err := msg.WriteTo(&content); err != nil {
		return nil, unsendable("it cannot be composed")
	}
	return &letter{from: from.Address, to: to.Address, content: content.Bytes(), date: m.Date}, nil
}

// recipient parses one plain address. It returns a *Permanent for anything else: a
// name, list, comment or quotes, or a text that a parser would change.
func recipient(to string) (*mail.Address, error) {
	a, err := mail.ParseAddress(to)
	if err != nil || a.Name != "" || a.Address != to || len(to) > 254 || oneLine(to, 254) != to {
		return nil, unsendable("To is not one plain address")
	}
	return a, nil
}

// idDomain returns the right part of the Message-ID, which must be ASCII.
func idDomain(from string) string {
	domain := strings.ToLower(from[strings.LastIndexByte(from, '@')+1:])
	if !isASCII(domain) {
		return "mail.invalid"
	}
	return domain
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > 0x7e })
}
