package server

import (
	"net/http"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"gatehouse/internal/audit"
)

// metrics holds what /metrics shows.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	latency  *prometheus.HistogramVec
	limited  *prometheus.CounterVec
	panics   prometheus.Counter
	inFlight atomic.Int64 // requests being answered

	known map[string]*series // by route pattern, "" for none; not written after newMetrics
}

// series are the metrics of one route, looked up once.
type series struct {
	byClass [6]prometheus.Counter // by status / 100
	latency prometheus.Observer
}

func newMetrics(s *Server) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatehouse_requests_total", Help: "Requests answered, by route and class of status.",
		}, []string{"route", "status"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "gatehouse_request_duration_seconds", Help: "From the end of the request's header until its answer is ready to be sent.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"route"}),
		limited: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatehouse_rate_limited_total", Help: "Requests refused with 429, by tenant.",
		}, []string{"tenant"}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{Name: "gatehouse_panics_total", Help: "Panics contained."}),
		known:  map[string]*series{},
	}
	inFlight := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "gatehouse_requests_in_flight", Help: "Requests being answered."},
		func() float64 { return float64(m.inFlight.Load()) })
	m.registry.MustRegister(m.requests, m.latency, m.limited, m.panics, inFlight,
		collector{s}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	gauge := func(name, help string, value func() float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
	}
	gauge("gatehouse_audit_queue_entries", "Audit entries waiting to be written.", func() float64 { return float64(s.recorder.Stats().Queued) })
	gauge("gatehouse_audit_failing_tenants", "Tenants whose audit entries cannot be written for now.", func() float64 { return float64(s.recorder.Stats().Failing) })
	gauge("gatehouse_database_write_queue", "Writes waiting for the writer.", func() float64 { return float64(s.db.Stats().WritesQueued) })
	gauge("gatehouse_database_connection_queue", "Calls waiting for a database connection.", func() float64 { return float64(s.db.Stats().Waiting) })
	gauge("gatehouse_database_longest_write_seconds", "The longest turn that one write has had at the writer, without its commit.", func() float64 { return s.db.Stats().LongestWrite.Seconds() })
	for _, pattern := range append(patterns(s), "") {
		m.known[pattern] = m.series(pattern)
	}
	return m
}

func patterns(s *Server) []string {
	var list []string
	for _, r := range s.surfaces.routes() {
		list = append(list, r.Pattern)
	}
	return list
}

func (m *metrics) series(pattern string) *series {
	se := &series{latency: m.latency.WithLabelValues(pattern)}
	for i, class := range []string{"", "1xx", "2xx", "3xx", "4xx", "5xx"} {
		if class != "" {
			se.byClass[i] = m.requests.WithLabelValues(pattern, class)
		}
	}
	return se
}

// observe counts a finished request.
func (m *metrics) observe(ev *audit.Event) {
	se := m.known[ev.Route]
	if c := ev.Status / 100; c >= 1 && c <= 5 {
		se.byClass[c].Inc()
	}
	se.latency.Observe(ev.Duration.Seconds())
	if ev.Status == http.StatusTooManyRequests {
		m.limited.WithLabelValues(string(ev.Tenant)).Inc()
	}
}
