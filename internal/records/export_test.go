package records

import (
	"context"
	"math"
	"testing"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/admission"
	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// Spy returns a session that calls tell with each statement it reads with.
func Spy(s *Session, tell func(sql string, args []any)) *Session {
	return &Session{store: s.store, viewer: s.viewer, h: spy{s.h, tell}}
}

type spy struct {
	db.Handle
	tell func(sql string, args []any)
}

func (s spy) Query(ctx context.Context, sql string, each func(db.Row) error, args ...any) error {
	s.tell(sql, args)
	return s.Handle.Query(ctx, sql, each, args...)
}

// Pausing asks q for a work.
func Pausing(q db.Handle, work *admission.Work) db.Querier { return pausing{q, work} }

// BatchesTake sets how long a batch may take, and returns a function that restores the
// previous value.
func BatchesTake(d time.Duration) (undo func()) {
	was := batchTime
	batchTime = d
	return func() { batchTime = was }
}

// On a slow machine, too, the caller of a deletion clears all references itself, unless
// a test says otherwise.
func init() { clearFor = time.Minute }

// ClearFor sets how long a deletion clears references itself, and returns a
// function that restores the previous value.
func ClearFor(d time.Duration) (undo func()) {
	was := clearFor
	clearFor = d
	return func() { clearFor = was }
}

// MaxEntries bounds the index rows of a record, and of a unit's changes, until the test
// ends.
func MaxEntries(t testing.TB, n int) {
	was := maxEntries
	maxEntries = n
	t.Cleanup(func() { maxEntries = was })
}

// SiftAtMost sets how many rows the store looks at for one page.
func SiftAtMost(s *Store, rows int) { s.sifts = rows }

// EncodeCursor encodes a cursor.
func EncodeCursor(key []byte, scope string, before int64, id string, after, top int64) string {
	return cursor{before: before, beforeID: id, after: after, top: top}.encode(key, scope)
}

// DecodeCursor decodes a cursor.
func DecodeCursor(key []byte, scope, text string) (before int64, id string, after, top int64, err error) {
	c, err := decodeCursor(key, scope, text)
	return c.before, c.beforeID, c.after, c.top, err
}

// FillPage fills a page from records of the given sizes, newest first, the
// given number of times. It returns the number of records of the last page, and
// how many rows each of its statements read.
func FillPage(limit, bytes, times int, sizes []int) (count int, statements []int, err error) {
	var scope access.Scope
	for range times {
		statements = nil
		c := &cut{s: &Session{store: &Store{}}, limit: limit, bytes: bytes, scope: &scope, show: func(dst []byte, rec *row) []byte { return append(dst, rec.data...) }}
		err = c.fill(cursor{}, func(w window, each func(*row) error) error {
			from, read := 0, 0
			if w.before > 0 {
				from = len(sizes) - int(w.before) + 1
			}
			defer func() { statements = append(statements, read) }()
			for i := from; i < len(sizes) && read < w.limit; i++ {
				read++
				if err := each(&row{createdAt: int64(len(sizes) - i), data: make([]byte, sizes[i])}); err != nil {
					return err
				}
			}
			return nil
		})
		count = c.page.Count
	}
	return count, statements, err
}

// Reshape runs a Transition of entity types, fields and sharing rules in one
// transaction, however long that takes.
func Reshape(ctx context.Context, tx tenant.ConfigTx, before, after *access.Config) error {
	return (&Transition{Before: before, After: after, Inline: math.MaxInt}).Run(ctx, tx)
}

// ReassignRole runs what a Transition does to the records of a user whose role
// changes.
func ReassignRole(ctx context.Context, tx tenant.ConfigTx, config *access.Config, userID user.ID, role string) error {
	return reassignRole(ctx, tx, config, userID, role)
}

// Chunk returns how many rows a statement asks for.
func Chunk(size int64, rest, left int) int { return chunk(size, rest, left) }

// WalkPage counts the records of the first page of a walk over an entity type.
func WalkPage(ctx context.Context, tx db.Tx, entity string) (int, error) {
	list, _, err := page(ctx, tx, `entity = $4`, 0, everAfter, upTo(walkPage), "", entity)
	return len(list), err
}

// IncompleteWays returns the kinds of ways that lack a part, such as "why".
func IncompleteWays() (list []int) {
	for i, k := range ways {
		if k.prefix == "" || k.names == nil || k.condition == nil || k.ranges == nil || k.why == nil {
			list = append(list, i)
		}
	}
	return list
}

// DeleteOfFour is the statement that deletes four index rows on PostgreSQL.
var DeleteOfFour = entryDeletes[db.Postgres][1].sql

// Expire deletes the records of a tenant that are older than they are kept.
func Expire(ctx context.Context, h db.Handle, clk clock.Clock) error {
	_, err := expire(ctx, h, clk, expireFor)
	return err
}

// ExpireAll is a pass over all tenants, in turns of one page each.
func ExpireAll(ctx context.Context, d *db.DB, clk clock.Clock) error {
	return expireAll(ctx, d, clk, 0)
}

// The look-ups of unique values, of one and of a batch's.
var (
	SelectTaken    = selectTaken
	SelectTakenAny = selectTakenAny
)

// LookedUp is how many values SelectTakenAny looks up.
const LookedUp = lookedUp

// LookUps returns how many statements a batch looks up values of unique fields with.
func LookUps(ctx context.Context, s *Session, b Batch) (asked int, err error) {
	u := s.store.Begin(s.viewer.Config())
	defer u.Close()
	u.q = spy{u.h, func(string, []any) { asked++ }}
	err = u.As(s.viewer).lookUp(ctx, &b)
	return asked, err
}
