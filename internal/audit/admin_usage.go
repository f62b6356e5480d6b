package audit

import (
	"cmp"
	"context"
	"slices"
	"time"

	"gatehouse/internal/clock"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/tenant"
)

// Usage counts requests over time, from rows of a minute that are kept 30 days;
// those that are a day old are of fifteen minutes. It counts every request,
// whatever the toggles of the audit log say.
type Usage struct {
	From    time.Time  `json:"from"`
	To      time.Time  `json:"to"`
	WidthMS int64      `json:"widthMs"` // of a point of a series
	Total   Counts     `json:"total"`
	Series  []Counts   `json:"series"`
	Rows    []UsageRow `json:"rows"` // most requests first, at most 100
	More    bool       `json:"more"` // there are more rows
}

// Counts are what usage counts. Times are in milliseconds, 0 without a request.
type Counts struct {
	Requests int64   `json:"requests"`
	Errors   int64   `json:"errors"`  // status 400 and above
	Failed   int64   `json:"failed"`  // status 500 and above
	Limited  int64   `json:"limited"` // 429: a limit was hit
	P50MS    float64 `json:"p50Ms"`
	P95MS    float64 `json:"p95Ms"`
}

// UsageRow is usage of one endpoint or API key.
type UsageRow struct {
	Name     string  `json:"name"` // of the endpoint; the key's id
	Key      *LogKey `json:"key"`
	Total    Counts  `json:"total"`
	Requests []int64 `json:"requests"` // by the points of the series
	Errors   []int64 `json:"errors"`
}

const (
	defaultPoints = 84
	maxUsageNames = 100
	// widestAPI is where the points are at least of fifteen minutes.
	fineSpan = thinAfter
)

func (s *usageSums) counts() Counts {
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return Counts{Requests: s.requests, Errors: s.errors, Failed: s.failed, Limited: s.limited, P50MS: ms(s.quantile(.5)), P95MS: ms(s.quantile(.95))}
}

// usageSpan is a span of time in points of equal width.
type usageSpan struct {
	from, width int64 // microseconds
	points      int
}

// spanOf returns a span of about n points that begins and ends on whole minutes
// or, where it reaches back further than minutes are kept, quarters of an hour.
func spanOf(from, to, now time.Time, n int) usageSpan {
	unit := minute
	if now.Sub(from) > fineSpan {
		unit = coarse
	}
	begin, end := clock.Micros(from), clock.Micros(to)
	begin -= begin % unit
	width := max((end-begin+int64(n)-1)/int64(n), unit)
	width = (width + unit - 1) / unit * unit
	return usageSpan{from: begin, width: width, points: int((end - begin + width - 1) / width)}
}

func (s usageSpan) end() int64 { return s.from + s.width*int64(s.points) }

// before returns the span of the same length that ends where s begins.
func (s usageSpan) before() usageSpan {
	s.from -= s.width * int64(s.points)
	return s
}

// usageOf adds usage up by point and by name.
type usageOf struct {
	span   usageSpan
	total  usageSums
	series []usageSums
	names  map[string]*nameSums
}

type nameSums struct {
	name  string
	total usageSums
	by    map[int]*usageSums // by point
}

func newUsageOf(span usageSpan) *usageOf {
	return &usageOf{span: span, series: make([]usageSums, span.points), names: map[string]*nameSums{}}
}

func (u *usageOf) add(point int, name string, s *usageSums) {
	if point < 0 || point >= u.span.points {
		return
	}
	u.total.add(s)
	u.series[point].add(s)
	n := u.names[name]
	if n == nil {
		n = &nameSums{name: name, by: map[int]*usageSums{}}
		u.names[name] = n
	}
	n.total.add(s)
	if n.by[point] == nil {
		n.by[point] = &usageSums{}
	}
	n.by[point].add(s)
}

func (u *usageOf) counts() []Counts {
	list := make([]Counts, len(u.series))
	for i := range u.series {
		list[i] = u.series[i].counts()
	}
	return list
}

// sorted returns the names in an order.
func (u *usageOf) sorted(compare func(a, b *nameSums) int) []*nameSums {
	var list []*nameSums
	for _, n := range u.names {
		list = append(list, n)
	}
	slices.SortFunc(list, func(a, b *nameSums) int { return cmp.Or(compare(a, b), cmp.Compare(a.name, b.name)) })
	return list
}

func (u *usageOf) row(n *nameSums) UsageRow {
	row := UsageRow{Name: n.name, Total: n.total.counts(), Requests: make([]int64, u.span.points), Errors: make([]int64, u.span.points)}
	for i, s := range n.by {
		row.Requests[i], row.Errors[i] = s.requests, s.errors
	}
	return row
}

func (a *AdminAPI) serveUsage(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	q, err := queryOf(c)
	if err != nil {
		return httpapi.Reply{}, err
	}
	now := a.clock.Now().UTC()
	f := Filter{Since: q.instant("from"), Until: q.instant("to")}
	q.span(&f, now)
	by := cmp.Or(q.text("by"), "endpoint")
	if by != "endpoint" && by != "key" {
		q.wrong["by"] = "expected endpoint or key"
	}
	points := q.number("buckets", defaultPoints, 1, maxBuckets)
	if err := q.err(); err != nil {
		return httpapi.Reply{}, err
	}
	u, err := a.usage(ctx, c.Viewer.Tenant(), spanOf(f.Since, f.Until, now, points), by == "key", q.text("name"))
	if err != nil {
		return httpapi.Reply{}, err
	}
	out := Usage{
		From: clock.FromMicros(u.span.from), To: clock.FromMicros(u.span.end()), WidthMS: u.span.width / 1000,
		Total: u.total.counts(), Series: u.counts(), Rows: []UsageRow{},
	}
	list := u.sorted(func(a, b *nameSums) int { return cmp.Compare(b.total.requests, a.total.requests) })
	out.More = len(list) > maxUsageNames
	for _, n := range list[:min(len(list), maxUsageNames)] {
		out.Rows = append(out.Rows, u.row(n))
	}
	if by == "key" {
		err = a.nameKeys(ctx, c.Viewer.Tenant(), out.Rows)
	}
	return reply(out, nil, err)
}

// nameKeys adds to rows of keys their names.
func (a *AdminAPI) nameKeys(ctx context.Context, t tenant.ID, rows []UsageRow) error {
	var ids []string
	for _, r := range rows {
		ids = append(ids, r.Name)
	}
	names, err := a.others.KeyNames(ctx, t, ids)
	for i := range rows {
		rows[i].Key = &LogKey{ID: rows[i].Name, Name: textOrNull(names[rows[i].Name])}
	}
	return err
}

// usage reads usage by endpoint or key, of all or of one name.
func (a *AdminAPI) usage(ctx context.Context, t tenant.ID, span usageSpan, keys bool, name string) (*usageOf, error) {
	leave, err := a.enter(ctx, t)
	if err != nil {
		return nil, err
	}
	defer leave()
	u := newUsageOf(span)
	err = a.store.usage(ctx, t, span, keys, func(point int, of string, s *usageSums) {
		if name == "" || of == name {
			u.add(point, of, s)
		}
	})
	return u, err
}
