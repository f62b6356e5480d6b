//go:build !race

package records_test

import (
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/records"
	"gatehouse/internal/user"
)

// medians runs two functions in turns, n times each, and returns the median time of each:
// what else the machine does then slows both.
func medians(n int, first, second func()) (of [2]time.Duration) {
	var times [2][]time.Duration
	for range n {
		for i, fn := range []func(){first, second} {
			begun := time.Now()
			fn()
			times[i] = append(times[i], time.Since(begun))
		}
	}
	for i := range times {
		slices.Sort(times[i])
		of[i] = times[i][n/2]
	}
	return of
}

// TestProveListsBelowParentsAreFlat reports the time of lists of controlled
// records among 10,000 and 200,000 hidden ones.
func TestProveListsBelowParentsAreFlat(t *testing.T) {
	if os.Getenv("GATEHOUSE_PROVE") == "" {
		t.Skip("400,000 records; GATEHOUSE_PROVE=1")
	}
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		few, many := dealerOf(t, d, "few"), dealerOf(t, d, "many")
		few.wholesale(10_000)
		many.wholesale(200_000)
		analyze(t, d)
		for _, name := range parentSeers {
			for about, filter := range map[string][]records.Filter{"all": nil, "filtered": {{Field: "stage", Value: "won"}}} {
				a, b := few.as(name), many.as(name)
				list := func(h *house, s *records.Session) func() { return func() { h.listN(s, filter) } }
				list(few, a)()
				list(many, b)()
				is := medians(300, list(few, a), list(many, b))
				t.Logf("%s, %s: %v among 10,000, %v among 200,000: %.2f", name, about, is[0], is[1], float64(is[1])/float64(is[0]))
			}
		}
	})
}

// analyze does what the test server does not do by itself.
func analyze(t *testing.T, d *db.DB) {
	if d.Engine() != db.Postgres {
		return
	}
	err := d.Unscoped("test").Write(t.Context(), func(tx db.Tx) error {
		_, err := tx.Exec(t.Context(), `ANALYZE`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (h *house) listN(s *records.Session, filter []records.Filter) {
	if page, err := s.List(h.t.Context(), "line", records.Query{Limit: 25, Filter: filter}); err != nil || page.Count != 20 {
		h.t.Fatal(page.Count, describe(err))
	}
}

// TestProveAParentOfManyIsMovedForFree reports how long others wait while a
// parent with 10,000 records below it is shared, moved and deleted.
func TestProveAParentOfManyIsMovedForFree(t *testing.T) {
	if os.Getenv("GATEHOUSE_PROVE") == "" {
		t.Skip("GATEHOUSE_PROVE=1")
	}
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h, other := dealerOf(t, d, "here"), likeAcme(t, d, "there")
		sam := h.as("sam")
		a1, a2 := id(h.create(sam, "account", `{}`)), id(h.create(sam, "account", `{}`))
		order := h.under(sam, "order", "account", a1, "")
		h.hideBelow("line", "order", order, 10_000)
		analyze(t, d)
		eva := records.Share{Principal: access.UserPrincipal(user.ID(h.ids["eva"])), Access: access.ReadOnly}
		phase := func(about string, times int, fn func(i int)) {
			var stop atomic.Bool
			waits := [2][]time.Duration{}
			together(3, func(i int) error {
				if i == 2 {
					time.Sleep(200 * time.Millisecond)
					begun := time.Now()
					for n := range times {
						fn(n)
					}
					t.Logf("%s: %v each", about, time.Since(begun)/time.Duration(max(times, 1)))
					time.Sleep(200 * time.Millisecond)
					stop.Store(true)
					return nil
				}
				s := []*records.Session{other.as("sam"), h.as("sue")}[i]
				for !stop.Load() {
					begun := time.Now()
					if _, err := s.Create(t.Context(), "contact", body(t, `{"stage": "won", "score": 1}`)); err != nil {
						t.Error(describe(err))
						return nil
					}
					waits[i] = append(waits[i], time.Since(begun))
				}
				return nil
			})
			for i, who := range []string{"another tenant", "another entity"} {
				slices.Sort(waits[i])
				n := len(waits[i])
				t.Logf("%s: %s: %d creates, p50 %v, p99 %v, longest %v", about, who, n, waits[i][n/2], waits[i][n*99/100], waits[i][n-1])
			}
		}
		phase("nothing", 0, func(int) {})
		phase("moves", 20, func(n int) {
			h.update(sam, "order", order, fmt.Sprintf(`{"account": %q}`, []string{a2, a1}[n%2]))
		})
		phase("shares and revokes", 20, func(n int) {
			if err := sam.Share(t.Context(), "account", a1, eva); err != nil {
				t.Error(describe(err))
			}
			if n := len(h.list(h.as("eva"), "line")); n != 200 {
				t.Errorf("eva sees %d at once", n)
			}
			if err := sam.Unshare(t.Context(), "account", a1, eva.Principal); err != nil {
				t.Error(describe(err))
			}
			if n := len(h.list(h.as("eva"), "line")); n != 0 {
				t.Errorf("eva sees %d after", n)
			}
		})
		phase("the deletion", 1, func(int) { h.delete(sam, "order", order) })
	})
}
