//go:build !race

package identity

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
)

// The test runs 100 sequences of about 120 random steps on SQLite, and shorter ones on
// PostgreSQL. No sum of the steps of time is near 30 s or 30 days, so the time that
// really passes does not matter.
func TestRandomSequencesGoAsTheModelSays(t *testing.T) {
	for engine, length := range map[db.Engine]int{db.SQLite: 120, db.Postgres: 20} {
		t.Run(string(engine), func(t *testing.T) {
			w := newWorld(t, dbtest.Open(t, engine))
			users, taken := 0, 0
			rapid.Check(t, func(t *rapid.T) {
				list := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
					return step{rapid.SampledFrom(steps).Draw(t, "what"), rapid.IntRange(0, 1<<16).Draw(t, "token")}
				}), length/2, length*3/2).Draw(t, "steps")
				users++
				taken += len(list)
				w.run(t, fmt.Sprintf("u%d@customer.example", users), list)
			})
			t.Logf("%d steps, %+v", taken, w.id.Stats())
			if s := w.id.Stats(); s.Reuses == 0 || s.Resets == 0 || s.Refreshes < int64(users) {
				t.Errorf("the sequences reach too little: %+v", s)
			}
		})
	}
}
