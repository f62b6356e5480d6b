package staff

import (
	"context"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"gatehouse/internal/clock"
	"gatehouse/internal/credential"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/user"
)

// SessionInfo is a session in a list.
type SessionInfo struct {
	ID         string           `json:"id"`
	User       Person           `json:"user"`
	Current    bool             `json:"current"` // the request's own
	Stage      credential.Stage `json:"stage"`
	ActingAs   *user.ID         `json:"actingAs"`
	IP         string           `json:"ip"`
	UserAgent  string           `json:"userAgent"`
	SignedInAt time.Time        `json:"signedInAt"`
	LastUsedAt time.Time        `json:"lastUsedAt"` // to the minute
	ExpiresAt  time.Time        `json:"expiresAt"`
}

// Deleted is the answer of a deletion.
type Deleted struct {
	ID      string `json:"id"`
	Deleted bool   `json:"deleted"`
}

// Account is the user who is signed in, as they see themselves.
type Account struct {
	User         Person       `json:"user"`
	SecondFactor SecondFactor `json:"secondFactor"`
}

// SecondFactor says how a user's second factor stands.
type SecondFactor struct {
	Enrolled      bool `json:"enrolled"`
	Required      bool `json:"required"` // by the tenant
	RecoveryCodes int  `json:"recoveryCodes"`
}

func (s *Service) serveAccount(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	acc, err := s.store.account(ctx, c.Config.Tenant.ID, c.Session.UserID)
	if err != nil {
		return httpapi.Reply{}, err
	}
	f, err := s.store.factor(ctx, c.Config.Tenant.ID, acc.ID)
	return reply(Account{
		User:         Person{acc.ID, acc.Email, acc.Name},
		SecondFactor: SecondFactor{Enrolled: f.sealed != "", Required: c.Config.Tenant.Settings.Staff.FactorRequired(), RecoveryCodes: f.codes},
	}, err)
}

// Bounds of a page of sessions.
const (
	defaultPage = 50
	maxPage     = 200
)

func (s *Service) serveOwnSessions(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	return s.serveList(ctx, c, page{of: c.Session.UserID, limit: maxSessions})
}

func (s *Service) serveSessions(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	p := page{limit: defaultPage}
	query := c.Request.URL.Query()
	if text := query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return httpapi.Reply{}, fault.Fields("some query parameters are not valid", map[string]string{"limit": "expected an integer from 1 to 200"})
		}
		p.limit = min(n, maxPage)
	}
	var err error
	if p.before, err = s.cursors.Open(c.ListScope(), query.Get("cursor")); err != nil {
		return httpapi.Reply{}, err
	}
	return s.serveList(ctx, c, p)
}

// serveList answers a page of sessions, newest first.
func (s *Service) serveList(ctx context.Context, c *httpapi.Authed, p page) (httpapi.Reply, error) {
	size := p.limit
	p.limit++ // one more shows whether there are more
	rows, err := s.store.list(ctx, c.Config.Tenant.ID, p)
	if err != nil {
		return httpapi.Reply{}, err
	}
	meta := httpapi.ListMeta{HasMore: len(rows) > size}
	if rows = rows[:min(len(rows), size)]; meta.HasMore {
		next := s.cursors.Seal(c.ListScope(), rows[len(rows)-1].id)
		meta.NextCursor = &next
	}
	list := []SessionInfo{}
	for _, row := range rows {
		one, err := s.info(ctx, c, row)
		if err != nil {
			return httpapi.Reply{}, err
		}
		list = append(list, one)
	}
	meta.Count = len(list)
	answer, err := reply(list, nil)
	if err != nil {
		return httpapi.Reply{}, err
	}
	answer.Meta, err = json.Marshal(meta)
	return answer, err
}

func (s *Service) info(ctx context.Context, c *httpapi.Authed, row session) (SessionInfo, error) {
	acc, err := s.store.account(ctx, c.Config.Tenant.ID, row.userID)
	is := SessionInfo{
		ID: row.id, User: Person{row.userID, acc.Email, acc.Name}, Current: row.id == c.Session.ID, Stage: row.stage, IP: row.ip, UserAgent: row.agent,
		SignedInAt: clock.FromMicros(row.startedAt), LastUsedAt: clock.FromMicros(row.usedAt), ExpiresAt: clock.FromMicros(row.expiresAt),
	}
	if row.actingAs != "" {
		is.ActingAs = &row.actingAs
	}
	return is, err
}

func (s *Service) serveEndOwn(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	return s.serveEnd(ctx, c, c.Session.UserID)
}

func (s *Service) serveEndAny(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	return s.serveEnd(ctx, c, "")
}

func (s *Service) serveEnd(ctx context.Context, c *httpapi.Authed, of user.ID) (httpapi.Reply, error) {
	id := c.Params.Get("id")
	return reply(Deleted{id, true}, s.store.end(ctx, c.Config.Tenant.ID, id, of))
}
