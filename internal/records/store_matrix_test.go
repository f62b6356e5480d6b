package records_test

import (
	"maps"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
)

// TestAuthorizationMatrix compares the answers of the product and the oracle
// for every viewer × record × verb of a generated tenant, changes the tenant,
// and asks again. TestAuthorizationMatrixAtLength does this for more tenants.
func TestAuthorizationMatrix(t *testing.T) { matrix(t, 1) }

// TestProveAuthorizationMatrix runs the matrix at the length that is reported.
func TestProveAuthorizationMatrix(t *testing.T) {
	if os.Getenv("GATEHOUSE_PROVE") == "" {
		t.Skip("a million cells an engine; GATEHOUSE_PROVE=1")
	}
	matrix(t, 1_000_000)
}

func matrix(t *testing.T, enough int) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		cells, differences, whys, first := 0, 0, 0, uint64(1)
		if os.Getenv("GATEHOUSE_PROVE") != "" {
			first = uint64(time.Now().UnixNano() % 1_000_000)
		}
		for seed := first; cells < enough && differences == 0; seed++ {
			x := examine(t, d, seed, nil)
			cells, differences, whys = cells+x.cells, differences+x.differences, whys+x.whys
			for i, example := range x.examples {
				if i == 5 {
					break
				}
				t.Errorf("seed %d: %s", seed, example)
			}
		}
		t.Logf("matrix: %d cells, %d differences, seed %d; %d differences of explanations", cells, differences, first, whys)
	})
}

// examine gives one world three exams, with changes in between.
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
		for _, p := range here.viewers() { // deals of an earlier stage were deleted and made again
			if stage == 0 || chance(rnd, 70) {
				p.managed = maps.Clone(p.managed)
				p.managed["near"] = here.acquaint(rnd)
				x.h.follow(here, change{managed: p})
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
