package audit

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"gatehouse/internal/access"
	"gatehouse/internal/admission"
	"gatehouse/internal/clock"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/tenant"
)

// How long one request of the console may search. What it has not found until
// then it leaves to the next request, and says so.
const (
	searchFor = 150 * time.Millisecond
	countFor  = 400 * time.Millisecond
)

// searches bounds how many requests of the console search at once: a search takes
// a core and reads.
var searches = admission.Limits{Running: 8, PerKey: 2, Waiting: 64, WaitingPerKey: 8, MaxWait: 3 * time.Second}

// AdminAPI has the routes of the admin API about the audit log and usage.
type AdminAPI struct {
	store   adminStore
	clock   clock.Clock
	cursors httpapi.Cursors
	others  Others
	gate    *admission.Gate
	tails   *tails
}

// NewAdminAPI returns the routes over what AdminStore returns.
func NewAdminAPI(store adminStore, clk clock.Clock, cursors httpapi.Cursors, others Others) *AdminAPI {
	return &AdminAPI{store: store, clock: clk, cursors: cursors, others: others, gate: admission.NewGate(searches), tails: newTails()}
}

// Others is what these routes show of other features. All members must be set.
type Others struct {
	// KeyNames returns the names of a tenant's API keys by id; it leaves out those
	// that do not exist any more.
	KeyNames func(ctx context.Context, t tenant.ID, ids []string) (map[string]string, error)
	// Current returns a tenant's configuration as it is now.
	Current func(ctx context.Context, t tenant.ID) (*access.Config, error)
	// SignedIn returns UNAUTHORIZED if a session has ended. It does not count as a
	// use of the session.
	SignedIn func(ctx context.Context, c *httpapi.Authed) error
	// Events returns what webhooks received and what failed in a span of time.
	Events func(ctx context.Context, t tenant.ID, from, to time.Time) (Events, error)
	// Mails returns the mails that wait to be sent.
	Mails func(ctx context.Context, t tenant.ID) (Mails, error)
	// Begun returns which of the first steps on a new tenant have been made.
	Begun func(ctx context.Context, cfg *access.Config) (Begun, error)
}

const adminBase = "/admin/v1/"

// needsLog is what the routes about requests need.
var needsLog = httpapi.Needs{access.ManageEndpoints}

// filterQuery are the query parameters of all routes that filter entries.
var filterQuery = []string{"user", "endpoint", "status", "credential", "key", "method", "requestId", "path", "ip", "from", "to"}

// Routes returns the routes.
func (a *AdminAPI) Routes() []httpapi.Route {
	route := func(pattern string, needs httpapi.Needs, query []string, gives, meta any, handler func(context.Context, *httpapi.Authed) (httpapi.Reply, error)) httpapi.Route {
		return httpapi.Route{
			Method: http.MethodGet, Pattern: adminBase + pattern, Auth: httpapi.Staff, Limit: httpapi.PerCredential, Audit: httpapi.AuditAdmin,
			Needs: needs, Query: query, Gives: gives, GivesMeta: meta, Handler: handler,
		}
	}
	with := func(more ...string) []string { return append(append([]string{}, filterQuery...), more...) }
	return []httpapi.Route{
		route("audit", needsLog, with("cursor", "limit"), []LogEntry{}, LogMeta{}, a.serveList),
		route("audit/histogram", needsLog, with("buckets", "cursor"), LogHistogram{}, HistogramMeta{}, a.serveHistogram),
		route("audit/tail", needsLog, with("after"), nil, nil, a.serveTail),
		route("audit/{id}", needsLog, nil, LogDetail{}, nil, a.serveEntry),
		route("usage", needsLog, []string{"from", "to", "by", "name", "buckets"}, Usage{}, nil, a.serveUsage),
		route("overview", httpapi.AnyStaff, []string{"range"}, Overview{}, nil, a.serveOverview),
	}
}

// reply returns the answer for the result of a use case.
func reply(data, meta any, err error) (httpapi.Reply, error) {
	if err != nil {
		return httpapi.Reply{}, err
	}
	var r httpapi.Reply
	if r.Data, err = json.Marshal(data, json.Deterministic(true)); err == nil && meta != nil {
		r.Meta, err = json.Marshal(meta)
	}
	return r, err
}

// enter waits for a place to search. leave must be called.
func (a *AdminAPI) enter(ctx context.Context, t tenant.ID) (leave func(), err error) {
	leave, err = a.gate.Enter(ctx, string(t))
	if errors.Is(err, admission.ErrFull) {
		return nil, fault.New(fault.Overloaded, "too many searches of the audit log run right now; try again soon").After(2 * time.Second)
	}
	return leave, err
}

// params reads query parameters and collects what is wrong with them.
type params struct {
	values map[string][]string
	wrong  map[string]string
}

func queryOf(c *httpapi.Authed) (*params, error) {
	values, err := httpapi.ParseQuery(c.Request.URL.RawQuery)
	return &params{values, map[string]string{}}, err
}

func (q *params) text(name string) string {
	if list := q.values[name]; len(list) > 0 {
		return list[0]
	}
	return ""
}

// number returns a whole number between bounds, or otherwise if there is none.
func (q *params) number(name string, otherwise, least, most int) int {
	text := q.text(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		q.wrong[name] = "expected " + strconv.Itoa(least) + " to " + strconv.Itoa(most)
	}
	return n
}

// instant returns a time, or the zero time if there is none.
func (q *params) instant(name string) time.Time {
	text := q.text(name)
	if text == "" {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || at.Year() < 1970 || at.Year() > 9999 {
		q.wrong[name] = "expected a time such as 2026-01-31T12:00:00Z"
	}
	return at.UTC()
}

func (q *params) err() error {
	if len(q.wrong) == 0 {
		return nil
	}
	return fault.Fields("some query parameters are not valid", q.wrong)
}
