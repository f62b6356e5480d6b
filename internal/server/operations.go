package server

import (
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// page is one page of the operator's listener.
type page struct {
	pattern string // as net/http's
	serve   http.HandlerFunc
}

// operations returns the pages of the operator's listener: health, readiness,
// metrics, profiles. They pass no check and need no credential, are not limited
// and are not recorded: the listener is meant for the operator's network only.
func (s *Server) operations() []page {
	return []page{
		{"GET /healthz", healthz},
		{"GET /readyz", s.readyz},
		{"GET /metrics", promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{}).ServeHTTP},
		{"GET /debug/pprof/", pprof.Index},
		{"GET /debug/pprof/profile", pprof.Profile},
		{"GET /debug/pprof/trace", pprof.Trace},
	}
}

// opsServer returns the server of the operator's listener.
func (s *Server) opsServer() *http.Server {
	mux := http.NewServeMux()
	for _, p := range s.operations() {
		mux.HandleFunc(p.pattern, p.serve)
	}
	return &http.Server{
		Handler: mux, ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout, WriteTimeout: 2 * time.Minute,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes, ErrorLog: s.netLog(),
	}
}

// healthz reports that the process answers.
func healthz(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok") }

// readyz reports whether this node should get requests: it does not drain, and
// its database answers. One that only reads is ready, because reads go on, and says so.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	if s.draining.Load() {
		say(w, http.StatusServiceUnavailable, "draining")
		return
	}
	switch readsOnly, err := s.db.Health(r.Context()); {
	case err != nil:
		say(w, http.StatusServiceUnavailable, "database unavailable")
	case readsOnly:
		say(w, http.StatusOK, "ready, database read-only")
	default:
		say(w, http.StatusOK, "ready")
	}
}

func say(w http.ResponseWriter, status int, word string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(`{"status":"` + word + `"}` + "\n"))
}
