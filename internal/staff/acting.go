package staff

import (
	"context"

	"gatehouse/internal/access"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/user"
)

// reasonActingEnded is details.reason of the answer that ends the acting.
const reasonActingEnded = "acting_ended"

var errNobody = fault.New(fault.NotFound, "there is no such internal user who is active")

// mayActAs returns the viewer of the user that another one acts as (contract Y15). It
// returns NOT_FOUND unless that user is internal and active, and FORBIDDEN unless the
// viewer holds login_as and every right that the user has.
func (s *Service) mayActAs(ctx context.Context, cfg *access.Config, w access.Viewer, as user.ID) (access.Viewer, error) {
	if !w.May(access.LoginAs) {
		return access.Viewer{}, fault.New(fault.Forbidden, "this needs the permission %s", access.LoginAs).With("needs", []string{access.LoginAs})
	}
	other, err := s.dir.Viewer(ctx, cfg, as, false)
	switch {
	case fault.CodeOf(err) == fault.Unauthorized:
		return access.Viewer{}, errNobody
	case err != nil:
		return access.Viewer{}, err
	case other.External():
		return access.Viewer{}, errNobody
	case other.Exceeds(w):
		return access.Viewer{}, fault.New(fault.Forbidden, "that user has rights that you lack")
	}
	return other, nil
}

// Acting is the body of a request to act as another user.
type Acting struct {
	UserID string `json:"userId"`
}

func (s *Service) serveAct(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	if c.Session.Acting() {
		return httpapi.Reply{}, errActing
	}
	body, err := httpapi.Decode[Acting](c.Call)
	if err != nil {
		return httpapi.Reply{}, err
	}
	if err := required(map[string]string{"userId": body.UserID}); err != nil {
		return httpapi.Reply{}, err
	}
	if user.ID(body.UserID) == c.Session.UserID {
		return httpapi.Reply{}, fault.Fields("nobody acts as themselves", map[string]string{"userId": "is your own"})
	}
	other, err := s.mayActAs(ctx, c.Config, c.Viewer, user.ID(body.UserID))
	if err != nil {
		return httpapi.Reply{}, err
	}
	if err := s.store.act(ctx, c.Config.Tenant.ID, c.Session.ID, other.UserID()); err != nil {
		return httpapi.Reply{}, err
	}
	s.emit("staff.acting", map[string]any{"tenant": c.Config.Tenant.ID, "user_id": c.Session.UserID, "as": other.UserID()})
	is := *c.Session
	is.ActingAs = other.Email()
	return reply(s.describe(ctx, c.Config, &is, other))
}

func (s *Service) serveStopActing(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	if err := s.store.act(ctx, c.Config.Tenant.ID, c.Session.ID, ""); err != nil {
		return httpapi.Reply{}, err
	}
	is := *c.Session
	is.ActingAs = ""
	return reply(s.describe(ctx, c.Config, &is, is.Real))
}

var errActing = fault.New(fault.Forbidden, "this is closed while you act as another user")

// own returns FORBIDDEN while the user acts as another one: accounts, sessions, passwords
// and second factors are their owners' alone.
func own(h func(context.Context, *httpapi.Authed) (httpapi.Reply, error)) func(context.Context, *httpapi.Authed) (httpapi.Reply, error) {
	return func(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
		if c.Session.Acting() {
			return httpapi.Reply{}, errActing
		}
		return h(ctx, c)
	}
}
