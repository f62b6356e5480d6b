package server

import "github.com/prometheus/client_golang/prometheus"

// collector exposes the features' own counts to /metrics. It reads them when
// /metrics is read.
type collector struct{ s *Server }

func described(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("gatehouse_"+name, help, labels, nil)
}

var (
	cpuSeconds  = described("component_cpu_seconds_total", "CPU time of a tenant's logic components, calls of records not counted.", "tenant")
	runsTotal   = described("runs_total", "Runs of components and automations, by how they ended.", "status")
	runsNow     = described("runs_running", "Runs of components and automations that are being done.")
	duplicates  = described("duplicate_deliveries_total", "Deliveries that had been processed before.")
	runsQueue   = described("run_queue_entries", "Runs waiting to be written.")
	flows       = described("flows", "Flows that run, and that wait for a place.", "state")
	components  = described("components", "Components that run, and that wait for a place.", "state")
	identities  = described("identity_events_total", "What External Identity did: registrations, logins, failed logins, blocks, refreshes, reuses, resets, overloads.", "event")
	mailsTotal  = described("mails_total", "Mails sent, tries that failed, and mails given up.", "result")
	mailsQueued = described("mail_queue_entries", "Mails waiting to be sent.")
	answersHeld = described("answer_bytes", "Memory held by large answers, and by records that runs were handed.")
	bodiesHeld  = described("body_bytes", "Memory held by large request bodies.")
)

// Describe sends the descriptions of what Collect sends.
func (collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		cpuSeconds, runsTotal, runsNow, duplicates, runsQueue, flows, components, identities, mailsTotal, mailsQueued, answersHeld, bodiesHeld,
	} {
		ch <- d
	}
}

// Collect sends the current values.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	counter := func(d *prometheus.Desc, n float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, n, labels...)
	}
	gauge := func(d *prometheus.Desc, n float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, n, labels...)
	}
	for tenant, d := range c.s.engine.CPU() {
		counter(cpuSeconds, d.Seconds(), tenant)
	}
	runs := c.s.endpoints.Stats()
	for status, n := range runs.Runs {
		counter(runsTotal, float64(n), status)
	}
	gauge(runsNow, float64(runs.Running))
	counter(duplicates, float64(runs.Duplicates))
	gauge(runsQueue, float64(runs.Waiting))
	gauge(flows, float64(runs.FlowsRunning), "running")
	gauge(flows, float64(runs.FlowsWaiting), "waiting")
	gauge(components, float64(runs.ComponentsRunning), "running")
	gauge(components, float64(runs.ComponentsWaiting), "waiting")
	id := c.s.identity.Stats()
	for event, n := range map[string]int64{
		"registration": id.Registrations, "login": id.Logins, "login_failed": id.Failures, "login_blocked": id.Blocks,
		"refresh": id.Refreshes, "refresh_reused": id.Reuses, "password_reset": id.Resets, "password_change": id.Changes,
		"overloaded": id.Overloads,
	} {
		counter(identities, float64(n), event)
	}
	mails := c.s.mails.Stats()
	counter(mailsTotal, float64(mails.Sent), "sent")
	counter(mailsTotal, float64(mails.Failed), "failed")
	counter(mailsTotal, float64(mails.GivenUp), "given_up")
	counter(mailsTotal, float64(mails.Expired), "expired")
	gauge(mailsQueued, float64(mails.Waiting))
	gauge(answersHeld, float64(c.s.answers.Used()))
	gauge(bodiesHeld, float64(c.s.bodies.Used()))
}
