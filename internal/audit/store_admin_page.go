package audit

import (
	"context"
	"slices"
	"strings"
	"time"

	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/user"
)

// Page is a part of the entries that a filter selects, newest first, without
// their requests and answers.
type Page struct {
	Entries []*Entry
	// Next is what Filter.Before is for the next page; "" at the end.
	Next string
	// Searched is the time down to which everything was searched, if the time
	// was up before the page was full; zero otherwise.
	Searched time.Time
}

// Page returns at most f.Limit entries, which must be positive. It searches for
// about d, at least one block: a filter that selects little may give an empty
// page with a Next. It returns VALIDATION for a wrong filter and NOT_FOUND for an
// e-mail address that no user has or had.
func (l *Log) Page(ctx context.Context, f Filter, d time.Duration) (Page, error) {
	limit := f.Limit
	q, err := l.query(ctx, f)
	if err != nil {
		return Page{}, err
	}
	p := &pager{q: q, limit: limit, clock: within(d)}
	if err := q.days(ctx, func(day db.Day) (bool, error) { return p.day(ctx, day) }); err != nil {
		return Page{}, err
	}
	return p.page, nil
}

// query returns a query without what it calls for each entry.
func (l *Log) query(ctx context.Context, f Filter) (*query, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	users, err := f.users(ctx, l.DB.For(l.Tenant))
	if err != nil {
		return nil, err
	}
	return &query{log: l, matcher: newMatcher(&f, users)}, nil
}

// pager collects one page.
type pager struct {
	q     *query
	limit int
	clock stopwatch
	page  Page
}

// day adds the entries of one day. It returns false when the page is complete.
func (p *pager) day(ctx context.Context, day db.Day) (more bool, err error) {
	w, err := p.q.walk(ctx, day)
	if err != nil {
		return false, err
	}
	var waiting []*found // newest first
	for {
		frontier := w.frontier()
		for len(waiting) > 0 && (frontier == "" || waiting[0].ID > frontier) {
			if p.add(&waiting[0].Entry) {
				return false, nil
			}
			waiting = waiting[1:]
		}
		if frontier == "" {
			return !p.stop(clock.IDsFrom(day.Start())), nil
		}
		if p.stop(frontier + "!") { // after frontier, and before every greater id
			return false, nil
		}
		h, err := w.read(ctx)
		if err != nil {
			return false, err
		}
		if err := w.scan(h, func(e *headEntry) { waiting = append(waiting, e.found()) }); err != nil {
			return false, err
		}
		slices.SortFunc(waiting, func(a, b *found) int { return strings.Compare(b.ID, a.ID) })
	}
}

// add adds an entry, and returns true if the page was full already: then there
// is a next page.
func (p *pager) add(e *Entry) (full bool) {
	if n := len(p.page.Entries); n == p.limit {
		p.page.Next = p.page.Entries[n-1].ID
		return true
	}
	p.page.Entries = append(p.page.Entries, e)
	return false
}

// stop reports whether the time is up; the next page then goes on below an id.
// It goes on where the next page would begin where this one did: blocks that
// overlap in time come again with each page.
func (p *pager) stop(below string) bool {
	if !p.clock.over() || below <= p.q.from || below >= p.q.below {
		return false
	}
	p.page.Next = below
	p.page.Searched = timeOfID(below)
	return true
}

// timeOfID returns the time of an id, or of the beginning of one.
func timeOfID(id string) time.Time {
	const least = "00000000-0000-7000-8000-000000000000"
	if n := len(id); n < len(least) {
		id += least[n:]
	}
	at, _ := clock.TimeOf(id[:len(least)])
	return at
}

// ByID returns one entry with its request and answer. It returns nil if there is
// none, or none any more.
func (l *Log) ByID(ctx context.Context, id string) (*Entry, error) {
	if _, ok := clock.TimeOf(id); !ok {
		return nil, nil //nolint:nilnil // no text of this form is the id of an entry
	}
	var hit *Entry
	f := Filter{Before: id + "!", since: id, Limit: 1}
	err := l.Query(ctx, f, func(e *Entry) error { hit = e; return nil })
	return hit, err
}

// Name is what is known of a user by their id.
type Name struct {
	Email string
	Name  string // "" of a user who was deleted
}

// Names returns the users with the given ids, those who were deleted by the
// address they last had. Ids of which nothing is known are left out.
func (l *Log) Names(ctx context.Context, ids []string) (map[string]Name, error) {
	h := l.DB.For(l.Tenant)
	names, emails := map[string]Name{}, map[string]string{}
	for _, id := range ids {
		if id == "" || names[id] != (Name{}) {
			continue
		}
		u, err := user.ByID(ctx, h, user.ID(id))
		if err == nil {
			names[id] = Name{u.Email, u.Name}
			continue
		}
		email, err := emailOf(ctx, h, emails, id)
		if err != nil {
			return nil, err
		}
		if email != id {
			names[id] = Name{Email: email}
		}
	}
	return names, nil
}
