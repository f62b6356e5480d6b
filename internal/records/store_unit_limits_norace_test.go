//go:build !race

package records_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/fault"
	"gatehouse/internal/records"
)

// TestUnitsShareTheirMemory checks that the memory of all units together is
// bounded, and that one tenant leaves room for another.
func TestUnitsShareTheirMemory(t *testing.T) {
	d := dbtest.Open(t, db.SQLite)
	h, ctx := acme(t, d), t.Context()
	note := `{"note": "` + strings.Repeat("n", 1<<20-1<<10) + `"}`
	var units []*records.Unit
	var err error
	for len(units) < 20 && err == nil {
		u, p := h.part("sam")
		units = append(units, u)
		for n := 0; n < 8 && err == nil; n++ {
			_, err = p.Create(ctx, "contact", body(t, note))
		}
	}
	want(t, err, fault.Overloaded)
	if len(units) != 9 { // units of 8 MiB each, in half of 128 MiB
		t.Errorf("unit %d was refused", len(units))
	}
	for _, u := range units {
		u.Close()
	}
	u, p := h.part("sam")
	r, err := p.Create(ctx, "contact", body(t, note))
	must(t, r, err)
	u.Close()
	u.Close() // which must not release the memory twice
}

// TestAChangeCostsTheSameHoweverManyCameBefore checks that the cost of a change
// does not depend on the number of earlier ones. It measures allocated memory
// in place of work: the check of a unique value once read every record of the
// unit.
func TestAChangeCostsTheSameHoweverManyCameBefore(t *testing.T) {
	h, ctx := acme(t, dbtest.Open(t, db.SQLite)), t.Context()
	u, p := h.part("sam")
	defer u.Close()
	account, err := p.Create(ctx, "account", body(t, `{"name": "A"}`))
	must(t, account, err)
	n := 0
	cost := func(times int) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range times {
			n++
			r, err := p.Create(ctx, "contact", body(t, fmt.Sprintf(`{"email": "e%d@x", "account": %q}`, n, account.ID())))
			if err != nil {
				t.Fatal(describe(err))
			}
			if n%4 != 0 {
				continue
			}
			if err := p.Delete(ctx, "contact", r.ID()); err != nil {
				t.Fatal(describe(err))
			}
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	cost(100)
	first := cost(100)
	cost(300)
	if last := cost(100); last > 2*first {
		t.Errorf("the first hundred took %d bytes, one after 500 others %d", first, last)
	}
}
