package endpoint

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
)

// handler serves a route of the administration.
type handler = func(context.Context, *httpapi.Authed) (httpapi.Reply, error)

// AdminRoutes returns the routes of the administration that are about custom
// endpoints: their facts and tokens, events, runs, and tries (docs/admin-api.md).
// Each needs manage_endpoints, which lets read what runs were given, printed and
// returned, whomever they ran as (contract X10).
func (s *Service) AdminRoutes() []httpapi.Route {
	read := func(pattern string, gives any, h handler, query ...string) httpapi.Route {
		return httpapi.Route{
			Method: http.MethodGet, Pattern: "/admin/v1/" + pattern, Auth: httpapi.Staff, Limit: httpapi.PerCredential, Audit: httpapi.AuditAdmin,
			Needs: httpapi.Needs{access.ManageEndpoints}, Query: query, Gives: gives, Handler: h,
		}
	}
	post := func(pattern string, takes, gives any, h handler) httpapi.Route {
		r := read(pattern, gives, h)
		r.Method, r.Takes = http.MethodPost, takes
		if takes != nil {
			r.BodyCap = httpapi.DataBodyCap
		}
		return r
	}
	verifier := post("verifier/try", AdminVerifierTry{}, AdminVerdict{}, s.adminTryVerifier)
	verifier.Audit, verifier.BodyCap = httpapi.AuditSignIn, maxVerifierTry // its body has a delivery and may have secrets
	return []httpapi.Route{
		read("endpoints", []AdminEndpointLine{}, s.adminEndpoints),
		read("endpoints/{slug}", AdminEndpoint{}, s.adminEndpoint),
		post("endpoints/{slug}/token", nil, AdminToken{}, s.adminToken),
		read("events", []AdminEvent{}, s.adminEvents, "endpoint", "kind", "status", "key", "since", "until", "limit", "cursor"),
		read("events/{id}", AdminEventDetail{}, s.adminEvent),
		post("events/{id}/retry", nil, AdminRetry{}, s.adminRetry),
		read("runs", []AdminRun{}, s.adminRuns, "kind", "target", "status", "endpoint", "event", "since", "until", "limit", "cursor"),
		read("runs/{id}", AdminRunDetail{}, s.adminRun),
		post("runs", AdminTry{}, AdminOutcome{}, s.adminTry),
		post("drafts/check", AdminDraft{}, AdminCheck{}, s.adminCheck),
		read("drafts/names", AdminNames{}, s.adminNames),
		verifier,
	}
}

// reply answers with data.
func reply(c *httpapi.Authed, data any) (httpapi.Reply, error) {
	text, err := json.Marshal(data)
	if err != nil {
		return httpapi.Reply{}, err
	}
	return httpapi.Reply{Data: text}, c.Hold(len(text))
}

// replyList answers with a page of a list. next is the id that the next page comes
// before, "" when there is none.
func (s *Service) replyList(c *httpapi.Authed, data any, count int, next string) (httpapi.Reply, error) {
	answer, err := reply(c, data)
	if err != nil {
		return answer, err
	}
	meta := httpapi.ListMeta{Count: count}
	if next != "" {
		cursor := s.cursors.Seal(c.ListScope(), next)
		meta.HasMore, meta.NextCursor = true, &cursor
	}
	answer.Meta, err = json.Marshal(meta)
	return answer, err
}

// query reads the parameters of a list. The surface has refused unknown, repeated
// and empty ones.
type query struct {
	values url.Values
	wrong  map[string]string
}

func queryOf(c *httpapi.Authed) (*query, error) {
	values, err := httpapi.ParseQuery(c.Request.URL.RawQuery)
	return &query{values, map[string]string{}}, err
}

// oneOf returns a parameter that has one of some values, "" for none.
func (q *query) oneOf(name string, values ...string) string {
	given := q.values.Get(name)
	for _, v := range values {
		if given == v || given == "" {
			return given
		}
	}
	q.wrong[name] = "expected " + strings.Join(values, " or ")
	return ""
}

// instant returns a parameter that is a time in RFC 3339, zero for none.
func (q *query) instant(name string) time.Time {
	given := q.values.Get(name)
	if given == "" {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339, given)
	if err != nil {
		q.wrong[name] = "expected a time like 2026-11-21T14:00:00Z"
	}
	return at
}

const (
	defaultPage = 50
	maxPage     = 200
)

func (q *query) limit() int {
	given := q.values.Get("limit")
	if given == "" {
		return defaultPage
	}
	n, err := strconv.Atoi(given)
	if err != nil || n < 1 || n > maxPage {
		q.wrong["limit"] = "expected an integer from 1 to 200"
	}
	return n
}

// bounds returns the part of the list that a page is of.
func (s *Service) bounds(c *httpapi.Authed, q *query) bounds {
	b := bounds{since: q.instant("since"), until: q.instant("until")}
	var err error
	if b.before, err = s.cursors.Open(c.ListScope(), q.values.Get("cursor")); err != nil {
		q.wrong["cursor"] = "expected a nextCursor of this list, unchanged, with the same filter"
	}
	return b
}

// problem returns VALIDATION if a parameter is wrong.
func (q *query) problem() error {
	if len(q.wrong) == 0 {
		return nil
	}
	return fault.Fields("some query parameters are not valid", q.wrong)
}

// baseURL returns where the tenant's public API is reached: at the request's own
// host if that is one of the tenant's, else at its base_url.
func baseURL(c *httpapi.Authed) string {
	scheme, name := "http://", c.Request.Host
	if c.Secure {
		scheme = "https://"
	}
	if host, _, err := net.SplitHostPort(name); err == nil {
		name = host
	}
	if slices.ContainsFunc(c.Config.Tenant.Hosts, func(public string) bool { return strings.EqualFold(public, name) }) {
		return scheme + c.Request.Host
	}
	return strings.TrimSuffix(c.Config.Tenant.BaseURL, "/")
}
