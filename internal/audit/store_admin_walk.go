package audit

import (
	"context"
	"slices"
	"strings"
	"time"

	"gatehouse/internal/db"
)

// headsAtOnce is how many heads are read by one statement; each may have
// blockBytes, compressed.
const headsAtOnce = 16

// walk reads the heads of one day's blocks that may have what a filter selects,
// newest first. It reads one head, then two, four and so on ahead, because most
// pages need the first one only.
type walk struct {
	q      *query
	day    db.Day
	blocks *blockList
	next   string // the block that comes after those of heads; "" for none
	ahead  int
	heads  []storedHead
}

// storedHead is a head as it is stored.
type storedHead struct {
	block string
	head  []byte
}

func (q *query) walk(ctx context.Context, day db.Day) (*walk, error) {
	w := &walk{q: q, day: day, blocks: q.blocks(day), ahead: 1}
	var err error
	w.next, _, err = w.blocks.next(ctx)
	return w, err
}

// frontier returns the block that read returns next, or "". No block to come has
// an entry with a greater id.
func (w *walk) frontier() string {
	if len(w.heads) > 0 {
		return w.heads[0].block
	}
	return w.next
}

// read returns the next head. It returns no head at the end.
func (w *walk) read(ctx context.Context) (h storedHead, err error) {
	if len(w.heads) == 0 {
		if err := w.fetch(ctx); err != nil || len(w.heads) == 0 {
			return storedHead{}, err
		}
	}
	h, w.heads = w.heads[0], w.heads[1:]
	return h, nil
}

// headsOf reads headsAtOnce blocks by their ids.
var headsOf = `SELECT last_id, head FROM audit_blocks WHERE tenant_id = $1 AND day = $2 AND last_id IN ($3` + func() string {
	var b strings.Builder
	for i := range headsAtOnce - 1 {
		b.WriteString(", $")
		b.WriteString([...]string{"4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "17", "18"}[i])
	}
	return b.String()
}() + `)`

func (w *walk) fetch(ctx context.Context) error {
	var ids []string
	for len(ids) < w.ahead && w.next != "" {
		ids = append(ids, w.next)
		var err error
		if w.next, _, err = w.blocks.next(ctx); err != nil {
			return err
		}
	}
	if len(ids) == 0 {
		return nil
	}
	w.ahead = min(2*w.ahead, headsAtOnce)
	args := []any{int64(w.day)}
	for i := range headsAtOnce {
		args = append(args, ids[min(i, len(ids)-1)])
	}
	err := w.q.read(ctx, w.day, func(h db.Querier) error {
		return h.Query(ctx, headsOf, func(r db.Row) error {
			w.heads = append(w.heads, storedHead{r.Text(0), slices.Clone(r.Bytes(1))})
			return nil
		}, args...)
	})
	slices.SortFunc(w.heads, func(a, b storedHead) int { return strings.Compare(b.block, a.block) })
	return err
}

// scan calls each for the entries of a head that the filter selects. A damaged
// block is reported and left out.
func (w *walk) scan(h storedHead, each func(*headEntry)) error {
	head, err := unpack(h.head)
	if err == nil {
		err = scanHead(head, func(e *headEntry) {
			if w.q.wants(e) {
				each(e)
			}
		})
	}
	if err != nil && !w.q.skips(w.day, err) {
		return err
	}
	return nil
}

// days calls each for the days that the filter reaches, newest first, until it
// returns false. A day that cannot be read is reported and left out where
// Query would do so.
func (q *query) days(ctx context.Context, each func(db.Day) (bool, error)) error {
	days, err := q.log.DB.Days().List(ctx)
	if err != nil {
		return err
	}
	for _, day := range days {
		if !q.reaches(day) {
			continue
		}
		more, err := each(day)
		if err != nil && (ctx.Err() != nil || q.log.Skipped == nil || q.log.DB.Engine() == db.Postgres) {
			return err
		}
		if err != nil {
			q.log.Skipped(day.String(), err)
			continue
		}
		if !more {
			return nil
		}
	}
	return nil
}

// stopwatch bounds how long a read may search.
type stopwatch struct{ end time.Time }

func within(d time.Duration) stopwatch { return stopwatch{time.Now().Add(d)} }

func (s stopwatch) over() bool { return time.Now().After(s.end) }
