package server

import (
	"net/http"

	"gatehouse/internal/audit"
	"gatehouse/internal/httpapi"
)

// AddRoute adds a route of a test's own. Call it before the first request.
func (s *Server) AddRoute(r httpapi.Route) {
	s.surface = append(s.surface, r)
	s.mux = newMux(s.surface)
	s.metrics.known[r.Pattern] = s.metrics.series(r.Pattern)
}

// Surface is every route that is served.
func (s *Server) Surface() []httpapi.Route { return s.surface }

// Mux is the matcher of routes, which refuses those that lack a policy.
func Mux(routes []httpapi.Route) *http.ServeMux { return newMux(routes) }

// AuditStats are the figures of the recorder of audit entries.
func (s *Server) AuditStats() audit.Stats { return s.recorder.Stats() }
