package server

import "github.com/prometheus/client_golang/prometheus"

// runMetrics tells /metrics of what tenants run; it asks when it is asked.
type runMetrics struct{ s *Server }

var (
	cpuSeconds = prometheus.NewDesc("gatehouse_component_cpu_seconds_total",
		"CPU time of a tenant's logic components, calls of records not counted.", []string{"tenant"}, nil)
	runsTotal = prometheus.NewDesc("gatehouse_runs_total", "Runs of components and automations, by how they ended.", []string{"status"}, nil)
	duplicate = prometheus.NewDesc("gatehouse_duplicate_deliveries_total", "Deliveries that had been processed before.", nil, nil)
	runsQueue = prometheus.NewDesc("gatehouse_run_queue_entries", "Runs waiting to be written.", nil, nil)
)

// Describe tells what Collect gives.
func (runMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{cpuSeconds, runsTotal, duplicate, runsQueue} {
		ch <- d
	}
}

// Collect gives the present counts.
func (m runMetrics) Collect(ch chan<- prometheus.Metric) {
	for tenant, d := range m.s.engine.CPU() {
		ch <- prometheus.MustNewConstMetric(cpuSeconds, prometheus.CounterValue, d.Seconds(), tenant)
	}
	stats := m.s.endpoints.Stats()
	for status, n := range stats.Runs {
		ch <- prometheus.MustNewConstMetric(runsTotal, prometheus.CounterValue, float64(n), status)
	}
	ch <- prometheus.MustNewConstMetric(duplicate, prometheus.CounterValue, float64(stats.Duplicates))
	ch <- prometheus.MustNewConstMetric(runsQueue, prometheus.GaugeValue, float64(stats.Waiting))
}
