package user

import (
	"context"
	"math"
	"strconv"
	"strings"

	"gatehouse/internal/db"
)

// CountWithRoles returns how many active users have one of some roles, counted up to
// limit.
func CountWithRoles(ctx context.Context, q db.Querier, roles []string, limit int) (n int, err error) {
	if len(roles) == 0 {
		return 0, nil
	}
	args := make([]any, len(roles))
	places := make([]string, len(roles))
	for i, role := range roles {
		args[i], places[i] = role, "$"+strconv.Itoa(i+2)
	}
	err = q.Query(ctx, `SELECT count(*) FROM (SELECT 1 FROM users WHERE tenant_id = $1 AND active = 1 AND role IN (`+strings.Join(places, ",")+`)
		LIMIT `+strconv.Itoa(limit)+`) l`, func(r db.Row) error {
		n = int(r.Int(0))
		return nil
	}, args...)
	return n, err
}

// CountOfType counts the active users of a type, up to a limit.
func CountOfType(ctx context.Context, q db.Querier, of Type, limit int) (n int, err error) {
	err = q.Query(ctx, `SELECT count(*) FROM (SELECT 1 FROM users WHERE tenant_id = $1 AND active = 1 AND user_type = $2
		LIMIT `+strconv.Itoa(limit)+`) l`, func(r db.Row) error {
		n = int(r.Int(0))
		return nil
	}, string(of))
	return n, err
}

// PageOfType calls each for at most limit active users of a type that were created
// before a time, newest first, without their permission sets; 0 is no bound.
func PageOfType(ctx context.Context, q db.Querier, of Type, before int64, limit int, each func(*User) error) error {
	if before == 0 {
		before = math.MaxInt64
	}
	return q.Query(ctx, `SELECT `+columns(q)+` FROM users WHERE tenant_id = $1 AND user_type = $2 AND active = 1 AND created_at < $3
		ORDER BY created_at DESC LIMIT `+strconv.Itoa(limit),
		func(r db.Row) error { return each(scan(r)) }, string(of), before)
}
