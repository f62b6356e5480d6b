package server

import (
	"gatehouse/internal/admission"
	"gatehouse/internal/audit"
	"gatehouse/internal/httpapi"
)

// AddRoute adds a route to public data for a test. It must be called before the
// first request.
func (s *Server) AddRoute(r httpapi.Route) { s.addRoute("public data", r) }

// AddAdminRoute adds a route to the admin surface, which then admits its policy.
func (s *Server) AddAdminRoute(r httpapi.Route) { s.addRoute("admin", r) }

func (s *Server) addRoute(name string, r httpapi.Route) {
	for _, sf := range s.surfaces {
		if sf.name == name {
			sf.routes = append(sf.routes, r)
			sf.credentials, sf.limits = append(sf.credentials, r.Auth), append(sf.limits, r.Limit)
		}
	}
	s.surfaces = s.surfaces.made()
	s.metrics.known[r.Pattern] = s.metrics.series(r.Pattern)
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
