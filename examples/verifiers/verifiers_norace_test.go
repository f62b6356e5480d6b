//go:build !race

package verifiers_test

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestVerifiers checks that deliveries signed by the providers' libraries are accepted and
// read correctly, and that changed ones are rejected.
func TestVerifiers(t *testing.T) {
	began := time.Now()
	s := &suite{random: rand.New(rand.NewPCG(*seed, 0)), now: now}
	list := deliveries(t, *seed, perScheme, now)
	for i, d := range list {
		other, foreign := list[(i+len(schemes))%len(list)], list[(i+1)%len(list)]
		if foreign.scheme().file == d.scheme().file {
			foreign = list[(i+2)%len(list)]
		}
		if other.Scheme != d.Scheme {
			t.Fatalf("%s after %s: the deliveries are not in turn", other.Scheme, d.Scheme)
		}
		s.derive(d, other, foreign)
	}
	prepared := time.Since(began)
	if len(s.cases) < minCases {
		t.Errorf("%d cases, fewer than %d", len(s.cases), minCases)
	}
	clock.Store(now)
	tallies := runAll(t, programs(t), s.cases)
	total := tally{}
	for _, file := range sortedKeys(tallies) {
		c := tallies[file]
		t.Logf("%-20s %5d accepted, %5d rejected, %d false accepts, %d false rejects, slowest %s", file, c.accepted, c.rejected, c.falseAccepts, c.falseRejects, c.slowest.Round(100*time.Microsecond))
		total.accepted += c.accepted
		total.rejected += c.rejected
		if c.accepted == 0 || c.rejected == 0 {
			t.Errorf("%s was not put to the test", file)
		}
	}
	t.Logf("%d deliveries, %d cases: %d accepted, %d rejected; signed and derived in %s, run in %s", len(list), len(s.cases),
		total.accepted, total.rejected, prepared.Round(time.Millisecond), (time.Since(began) - prepared).Round(time.Millisecond))
}
