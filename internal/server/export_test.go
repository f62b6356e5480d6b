package server

import (
	"slices"
	"time"

	"gatehouse/internal/admission"
	"gatehouse/internal/audit"
	"gatehouse/internal/httpapi"
)

// AddRoute adds a route to public data for a test. It must be called before the
// first request.
func (s *Server) AddRoute(r httpapi.Route) { s.AddRouteAsIs("public data", r) }

// AddAdminRoute adds a route to the admin surface, and its policy to those that
// the surface has.
func (s *Server) AddAdminRoute(r httpapi.Route) {
	admin := s.surfaces.named("admin")
	admin.credentials, admin.limits = append(admin.credentials, r.Auth), append(admin.limits, r.Limit)
	s.AddRouteAsIs("admin", r)
}

// AddRouteAsIs adds a route to a surface. It panics if the surface does not have
// the route's policy.
func (s *Server) AddRouteAsIs(surface string, r httpapi.Route) {
	sf := s.surfaces.named(surface)
	sf.routes = append(sf.routes, r)
	s.surfaces = s.surfaces.made()
	s.metrics.known[r.Pattern] = s.metrics.series(r.Pattern)
}

func (list surfaces) named(name string) *surface {
	return list[slices.IndexFunc(list, func(sf *surface) bool { return sf.name == name })]
}

// Surface returns every route that is served.
func (s *Server) Surface() []httpapi.Route { return s.surfaces.routes() }

// CheckRoutes panics on a route that lacks a policy.
func CheckRoutes(routes []httpapi.Route) { newRouter(routes) }

// AuditStats returns the statistics of the audit recorder.
func (s *Server) AuditStats() audit.Stats { return s.recorder.Stats() }

// Answers returns the budget of answers.
func (s *Server) Answers() *admission.Budget { return s.answers }

// Bodies returns the budget of bodies.
func (s *Server) Bodies() *admission.Budget { return s.bodies }

// DrainFor sets how long running requests have after the server was told to stop, and
// returns a function that restores the previous value.
func DrainFor(d time.Duration) (undo func()) {
	was := drainTimeout
	drainTimeout = d
	return func() { drainTimeout = was }
}
