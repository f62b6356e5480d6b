package records_test

import (
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
)

// TestAuthorizationMatrix compares the answers of the product and the oracle
// for viewer × record × verb of a generated tenant, changes the tenant, and asks
// again. It asks about a few viewers: most cells are in TestAuthorizationMatrixAtLength and
// TestMatrixCatchesSeededFaults, which never run under the race detector.
func TestAuthorizationMatrix(t *testing.T) { matrix(t, 1, brief) }

// brief is an examination of an eighth of the viewers, before and after one stage
// of changes.
var brief = examination{stages: 2, viewers: 8}

// whole is one of every viewer, before, between and after two stages of changes.
var whole = examination{stages: 3, viewers: 1}

type examination struct {
	stages  int
	viewers int // one of how many is asked about
	faults  []seededFault
}

// TestProveAuthorizationMatrix runs the matrix at the length that is reported.
func TestProveAuthorizationMatrix(t *testing.T) {
	if os.Getenv("GATEHOUSE_PROVE") == "" {
		t.Skip("a million cells an engine; GATEHOUSE_PROVE=1")
	}
	matrix(t, 1_000_000, whole)
}

func matrix(t *testing.T, enough int, how examination) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) { matrixOn(t, d, enough, how) })
}

func matrixOn(t *testing.T, d *db.DB, enough int, how examination) {
	t.Helper()
	cells, differences, whys, first := 0, 0, 0, uint64(1)
	if os.Getenv("GATEHOUSE_PROVE") != "" {
		first = uint64(time.Now().UnixNano() % 1_000_000)
	}
	for seed := first; cells < enough && differences == 0; seed++ {
		x := examine(t, d, seed, how)
		cells, differences, whys = cells+x.cells, differences+x.differences, whys+x.whys
		for i, example := range x.examples {
			if i == 5 {
				break
			}
			t.Errorf("seed %d: %s", seed, example)
		}
	}
	t.Logf("matrix: %d cells, %d differences, seed %d; %d differences of explanations", cells, differences, first, whys)
}

// examine examines one world several times, with changes in between.
func examine(t *testing.T, d *db.DB, seed uint64, how examination) *exam {
	here, there := generate(seed)
	provision(t, d, there)
	x := newExam(provision(t, d, here), here)
	x.people = slices.DeleteFunc(x.people, func(p *person) bool { return slices.Index(here.people, p)%how.viewers != 0 })
	for _, f := range how.faults {
		x.faulty[f.name] = newOracle(here)
		f.misread(x.faulty[f.name])
	}
	rnd, story := rand.New(rand.NewPCG(seed, 3)), []string{}
	for stage := range how.stages {
		if stage > 0 {
			for i := range 12 {
				what, c := here.mutate(rnd, i)
				story = append(story, what)
				x.h.follow(here, c)
			}
		}
		for _, p := range here.viewers() { // the deletions of an earlier stage gave records other ids
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
