package audit

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/tenant"
)

// Rows of minutes become rows of fifteen minutes, and what they count stays the
// same, also where several do it at once and while others still count.
func TestThinnedUsageCountsTheSame(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := makeTenant(t, d, "acme")
		now := noon.Truncate(24 * time.Hour).Add(12 * time.Hour)
		const perMinute, minutes = 3, 40 * 60 // 25 to 40 hours of them are old
		s := dbStore{d: d, writer: "w"}
		var rows []usageRow
		for i := range minutes {
			u := newUsage()
			for n := range perMinute {
				ev := entry("acme", 0)
				ev.Start = now.Add(-time.Duration(i) * time.Minute)
				ev.Endpoint, ev.APIKeyID, ev.Status = fmt.Sprint("/data/e", n%2), "k", 200+229*(n%2)
				u.count(ev)
			}
			rows = append(u.take(func(tenant.ID) bool { return false })["acme"], rows...)
		}
		if err := s.count(t.Context(), "acme", 1, rows); err != nil {
			t.Fatal(err)
		}
		var wait sync.WaitGroup
		for range 3 {
			wait.Go(func() {
				if err := thin(t.Context(), h, now); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		old := int64((40 - 25) * 60)
		for sql, want := range map[string]int64{
			`SELECT CAST(SUM(requests) AS BIGINT) FROM usage_minutes WHERE tenant_id = $1`: perMinute * minutes,
			`SELECT CAST(SUM(limited) AS BIGINT) FROM usage_minutes WHERE tenant_id = $1`:  minutes,
			`SELECT CAST(SUM(le_1) AS BIGINT) FROM usage_keys WHERE tenant_id = $1`:        perMinute * minutes,
			`SELECT COUNT(*) FROM usage_minutes WHERE tenant_id = $1`:                      2 * (minutes - old + old/15),
			`SELECT COUNT(*) FROM usage_keys WHERE tenant_id = $1`:                         minutes - old + old/15,
		} {
			if got := number(t, h, sql); got < want-2 || got > want+4 { // the first fifteen minutes may be cut
				t.Errorf("%s: %d, want %d", sql, got, want)
			}
		}
		if err := thin(t.Context(), h, now); err != nil {
			t.Fatal(err)
		}
		if got := number(t, h, `SELECT CAST(SUM(requests) AS BIGINT) FROM usage_keys WHERE tenant_id = $1`); got != perMinute*minutes {
			t.Errorf("again: %d", got)
		}
	})
}

func TestQuantiles(t *testing.T) {
	var s usageSums
	if s.quantile(.5) != 0 {
		t.Error("of nothing")
	}
	for _, ms := range []int{1, 1, 3, 3, 3, 3, 3, 3, 3, 9000} {
		s.count(&Event{Status: 200, Duration: time.Duration(ms) * time.Millisecond})
	}
	for q, want := range map[float64][2]time.Duration{
		.1: {0, time.Millisecond}, .5: {2500 * time.Microsecond, 5 * time.Millisecond}, .9: {2500 * time.Microsecond, 5 * time.Millisecond},
		.95: {5 * time.Second, 30 * time.Second}, 1: {30 * time.Second, 30 * time.Second},
	} {
		if got := s.quantile(q); got < want[0] || got > want[1] {
			t.Errorf("%v: %v, want %v", q, got, want)
		}
	}
}
