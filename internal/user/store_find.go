package user

import (
	"context"
	"math"
	"strconv"
	"strings"

	"gatehouse/internal/db"
)

// Search says which users Find looks for; its zero value asks for all.
type Search struct {
	Text   string // part of the name or of the e-mail address, without case
	Type   Type   // "" for both
	Active *bool
	// Before is the created_at that users of the page are below; 0 for no bound.
	Before int64
	Limit  int // at least 1
}

// Found is a page of users, newest first, with their permission sets. Next is the Before
// of the next page, 0 for the last one. A page may be empty and not be the last.
type Found struct {
	Users []*User
	Next  int64
}

// findWindow is how many users Find looks at for one page, so that a text that few have
// does not make it read all.
const findWindow = 20_000

// Find returns a page of users.
func Find(ctx context.Context, q db.Querier, f Search) (found Found, err error) {
	before := f.Before
	if before == 0 {
		before = math.MaxInt64
	}
	bottom, seen := int64(0), 0
	err = q.Query(ctx, `SELECT min(created_at), count(*) FROM
		(SELECT created_at FROM users WHERE tenant_id = $1 AND created_at < $2 ORDER BY created_at DESC LIMIT `+strconv.Itoa(findWindow)+`) w`,
		func(r db.Row) error {
			if !r.Null(0) {
				bottom, seen = r.Int(0), int(r.Int(1))
			}
			return nil
		}, before)
	if err != nil || seen == 0 {
		return found, err
	}
	where, args := f.where([]any{before, bottom})
	err = q.Query(ctx, `SELECT `+columns(q)+` FROM users WHERE tenant_id = $1 AND created_at < $2 AND created_at >= $3`+where+`
		ORDER BY created_at DESC LIMIT `+strconv.Itoa(f.Limit+1), func(r db.Row) error {
		found.Users = append(found.Users, scan(r))
		return nil
	}, args...)
	if err != nil {
		return found, err
	}
	switch {
	case len(found.Users) > f.Limit:
		found.Users = found.Users[:f.Limit]
		found.Next = found.Users[f.Limit-1].CreatedAt
	case seen == findWindow:
		found.Next = bottom
	}
	for _, u := range found.Users {
		if err := loadSets(ctx, q, u); err != nil {
			return found, err
		}
	}
	return found, nil
}

// where returns the conditions of a search; args are those before it.
func (f Search) where(args []any) (string, []any) {
	var b strings.Builder
	add := func(sql string, arg any) {
		args = append(args, arg)
		b.WriteString(strings.ReplaceAll(sql, "?", "$"+strconv.Itoa(len(args)+1)))
	}
	if f.Type != "" {
		add(" AND user_type = ?", string(f.Type))
	}
	if f.Active != nil {
		add(" AND active = ?", *f.Active)
	}
	if f.Text != "" {
		pattern := "%" + strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(strings.ToLower(f.Text)) + "%"
		add(` AND (lower(email) LIKE ? ESCAPE '\' OR lower(name) LIKE ? ESCAPE '\')`, pattern)
	}
	return b.String(), args
}

// CountUpTo counts the users of a tenant, up to limit.
func CountUpTo(ctx context.Context, q db.Querier, limit int) (n int, err error) {
	err = q.Query(ctx, `SELECT count(*) FROM (SELECT 1 FROM users WHERE tenant_id = $1 LIMIT `+strconv.Itoa(limit)+`) l`,
		func(r db.Row) error { n = int(r.Int(0)); return nil })
	return n, err
}
