package audit

import (
	"cmp"
	"context"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/tenant"
)

// Overview is the first page. Parts that the viewer may not see are null.
type Overview struct {
	Range     string           `json:"range"`
	From      time.Time        `json:"from"`
	To        time.Time        `json:"to"`
	Requests  *OverviewUsage   `json:"requests"` // needs manage_endpoints
	Events    *Events          `json:"events"`   // needs manage_endpoints
	Mails     *Mails           `json:"mails"`    // needs tenant_settings or manage_users
	Attention []OverviewNotice `json:"attention"`
	Begun     Begun            `json:"begun"`
}

// OverviewUsage are the requests of the range, beside those of the range before.
type OverviewUsage struct {
	Now       Counts     `json:"now"`
	Before    Counts     `json:"before"`
	WidthMS   int64      `json:"widthMs"`
	Series    []Counts   `json:"series"`
	Endpoints []UsageRow `json:"endpoints"` // slow or failing first, at most 20
	MoreNames bool       `json:"moreNames"`
	Keys      []UsageRow `json:"keys"` // those that hit their limit, most often first, at most 5
	KeysHit   int        `json:"keysHit"`
}

// Events are the deliveries of webhooks. A count is at most BoundedCount's.
type Events struct {
	Accepted  BoundedCount `json:"accepted"`
	Failed    BoundedCount `json:"failed"`
	FailedOf  *string      `json:"failedOf"` // the endpoint of the latest failure
	FailedAt  *time.Time   `json:"failedAt"`
	FailedRun *string      `json:"failedRun"`
	Failure   *string      `json:"failure"` // what the latest failure was
}

// BoundedCount is a count, and whether there are more.
type BoundedCount struct {
	Count int64 `json:"count"`
	More  bool  `json:"more"`
}

// Mails are the mails that wait to be sent.
type Mails struct {
	Waiting BoundedCount `json:"waiting"`
	Oldest  *time.Time   `json:"oldest"`
	Error   *string      `json:"error"` // of the last try of the oldest one that failed
	NextTry *time.Time   `json:"nextTry"`
}

// Begun says which of the first steps on a new tenant have been made.
type Begun struct {
	Entities  bool `json:"entities"`
	Sets      bool `json:"sets"`
	Keys      bool `json:"keys"`
	APIOn     bool `json:"apiOn"`
	Called    bool `json:"called"` // the API was called in the last 30 days
	Endpoints bool `json:"endpoints"`
}

// OverviewNotice is something that needs a look.
type OverviewNotice struct {
	Kind NoticeKind `json:"kind"`
	// Name is the endpoint, or the key's name; ID the key's or the run's id.
	Name  string     `json:"name"`
	ID    string     `json:"id"`
	Count int64      `json:"count"`
	P95MS float64    `json:"p95Ms"`
	Since *time.Time `json:"since"`
	Text  string     `json:"text"`
}

// NoticeKind is the kind of an OverviewNotice.
type NoticeKind string

// The kinds.
const (
	NoticeFailedRuns NoticeKind = "failed_runs"
	NoticeFailing    NoticeKind = "failing" // an endpoint answers 5xx
	NoticeSlow       NoticeKind = "slow"    // an endpoint's p95 is over a second
	NoticeLimit      NoticeKind = "limit"   // a key hits its limit
	NoticeMails      NoticeKind = "mails"   // mails wait for longer than a minute
)

// Values returns all kinds.
func (NoticeKind) Values() []string {
	return []string{string(NoticeFailedRuns), string(NoticeFailing), string(NoticeSlow), string(NoticeLimit), string(NoticeMails)}
}

// ranges are the spans that the overview has, and the width of their bars.
var ranges = map[string]struct{ span, width time.Duration }{
	"1h": {time.Hour, time.Minute}, "24h": {24 * time.Hour, 15 * time.Minute}, "7d": {7 * 24 * time.Hour, 2 * time.Hour},
	"30d": {30 * 24 * time.Hour, 8 * time.Hour},
}

const (
	slowMS        = 1000
	slowAtLeast   = 10 // requests, before a p95 says anything
	mailsOverdue  = time.Minute
	overviewRows  = 20
	overviewKeys  = 5
	overviewEach  = 3 // notices of a kind
	defaultRange  = "24h"
	expectedRange = "expected 1h, 24h, 7d or 30d"
)

func (a *AdminAPI) serveOverview(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	q, err := queryOf(c)
	if err != nil {
		return httpapi.Reply{}, err
	}
	name := cmp.Or(q.text("range"), defaultRange)
	r, ok := ranges[name]
	if !ok {
		q.wrong["range"] = expectedRange
		return httpapi.Reply{}, q.err()
	}
	now := a.clock.Now().UTC()
	end := now.Truncate(time.Minute).Add(time.Minute)
	span := spanOf(end.Add(-r.span), end, now, int(r.span/r.width))
	out := Overview{Range: name, From: clock.FromMicros(span.from), To: clock.FromMicros(span.end()), Attention: []OverviewNotice{}}
	t := c.Viewer.Tenant()
	if c.Viewer.May(access.ManageEndpoints) {
		if out.Requests, err = a.overviewUsage(ctx, t, span); err != nil {
			return httpapi.Reply{}, err
		}
		events, err := a.others.Events(ctx, t, out.From, out.To)
		if err != nil {
			return httpapi.Reply{}, err
		}
		out.Events = &events
	}
	if c.Viewer.May(access.TenantSettings) || c.Viewer.May(access.ManageUsers) {
		mails, err := a.others.Mails(ctx, t)
		if err != nil {
			return httpapi.Reply{}, err
		}
		out.Mails = &mails
	}
	if out.Begun, err = a.others.Begun(ctx, c.Config); err != nil {
		return httpapi.Reply{}, err
	}
	if out.Begun.Called, err = a.store.called(ctx, t); err != nil {
		return httpapi.Reply{}, err
	}
	out.notice(now)
	return reply(out, nil, nil)
}

func (a *AdminAPI) overviewUsage(ctx context.Context, t tenant.ID, span usageSpan) (*OverviewUsage, error) {
	u, err := a.usage(ctx, t, span, false, "")
	if err != nil {
		return nil, err
	}
	before, err := a.usage(ctx, t, span.before(), false, "")
	if err != nil {
		return nil, err
	}
	keys, err := a.usage(ctx, t, span, true, "")
	if err != nil {
		return nil, err
	}
	out := &OverviewUsage{
		Now: u.total.counts(), Before: before.total.counts(), WidthMS: span.width / 1000, Series: u.counts(), Endpoints: []UsageRow{}, Keys: []UsageRow{},
	}
	list := u.sorted(func(a, b *nameSums) int {
		return cmp.Or(cmp.Compare(b.rank(), a.rank()), cmp.Compare(b.total.requests, a.total.requests))
	})
	out.MoreNames = len(list) > overviewRows
	for _, n := range list[:min(len(list), overviewRows)] {
		out.Endpoints = append(out.Endpoints, u.row(n))
	}
	for _, n := range keys.sorted(func(a, b *nameSums) int { return cmp.Compare(b.total.limited, a.total.limited) }) {
		if n.total.limited == 0 {
			break
		}
		if out.KeysHit++; len(out.Keys) < overviewKeys {
			out.Keys = append(out.Keys, keys.row(n))
		}
	}
	return out, a.nameKeys(ctx, t, out.Keys)
}

// rank orders endpoints: failing ones, then slow ones, then all others.
func (n *nameSums) rank() int {
	switch {
	case n.total.failed > 0:
		return 2
	case n.slow():
		return 1
	default:
		return 0
	}
}

func (n *nameSums) slow() bool {
	return n.total.requests >= slowAtLeast && n.total.quantile(.95) >= slowMS*time.Millisecond
}

// notice collects what needs a look, the worst first.
func (o *Overview) notice(now time.Time) {
	add := func(n OverviewNotice) { o.Attention = append(o.Attention, n) }
	if e := o.Events; e != nil && e.Failed.Count > 0 && e.FailedOf != nil {
		add(OverviewNotice{Kind: NoticeFailedRuns, Name: *e.FailedOf, ID: *e.FailedRun, Count: e.Failed.Count, Since: e.FailedAt, Text: *e.Failure})
	}
	if o.Requests != nil {
		failing, slow := 0, 0
		for _, r := range o.Requests.Endpoints {
			switch {
			case r.Total.Failed > 0 && failing < overviewEach:
				failing++
				add(OverviewNotice{Kind: NoticeFailing, Name: r.Name, Count: r.Total.Failed})
			case r.Total.Failed == 0 && r.Total.Requests >= slowAtLeast && r.Total.P95MS >= slowMS && slow < overviewEach:
				slow++
				add(OverviewNotice{Kind: NoticeSlow, Name: r.Name, Count: r.Total.Requests, P95MS: r.Total.P95MS})
			}
		}
		for _, r := range o.Requests.Keys[:min(len(o.Requests.Keys), overviewEach)] {
			name := r.Name
			if r.Key != nil && r.Key.Name != nil {
				name = *r.Key.Name
			}
			add(OverviewNotice{Kind: NoticeLimit, Name: name, ID: r.Name, Count: r.Total.Limited})
		}
	}
	if m := o.Mails; m != nil && m.Oldest != nil && now.Sub(*m.Oldest) > mailsOverdue {
		text := ""
		if m.Error != nil {
			text = *m.Error
		}
		add(OverviewNotice{Kind: NoticeMails, Name: "", Count: m.Waiting.Count, Since: m.Oldest, Text: text})
	}
}
