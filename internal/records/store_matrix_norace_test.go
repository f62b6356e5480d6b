//go:build !race

package records_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/tenant"

	"pgregory.net/rapid"
)

// TestMatrixCatchesSeededFaults checks that each fault shows in at least one
// cell and, if it concerns verbs on records, also in one that asks why.
// Explanations list the fields of each set separately, so faults that concern
// fields show in other cells.
func TestMatrixCatchesSeededFaults(t *testing.T) {
	d := dbtest.Open(t, db.SQLite)
	caught, byWhy := map[string]string{}, map[string]string{}
	missing := func() (list []string) {
		for _, f := range seededFaults {
			if caught[f.name] == "" {
				list = append(list, "not caught: "+f.name)
			}
			if byWhy[f.name] == "" && !strings.Contains(f.name, "field") {
				list = append(list, "not caught by an explanation: "+f.name)
			}
		}
		return list
	}
	for seed := uint64(1); seed <= 8 && len(missing()) > 0; seed++ {
		x := examine(t, d, seed, seededFaults)
		if x.differences > 0 {
			t.Fatalf("seed %d: the product differs without a fault", seed)
		}
		maps.Copy(caught, x.caught)
		maps.Copy(byWhy, x.caughtByWhy)
	}
	for _, problem := range missing() {
		t.Error(problem)
	}
	for _, f := range seededFaults {
		t.Logf("%s: caught by: %s\n   and by: %s", f.name, caught[f.name], byWhy[f.name])
	}
	t.Logf("matrix: %d of %d seeded faults caught, %d of them by an explanation", len(caught), len(seededFaults), len(byWhy))
}

// TestAuthorizationMatrixAtLength is TestAuthorizationMatrix over several
// tenants.
func TestAuthorizationMatrixAtLength(t *testing.T) { matrix(t, 30_000) }

// TestIndexRowsAreThoseOfTheRecords makes random writes of every kind, then
// derives all index rows from the records, shares and rules and compares them
// with the stored ones.
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
