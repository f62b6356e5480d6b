//go:build !race

package records_test

import (
	"fmt"
	"testing"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
)

// TestPagingMissesAndRepeatsNothingAtLength is TestPagingMissesAndRepeatsNothing at
// the least limit and about the greatest.
func TestPagingMissesAndRepeatsNothingAtLength(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		for _, c := range []struct{ limit, existing, pages int }{{1, 60, 15}, {199, 1100, 2}, {200, 1100, 2}} {
			t.Run(fmt.Sprint(c.limit), func(t *testing.T) { pagingRound(t, dbtest.Open(t, d.Engine()), c.limit, c.existing, c.pages) })
		}
	})
}
