package server

import (
	"gatehouse/internal/admission"
	"gatehouse/internal/audit"
	"gatehouse/internal/httpapi"
)

// AddRoute adds a route of a test's own. Call it before the first request.
func (s *Server) AddRoute(r httpapi.Route) {
	s.surface = append(s.surface, r)
	s.router = newRouter(s.surface)
	s.metrics.known[r.Pattern] = s.metrics.series(r.Pattern)
}

// Surface is every route that is served.
func (s *Server) Surface() []httpapi.Route { return s.surface }

// CheckRoutes panics on a route that lacks a policy.
func CheckRoutes(routes []httpapi.Route) { newRouter(routes) }

// AuditStats are the figures of the recorder of audit entries.
func (s *Server) AuditStats() audit.Stats { return s.recorder.Stats() }

// Answers and Bodies are the budgets of what requests hold in memory.
func (s *Server) Answers() *admission.Budget { return s.answers }

// Bodies is the budget of bodies.
func (s *Server) Bodies() *admission.Budget { return s.bodies }
