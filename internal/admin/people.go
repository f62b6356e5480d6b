package admin

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/user"
)

// searchOf reads the filter of a list of users. Who may activate external users alone
// sees those alone.
func (s *Service) searchOf(c *httpapi.Authed) (user.Search, error) {
	q, wrong := c.Request.URL.Query(), map[string]string{}
	f := user.Search{Text: strings.TrimSpace(q.Get("search"))}
	if len(f.Text) > 200 {
		wrong["search"] = "expected at most 200 bytes"
	}
	switch of := user.Type(q.Get("type")); of {
	case "", user.Internal, user.External:
		f.Type = of
	default:
		wrong["type"] = "expected internal or external"
	}
	switch q.Get("active") {
	case "":
	case "true", "false":
		active := q.Get("active") == "true"
		f.Active = &active
	default:
		wrong["active"] = "expected true or false"
	}
	if len(wrong) > 0 {
		return f, fault.Fields("the filter is not valid", wrong)
	}
	if !c.Viewer.May(access.ManageUsers) {
		if f.Type == user.Internal {
			return f, fault.New(fault.Forbidden, "staff are listed for the permission %s", access.ManageUsers)
		}
		f.Type = user.External
	}
	limit, err := limitOf(c, defaultLimit)
	if err != nil {
		return f, err
	}
	f.Limit = min(limit, 200)
	position, err := s.cursors.Open(c.ListScope(), c.Request.URL.Query().Get("cursor"))
	if err != nil || position == "" {
		return f, err
	}
	f.Before, err = strconv.ParseInt(position, 10, 64)
	return f, err
}

// find returns a page of users and where the next one begins.
func (s *Service) find(ctx context.Context, c *httpapi.Authed) (found user.Found, next string, err error) {
	f, err := s.searchOf(c)
	if err != nil {
		return found, "", err
	}
	leave, err := s.search(ctx, c)
	if err != nil {
		return found, "", err
	}
	defer leave()
	if found, err = s.store.users(ctx, c.Config.Tenant.ID, f); err == nil && found.Next != 0 {
		next = strconv.FormatInt(found.Next, 10)
	}
	return found, next, err
}

func (s *Service) users(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	found, next, err := s.find(ctx, c)
	if err != nil {
		return httpapi.Reply{}, err
	}
	list := []UserLine{}
	for _, u := range found.Users {
		list = append(list, UserLine{
			ID: string(u.ID), Email: u.Email, Name: u.Name, Locale: u.Locale, Type: string(u.Type), Owner: u.Owner, Active: u.Active,
			Pending: u.Pending, EmailVerified: u.EmailVerified, HasPassword: u.PasswordHash != "", Role: u.Role,
			PermissionSets: append([]string{}, u.Sets...), CreatedAt: clock.FromMicros(u.CreatedAt), UpdatedAt: clock.FromMicros(u.UpdatedAt),
		})
	}
	return s.replyList(c, list, len(list), c.ListScope(), next)
}

// userObjects lists users as objects with their versions.
func (s *Service) userObjects(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	found, next, err := s.find(ctx, c)
	if err != nil {
		return httpapi.Reply{}, err
	}
	list := []ConfigObject{}
	for _, o := range userObjectsOf(found.Users) {
		list = append(list, shown(o))
	}
	return s.replyList(c, list, len(list), c.ListScope(), next)
}

var errNoUser = fault.New(fault.NotFound, "there is no such external user")

// resend sends the verification mail again.
func (s *Service) resend(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	acc, err := s.store.account(ctx, c.Config.Tenant.ID, user.ID(c.Params.Get("id")))
	if errors.Is(err, user.ErrUnknown) || err == nil && acc.Type != user.External {
		return httpapi.Reply{}, errNoUser
	}
	if err != nil {
		return httpapi.Reply{}, err
	}
	if err := s.limited(c, "resend/"+string(acc.ID), 3); err != nil {
		return httpapi.Reply{}, err
	}
	return reply(c, Sent{To: acc.Email}, s.letters.Resend(ctx, c.Config.Tenant.ID, acc.Email))
}
