package server

import (
	"context"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/apikey"
	"gatehouse/internal/audit"
	"gatehouse/internal/custom"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/tenant"
)

// logAdmin returns the routes about requests and about API keys. key seals the
// cursors of their lists.
func (s *Server) logAdmin(key []byte) (*audit.AdminAPI, *apikey.Admin) {
	cursors := httpapi.NewCursors(key)
	stored := audit.AdminStore(s.db, func(t tenant.ID, day string, err error) {
		s.log.Emit("audit.read_failed", map[string]any{"tenant": t, "day": day, "error": err.Error()})
	})
	used := func(id string, limit int) int { return limit - s.limiter.Peek(id, limit, time.Minute).Remaining }
	return audit.NewAdminAPI(stored, s.clock, cursors, s.others()), apikey.NewAdmin(s.keys, cursors, used)
}

// others returns what the routes about requests show of other features.
func (s *Server) others() audit.Others {
	return audit.Others{
		KeyNames: s.keys.Names, Current: s.directory.Current, SignedIn: s.staff.SignedIn, Events: s.recentEvents, Mails: s.waitingMails, Begun: s.begun,
	}
}

func (s *Server) recentEvents(ctx context.Context, t tenant.ID, from, to time.Time) (audit.Events, error) {
	r, err := s.endpoints.Recent(ctx, t, from, to)
	e := audit.Events{
		Accepted: audit.BoundedCount{Count: r.Events, More: r.MoreEvents}, Failed: audit.BoundedCount{Count: r.Failed, More: r.MoreFailed},
	}
	if r.RunID != "" {
		e.FailedOf, e.FailedAt, e.FailedRun, e.Failure = &r.Slug, &r.FailedAt, &r.RunID, &r.Error
	}
	return e, err
}

func (s *Server) waitingMails(ctx context.Context, t tenant.ID) (audit.Mails, error) {
	w, err := s.mails.Backlog(ctx, t)
	m := audit.Mails{Waiting: audit.BoundedCount{Count: w.Count, More: w.More}}
	if !w.Oldest.IsZero() {
		m.Oldest, m.NextTry = &w.Oldest, &w.Next
	}
	if w.Error != "" {
		m.Error = &w.Error
	}
	return m, err
}

// begun returns which of the first steps have been made, as far as the
// configuration and the keys tell.
func (s *Server) begun(ctx context.Context, cfg *access.Config) (b audit.Begun, err error) {
	b = audit.Begun{Entities: len(cfg.Schema.Entities) > 0, Sets: len(cfg.Sets) > 0, APIOn: cfg.Tenant.Settings.PublicAPI.Enabled}
	if b.Keys, err = s.keys.Any(ctx, cfg.Tenant.ID); err != nil {
		return b, err
	}
	b.Endpoints, err = custom.Any(ctx, s.db.For(cfg.Tenant.ID))
	return b, err
}
