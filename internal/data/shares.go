package data

import (
	"context"
	"net/http"

	"gatehouse/internal/access"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/records"
)

// Shares of a record (contract A16, A17).

func (s *Service) shares(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	session, entity := s.records.As(c.Viewer).Within(c), c.Params.Get("entity")
	if err := session.MayShare(entity); err != nil {
		return httpapi.Reply{}, err
	}
	if err := noQuery(c.Request.URL); err != nil {
		return httpapi.Reply{}, err
	}
	list, err := session.Shares(ctx, entity, c.Params.Get("id"))
	if err != nil {
		return httpapi.Reply{}, err
	}
	data := []byte{'['}
	for i, share := range list {
		if i > 0 {
			data = append(data, ',')
		}
		data = share.AppendJSON(data)
	}
	return httpapi.Reply{Data: append(data, ']')}, nil
}

func (s *Service) share(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	with, level, err := s.with(c, true)
	if err != nil {
		return httpapi.Reply{}, err
	}
	share, isNew, err := s.records.As(c.Viewer).Within(c).ShareWith(ctx, c.Params.Get("entity"), c.Params.Get("id"), with, level)
	if err != nil {
		return httpapi.Reply{}, err
	}
	status := http.StatusOK
	if isNew {
		status = http.StatusCreated
	}
	return httpapi.Reply{Status: status, Data: share.AppendJSON(nil)}, nil
}

func (s *Service) unshare(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	with, _, err := s.with(c, false)
	if err != nil {
		return httpapi.Reply{}, err
	}
	out, err := s.records.As(c.Viewer).Within(c).UnshareWith(ctx, c.Params.Get("entity"), c.Params.Get("id"), with)
	return httpapi.Reply{Data: out}, err
}

// with reads a body that names whom a record is shared with.
func (s *Service) with(c *httpapi.Authed, withAccess bool) (records.With, access.Level, error) {
	if err := s.records.As(c.Viewer).MayShare(c.Params.Get("entity")); err != nil {
		return records.With{}, "", err
	}
	if err := noQuery(c.Request.URL); err != nil {
		return records.With{}, "", err
	}
	body, err := c.JSON()
	if err != nil {
		return records.With{}, "", err
	}
	return records.ParseWith(membersOf(body), withAccess)
}
