//go:build !race

package consoletest

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"gatehouse/internal/audit"
	"gatehouse/internal/clock"
	"gatehouse/internal/credential"
	"gatehouse/internal/db"
	"gatehouse/internal/tenant"
)

// serveEntries writes ?count=N entries of a tenant's audit log, spread over the last
// 20 hours, as a second server would: one in 20,000 is an error of 5xx, and one in
// 20,000 is of the endpoint /custom/rare.
func (s *stage) serveEntries(w http.ResponseWriter, r *http.Request) {
	count, err := strconv.Atoi(r.URL.Query().Get("count"))
	if err != nil {
		http.Error(w, "count: "+err.Error(), http.StatusBadRequest)
		return
	}
	if err := s.fill(r.Context(), tenant.ID(r.URL.Query().Get("tenant")), count); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusOK)
}

func (s *stage) fill(ctx context.Context, of tenant.ID, count int) error {
	d, err := db.Open(ctx, s.config)
	if err != nil {
		return err
	}
	defer d.Close()
	recorder := audit.NewRecorder(d, clock.System(), audit.Options{})
	begin, step := time.Now().Add(-20*time.Hour), 20*time.Hour/time.Duration(max(count, 1))
	for i := range count {
		ev := &audit.Event{
			Tenant: of, Method: http.MethodGet, Path: "/public/v1/data/contact", Endpoint: "/data/contact", Status: http.StatusOK, IP: "203.0.113.7",
			Start: begin.Add(time.Duration(i) * step), Duration: time.Duration(i%9000) * time.Microsecond, Auth: credential.APIKey, Class: audit.Standard, Persist: true,
			ResponseBody: []byte(`{"data":{"id":"` + fmt.Sprint(i) + `","first_name":"Ada","last_name":"Lovelace"},"meta":{}}`), Rendered: true, Uncounted: true,
		}
		ev.RequestID = clock.NewID(ev.Start)
		switch i % 20_000 {
		case 1:
			ev.Status = http.StatusInternalServerError
		case 2:
			ev.Endpoint = "/custom/rare"
		}
		recorder.Record(ev)
	}
	return recorder.Close(ctx)
}
