package prove

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A writer has records of its own, named by their unique e-mail address, and
// changes them one after another; each change gives its record the writer's
// next number, from which all values of the record follow. So the database is
// right when, for each writer, it has what some prefix of its changes gives,
// and that prefix has every change that was acknowledged.

// state is the records of a writer: the number of each address.
type state map[string]int64

// change is one change of a record; number 0 deletes it.
type change struct {
	email    string
	number   int64
	along    bool // in one request with the change before it: with it, or not at all
	sent     time.Time
	answered time.Time // zero without success
}

func (c change) String() string { return fmt.Sprintf("%s: %d", c.email, c.number) }

func (s state) apply(c change) {
	if c.number == 0 {
		delete(s, c.email)
	} else {
		s[c.email] = c.number
	}
}

func (s state) equal(other state) bool {
	if len(s) != len(other) {
		return false
	}
	for email, n := range s {
		if m, ok := other[email]; !ok || m != n {
			return false
		}
	}
	return true
}

func (s state) clone() state {
	c := make(state, len(s))
	for email, n := range s {
		c[email] = n
	}
	return c
}

// writer is one writer with its journal.
type writer struct {
	id    int
	way   way
	rand  *rand.Rand
	makes int // how many addresses it has invented
	count int64

	mu      sync.Mutex
	base    state    // what the database had when it was last read
	changes []change // since then
	acked   int      // of them acknowledged; at most those of one request are not
	now     state    // base and all changes
	ids     map[string]string
	emails  []string // of now, for a random choice
}

// fleet is the set of writers of a load.
type fleet struct {
	p       *proof
	writers []*writer
	pause   time.Duration // between the changes of a writer
	settles bool          // after "try again" or a lost connection, ask the server whether the change was made
	trusts  bool          // believe "try again": nothing was changed, unless the answer says that this is unknown

	mu     sync.Mutex
	cut    int // requests without a whole answer
	acks   int
	busy   int // answered 503
	open   int // of them with an unknown outcome
	stalls int // no answer in time
}

func newFleet(p *proof, n int) *fleet {
	f := &fleet{p: p}
	for i := range n {
		f.writers = append(f.writers, &writer{
			id: i, way: byRecord{}, rand: rand.New(rand.NewPCG(p.seed, uint64(i)+100)), base: state{}, now: state{}, ids: map[string]string{},
		})
	}
	return f
}

// values returns the record of an address at a number. Records differ in length.
func values(email string, number int64) string {
	return fmt.Sprintf(`{"first_name":"name %d","email":%q,"score":%d,"extra":{"n":%d,"pad":%q}}`,
		number, email, number, number, strings.Repeat("x", padding(number)))
}

func padding(number int64) int { return int(number*7919) % 1500 }

// whole returns the number of a record, or an error that says why no writer wrote it.
func whole(r record) (int64, error) {
	if r.Score == nil {
		return 0, fmt.Errorf("%s has no score", r.Email)
	}
	n := *r.Score
	var extra struct {
		N   int64  `json:"n"`
		Pad string `json:"pad"`
	}
	if err := json.Unmarshal(r.Extra, &extra); err != nil {
		return 0, fmt.Errorf("%s: extra: %w", r.Email, err)
	}
	if r.FirstName != "name "+strconv.FormatInt(n, 10) || extra.N != n || len(extra.Pad) != padding(n) {
		return 0, fmt.Errorf("%s is torn: first_name %q, score %d, extra %d with %d", r.Email, r.FirstName, n, extra.N, len(extra.Pad))
	}
	return n, nil
}

// load lets all writers write through c until ctx ends or the server is gone.
// stopping reports whether the server is meant to stop.
func (f *fleet) load(ctx context.Context, c *client, stopping func() bool) {
	var wait sync.WaitGroup
	for _, w := range f.writers {
		wait.Go(func() {
			for ctx.Err() == nil {
				if !f.step(c, w, stopping) {
					return
				}
				time.Sleep(f.pause)
			}
		})
	}
	wait.Wait()
}

// step makes one change. It returns false when the server is gone.
func (f *fleet) step(c *client, w *writer, stopping func() bool) bool {
	chs := w.choose()
	ch := chs[0]
	a, err := f.send(c, w, chs)
	if err == nil && a.status == http.StatusServiceUnavailable && f.trusts {
		f.count(&f.busy)
		if a.outcome() == "unknown" {
			f.count(&f.open)
			return f.repeat(c, w, ch, stopping)
		}
		w.dropped()
		time.Sleep(20 * time.Millisecond)
		return true
	}
	if err == nil && a.status == http.StatusServiceUnavailable && f.settles {
		f.count(&f.busy)
		return f.settle(c, w, ch)
	}
	if err == nil {
		if a.status/100 != 2 {
			f.p.fail("%s", a)
			return false
		}
		f.count(&f.acks)
		w.acknowledge(a, len(chs))
		return true
	}
	f.count(&f.cut)
	if hung(err) {
		f.count(&f.stalls)
		f.p.fail("no answer: %v", err)
		return false
	}
	if f.settles {
		return f.settle(c, w, ch)
	}
	if !stopping() {
		f.p.fail("the server hung up: %v", err)
	}
	return false
}

func (f *fleet) count(n *int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	*n++
}

// choose picks what the next request changes and writes it in the journal before it is sent.
func (w *writer) choose() []change {
	w.mu.Lock()
	defer w.mu.Unlock()
	first := len(w.changes)
	for range w.way.changes(w.rand) {
		w.count++
		number := int64(w.id+1)*1_000_000_000 + w.count
		var ch change
		// By id: creates; creates and deletes; mostly PATCHes; all of them.
		dice := w.rand.IntN(100)
		few := len(w.emails) < 5
		switch kind := w.id % 4; {
		case few || kind == 0 && dice < 90 || kind == 1 && dice < 50 || kind == 3 && dice < 40:
			w.makes++
			ch = change{email: fmt.Sprintf("w%d.%d@load.example", w.id, w.makes), number: number}
		case kind == 1 || kind == 3 && dice < 60:
			ch = change{email: w.emails[w.rand.IntN(len(w.emails))]}
		default:
			ch = change{email: w.emails[w.rand.IntN(len(w.emails))], number: number}
		}
		if slices.ContainsFunc(w.changes[first:], func(c change) bool { return c.email == ch.email }) {
			continue // a batch changes a record once
		}
		ch.along, ch.sent = len(w.changes) > first, time.Now()
		w.changes = append(w.changes, ch)
	}
	return slices.Clone(w.changes[first:])
}

func (f *fleet) send(c *client, w *writer, chs []change) (*answer, error) {
	ids := make([]string, len(chs))
	w.mu.Lock()
	for i, ch := range chs {
		ids[i] = w.ids[ch.email]
	}
	w.mu.Unlock()
	return w.way.send(c, chs, ids)
}

// acknowledge notes that the last request, of n changes, was answered with success.
func (w *writer) acknowledge(a *answer, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	first := len(w.changes) - n
	for i := range n {
		ch := &w.changes[first+i]
		ch.answered = a.at
		w.happened(*ch, func() string { return w.way.id(a, i) }) // without an id the next request for the record fails
	}
	w.acked = len(w.changes)
}

// happened updates now, ids and emails with a change.
func (w *writer) happened(ch change, id func() string) {
	w.now.apply(ch)
	switch _, known := w.ids[ch.email]; {
	case ch.number == 0:
		delete(w.ids, ch.email)
		for i, email := range w.emails {
			if email == ch.email {
				w.emails[i] = w.emails[len(w.emails)-1]
				w.emails = w.emails[:len(w.emails)-1]
				break
			}
		}
	case !known:
		w.ids[ch.email] = id()
		w.emails = append(w.emails, ch.email)
	}
}

// settle asks the server whether an unacknowledged change was made, until it gets an
// answer.
func (f *fleet) settle(c *client, w *writer, ch change) bool {
	for begun := time.Now(); time.Since(begun) < patience; time.Sleep(20 * time.Millisecond) {
		found, err := c.filtered("email", ch.email)
		if err != nil {
			if hung(err) {
				f.count(&f.stalls)
				f.p.fail("no answer: %v", err)
			}
			continue
		}
		w.settled(ch, found)
		return true
	}
	f.p.fail("the server did not come back in %s", patience)
	return false
}

// repeat sends a change whose outcome is unknown again until it is acknowledged. It has effect
// once: an address is unique, and the others set what they set. When the server is stopped, the outcome
// stays unknown.
func (f *fleet) repeat(c *client, w *writer, ch change, stopping func() bool) bool {
	for begun := time.Now(); time.Since(begun) < 2*patience; time.Sleep(20 * time.Millisecond) {
		a, err := f.send(c, w, []change{ch})
		switch {
		case err != nil && hung(err):
			f.count(&f.stalls)
			f.p.fail("no answer: %v", err)
			return false
		case err != nil && stopping():
			return false
		case err != nil, a.status == http.StatusServiceUnavailable:
			continue
		case a.status/100 == 2:
			w.acknowledge(a, 1)
			return true
		case a.status == http.StatusConflict, a.status == http.StatusNotFound && ch.number == 0: // it was made
			return f.settle(c, w, ch)
		}
		f.p.fail("repeated: %s", a)
		return false
	}
	f.p.fail("the server did not come back in %s", 2*patience)
	return false
}

// dropped notes that the last change was not made.
func (w *writer) dropped() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changes = w.changes[:len(w.changes)-1]
}

// settled records whether the last change, which was not acknowledged, was made.
func (w *writer) settled(ch change, found []record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var n int64
	if len(found) > 0 {
		n = *found[0].Score
	}
	if n != ch.number {
		w.changes = w.changes[:len(w.changes)-1]
		return
	}
	w.acked = len(w.changes)
	w.happened(ch, func() string { return found[0].ID })
}

// mark returns the position of each writer.
func (f *fleet) mark(acked bool) []int {
	marks := make([]int, len(f.writers))
	for i, w := range f.writers {
		w.mu.Lock()
		if marks[i] = len(w.changes); acked {
			marks[i] = w.acked
		}
		w.mu.Unlock()
	}
	return marks
}

// markAt returns how many changes of each writer were answered before an instant, and how many were sent.
func (f *fleet) markAt(at time.Time) (answered, sent []int) {
	for _, w := range f.writers {
		w.mu.Lock()
		a, s := 0, 0
		for i, ch := range w.changes {
			if !ch.answered.IsZero() && ch.answered.Before(at) {
				a = i + 1
			}
			if !ch.sent.After(at) {
				s = i + 1
			}
		}
		answered, sent = append(answered, a), append(sent, s)
		w.mu.Unlock()
	}
	return answered, sent
}

// compare compares the records that the API lists with the journals. The records of each
// writer must be those after some number, from low to high, of its changes, and not between two of one request. It returns
// the records of each writer, and their ids.
func (f *fleet) compare(list []record, low, high []int) (seen []state, ids map[string]string) {
	seen, ids = make([]state, len(f.writers)), map[string]string{}
	for i := range seen {
		seen[i] = state{}
	}
	for _, r := range list {
		var id, n int
		if _, err := fmt.Sscanf(r.Email, "w%d.%d@load.example", &id, &n); err != nil || id >= len(f.writers) {
			f.p.fail("a record of nobody: %+v", r)
			continue
		}
		number, err := whole(r)
		if err != nil {
			f.p.fail("%v", err)
		}
		if _, twice := seen[id][r.Email]; twice {
			f.p.fail("%s is there twice", r.Email)
		}
		seen[id][r.Email] = number
		ids[r.Email] = r.ID
	}
	for i, w := range f.writers {
		f.compareOne(w, seen[i], low[i], high[i])
	}
	return seen, ids
}

func (f *fleet) compareOne(w *writer, seen state, low, high int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.base.clone()
	for _, ch := range w.changes[:low] {
		s.apply(ch)
	}
	first := s.clone()
	for k := low; ; k++ {
		if (k == len(w.changes) || !w.changes[k].along) && s.equal(seen) {
			return
		}
		if k >= high {
			break
		}
		s.apply(w.changes[k])
	}
	lost, extra := []string{}, []string{}
	for email, n := range first {
		if seen[email] != n {
			lost = append(lost, fmt.Sprintf("%s should be %d, is %d", email, n, seen[email]))
		}
	}
	for email, n := range seen {
		if _, ok := first[email]; !ok {
			extra = append(extra, fmt.Sprintf("%s is %d", email, n))
		}
	}
	f.p.fail("writer %d: no prefix of %d to %d changes gives what is there: %d wrong %.400v; %d unexpected %.400v; not acknowledged: %v",
		w.id, low, high, len(lost), lost, len(extra), extra, w.changes[low:min(high, low+3)])
}

// adopt makes the records that were seen the writers' base.
func (f *fleet) adopt(seen []state, ids map[string]string) {
	for i, w := range f.writers {
		w.mu.Lock()
		w.base, w.now, w.changes, w.acked = seen[i], seen[i].clone(), nil, 0
		w.ids, w.emails = map[string]string{}, nil
		for email := range seen[i] {
			w.ids[email] = ids[email]
			w.emails = append(w.emails, email)
		}
		w.mu.Unlock()
	}
}

// touched returns the last changes of each writer up to high.
func (f *fleet) touched(high []int, last int) []change {
	var list []change
	for i, w := range f.writers {
		w.mu.Lock()
		list = append(list, w.changes[max(0, high[i]-last):high[i]]...)
		w.mu.Unlock()
	}
	return list
}
