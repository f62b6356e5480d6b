package db

import (
	"context"
	"testing"
	"testing/synctest"
)

// TestTheLastConnectionIsForWhoHasNone: two tenants whose calls stand still, as where they
// wait for a core, leave a third one a connection.
func TestTheLastConnectionIsForWhoHasNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlaces(8, 0)
		ctx, cancel := context.WithCancel(t.Context())
		ask := func(key string, times int) {
			for range times {
				go func() { _, _ = p.enter(ctx, key) }()
				synctest.Wait()
			}
		}
		holds := func(when string, acme, bravo, carla int) {
			t.Helper()
			synctest.Wait()
			if a, b, c := p.holds["acme"].places, p.holds["bravo"].places, p.holds["carla"].places; a != acme || b != bravo || c != carla {
				t.Errorf("%s: they hold %d, %d and %d, meant are %d, %d and %d", when, a, b, c, acme, bravo, carla)
			}
		}
		ask("acme", 8)
		ask("bravo", 8)
		ask("carla", 2)
		holds("in the crowd", 5, 2, 1)
		p.leave("bravo", false)
		holds("one of bravo's ended", 5, 1, 1)
		p.leave("carla", false)
		holds("carla's ended", 5, 2, 1) // bravo's next, and carla's next has the last one
		cancel()
		synctest.Wait()
	})
}
