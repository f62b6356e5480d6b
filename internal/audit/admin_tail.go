package audit

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
)

const (
	heartbeat = 15 * time.Second
	// sessionEvery is how often it is checked whether the session of a tail has
	// ended.
	sessionEvery = 5 * time.Second
	// longestTail is when a client must connect again.
	longestTail = time.Hour
	// tailResumes is how far back a tail that was interrupted goes on.
	tailResumes = time.Minute
)

// serveTail sends entries as they are written, as server-sent events:
//
//   - "entry": a LogEntry, with its id as the event's;
//   - "skipped": {"count"}: so many matching entries were left out, because there
//     were more than a reader can follow;
//   - "again": the rights of the viewer may have changed: connect again;
//   - "ended": the session has ended.
//
// It goes on after the entry that the parameter after or, when a browser connects
// again by itself, the header Last-Event-ID names. A comment is sent every 15 s when there is nothing else.
func (a *AdminAPI) serveTail(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	q, err := queryOf(c)
	if err != nil {
		return httpapi.Reply{}, err
	}
	f, _ := q.filter(c.Viewer)
	now, after := a.clock.Now(), cmp.Or(q.text("after"), c.Request.Header.Get("Last-Event-ID"))
	from := now
	if after != "" {
		if from = timeOfID(after); from.IsZero() || len(after) > maxShort {
			q.wrong["after"] = "expected the id of an entry"
		}
	}
	if err := q.err(); err != nil {
		return httpapi.Reply{}, err
	}
	f.Since = max0(f.Since, from, now.Add(-tailResumes))
	var users []string
	if f.User != "" {
		users = []string{} // nobody
		if mayAsk(c.Viewer, f.User) {
			if users, err = a.store.users(ctx, c.Viewer.Tenant(), &f); err != nil {
				return httpapi.Reply{}, err
			}
		}
	} else if f.UserID != "" {
		users = []string{f.UserID}
	}
	tl := &tail{session: c.Session.ID, match: newMatcher(&f, users), news: make(chan struct{}, 1)}
	tenantID := c.Viewer.Tenant()
	closeTail, err := a.tails.open(tenantID, tl, func(ctx context.Context) {
		(&tailReader{store: a.store, clock: a.clock, tails: a.tails, of: tenantID, seen: map[string]bool{}}).run(ctx)
	})
	if err != nil {
		return httpapi.Reply{}, err
	}
	s := &stream{api: a, call: c, tail: tl, sent: map[string]bool{}, after: after}
	return httpapi.Reply{Stream: func(ctx context.Context, send func([]byte) error) error {
		defer closeTail()
		s.send = send
		if err := s.send([]byte(": listening\n\n")); err != nil {
			return err
		}
		if after != "" {
			if err := s.resume(ctx, f); err != nil {
				return err
			}
		}
		return s.run(ctx)
	}}, nil
}

// max0 returns the latest of several times.
func max0(list ...time.Time) (latest time.Time) {
	for _, t := range list {
		if t.After(latest) {
			latest = t
		}
	}
	return latest
}

// stream sends one tail.
type stream struct {
	api   *AdminAPI
	call  *httpapi.Authed
	tail  *tail
	send  func([]byte) error
	after string          // "" or the id of the last entry that the client has
	sent  map[string]bool // by resume; the tail may bring them again
}

// resume sends what was stored since the client's last entry.
func (s *stream) resume(ctx context.Context, f Filter) error {
	list, older, err := newer(f, s.after, func(f Filter) (Page, error) { return s.api.page(ctx, s.call, f) })
	if err != nil {
		return err
	}
	if older {
		if err := s.event("skipped", "", LogSkipped{Count: 1}); err != nil {
			return err
		}
	}
	if err := s.entries(ctx, list); err != nil {
		return err
	}
	for _, e := range list {
		s.sent[e.ID] = true
	}
	return nil
}

// newer returns the entries after an id, oldest first, at most the tailHeld newest;
// older reports whether there are more. It reads page after page: one whose time
// is up may be empty.
func newer(f Filter, after string, page func(Filter) (Page, error)) (list []*Entry, older bool, err error) {
	for more := true; more && len(list) <= tailHeld; {
		f.Limit = tailHeld + 1 - len(list)
		p, err := page(f)
		if err != nil {
			return nil, false, err
		}
		for _, e := range p.Entries {
			if e.ID > after {
				list = append(list, e)
			}
		}
		f.Before, more = p.Next, p.Next > after
	}
	if older = len(list) > tailHeld; older {
		list = list[:tailHeld]
	}
	slices.Reverse(list)
	return list, older, nil
}

// run sends until the connection, the session or the hour ends.
func (s *stream) run(ctx context.Context) error {
	beat, check, end := time.NewTicker(heartbeat), time.NewTicker(sessionEvery), time.NewTimer(longestTail)
	defer beat.Stop()
	defer check.Stop()
	defer end.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-end.C:
			return s.event("again", "", struct{}{})
		case <-beat.C:
			err = s.send([]byte(": \n\n"))
		case <-check.C:
			var over bool
			if over, err = s.over(ctx); over {
				return err
			}
		case <-s.tail.news:
			entries, skipped := s.tail.take()
			if err = s.entries(ctx, entries); err == nil && skipped > 0 {
				err = s.event("skipped", "", LogSkipped{Count: skipped})
			}
		}
		if err != nil {
			return err
		}
	}
}

// over reports whether the tail must end, and says so to the client.
func (s *stream) over(ctx context.Context) (bool, error) {
	err := s.api.others.SignedIn(ctx, s.call)
	if fault.CodeOf(err) == fault.Unauthorized {
		return true, s.event("ended", "", struct{}{})
	}
	if err != nil {
		return false, nil //nolint:nilerr // the database cannot be asked: the next check does
	}
	current, err := s.api.others.Current(ctx, s.call.Viewer.Tenant())
	if err == nil && current != s.call.Config {
		return true, s.event("again", "", struct{}{})
	}
	return false, nil
}

// LogSkipped says how many entries, at least, a tail left out.
type LogSkipped struct {
	Count int64 `json:"count"`
}

// entries sends entries as the viewer may see them.
func (s *stream) entries(ctx context.Context, list []*Entry) error {
	shown, err := s.api.show(ctx, s.call, list)
	if err != nil {
		return err
	}
	for _, e := range shown {
		if s.sent[e.ID] {
			delete(s.sent, e.ID)
			continue
		}
		if err := s.event("entry", e.ID, e); err != nil {
			return err
		}
	}
	return nil
}

func (s *stream) event(name, id string, data any) error {
	piece := []byte("event: " + name + "\n")
	if id != "" {
		piece = append(piece, "id: "+id+"\n"...)
	}
	piece = append(piece, "data: "...)
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	return s.send(append(append(piece, text...), "\n\n"...))
}
