package gatetest

import (
	"context"
	"regexp"
	"sync"
	"testing"
	"time"

	"gatehouse/internal/mail"
)

// Mails collects the mails that the nodes of a World send.
type Mails struct {
	mu   sync.Mutex
	list []mail.Message
}

// Send keeps a mail.
func (m *Mails) Send(_ context.Context, msg mail.Message) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.list = append(m.list, msg)
	return nil
}

// All returns every mail sent so far.
func (m *Mails) All() []mail.Message {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]mail.Message(nil), m.list...)
}

// Count returns how many mails to an address were sent so far.
func (m *Mails) Count(to string) (n int) {
	for _, msg := range m.All() {
		if msg.To == to {
			n++
		}
	}
	return n
}

var tokenInLink = regexp.MustCompile(`\?token=([A-Za-z0-9_-]+)`)

// Token waits for the n-th mail to an address, counted from 1, and returns the token of
// the link in it, "" if it has none.
func (m *Mails) Token(t testing.TB, to string, n int) string {
	t.Helper()
	for range 500 {
		seen := 0
		for _, msg := range m.All() {
			if msg.To != to {
				continue
			}
			if seen++; seen == n {
				if found := tokenInLink.FindStringSubmatch(msg.Text); found != nil {
					return found[1]
				}
				return ""
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("no mail number %d to %s", n, to)
	return ""
}
