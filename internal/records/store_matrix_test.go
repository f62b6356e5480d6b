package records_test

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
)

// TestAuthorizationMatrix puts every viewer × record × verb of generated tenants
// to the product and to the oracle, changes the tenants, and asks again.
// With GATEHOUSE_PROVE=1 it goes on to two million cells.
func TestAuthorizationMatrix(t *testing.T) { matrix(t, 30_000) }

// TestProveAuthorizationMatrix is the matrix at the length that is reported.
func TestProveAuthorizationMatrix(t *testing.T) {
	if os.Getenv("GATEHOUSE_PROVE") == "" {
		t.Skip("a million cells an engine; GATEHOUSE_PROVE=1")
	}
	matrix(t, 1_000_000)
}

func matrix(t *testing.T, enough int) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		cells, differences, first := 0, 0, uint64(1)
		if os.Getenv("GATEHOUSE_PROVE") != "" {
			first = uint64(time.Now().UnixNano() % 1_000_000)
		}
		for seed := first; cells < enough && differences == 0; seed++ {
			x := examine(t, d, seed, nil)
			cells, differences = cells+x.cells, differences+x.differences
			for i, example := range x.examples {
				if i == 5 {
					break
				}
				t.Errorf("seed %d: %s", seed, example)
			}
		}
		t.Logf("matrix: %d cells, %d differences, seed %d", cells, differences, first)
	})
}

// examine takes one world through three exams with changes in between.
func examine(t *testing.T, d *db.DB, seed uint64, faults []seededFault) *exam {
	here, there := generate(seed)
	provision(t, d, there)
	x := newExam(provision(t, d, here), here)
	for _, f := range faults {
		x.faulty[f.name] = newOracle(here)
		f.misread(x.faulty[f.name])
	}
	rnd, story := rand.New(rand.NewPCG(seed, 3)), []string{}
	for stage := range 3 {
		if stage > 0 {
			for i := range 12 {
				what, c := here.mutate(rnd, i)
				story = append(story, what)
				x.h.follow(here, c)
			}
		}
		x.everything(there)
		if x.differences > 0 {
			t.Logf("seed %d: what happened before: %s", seed, strings.Join(story, "; "))
			break
		}
	}
	return x
}

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
