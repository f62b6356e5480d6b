package prove

import (
	"bytes"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/db"
)

// telling is the value of Welch's t from which two means count as different. Two equal
// means reach it by chance 7 times in a million.
const telling = 4.5

// stranger is a request that an outsider may send to learn whether an e-mail address
// has an account. body is the body of the request.
type stranger struct {
	name, body string
	took       []float64 // µs
	mails      func()    // waits for the mail that the request causes; nil if it causes none
	window     *ending   // of the address's rate limit, from the first answer
	first      string    // how many seconds of the window were left then
}

// ending is the interval in which the rate limit window of an address ends. The exact
// instant is unknown, because the header gives whole seconds from some instant between
// a request and its answer.
type ending struct{ earliest, latest time.Time }

// endingOf returns when the rate limit window that an answer reports ends.
func endingOf(a *answer) (ending, error) {
	left, err := strconv.Atoi(a.header.Get("X-Ratelimit-Reset"))
	ends := time.Duration(left) * time.Second
	return ending{a.sent.Add(ends - time.Second), a.at.Add(ends + time.Second)}, err
}

// Login gives the same answer in the same time for a wrong password, an address without
// an account, staff, a pending user and a deactivated user.
func TestProveLoginTellsNothing(t *testing.T) {
	asShipped(t)
	p := begin(t, "TELL-login", db.SQLite)
	w, v := askingPortal(p)
	login := func(name, email, password string) *stranger {
		return &stranger{name: name, body: members("email", email, "password", password)}
	}
	const wrong = "a wrong password"
	tellNothing(p, v, "login", http.StatusUnauthorized, scale(30, 1000), 0, []*stranger{
		login("unknown", "nora@customer.example", wrong),
		login("external", eva, wrong),
		login("staff", owner, wrong),
		login("staff, right password", rita, w.passwords[rita]),
		login("pending", pending, wrong),
		login("deactivated", dora, wrong),
	})
}

// The staff sign-in gives the same answer in the same time for a wrong password, an address
// without an account, an external user and a deactivated user, also with the right password.
func TestProveStaffSignInTellsNothing(t *testing.T) {
	asShipped(t)
	p := begin(t, "TELL-staff", db.SQLite)
	w, v := askingPortal(p)
	w.must("user", "deactivate", "--tenant", "acme", "--email", rita)
	signIn := func(name, email, password string) *stranger {
		return &stranger{name: name, body: members("email", email, "password", password)}
	}
	const wrong = "a wrong password"
	tellNothing(p, v, "/admin/v1/session", http.StatusUnauthorized, scale(30, 1000), 0, []*stranger{
		signIn("unknown", "nora@acme.example", wrong),
		signIn("staff", owner, wrong),
		signIn("external", eva, wrong),
		signIn("pending", pending, wrong),
		signIn("deactivated, right password", rita, w.passwords[rita]),
	})
}

// A request for a mail reveals as little, whether or not a mail is sent.
func TestProveAskingForAMailTellsNothing(t *testing.T) {
	asShipped(t)
	for _, use := range []string{"request-password-reset", "resend-verification"} {
		t.Run(use, func(t *testing.T) {
			p := begin(t, "TELL-"+use, db.SQLite)
			w, v := askingPortal(p)
			ask := func(name, email string) *stranger { return &stranger{name: name, body: members("email", email)} }
			rounds, sent := scale(40, 1000), 0
			all := []*stranger{ask("unknown", "nora@customer.example"), ask("external", eva), ask("staff", rita), ask("pending", pending), ask("deactivated", dora)}
			to := map[string]int{"request-password-reset": 1, "resend-verification": 3}[use]
			before := len(w.outbox())
			all[to].mails = func() { // so that no request waits for earlier mails, and to check that each mail is sent
				sent++
				for begun := time.Now(); len(w.outbox()) < before+sent; time.Sleep(time.Millisecond) {
					if time.Since(begun) > time.Minute {
						t.Fatalf("mail %d did not come", sent)
					}
				}
			}
			tellNothing(p, v, use, http.StatusOK, rounds, 4*time.Millisecond, all)
			p.add("mails", len(w.letters()))
		})
	}
}

const pending = "paul@customer.example"

// askingPortal returns a running portal in which Paul is pending and Dora is
// deactivated.
func askingPortal(p *proof) (*portal, *visitor) {
	p.t.Helper()
	w := newPortal(p.t, db.SQLite)
	w.apply(w.manifest("svc_email", often, ""))
	w.must("user", "deactivate", "--tenant", "acme", "--email", dora)
	v := w.serve().visitor()
	p.t.Cleanup(v.close)
	v.post(http.StatusCreated, "register", "email", pending, "password", "the password of Paul", "name", "Paul")
	w.letter(pending, 1)
	return w, v
}

// tellNothing sends the request of every stranger once a round, in random order and with
// a pause after each, and compares the times pairwise. Except when proving, other tests
// use the machine, and the times are reported only: one that burst in on one stranger's
// requests would be taken for a difference.
func tellNothing(p *proof, v *visitor, use string, status, rounds int, pause time.Duration, all []*stranger) {
	p.t.Helper()
	for round := -1; round < rounds; round++ { // one to warm up
		askEach(p, v, use, status, pause, all, round)
	}
	most, between := widest(all)
	p.mu.Lock()
	p.figures["most_t"] = math.Round(most*100) / 100
	p.figures["between"] = between
	for _, s := range all {
		mean, variance := moments(s.took)
		p.figures[s.name] = fmt.Sprintf("%.0f µs ± %.0f", mean, math.Sqrt(variance))
	}
	p.mu.Unlock()
	if proving && most >= telling {
		p.fail("%s: |t| = %.2f between %s", use, most, between)
	}
}

// askEach runs one round. The answers must be the same, byte for byte, except for the
// request id and the time.
func askEach(p *proof, v *visitor, use string, status int, pause time.Duration, all []*stranger, round int) {
	p.t.Helper()
	var first string
	for i, at := range p.rand.Perm(len(all)) {
		s := all[at]
		path := auth + use
		if strings.HasPrefix(use, "/admin/") {
			path = use
		}
		a, err := v.send("POST", path, s.body, "Origin", "http://"+host)
		if err != nil || a.status != status {
			p.fail("%s of %s: %v %v", use, s.name, a, err)
			return
		}
		// The server is still busy with a mail when the next request comes.
		disturbed := v.mailed
		v.mailed = s.mails != nil
		if round >= 0 && !disturbed {
			p.tried(1)
			s.took = append(s.took, float64(a.at.Sub(a.sent).Nanoseconds())/1000)
		}
		// The window of an address begins with the first request that names it.
		now, err := endingOf(a)
		switch {
		case err != nil:
			p.fail("X-RateLimit-Reset: %v", err)
		case s.window == nil:
			s.window, s.first = &now, a.header.Get("X-Ratelimit-Reset")
		case now.latest.Before(s.window.earliest) || s.window.latest.Before(now.earliest):
			p.fail("the window of %s ends between %v and %v, and did between %v and %v", s.name, now.earliest, now.latest, s.window.earliest, s.window.latest)
		}
		is := visible(a)
		if i == 0 {
			first = is
		} else if is != first {
			p.fail("%s of %s differs: %s\nfrom: %s", use, s.name, is, first)
		}
		if s.mails != nil {
			s.mails()
		}
		time.Sleep(pause)
	}
	if round < 0 {
		fullWindows(p, all)
	}
}

// fullWindows checks that the first request of each address began a whole window.
func fullWindows(p *proof, all []*stranger) {
	p.t.Helper()
	for _, s := range all {
		if w := s.window; w != nil && s.first != all[0].first {
			p.fail("the window of %s is %s s long, that of %s %s s", s.name, s.first, all[0].name, all[0].first)
		}
	}
}

// visible returns the answer without the headers that differ between any two answers.
func visible(a *answer) string {
	h := a.header.Clone()
	for _, name := range []string{"X-Request-Id", "Date", "X-Ratelimit-Reset"} {
		h.Del(name)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%d\n", a.status)
	_ = h.Write(&b) // sorted by name; a write to memory cannot fail
	b.Write(a.body)
	return b.String()
}

// widest returns the largest |t| of all pairs, and the pair's names.
func widest(all []*stranger) (most float64, between string) {
	for i, a := range all {
		for _, b := range all[:i] {
			if t := math.Abs(welch(a.took, b.took)); t >= most {
				most, between = t, a.name+" and "+b.name
			}
		}
	}
	return most, between
}

// welch returns Welch's t of two samples.
func welch(a, b []float64) float64 {
	meanA, varA := moments(a)
	meanB, varB := moments(b)
	return (meanA - meanB) / math.Sqrt(varA/float64(len(a))+varB/float64(len(b)))
}

// moments returns the mean and the unbiased variance.
func moments(x []float64) (mean, variance float64) {
	for _, v := range x {
		mean += v
	}
	mean /= float64(len(x))
	for _, v := range x {
		variance += (v - mean) * (v - mean)
	}
	return mean, variance / float64(len(x)-1)
}
