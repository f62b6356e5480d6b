// Package data serves records over HTTP: /public/v1/data and /public/v1/me
// (contract U1, R1–R14, P1–P9, A16, A17). The rules are in package records.
package data

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gatehouse/internal/access"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/records"
	"gatehouse/internal/user"
	"gatehouse/internal/wtf8"
)

// Service serves the standard endpoints.
type Service struct{ records *records.Store }

// New returns a Service over a store of records.
func New(store *records.Store) *Service { return &Service{store} }

// Routes returns the routes of the standard endpoints.
func (s *Service) Routes() []httpapi.Route {
	const list, one, shares = "/public/v1/data/{entity}", "/public/v1/data/{entity}/{id}", "/public/v1/data/{entity}/{id}/shares"
	standard := func(method, pattern string, bodyCap int64, h func(context.Context, *httpapi.Authed) (httpapi.Reply, error)) httpapi.Route {
		return httpapi.Route{
			Method: method, Pattern: pattern, Auth: httpapi.KeyOrJWT, Limit: httpapi.PerCredential,
			Audit: httpapi.AuditStandard, BodyCap: bodyCap, Handler: h,
		}
	}
	return []httpapi.Route{
		standard(http.MethodGet, "/public/v1/me", 0, s.me),
		standard(http.MethodGet, list, 0, s.list),
		standard(http.MethodPost, list, httpapi.DataBodyCap, s.create),
		standard(http.MethodGet, one, 0, s.get),
		standard(http.MethodPatch, one, httpapi.DataBodyCap, s.update),
		standard(http.MethodDelete, one, 0, s.delete),
		standard(http.MethodGet, shares, 0, s.shares),
		standard(http.MethodPost, shares, httpapi.DataBodyCap, s.share),
		standard(http.MethodDelete, shares, httpapi.DataBodyCap, s.unshare),
	}
}

// me returns the credential's user and what they may do.
func (s *Service) me(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	u, err := s.records.As(c.Viewer).Self(ctx)
	if err != nil {
		return httpapi.Reply{}, err
	}
	data, err := json.Marshal(struct {
		UserID    user.ID          `json:"userId"`
		Email     string           `json:"email"`
		Name      string           `json:"name"`
		IsOwner   bool             `json:"isOwner"`
		Abilities []access.Ability `json:"abilities"`
	}{u.ID, u.Email, u.Name, c.Viewer.TenantOwner(), c.Viewer.Abilities()})
	return httpapi.Reply{Data: data}, err
}

// Each handler checks the permission for the entity type before it reads anything
// else of the request (contract H3). Other errors are VALIDATION for the query or
// the body, and those of records.Session.

func (s *Service) get(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	if err := s.records.As(c.Viewer).May(c.Params.Get("entity"), access.Read); err != nil {
		return httpapi.Reply{}, err
	}
	if err := noQuery(c.Request.URL); err != nil {
		return httpapi.Reply{}, err
	}
	rec, err := s.records.As(c.Viewer).Within(c).Get(ctx, c.Params.Get("entity"), c.Params.Get("id"))
	return httpapi.Reply{Data: rec}, err
}

func (s *Service) list(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	if err := s.records.As(c.Viewer).May(c.Params.Get("entity"), access.Read); err != nil {
		return httpapi.Reply{}, err
	}
	q, err := parseQuery(c.Request.URL)
	if err != nil {
		return httpapi.Reply{}, err
	}
	page, err := s.records.As(c.Viewer).Within(c).List(ctx, c.Params.Get("entity"), q)
	if err != nil {
		return httpapi.Reply{}, err
	}
	meta := append(make([]byte, 0, 256), `{"count":`...)
	meta = strconv.AppendInt(meta, int64(page.Count), 10)
	if page.Next == "" {
		meta = append(meta, `,"hasMore":false,"nextCursor":null}`...)
	} else {
		meta = append(wtf8.AppendUTF8(append(meta, `,"hasMore":true,"nextCursor":`...), page.Next), '}')
	}
	return httpapi.Reply{Data: page.Records, Meta: meta}, nil
}

func (s *Service) create(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	return s.write(c, http.StatusCreated, func(entity string, members []records.Member) (records.Record, error) {
		return s.records.As(c.Viewer).Within(c).Create(ctx, entity, members)
	})
}

func (s *Service) update(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	return s.write(c, http.StatusOK, func(entity string, members []records.Member) (records.Record, error) {
		return s.records.As(c.Viewer).Within(c).Update(ctx, entity, c.Params.Get("id"), members)
	})
}

// write reads a body of record fields and calls do with them.
func (s *Service) write(c *httpapi.Authed, status int, do func(string, []records.Member) (records.Record, error)) (httpapi.Reply, error) {
	entity := c.Params.Get("entity")
	verb := access.Create
	if c.Request.Method == http.MethodPatch {
		verb = access.Update
	}
	if err := s.records.As(c.Viewer).May(entity, verb); err != nil {
		return httpapi.Reply{}, err
	}
	if err := noQuery(c.Request.URL); err != nil {
		return httpapi.Reply{}, err
	}
	body, err := c.JSON()
	if err != nil {
		return httpapi.Reply{}, err
	}
	rec, err := do(entity, membersOf(body))
	return httpapi.Reply{Status: status, Data: rec}, err
}

// membersOf returns the members of a body as package records takes them.
func membersOf(body *httpapi.Object) []records.Member {
	members := make([]records.Member, len(body.Members))
	for i, m := range body.Members {
		members[i] = records.Member{Name: m.Name, Value: m.Value}
	}
	return members
}

func (s *Service) delete(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	if err := s.records.As(c.Viewer).May(c.Params.Get("entity"), access.Delete); err != nil {
		return httpapi.Reply{}, err
	}
	if err := noQuery(c.Request.URL); err != nil {
		return httpapi.Reply{}, err
	}
	id := c.Params.Get("id")
	if err := s.records.As(c.Viewer).Delete(ctx, c.Params.Get("entity"), id); err != nil {
		return httpapi.Reply{}, err
	}
	data, err := json.Marshal(struct {
		ID      string `json:"id"`
		Deleted bool   `json:"deleted"`
	}{id, true})
	return httpapi.Reply{Data: data}, err
}

// noQuery returns VALIDATION for query parameters on routes that have none (contract
// R14), so that a typo does not go unnoticed.
func noQuery(u *url.URL) error {
	if u.RawQuery == "" {
		return nil
	}
	return fault.New(fault.Validation, "expected no query parameters here")
}

// defaultLimit is a page's size when the caller names none (contract P3).
const defaultLimit = 50

// parseQuery reads the parameters of a list: limit, cursor and filter[field].
// Unknown, repeated and empty ones are VALIDATION.
func parseQuery(u *url.URL) (records.Query, error) {
	q := records.Query{Limit: defaultLimit}
	if u.RawQuery == "" {
		return q, nil
	}
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return q, fault.New(fault.Validation, "the query is not well-formed")
	}
	bad := map[string]string{}
	for name, list := range values {
		value := list[0]
		field, isFilter := filterName(name)
		switch {
		case !utf8.ValidString(name) || !utf8.ValidString(value) || strings.ContainsRune(value, 0):
			bad[strings.ToValidUTF8(name, "�")] = "expected valid UTF-8"
		case len(list) > 1:
			bad[name] = "given more than once"
		case name != "limit" && name != "cursor" && !isFilter:
			bad[name] = "unknown parameter"
		case value == "":
			bad[name] = "expected a value"
		case isFilter:
			q.Filter = append(q.Filter, records.Filter{Field: field, Value: value})
		case name == "cursor":
			q.Cursor = value
		default:
			var ok bool
			if q.Limit, ok = parseLimit(value); !ok {
				bad[name] = "expected an integer from 1 to 200"
			}
		}
	}
	slices.SortFunc(q.Filter, func(a, b records.Filter) int { return strings.Compare(a.Field, b.Field) })
	if len(bad) > 0 {
		return q, fault.Fields("some query parameters are not valid", bad)
	}
	return q, nil
}

// parseLimit parses a page size; records.Session.List lowers one that is too large.
func parseLimit(s string) (int, bool) {
	if strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return records.MaxLimit, true // digits fail only when there are too many
	}
	return n, n >= 1
}

// filterName returns the field of a parameter filter[field].
func filterName(name string) (string, bool) {
	rest, ok := strings.CutPrefix(name, "filter[")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(rest, "]")
}
