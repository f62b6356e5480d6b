// Package data serves records over HTTP: /public/v1/data and /public/v1/me
// (contract U1, R1–R14, P1–P9, A16, A17). The rules are in package records.
package data

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"gatehouse/internal/access"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/records"
	"gatehouse/internal/user"
	"gatehouse/internal/wtf8"
)

// Service serves the standard endpoints.
type Service struct {
	records *records.Store
	repeats repeats
	emit    func(event string, members map[string]any)
}

// Routes returns the routes of the standard endpoints.
func (s *Service) Routes() []httpapi.Route {
	const list, one, shares = "/public/v1/data/{entity}", "/public/v1/data/{entity}/{id}", "/public/v1/data/{entity}/{id}/shares"
	const batch = "/public/v1/data/{entity}/batch" // before one, which it also matches
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
		standard(http.MethodPost, batch, httpapi.DataBodyCap, s.batch),
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
	known, err := httpapi.ParseTags(c.Request.Header, "If-None-Match")
	if err != nil {
		return httpapi.Reply{}, err
	}
	rec, err := s.records.As(c.Viewer).Within(c).Get(ctx, c.Params.Get("entity"), c.Params.Get("id"))
	if err != nil {
		return httpapi.Reply{}, err
	}
	reply := tagged(httpapi.Reply{Data: rec})
	if known != nil && known.MatchWeakly(reply.Header.Get("ETag")) {
		reply.Status, reply.Data = http.StatusNotModified, nil
	}
	return reply, nil
}

// tagged adds the entity tag of its record to a reply.
func tagged(reply httpapi.Reply) httpapi.Reply {
	reply.Header = http.Header{"Etag": {httpapi.ETag(reply.Data)}}
	return reply
}

// unchanged returns a session whose changes fail unless the request's If-Match names
// the record as it is.
func (s *Service) unchanged(c *httpapi.Authed) (*records.Session, error) {
	session := s.records.As(c.Viewer).Within(c)
	tags, err := httpapi.ParseTags(c.Request.Header, "If-Match")
	if tags != nil {
		session.Matching(func(rec records.Record) bool {
			if rec == nil {
				return tags.Match("")
			}
			return tags.Match(httpapi.ETag(rec))
		})
	}
	return session, err
}

func (s *Service) list(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	if err := s.records.As(c.Viewer).May(c.Params.Get("entity"), access.Read); err != nil {
		return httpapi.Reply{}, err
	}
	q, err := parseQuery(c.Request.URL)
	if err != nil {
		return httpapi.Reply{}, err
	}
	page, err := s.records.As(c.Viewer).Within(c).List(ctx, c.Params.Get("entity"), q.Query)
	if err != nil {
		return httpapi.Reply{}, err
	}
	meta := append(make([]byte, 0, 256), `{"count":`...)
	meta = strconv.AppendInt(meta, int64(page.Count), 10)
	if page.Next == "" {
		meta = append(meta, `,"hasMore":false,"nextCursor":null`...)
	} else {
		meta = wtf8.AppendUTF8(append(meta, `,"hasMore":true,"nextCursor":`...), page.Next)
	}
	if page.Included != nil {
		meta = append(append(meta, `,"included":`...), page.Included...)
		if page.IncludedCut {
			meta = append(meta, `,"includedCut":true`...)
		}
	}
	if q.count {
		total, err := s.records.As(c.Viewer).Count(ctx, c.Params.Get("entity"), q.Query)
		if err != nil {
			return httpapi.Reply{}, err
		}
		meta = appendTotal(meta, total)
	}
	return httpapi.Reply{Data: page.Records, Meta: append(meta, '}')}, nil
}

// appendTotal appends the member total of a list's meta (contract P12).
func appendTotal(meta []byte, n records.Count) []byte {
	meta = append(meta, `,"total":`...)
	if !n.More {
		return strconv.AppendInt(meta, int64(n.N), 10)
	}
	return append(strconv.AppendInt(append(meta, `{"atLeast":`...), int64(n.N), 10), '}')
}

func (s *Service) create(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	again := false
	reply, err := s.one(c, http.StatusCreated, func(entity string, members []records.Member) (rec records.Record, err error) {
		if c.Request.Header["Idempotency-Key"] != nil {
			rec, again, err = s.createOnce(ctx, c, entity, members)
			return rec, err
		}
		return s.records.As(c.Viewer).Within(c).Create(ctx, entity, members)
	})
	if again {
		reply = replayed(reply)
	}
	return reply, err
}

func (s *Service) update(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	return s.one(c, http.StatusOK, func(entity string, members []records.Member) (records.Record, error) {
		session, err := s.unchanged(c)
		if err != nil {
			return nil, err
		}
		return session.Update(ctx, entity, c.Params.Get("id"), members)
	})
}

// one reads a body of record fields and calls do with them.
func (s *Service) one(c *httpapi.Authed, status int, do func(string, []records.Member) (records.Record, error)) (httpapi.Reply, error) {
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
	if err != nil {
		return httpapi.Reply{}, err
	}
	reply := httpapi.Reply{Status: status, Data: rec}
	if s.records.As(c.Viewer).May(entity, access.Read) == nil {
		reply = tagged(reply)
	}
	return reply, nil
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
	session, err := s.unchanged(c)
	if err != nil {
		return httpapi.Reply{}, err
	}
	id := c.Params.Get("id")
	if err := session.Delete(ctx, c.Params.Get("entity"), id); err != nil {
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
