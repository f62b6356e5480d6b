package endpoint

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"gatehouse/internal/clock"
	"gatehouse/internal/credential"
	"gatehouse/internal/custom"
	"gatehouse/internal/db"
	"gatehouse/internal/secret"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// scanned is how many rows a page of a filtered list looks at. A page ends early
// when none of them pass.
const scanned = 20_000

// conditions collects the conditions of a statement with their arguments.
type conditions struct {
	text string
	args []any
}

// and adds a condition: text, and after it the placeholder of arg.
func (c *conditions) and(text string, arg any) {
	c.args = append(c.args, arg)
	c.text += " AND " + text + " $" + strconv.Itoa(len(c.args)+1)
}

// between bounds an id by times and by the cursor of a page; "" and zero are no
// bound. All are about the time at which the id was made.
func (c *conditions) between(column string, b bounds) {
	if b.before != "" {
		c.and(column+" <", b.before)
	}
	if !b.since.IsZero() {
		c.and(column+" >=", clock.IDsFrom(b.since))
	}
	if !b.until.IsZero() {
		c.and(column+" <", clock.IDsFrom(b.until))
	}
}

// bounds are the part of a list that a page is of: ids before one, made in a time.
type bounds struct {
	before       string
	since, until time.Time
}

// runQuery selects runs. Empty members select all.
type runQuery struct {
	target  custom.Target
	slug    string
	status  string
	eventID string
	bounds
	limit int
}

// runColumnsBrief are those of a run in a list: without what may be large.
const runColumnsBrief = `run_id, started_at, took_us, cpu_us, target_kind, target, slug, auth, user_id, request_id, event_id,
	status, error_code, SUBSTR(error, 1, 500), tries, '', '', '', event_kind, skipped, skipped_because`

// runPage returns a page of runs, newest first, without trace and console, and the
// id that the next page comes before: "" when there is no more. A page may be
// short, or empty, with more to come: see scanned.
func (s store) runPage(ctx context.Context, tenantID tenant.ID, q runQuery) (page []*Run, next string, err error) {
	c := conditions{}
	c.between("run_id", q.bounds)
	if q.slug != "" {
		c.and("slug =", q.slug)
	}
	if q.eventID != "" {
		c.text += " AND event_id <> ''"
		c.and("event_id =", q.eventID)
	}
	if q.target.Name != "" {
		c.and("target =", q.target.Name)
		c.and("target_kind =", q.target.Kind)
	}
	h := s.d.For(tenantID)
	among := `SELECT run_id FROM runs WHERE tenant_id = $1` + c.text + ` ORDER BY run_id DESC LIMIT `
	outer := c
	sql := `SELECT ` + runColumnsBrief + ` FROM runs WHERE tenant_id = $1` + c.text
	if q.status != "" {
		sql = `SELECT ` + runColumnsBrief + ` FROM runs WHERE tenant_id = $1 AND run_id IN (` + among + strconv.Itoa(scanned) + `)`
		outer = conditions{args: slices.Clone(c.args)}
		outer.and("status =", q.status)
		sql += outer.text
	}
	err = h.Query(ctx, sql+` ORDER BY run_id DESC LIMIT `+strconv.Itoa(q.limit+1), func(r db.Row) error {
		page = append(page, scanRun(r))
		return nil
	}, outer.args...)
	if err != nil || len(page) > q.limit {
		return page[:min(q.limit, len(page))], lastOf(page, q.limit), err
	}
	if q.status != "" {
		err = h.Query(ctx, among+`1 OFFSET `+strconv.Itoa(scanned-1), func(r db.Row) error { next = r.Text(0); return nil }, c.args...)
	}
	return page, next, err
}

func lastOf(page []*Run, limit int) string {
	if len(page) <= limit {
		return ""
	}
	return page[limit-1].ID
}

// people returns the users with ids. One that is gone is not in the map.
func (s store) people(ctx context.Context, tenantID tenant.ID, ids map[user.ID]bool) (map[user.ID]*user.User, error) {
	found := make(map[user.ID]*user.User, len(ids))
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		if id == "" {
			continue
		}
		u, err := user.ByID(ctx, s.d.For(tenantID), id)
		if errors.Is(err, user.ErrUnknown) {
			continue
		}
		if err != nil {
			return nil, err
		}
		found[id] = u
	}
	return found, nil
}

// userByEmail returns the id of the user with an e-mail address, "" if there is
// none.
func (s store) userByEmail(ctx context.Context, tenantID tenant.ID, address string) (user.ID, error) {
	u, err := user.ByEmail(ctx, s.d.For(tenantID), address)
	if errors.Is(err, user.ErrUnknown) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return u.ID, nil
}

// newToken is NewToken for a request of the administration.
func (s store) newToken(ctx context.Context, clk clock.Clock, actor string, tenantID tenant.ID, slug string) (secret.Token, error) {
	return NewToken(ctx, s.d, clk, actor, tenantID, slug)
}

// figure is what is counted of one run.
type figure struct {
	at     time.Time
	status string
	tookUS int64
}

// figures returns a figure for each of an endpoint's newest runs since a time, at
// most limit of them.
func (s store) figures(ctx context.Context, tenantID tenant.ID, slug string, since time.Time, limit int) ([]figure, error) {
	var list []figure
	err := s.d.For(tenantID).Query(ctx, `SELECT run_id, status, took_us FROM runs WHERE tenant_id = $1 AND slug = $2 AND run_id >= $3
		ORDER BY run_id DESC LIMIT `+strconv.Itoa(limit), func(r db.Row) error {
		at, _ := clock.TimeOf(r.Text(0)) // putRuns stores no other ids
		list = append(list, figure{at, r.Text(1), r.Int(2)})
		return nil
	}, slug, clock.IDsFrom(since))
	return list, err
}

// addRepeats adds to the counts of repeated deliveries.
func (s store) addRepeats(ctx context.Context, tenantID tenant.ID, byEvent map[string]repeated) error {
	return s.d.For(tenantID).Write(ctx, func(tx db.Tx) error {
		for _, id := range slices.Sorted(maps.Keys(byEvent)) { // nodes lock rows in one order
			_, err := tx.Exec(ctx, `INSERT INTO event_repeats (tenant_id, event_id, times, last_at) VALUES ($1, $2, $3, $4)
				ON CONFLICT (tenant_id, event_id) DO UPDATE SET times = event_repeats.times + excluded.times,
				last_at = CASE WHEN event_repeats.last_at > excluded.last_at THEN event_repeats.last_at ELSE excluded.last_at END`,
				id, byEvent[id].times, byEvent[id].last)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// deliveredEvent is an event of a webhook: a delivery that was processed, or one
// that failed and was not processed since.
type deliveredEvent struct {
	ID         string
	Slug       string
	Auth       credential.Kind
	Kind       string
	ReceivedAt int64 // microseconds
	Processed  bool
	Run        *Run // the last one, if it is kept
	Repeats    repeated
}

// The values of eventQuery.status, besides "" for both.
const (
	Processed   = "processed"
	Unprocessed = "failed"
)

// eventQuery selects events. Empty members select all.
type eventQuery struct {
	slug   string
	kind   string
	status string
	id     string // one event
	bounds
	limit int
}

// eventPage returns a page of events, newest first, and the id that the next page
// comes before, as runPage does.
func (s store) eventPage(ctx context.Context, tenantID tenant.ID, q eventQuery) (page []*deliveredEvent, next string, err error) {
	var ends []string // how far each part was looked at, where that is not to its end
	for _, part := range []struct {
		status string
		read   func(context.Context, tenant.ID, eventQuery) ([]*deliveredEvent, string, error)
	}{{Processed, s.processedEvents}, {Unprocessed, s.failedEvents}} {
		if q.status != "" && q.status != part.status {
			continue
		}
		found, end, err := part.read(ctx, tenantID, q)
		if err != nil {
			return nil, "", err
		}
		page = append(page, found...)
		if end != "" {
			ends = append(ends, end)
		}
	}
	slices.SortFunc(page, func(a, b *deliveredEvent) int { return strings.Compare(b.ID, a.ID) })
	if len(ends) > 0 { // nothing older than the newest end may be shown yet
		next = slices.Max(ends)
		page = slices.DeleteFunc(page, func(e *deliveredEvent) bool { return e.ID < next })
	}
	if len(page) > q.limit {
		page = page[:q.limit]
		next = page[q.limit-1].ID
	}
	return page, next, s.completeEvents(ctx, tenantID, page)
}

// processedEvents returns a part of the events that were processed. end is the id
// down to which it looked, "" for to the end.
func (s store) processedEvents(ctx context.Context, tenantID tenant.ID, q eventQuery) (list []*deliveredEvent, end string, err error) {
	c := conditions{}
	c.between("event_id", q.bounds)
	if q.slug != "" {
		c.and("slug =", q.slug)
	}
	if q.id != "" {
		c.and("event_id =", q.id)
	}
	return s.eventsOf(ctx, tenantID, `SELECT event_id, slug, auth, kind, received_at FROM events WHERE tenant_id = $1`+c.text+
		` ORDER BY event_id DESC LIMIT `, c, q, true)
}

// failedEvents is processedEvents for events of which no delivery was processed.
func (s store) failedEvents(ctx context.Context, tenantID tenant.ID, q eventQuery) (list []*deliveredEvent, end string, err error) {
	c := conditions{}
	c.between("event_id", q.bounds)
	if q.slug != "" {
		c.and("slug =", q.slug)
	}
	if q.id != "" {
		c.and("event_id =", q.id)
	}
	return s.eventsOf(ctx, tenantID, `SELECT event_id, MAX(slug), MAX(auth), MAX(event_kind), MIN(started_at) FROM runs
		WHERE tenant_id = $1 AND event_id <> '' AND status = 'failed'`+c.text+`
		AND NOT EXISTS (SELECT 1 FROM events e WHERE e.tenant_id = $1 AND e.event_id = runs.event_id)
		GROUP BY event_id ORDER BY event_id DESC LIMIT `, c, q, false)
}

// eventsOf reads what a statement selects and passes the filter by kind.
func (s store) eventsOf(ctx context.Context, tenantID tenant.ID, sql string, c conditions, q eventQuery, processed bool) (list []*deliveredEvent, end string, err error) {
	most := q.limit + 1
	if q.kind != "" {
		most = scanned
	}
	n := 0
	err = s.d.For(tenantID).Query(ctx, sql+strconv.Itoa(most), func(r db.Row) error {
		if n++; n == most {
			end = r.Text(0)
		}
		if (q.kind == "" || r.Text(3) == q.kind) && len(list) <= q.limit {
			list = append(list, &deliveredEvent{
				ID: r.Text(0), Slug: r.Text(1), Auth: credential.Kind(r.Text(2)), Kind: r.Text(3), ReceivedAt: r.Int(4), Processed: processed,
			})
		}
		return nil
	}, c.args...)
	if len(list) > q.limit {
		end = list[q.limit].ID
	}
	return list, end, err
}

// completeEvents adds the last run and the repeats to events.
func (s store) completeEvents(ctx context.Context, tenantID tenant.ID, list []*deliveredEvent) error {
	if len(list) == 0 {
		return nil
	}
	byID, args, places := map[string]*deliveredEvent{}, []any{}, []string{}
	for _, e := range list {
		byID[e.ID] = e
		args = append(args, e.ID)
		places = append(places, "$"+strconv.Itoa(len(args)+1))
	}
	in := " IN (" + strings.Join(places, ", ") + ")"
	h := s.d.For(tenantID)
	err := h.Query(ctx, `SELECT `+runColumnsBrief+` FROM runs WHERE tenant_id = $1 AND event_id <> '' AND event_id`+in+` ORDER BY run_id`,
		func(r db.Row) error {
			run := scanRun(r)
			if e := byID[run.EventID]; run.Status != Duplicate {
				e.Run = run
			}
			return nil
		}, args...)
	return errors.Join(err, h.Query(ctx, `SELECT event_id, times, last_at FROM event_repeats WHERE tenant_id = $1 AND event_id`+in,
		func(r db.Row) error { byID[r.Text(0)].Repeats = repeated{r.Int(1), r.Int(2)}; return nil }, args...))
}

// eventByKey returns the id of the event that was recognized by the hash of a key
// at any of the endpoints, "" for none.
func (s store) eventByKey(ctx context.Context, tenantID tenant.ID, slugs, hashes []string) (string, error) {
	for _, slug := range slugs {
		for _, hash := range hashes {
			id, err := s.seen(ctx, tenantID, slug, hash)
			if err != nil || id != "" {
				return id, err
			}
		}
	}
	return "", nil
}
