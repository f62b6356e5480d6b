package audit

import (
	"context"
	"time"

	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
)

const (
	defaultSpan = 24 * time.Hour // where no time is asked for
	longestSpan = Retention + 24*time.Hour
	maxBuckets  = 400
)

// LogHistogram counts entries over time.
type LogHistogram struct {
	From    time.Time   `json:"from"`
	To      time.Time   `json:"to"`
	WidthMS int64       `json:"widthMs"` // of a bucket
	Buckets []LogBucket `json:"buckets"`
}

// LogBucket counts the entries of one span of time by status.
type LogBucket struct {
	Answered int64 `json:"answered"` // 2xx and 3xx
	Refused  int64 `json:"refused"`  // 4xx
	Failed   int64 `json:"failed"`   // 5xx
}

// HistogramMeta says how much of the time was counted. Where it is not all, the
// next request, with NextCursor and the same filter and times, counts more, and
// what it counts is to be added.
type HistogramMeta struct {
	Complete   bool      `json:"complete"`
	CountedTo  time.Time `json:"countedTo"` // everything since then is counted
	NextCursor *string   `json:"nextCursor"`
}

// span returns the times that are asked for: by default the last 24 hours.
func (q *params) span(f *Filter, now time.Time) {
	if f.Until.IsZero() {
		f.Until = now
	}
	if f.Since.IsZero() {
		f.Since = f.Until.Add(-defaultSpan)
	}
	switch d := f.Until.Sub(f.Since); {
	case d <= 0:
		q.wrong["from"] = "expected a time before to"
	case d > longestSpan:
		q.wrong["from"] = "expected at most 31 days before to"
	}
}

func (a *AdminAPI) serveHistogram(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	q, err := queryOf(c)
	if err != nil {
		return httpapi.Reply{}, err
	}
	f, scope := q.filter(c.Viewer)
	q.span(&f, a.clock.Now().UTC())
	n := q.number("buckets", 96, 1, maxBuckets)
	if err := q.err(); err != nil {
		return httpapi.Reply{}, err
	}
	below, err := a.cursors.Open("histogram\x00"+scope, q.text("cursor"))
	if err != nil {
		return httpapi.Reply{}, err
	}
	h := Histogram{Start: f.Since, Width: f.Until.Sub(f.Since) / time.Duration(n), Buckets: make([]Bucket, n), Counted: f.Since}
	if f.User == "" || mayAsk(c.Viewer, f.User) {
		leave, err := a.enter(ctx, c.Viewer.Tenant())
		if err != nil {
			return httpapi.Reply{}, err
		}
		defer leave()
		h, err = a.store.log(c.Viewer.Tenant()).Histogram(ctx, f, n, below, countFor)
		if err != nil && fault.CodeOf(err) != fault.NotFound {
			return httpapi.Reply{}, err
		}
	}
	out := LogHistogram{From: f.Since, To: f.Until, WidthMS: h.Width.Milliseconds(), Buckets: make([]LogBucket, n)}
	for i, b := range h.Buckets {
		out.Buckets[i] = LogBucket(b)
	}
	meta := HistogramMeta{Complete: h.Next == "", CountedTo: h.Counted}
	if h.Next != "" {
		next := a.cursors.Seal("histogram\x00"+scope, h.Next)
		meta.NextCursor = &next
	}
	return reply(out, meta, nil)
}
