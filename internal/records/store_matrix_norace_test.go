//go:build !race

package records_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/tenant"

	"pgregory.net/rapid"
)

// TestMatrixCatchesSeededFaults checks that a quarter of the faults, by chance, shows in at
// least one cell each and, if it can, also in one that asks why.
func TestMatrixCatchesSeededFaults(t *testing.T) {
	first := rand.IntN(4)
	some := slices.Clone(seededFaults[:0])
	for i := first; i < len(seededFaults); i += 4 {
		some = append(some, seededFaults[i])
	}
	t.Logf("every fourth fault, from %d", first)
	matrixCatches(t, some)
}

// TestProveMatrixCatchesSeededFaults checks all of them.
func TestProveMatrixCatchesSeededFaults(t *testing.T) {
	if os.Getenv("GATEHOUSE_PROVE") == "" {
		t.Skip("all faults; GATEHOUSE_PROVE=1")
	}
	matrixCatches(t, seededFaults)
}

// matrixCatches compares the product with oracles that have the faults until each is caught.
func matrixCatches(t *testing.T, faults []seededFault) {
	t.Helper()
	d := dbtest.Open(t, db.SQLite)
	caught, byWhy, cells := map[string]string{}, map[string]string{}, 0
	left := slices.Clone(faults)
	for seed := uint64(2); seed <= 20 && len(left) > 0; seed++ {
		how := whole
		how.faults = left
		x := examine(t, d, seed, how)
		if x.differences > 0 {
			t.Fatalf("seed %d: the product differs without a fault: %s", seed, x.examples[0])
		}
		cells += x.cells
		maps.Copy(caught, x.caught)
		maps.Copy(byWhy, x.caughtByWhy)
		left = slices.DeleteFunc(left, func(f seededFault) bool {
			return caught[f.name] != "" && (byWhy[f.name] != "" || !explains(f.name))
		})
		for _, f := range left {
			t.Logf("seed %d: still to be caught: %s, by an explanation %v", seed, f.name, byWhy[f.name] != "")
		}
	}
	for _, f := range left {
		t.Errorf("not caught: %s: by %q, by an explanation %q", f.name, caught[f.name], byWhy[f.name])
	}
	for _, f := range faults {
		t.Logf("%s: caught by: %s\n   and by: %s", f.name, caught[f.name], byWhy[f.name])
	}
	t.Logf("matrix: %d cells, 0 differences; %d of %d seeded faults caught, %d of them by an explanation", cells, len(caught), len(faults), len(byWhy))
}

// TestAuthorizationMatrixAtLength is TestAuthorizationMatrix with every viewer on SQLite.
func TestAuthorizationMatrixAtLength(t *testing.T) {
	how := map[db.Engine]examination{db.SQLite: whole, db.Postgres: {stages: 3, viewers: 6}}
	enough := map[db.Engine]int{db.SQLite: 8_000, db.Postgres: 2_500} // a question takes several times as long there
	dbtest.Each(t, func(t *testing.T, d *db.DB) { matrixOn(t, d, enough[d.Engine()], how[d.Engine()]) })
}

// TestIndexRowsAreThoseOfTheRecords makes random writes of every kind, then
// derives all index rows from the records, shares and rules and compares them
// with the stored ones.
func TestIndexRowsAreThoseOfTheRecords(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := 0
		rapid.Check(t, func(rt *rapid.T) {
			n++
			if d.Engine() == db.Postgres && n%3 != 0 {
				return // a write takes several times as long there
			}
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
