package audit

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/fault"
	"gatehouse/internal/user"
)

const (
	idsAtOnce  = 256 // read ahead of one index range
	rowsAtOnce = 32  // entries in memory; one may have 128 KiB
	// maxRanges is how many endpoints are merged. Of more, the whole log is
	// read in its own order and filtered.
	maxRanges = 64
	// afterAll is greater than any entry's id.
	afterAll = "~"
)

// Query hands the entries that a filter asks for to each, newest first; an
// error from each ends it and is returned. It holds a few entries in memory
// however many there are, and no database connection while each runs. Entries
// made meanwhile are left out. A user nobody knows is NOT_FOUND, a filter that
// makes no sense VALIDATION.
func Query(ctx context.Context, h db.Handle, f Filter, each func(*Entry) error) error {
	if err := f.Check(); err != nil {
		return err
	}
	ranges, err := plan(ctx, h, f)
	if err != nil {
		return err
	}
	emails := map[string]string{}
	left := f.Limit
	for {
		n := rowsAtOnce
		if f.Limit > 0 {
			n = min(n, left)
		}
		ids, err := merge(ctx, h, ranges, n)
		if err != nil || len(ids) == 0 {
			return err
		}
		entries, err := load(ctx, h, ids)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.User, err = emailOf(ctx, h, emails, e.UserID); err != nil {
				return err
			}
			if err := each(e); err != nil {
				return err
			}
		}
		if left -= len(ids); f.Limit > 0 && left == 0 {
			return nil
		}
	}
}

// idRange reads the ids of one stretch of one index, newest first.
type idRange struct {
	where  string
	args   []any  // from $4
	before string // where to go on
	ids    []string
	last   bool // nothing comes after ids
}

// plan chooses the index ranges that together have what a filter asks for.
func plan(ctx context.Context, h db.Handle, f Filter) ([]*idRange, error) {
	before := f.Before
	if before == "" {
		before = afterAll
	}
	errorsOnly := ""
	if f.ErrorsOnly {
		errorsOnly = " AND status >= 400"
	}
	one := func(where string, args ...any) *idRange {
		return &idRange{where: where + errorsOnly, args: args, before: before}
	}
	low, wide := strings.CutSuffix(f.Endpoint, "*")
	high := strings.TrimSuffix(low, "/") + "0" // what follows '/'
	switch {
	case f.User != "":
		users, err := usersOf(ctx, h, f.User)
		if err != nil {
			return nil, err
		}
		var list []*idRange
		for _, id := range users {
			switch {
			case wide:
				list = append(list, one(" AND user_id = $4 AND endpoint >= $5 AND endpoint < $6", id, low, high))
			case f.Endpoint != "":
				list = append(list, one(" AND user_id = $4 AND endpoint = $5", id, f.Endpoint))
			default:
				list = append(list, one(" AND user_id = $4", id))
			}
		}
		return list, nil
	case wide:
		names, err := endpoints(ctx, h, low, high)
		if err != nil {
			return nil, err
		}
		if len(names) > maxRanges {
			return []*idRange{one(" AND endpoint >= $4 AND endpoint < $5", low, high)}, nil
		}
		var list []*idRange
		for _, name := range names {
			list = append(list, one(" AND endpoint = $4", name))
		}
		return list, nil
	case f.Endpoint != "":
		return []*idRange{one(" AND endpoint = $4", f.Endpoint)}, nil
	default:
		return []*idRange{one("")}, nil
	}
}

// endpoints lists the endpoints in a range that have entries, at most one more
// than maxRanges, by leaping through the index from one to the next.
func endpoints(ctx context.Context, h db.Handle, low, high string) ([]string, error) {
	var names []string
	for after := low; len(names) <= maxRanges; {
		found := false
		err := h.Query(ctx, `SELECT endpoint FROM audit_log WHERE tenant_id = $1 AND endpoint > $2 AND endpoint < $3
			ORDER BY endpoint LIMIT 1`, func(r db.Row) error {
			after, found = r.Text(0), true
			return nil
		}, after, high)
		if err != nil {
			return nil, err
		}
		if !found {
			break
		}
		names = append(names, after)
	}
	return names, nil
}

// merge takes the newest n ids off the ranges; fewer when there are no more.
func merge(ctx context.Context, h db.Handle, ranges []*idRange, n int) ([]string, error) {
	var ids []string
	for len(ids) < n {
		var newest *idRange
		for _, r := range ranges {
			if err := r.fill(ctx, h); err != nil {
				return nil, err
			}
			if len(r.ids) > 0 && (newest == nil || r.ids[0] > newest.ids[0]) {
				newest = r
			}
		}
		if newest == nil {
			break
		}
		ids = append(ids, newest.ids[0])
		newest.ids = newest.ids[1:]
	}
	return ids, nil
}

// fill reads on when nothing is read ahead.
func (r *idRange) fill(ctx context.Context, h db.Handle) error {
	if len(r.ids) > 0 || r.last {
		return nil
	}
	r.ids = nil
	err := h.Query(ctx, `SELECT entry_id FROM audit_log WHERE tenant_id = $1 AND entry_id < $2`+r.where+`
		ORDER BY entry_id DESC LIMIT $3`, func(row db.Row) error {
		r.ids = append(r.ids, row.Text(0))
		return nil
	}, append([]any{r.before, idsAtOnce}, r.args...)...)
	if err != nil {
		return err
	}
	if r.last = len(r.ids) < idsAtOnce; len(r.ids) > 0 {
		r.before = r.ids[len(r.ids)-1]
	}
	return nil
}

var loadSQL = `SELECT entry_id, at, user_id, auth, method, path, endpoint, status, ip, duration_us, request_id, request, response
	FROM audit_log WHERE tenant_id = $1 AND entry_id IN (` + placeholders(2, rowsAtOnce) + `)
	ORDER BY entry_id DESC`

// placeholders is n parameters from $first on.
func placeholders(first, n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = "$" + strconv.Itoa(first+i)
	}
	return strings.Join(list, ",")
}

// load reads entries; those that expired meanwhile are left out.
func load(ctx context.Context, h db.Handle, ids []string) ([]*Entry, error) {
	args := make([]any, rowsAtOnce)
	for i := range args {
		args[i] = ids[min(i, len(ids)-1)]
	}
	var list []*Entry
	err := h.Query(ctx, loadSQL, func(r db.Row) error {
		list = append(list, &Entry{
			ID: r.Text(0), At: clock.FromMicros(r.Int(1)), UserID: r.Text(2), Auth: r.Text(3), Method: r.Text(4),
			Path: r.Text(5), Endpoint: r.Text(6), Status: int(r.Int(7)), IP: r.Text(8),
			Duration: time.Duration(r.Int(9)) * time.Microsecond, RequestID: r.Text(10), Request: r.Text(11), Response: r.Text(12),
		})
		return nil
	}, args...)
	return list, err
}

// usersOf finds everybody who has, or had while they used the API, an address.
func usersOf(ctx context.Context, h db.Handle, email string) ([]string, error) {
	var ids []string
	u, err := user.ByEmail(ctx, h, email)
	switch {
	case err == nil:
		ids = append(ids, u.ID)
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

// emailOf is a user's address now, else the last one known, else their id.
func emailOf(ctx context.Context, h db.Handle, known map[string]string, id string) (string, error) {
	if id == "" {
		return "", nil
	}
	if email, ok := known[id]; ok {
		return email, nil
	}
	email := id
	u, err := user.ByID(ctx, h, id)
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
