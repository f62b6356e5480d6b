package server

import (
	"gatehouse/internal/admission"
	"gatehouse/internal/audit"
	"gatehouse/internal/httpapi"
)

// AddRoute adds a route for a test. It must be called before the first request.
func (s *Server) AddRoute(r httpapi.Route) {
	s.surface = append(s.surface, r)
	s.router = newRouter(s.surface)
	s.metrics.known[r.Pattern] = s.metrics.series(r.Pattern)
}

// Surface returns every route that is served.
func (s *Server) Surface() []httpapi.Route { return s.surface }

// CheckRoutes panics on a route that lacks a policy.
func CheckRoutes(routes []httpapi.Route) { newRouter(routes) }

// AuditStats returns the statistics of the audit recorder.
func (s *Server) AuditStats() audit.Stats { return s.recorder.Stats() }

// Answers returns the budget of answers.
func (s *Server) Answers() *admission.Budget { return s.answers }

// Bodies returns the budget of bodies.
func (s *Server) Bodies() *admission.Budget { return s.bodies }
