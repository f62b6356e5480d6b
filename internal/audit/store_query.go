package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/fault"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

const (
	blocksAtOnce = 256 // ids of blocks read ahead
	rowsAtOnce   = 32  // entries in memory with their texts; one may have 128 KiB
)

// Log reads the audit log of a tenant.
type Log struct {
	DB     *db.DB
	Tenant tenant.ID
	// Skipped is called for a day whose file cannot be read, and for a damaged
	// block; the others are read nevertheless. If it is nil, and on PostgreSQL
	// for everything except blocks, an error ends the query.
	Skipped func(day string, err error)
}

// Query calls each for the entries that a filter selects, newest first; an
// error of each ends it and is returned. It holds a few entries in memory
// however many there are, and no database connection while each runs. It leaves
// out entries made meanwhile. It returns NOT_FOUND for an unknown user and
// VALIDATION for a wrong filter.
func (l *Log) Query(ctx context.Context, f Filter, each func(*Entry) error) error {
	if err := f.Check(); err != nil {
		return err
	}
	h := l.DB.For(l.Tenant)
	users, err := f.users(ctx, h)
	if err != nil {
		return err
	}
	q := &query{log: l, matcher: newMatcher(&f, users), left: f.Limit, names: h, emails: map[string]string{}, each: each}
	days, err := l.DB.Days().List(ctx)
	if err != nil {
		return err
	}
	for _, day := range days {
		if !q.reaches(day) {
			continue
		}
		err := q.day(ctx, day)
		switch {
		case err == nil && q.ended:
			return nil
		case err == nil:
		case q.failed || ctx.Err() != nil || l.Skipped == nil || l.DB.Engine() == db.Postgres:
			return err
		default:
			l.Skipped(day.String(), err)
		}
	}
	return nil
}

// query is one call of Log.Query.
type query struct {
	matcher
	log *Log
	// fromBlock, if not "", is the greatest block to read.
	fromBlock string
	left      int
	names     db.Handle
	emails    map[string]string
	each      func(*Entry) error
	ended     bool // it has returned as many entries as the filter allows
	failed    bool // for another reason than a day's data
}

// users returns the users that the filter names, nil if it names none.
func (f *Filter) users(ctx context.Context, h db.Handle) ([]string, error) {
	switch {
	case f.User != "":
		return usersOf(ctx, h, f.User)
	case f.UserID != "":
		return []string{f.UserID}, nil
	default:
		return nil, nil
	}
}

// reaches reports whether a day may have an entry that the filter selects.
func (q *query) reaches(day db.Day) bool {
	return clock.IDsFrom(day.Start()) < q.below && clock.IDsFrom((day+1).Start()) > q.from
}

// day passes on the entries of one day. Blocks come in the order of their
// greatest ids, and overlap in time: an entry is next when no later block can
// have a newer one.
func (q *query) day(ctx context.Context, day db.Day) error {
	blocks := q.blocks(day)
	var waiting []*found // newest first
	next, some, err := blocks.next(ctx)
	for err == nil && !q.ended && (some || len(waiting) > 0) {
		ready := len(waiting)
		if some {
			ready = 0
			for ready < len(waiting) && waiting[ready].ID > next {
				ready++
			}
		}
		if ready >= rowsAtOnce || ready > 0 && (!some || q.filter.Limit > 0 && ready >= q.left) {
			n := min(ready, rowsAtOnce)
			if q.filter.Limit > 0 {
				n = min(n, q.left)
			}
			err = q.give(ctx, day, waiting[:n])
			waiting = waiting[n:]
			continue
		}
		var more []*found
		if more, err = q.matches(ctx, day, next); err != nil && !q.skips(day, err) {
			return err
		}
		waiting = append(waiting, more...)
		slices.SortFunc(waiting, func(a, b *found) int { return strings.Compare(b.ID, a.ID) })
		next, some, err = blocks.next(ctx)
	}
	return err
}

// skips reports whether an error is a damaged block's; it then reports the
// block to Skipped.
func (q *query) skips(day db.Day, err error) bool {
	if !errors.Is(err, errBlock) || q.log.Skipped == nil {
		return false
	}
	q.log.Skipped(day.String(), err)
	return true
}

// matches returns the entries of a block that the filter selects; with an
// error, those before the damage.
func (q *query) matches(ctx context.Context, day db.Day, block string) (list []*found, err error) {
	err = q.read(ctx, day, func(h db.Querier) error {
		return h.Query(ctx, `SELECT head FROM audit_blocks WHERE tenant_id = $1 AND day = $2 AND last_id = $3`, func(r db.Row) error {
			head, err := unpack(r.Bytes(0))
			if err != nil {
				return err
			}
			return scanHead(head, func(e *headEntry) {
				if q.wants(e) {
					hit := e.found()
					hit.block = block
					list = append(list, hit)
				}
			})
		}, int64(day), block)
	})
	return list, err
}

// give reads the texts of entries and passes the entries on, in order. It
// leaves out entries whose texts are damaged.
func (q *query) give(ctx context.Context, day db.Day, list []*found) error {
	torn := map[string]bool{} // blocks with damaged texts
	for i, e := range list {
		if slices.ContainsFunc(list[:i], func(other *found) bool { return other.block == e.block }) {
			continue // was read with the first entry of its block
		}
		err := q.read(ctx, day, func(h db.Querier) error {
			return h.Query(ctx, `SELECT bodies FROM audit_blocks WHERE tenant_id = $1 AND day = $2 AND last_id = $3`, func(r db.Row) error {
				bodies, err := unpack(r.Bytes(0))
				for _, other := range list[i:] {
					if other.block == e.block && err == nil {
						err = other.texts(bodies)
					}
				}
				return err
			}, int64(day), e.block)
		})
		if err != nil && !q.skips(day, err) {
			return err
		}
		torn[e.block] = err != nil
	}
	for _, e := range list {
		if torn[e.block] {
			continue
		}
		var err error
		if e.User, err = emailOf(ctx, q.names, q.emails, e.UserID); err == nil {
			err = q.each(&e.Entry)
		}
		if err != nil {
			q.failed = true
			return err
		}
		if q.left--; q.filter.Limit > 0 && q.left == 0 {
			q.ended = true
		}
	}
	return nil
}

// read runs a read of a day.
func (q *query) read(ctx context.Context, day db.Day, fn func(db.Querier) error) error {
	return q.log.DB.Days().Read(ctx, q.log.Tenant, day, fn)
}

// blockList lists the blocks of a day that may have what a filter selects, by
// their greatest ids in descending order. It merges lists in that order.
type blockList struct {
	lists []*idList
}

// idList reads the ids of one index range ahead.
type idList struct {
	q     *query
	day   db.Day
	sql   string
	args  []any // from $7
	after string
	ids   []string
	last  bool // nothing comes after ids
}

// afterAll is greater than any id.
const afterAll = "~"

const (
	allBlocks = `SELECT last_id FROM audit_blocks WHERE tenant_id = $1 AND day = $2 AND last_id < $3 AND first_id < $4 AND last_id >= $5
		ORDER BY last_id DESC LIMIT $6`
	markedBlocks = `SELECT last_id FROM audit_marks WHERE tenant_id = $1 AND day = $2 AND last_id < $3 AND first_id < $4
		AND last_id >= $5 AND kind = $7 AND value = $8 AND errors >= $9 ORDER BY last_id DESC LIMIT $6`
)

// blocks returns the index ranges that together have what the filter selects.
// It takes the property that fewest blocks are likely to have.
func (q *query) blocks(day db.Day) *blockList {
	top := newestBlock(q.below)
	if q.fromBlock != "" {
		top = min(top, q.fromBlock+"!")
	}
	var lists []*idList
	marked := func(kind, value string) {
		lists = append(lists, &idList{q: q, day: day, sql: markedBlocks, args: []any{kind, value, q.filter.ErrorsOnly || q.filter.Status >= 400}, after: top})
	}
	f := &q.filter
	switch {
	case q.users != nil:
		for _, id := range q.users {
			marked(markUser, id)
		}
	case f.KeyID != "":
		marked(markKey, f.KeyID)
	case len(q.patterns) > 0 && !q.wide():
		for _, pattern := range q.patterns {
			marked(markEndpoint, pattern)
		}
	case f.Class == "5xx" || f.Status >= 500:
		marked(markClass, "5xx")
	case f.Auth != "" && f.Auth != authNone:
		marked(markAuth, f.Auth)
	case len(q.patterns) > 0:
		for _, pattern := range q.patterns {
			if area, wide := strings.CutSuffix(pattern, "*"); wide {
				marked(markArea, area)
			} else {
				marked(markEndpoint, pattern)
			}
		}
	case f.Class == "4xx" || f.Status >= 400:
		marked(markClass, "4xx")
	case f.ErrorsOnly:
		marked(markError, "")
	default:
		lists = []*idList{{q: q, day: day, sql: allBlocks, after: top}}
	}
	return &blockList{lists}
}

// wide reports whether the filter names an area of endpoints.
func (m *matcher) wide() bool {
	return slices.ContainsFunc(m.patterns, func(p string) bool { return strings.HasSuffix(p, "*") })
}

// newestBlock returns a bound of the greatest ids of blocks that have an entry
// below an id.
func newestBlock(below string) string {
	if at := timeOfID(below); !at.IsZero() {
		return clock.IDsFrom(at.Add(blockSpan))
	}
	return afterAll
}

// next returns the greatest id that was not returned yet.
func (b *blockList) next(ctx context.Context) (id string, some bool, err error) {
	for _, l := range b.lists {
		if err := l.fill(ctx); err != nil {
			return "", false, err
		}
		if len(l.ids) > 0 {
			id, some = max(id, l.ids[0]), true
		}
	}
	for _, l := range b.lists { // a block may be in several lists
		if len(l.ids) > 0 && l.ids[0] == id {
			l.ids = l.ids[1:]
		}
	}
	return id, some, nil
}

// fill reads more ids when none are left.
func (l *idList) fill(ctx context.Context) error {
	if len(l.ids) > 0 || l.last {
		return nil
	}
	l.ids = nil
	args := append([]any{int64(l.day), l.after, l.q.below, l.q.from, blocksAtOnce}, l.args...)
	err := l.q.read(ctx, l.day, func(h db.Querier) error {
		return h.Query(ctx, l.sql, func(row db.Row) error {
			l.ids = append(l.ids, row.Text(0))
			return nil
		}, args...)
	})
	if err != nil {
		return fmt.Errorf("read the blocks: %w", err)
	}
	if l.last = len(l.ids) < blocksAtOnce; len(l.ids) > 0 {
		l.after = l.ids[len(l.ids)-1]
	}
	return nil
}

// usersOf returns the users who have an address, or had it while they used the
// API.
func usersOf(ctx context.Context, h db.Handle, email string) ([]string, error) {
	var ids []string
	u, err := user.ByEmail(ctx, h, email)
	switch {
	case err == nil:
		ids = append(ids, string(u.ID))
	case !errors.Is(err, user.ErrUnknown):
		return nil, err
	}
	err = h.Query(ctx, `SELECT user_id FROM audit_users WHERE tenant_id = $1 AND email_key = $2`, func(r db.Row) error {
		if id := r.Text(0); !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
		return nil
	}, user.EmailKey(email))
	if err == nil && len(ids) == 0 {
		err = fault.New(fault.NotFound, "no user of this tenant has or had the e-mail address %s", email)
	}
	return ids, err
}

// emailOf returns a user's current address, else the last one known, else the
// id.
func emailOf(ctx context.Context, h db.Handle, known map[string]string, id string) (string, error) {
	if id == "" {
		return "", nil
	}
	if email, ok := known[id]; ok {
		return email, nil
	}
	email := id
	u, err := user.ByID(ctx, h, user.ID(id))
	switch {
	case err == nil:
		email = u.Email
	case !errors.Is(err, user.ErrUnknown):
		return "", err
	default:
		err = h.Query(ctx, `SELECT email FROM audit_users WHERE tenant_id = $1 AND user_id = $2
			ORDER BY seen_at DESC LIMIT 1`, func(r db.Row) error {
			email = r.Text(0)
			return nil
		}, id)
		if err != nil {
			return "", err
		}
	}
	if len(known) >= maxNames {
		clear(known)
	}
	known[id] = email
	return email, nil
}
