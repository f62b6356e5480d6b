package audit

import (
	"context"
	"time"

	"gatehouse/internal/clock"
	"gatehouse/internal/db"
)

// Bucket counts the entries of one span of time by the class of their status.
type Bucket struct{ Answered, Refused, Failed int64 } // 2xx and 3xx; 4xx; 5xx

// Histogram counts entries over time.
type Histogram struct {
	Start   time.Time // of the first bucket
	Width   time.Duration
	Buckets []Bucket
	// Next is what the parameter below is for the rest, if the time was up
	// before all was counted; "" if all was.
	Next string
	// Counted is the time down to which everything is counted.
	Counted time.Time
}

// Histogram counts the entries that a filter selects between f.Since and f.Until,
// in n buckets of equal width, newest first, for about d. Where it stops early, a
// call with below = Next counts the rest, and no entry twice. It returns the errors
// of Page.
func (l *Log) Histogram(ctx context.Context, f Filter, n int, below string, d time.Duration) (Histogram, error) {
	out := Histogram{Start: f.Since, Width: f.Until.Sub(f.Since) / time.Duration(n), Buckets: make([]Bucket, n), Counted: f.Since}
	q, err := l.query(ctx, f)
	if err != nil {
		return out, err
	}
	q.fromBlock = below
	since, width := clock.Micros(f.Since), out.Width.Microseconds()
	count := func(e *headEntry) {
		b := &out.Buckets[min(max((e.micros-since)/width, 0), int64(n-1))]
		switch {
		case e.status >= 500:
			b.Failed++
		case e.status >= 400:
			b.Refused++
		default:
			b.Answered++
		}
	}
	watch := within(d)
	err = q.days(ctx, func(day db.Day) (bool, error) {
		w, err := q.walk(ctx, day)
		if err != nil {
			return false, err
		}
		for first := true; ; first = false {
			frontier := w.frontier()
			if frontier == "" {
				return true, nil
			}
			if !first && watch.over() {
				out.Next, out.Counted = frontier, timeOfID(frontier)
				return false, nil
			}
			h, err := w.read(ctx)
			if err != nil {
				return false, err
			}
			if err := w.scan(h, count); err != nil {
				return false, err
			}
		}
	})
	return out, err
}
