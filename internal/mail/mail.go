// Package mail writes mails and hands them to a mail server, or to files.
//
// What goes into a header comes from people: a Message is composed by a
// library that encodes it, after line breaks and control characters were taken
// out, and its To is one plain address or it is not sent at all. Templates are
// filled in one pass; what a value contains is never looked at again.
//
// An error of a Sender is a *Failure, and as well a *Permanent when trying
// again would not help. Its text names a step and a reply code and nothing
// else, so that it may be stored and logged: no address, no content, no
// password, and none of the server's own words, which may repeat all three.
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

	// Until is when the mail is worth nothing any more, as that of a link that
	// has expired; zero for never. It is for who sends it later: a Sender sends.
	Until time.Time `json:",omitzero"`

	// ID is the left part of the Message-ID: letters, digits and hyphens. With
	// the same ID a second copy can be recognized by who receives it. Random
	// when empty.
	ID string `json:"-"`
	// Date is what the header says; now when zero.
	Date time.Time `json:"-"`
}

// Sender hands a mail on. When it returns nil, a server has accepted the mail,
// or it is on disk. It may be used by several goroutines at once.
type Sender interface {
	Send(ctx context.Context, m Message) error
}

// Address is "name <address>" as Message.From takes it, whatever the name
// contains: line breaks become spaces, and what cannot stand as it is is
// encoded.
func Address(name, address string) string {
	a := mail.Address{Name: headerText(name, maxName), Address: address}
	return a.String()
}

// The most characters of what a person chose; the rest is cut off. A line of
// a mail holds 998 bytes.
const (
	maxSubject = 200
	maxName    = 100
)

// headerText is s on one line, and not taken for an encoded word: what that
// hides would be on any number of lines again.
func headerText(s string, limit int) string {
	return strings.ReplaceAll(oneLine(s, limit), "=?", "= ?")
}

// oneLine is s as it may stand in a sentence or in a header: valid UTF-8 on one
// line, words apart by one space, no control characters, nothing that turns the
// direction of writing, at most limit characters.
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
