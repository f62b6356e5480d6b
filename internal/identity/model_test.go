package identity

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gatehouse/internal/fault"
	"gatehouse/internal/session"
)

// model is the expected state of one end-user's sessions. It implements contract T7
// without a database.
type model struct {
	now      time.Duration
	active   bool
	password string
	sessions int // raised by every step that ends all sessions
	tokens   []*modelToken
}

type modelChain struct {
	sessions int
	revoked  bool
	tokens   int
}

type modelToken struct {
	text      string
	chain     *modelChain
	issued    time.Duration
	next      *modelToken
	rotated   time.Duration
	loggedOut bool
}

// refresh returns the token that a refresh must return, nil for 401. If the token has no
// successor yet, fresh becomes its successor.
func (m *model) refresh(t, fresh *modelToken) *modelToken {
	if t.chain.revoked || t.chain.sessions != m.sessions || !m.active {
		return nil
	}
	if t.next == nil && m.now-t.issued >= 30*24*time.Hour {
		return nil
	}
	if t.next == nil {
		if t.loggedOut {
			return nil
		}
		*fresh = modelToken{chain: t.chain, issued: m.now}
		t.next, t.rotated = fresh, m.now
		t.chain.tokens++
		m.tokens = append(m.tokens, fresh)
		return fresh
	}
	if m.now-t.rotated > 30*time.Second {
		t.chain.revoked = true
		return nil
	}
	if t.loggedOut || t.next.loggedOut {
		return nil
	}
	return t.next
}

// step is one event; token selects the token that it is about.
type step struct {
	what  string
	token int
}

var steps = []string{
	"login", "login", "refresh", "refresh", "refresh", "refresh", "refresh", "refresh", "refresh newest", "refresh newest", "refresh newest",
	"logout", "8s", "8s", "8s", "40s", "5h", "384h", "deactivate", "reactivate", "reactivate", "reset",
}

// run performs the steps with a new user and compares every answer with the model's.
func (w *world) run(t *rapid.T, email string, list []step) {
	w.join(email)
	m := &model{active: true, password: password}
	for i, s := range list {
		where := fmt.Sprintf("step %d, %s", i, s.what)
		var token *modelToken
		if n := len(m.tokens); n > 0 {
			token = m.tokens[s.token%n]
			if s.what == "refresh newest" {
				token = m.tokens[n-1]
			}
		}
		switch s.what {
		case "login":
			w.modelLogin(t, where, m, email)
		case "refresh", "refresh newest":
			if token == nil {
				w.refresh("unknown").want(401, fault.Unauthorized)
				continue
			}
			w.modelRefresh(t, where, m, token)
		case "logout":
			if token != nil {
				w.logout(token.text)
				token.loggedOut = true
				if token.next == nil { // the chain has no successor left to return again
					token.chain.revoked = true
				}
			}
		case "deactivate":
			if m.active {
				m.sessions++
			}
			m.active = false
			w.setActive(email, false)
		case "reactivate":
			m.active = true
			w.setActive(email, true)
		case "reset":
			if !m.active {
				continue
			}
			m.password = fmt.Sprintf("password %d", i)
			m.sessions++
			w.reset(w.askReset(email), m.password).want(200, "")
		default:
			d, err := time.ParseDuration(s.what)
			w.must(err)
			w.clock.advance(d)
			m.now += d
		}
	}
	chains := map[*modelChain]bool{}
	for _, token := range m.tokens {
		if all, successors := w.tokensOf(token.text); !chains[token.chain] && (all != token.chain.tokens || successors != all-1) {
			t.Fatalf("%d tokens in a chain, %d of them successors; the model has %d", all, successors, token.chain.tokens)
		}
		chains[token.chain] = true
	}
}

func (w *world) modelLogin(t *rapid.T, where string, m *model, email string) {
	a := w.signIn(email, m.password)
	if want := map[bool]int{true: 200, false: 403}[m.active]; a.status != want {
		t.Fatalf("%s: %d, want %d", where, a.status, want)
	}
	if m.active {
		m.tokens = append(m.tokens, &modelToken{
			text: a.text("refreshToken"), chain: &modelChain{sessions: m.sessions, tokens: 1}, issued: m.now,
		})
	}
}

func (w *world) modelRefresh(t *rapid.T, where string, m *model, token *modelToken) {
	fresh := &modelToken{}
	want, a := m.refresh(token, fresh), w.refresh(token.text)
	switch {
	case want == nil:
		if a.status != 401 || a.code != fault.Unauthorized {
			t.Fatalf("%s: %d, want 401", where, a.status)
		}
	case a.status != 200:
		t.Fatalf("%s: %d, want 200", where, a.status)
	case want == fresh:
		fresh.text = a.text("refreshToken")
		for _, other := range m.tokens {
			if other != fresh && other.text == fresh.text {
				t.Fatalf("%s: a token comes back", where)
			}
		}
	case a.text("refreshToken") != want.text:
		t.Fatalf("%s: another successor", where)
	}
}

// The test covers the rows of the table that depend on time only, at their edges.
func TestTheJudgementAtItsEdges(t *testing.T) {
	day := micros(24 * time.Hour)
	for name, c := range map[string]struct {
		is   session.State
		lost bool
		want verdict
	}{
		"current":                           {session.State{Now: 5, ExpiresAt: 10}, false, rotate},
		"last microsecond":                  {session.State{Now: 9, ExpiresAt: 10}, false, rotate},
		"expired":                           {session.State{Now: 10, ExpiresAt: 10}, false, refuse401},
		"rotated 30 s ago":                  {session.State{Now: day + micros(grace), RotatedAt: day, ExpiresAt: 3 * day}, false, repeat},
		"rotated more than 30 s ago":        {session.State{Now: day + micros(grace) + 1, RotatedAt: day, ExpiresAt: 3 * day}, false, endAsTheft},
		"the clock was set back":            {session.State{Now: day - 1, RotatedAt: day, ExpiresAt: 3 * day}, false, repeat},
		"rotated, successor logged out":     {session.State{Now: day + 1, RotatedAt: day, ExpiresAt: 3 * day, SuccessorRevoked: true}, false, refuse401},
		"rotated, then logged out":          {session.State{Now: day + 1, RotatedAt: day, RevokedAt: day, ExpiresAt: 3 * day}, false, refuse401},
		"rotated, then logged out, too old": {session.State{Now: 2 * day, RotatedAt: day, RevokedAt: day, ExpiresAt: 3 * day}, false, endAsTheft},
		"logged out":                        {session.State{Now: 5, RevokedAt: 4, ExpiresAt: 10}, false, refuse401},
		"rotated and expired":               {session.State{Now: 3 * day, RotatedAt: day, ExpiresAt: 3 * day}, false, endAsTheft},
		"rotated just now and expired":      {session.State{Now: 3 * day, RotatedAt: 3*day - 1, ExpiresAt: 3 * day}, false, repeat},
		"rotated and expired long ago":      {session.State{Now: 900 * day, RotatedAt: day, ExpiresAt: 3 * day}, false, endAsTheft},
		"chain ended":                       {session.State{Now: 5, ExpiresAt: 10, ChainEnded: true}, true, refuse401},
		"user lost":                         {session.State{Now: 50, ExpiresAt: 10}, true, endForUser},
	} {
		if got := judge(c.is, c.lost); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
