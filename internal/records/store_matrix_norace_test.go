//go:build !race

package records_test

import (
	"fmt"
	"testing"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/tenant"

	"pgregory.net/rapid"
)

// TestMatrixCatchesSeededFaults: each fault shows in at least one cell.
func TestMatrixCatchesSeededFaults(t *testing.T) {
	d := dbtest.Open(t, db.SQLite)
	caught := map[string]string{}
	for seed := uint64(1); seed <= 8 && len(caught) < len(seededFaults); seed++ {
		x := examine(t, d, seed, seededFaults)
		if x.differences > 0 {
			t.Fatalf("seed %d: the product differs without a fault", seed)
		}
		for name, cell := range x.caught {
			if caught[name] == "" {
				caught[name] = cell
			}
		}
	}
	for _, f := range seededFaults {
		if caught[f.name] == "" {
			t.Errorf("not caught: %s", f.name)
		} else {
			t.Logf("caught: %s, by: %s", f.name, caught[f.name])
		}
	}
	t.Logf("matrix: %d of %d seeded faults caught", len(caught), len(seededFaults))
}

// TestAuthorizationMatrixAtLength is TestAuthorizationMatrix over several tenants.
func TestAuthorizationMatrixAtLength(t *testing.T) { matrix(t, 30_000) }

// TestIndexRowsAreThoseOfTheRecords draws writes of every kind and then derives
// all index rows anew from what records, shares and rules say.
func TestIndexRowsAreThoseOfTheRecords(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := 0
		rapid.Check(t, func(rt *rapid.T) {
			n++
			x := &indexed{house: likeAcme(t, d, tenant.ID(fmt.Sprintf("t%d", n))), t: rt}
			x.declare()
			for range 3 {
				x.write("account")
			}
			for range 20 {
				x.step()
				if rapid.IntRange(0, 7).Draw(rt, "compare") == 0 {
					x.compare()
				}
			}
			x.compare()
		})
	})
}
