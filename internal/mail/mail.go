// Package mail composes mails and passes them to a mail server, or writes them to
// files.
//
// Headers contain text that users chose. Line breaks and control characters are
// removed from it, and a library encodes it. To must be one plain address, or the
// mail is not sent. Templates are filled in one pass: what a value contains is not
// interpreted.
//
// The error of a Sender is a *Failure; it is a *Permanent, which wraps one, if
// another try would not help. Its text names a step and a reply code and nothing
// else, so that it may be stored and logged: no address, no content, no password,
// and not the server's own text, which may repeat all three.
package mail

import (
	"context"
	"net/mail"
	"strings"
	"time"
	"unicode"
)

// Message is one mail to one recipient. HTML or Text may be empty, not both.
type Message struct {
	From    string // an address, possibly "Name <address>"; see Address
	To      string // one plain address
	Subject string
	Text    string
	HTML    string

	// Until is when the mail becomes useless, because its link expires; zero for
	// never. A Sender ignores it: it is for a queue in front of the Sender.
	Until time.Time `json:",omitzero"`

	// ID is the left part of the Message-ID: letters, digits and hyphens. It
	// lets a receiver recognize a second copy. It is random when empty.
	ID string `json:"-"`
	// Date is the Date header; the current time when zero.
	Date time.Time `json:"-"`
}

// Sender sends mails. It is safe for concurrent use.
type Sender interface {
	// Send returns nil once a server has accepted the mail, or it is on disk.
	// It returns a *Failure, or a *Permanent if the mail should not be tried
	// again.
	Send(ctx context.Context, m Message) error
}

// Address returns "name <address>" for Message.From. The name may be any text:
// line breaks become spaces, and the rest is quoted or encoded where needed.
func Address(name, address string) string {
	a := mail.Address{Name: headerText(name, maxName), Address: address}
	return a.String()
}

// The length in characters that texts of users are cut to. A line of a mail has at
// most 998 bytes.
const (
	maxSubject = 200
	maxName    = 100
)

// headerText returns s on one line, changed so that it cannot be read as an encoded
// word, which could contain line breaks again.
func headerText(s string, limit int) string {
	return strings.ReplaceAll(oneLine(s, limit), "=?", "= ?")
}

// oneLine returns s as valid UTF-8 on one line, with single spaces between words,
// without control characters and marks of the writing direction, and cut to limit
// characters.
func oneLine(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f, r == 0xfeff:
			return -1
		case unicode.IsControl(r), r == 0x2028, r == 0x2029:
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
	s = strings.Join(strings.Fields(s), " ")
	if runes := []rune(s); len(runes) > limit {
		s = strings.TrimSpace(string(runes[:limit-1])) + "…"
	}
	return s
}
