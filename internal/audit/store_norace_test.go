//go:build !race

package audit

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/tenant"
)

// Pages hold together what a linear search finds, in order and once each, however
// soon their time is up; so do the parts of a histogram.
func TestPagesAndHistogramsAreComplete(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		makeTenant(t, d, "acme")
		events := fillKinds(t, d, 360)
		log := &Log{DB: d, Tenant: "acme"}
		for name, c := range pageFilters {
			var want []string
			for _, ev := range events {
				if c.wants(ev) {
					want = append(want, ev.RequestID)
				}
			}
			for limit, patience := range map[int]time.Duration{17: 0, 50: time.Hour} {
				got, empty := allPages(t, log, c.filter, limit, patience)
				if !slices.Equal(got, want) {
					t.Errorf("%s by %d, %v: %d entries, want %d", name, limit, patience, len(got), len(want))
				}
				if patience > 0 && empty > 0 {
					t.Errorf("%s: %d empty pages although there was time", name, empty)
				}
			}
			f := c.filter
			if f.Since.IsZero() {
				f.Since, f.Until = noon.Add(-time.Hour), noon.AddDate(0, 0, 4)
			}
			for _, patience := range []time.Duration{0, time.Hour} {
				if got := countAll(t, log, f, patience); got != counts(events, c.wants) {
					t.Errorf("histogram of %s, %v: %+v, want %+v", name, patience, got, counts(events, c.wants))
				}
			}
		}
	})
}

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
