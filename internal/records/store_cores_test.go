package records_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"gatehouse/internal/admission"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/records"
	"gatehouse/internal/schema"
)

// TestALongPageWaitsForACore checks that a page of large records is built in
// turn on the cores, so that many concurrent pages leave a core to other work,
// and that a short page and a single record need no turn.
func TestALongPageWaitsForACore(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		sam := h.as("sam")
		for range 6 {
			h.create(sam, "contact", bodyOf(200_000, `, "stage": "won"`))
		}
		for range 3 {
			h.create(sam, "contact", bodyOf(10, `, "stage": "lost"`))
		}
		cores := admission.NewCores(1)
		h.store.Share(cores)
		busy, err := cores.Start(t.Context(), "another tenant")
		if err != nil {
			t.Fatal(err)
		}
		page := func(limit int, wait time.Duration) (records.Page, error) {
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			defer cancel()
			return h.as("sam").List(ctx, "contact", records.Query{Limit: limit})
		}
		if p, err := page(3, time.Minute); err != nil || p.Count != 3 {
			t.Fatalf("a short page: %d records, %v", p.Count, err)
		}
		for range 2 { // the second round knows the record size
			if p, err := page(50, 50*time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("a long page was built without a core: %d records, %v", p.Count, err)
			}
		}
		busy.Stop()
		var all sync.WaitGroup
		for range 16 { // more than there are connections: all must complete
			all.Go(func() {
				if p, err := page(50, time.Minute); err != nil || p.Count != 9 {
					t.Errorf("a long page: %d records, %v", p.Count, err)
				}
			})
		}
		all.Wait()
		if w, err := cores.Start(t.Context(), "sam"); err != nil {
			t.Error(err)
		} else {
			w.Stop()
		}
	})
}

// TestATraversalGivesItsCoreBack reads filtered lists to their end: the last page looks
// once more for what was inserted meanwhile, on a core that it must give back.
func TestATraversalGivesItsCoreBack(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		for range 23 {
			h.create(h.as("sam"), "contact", bodyOf(10, `, "stage": "won", "name": "Ada"`))
		}
		for range 250 { // newer than all that matches, and enough to need a core
			h.create(h.as("sam"), "contact", bodyOf(10, `, "stage": "won", "name": "Bob"`))
		}
		cores := admission.NewCores(1)
		h.store.Share(cores)
		won := records.Filter{Field: "stage", Value: "won"}
		for _, filter := range [][]records.Filter{{won}, {won, {Field: "name", Op: schema.OpPrefix, Value: "Ada"}}} {
			q, pages := records.Query{Limit: 10, Filter: filter}, 0
			for first := true; first || q.Cursor != ""; first = false {
				page, err := h.as("sam").List(t.Context(), "contact", q)
				if err != nil {
					t.Fatal(err)
				}
				q.Cursor = page.Next
				pages++
			}
			if pages < 3 {
				t.Fatalf("%v: %d pages, want a traversal of 3", filter, pages)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			w, err := cores.Start(ctx, "another tenant")
			cancel()
			if err != nil {
				t.Fatalf("%v: a core is held after the last page: %v", filter, err)
			}
			w.Stop()
		}
	})
}

// TestAsManyLargePagesAreReadAsCoresBuild checks that where a database server
// reads the records, one tenant's concurrent requests read at most as many
// pages of large records at once as there are cores to build them, and that
// waiting requests hold no connection. Where this process reads the records,
// the cores themselves are the bound. A page whose records turn out to be large
// waits, too, and is complete.
func TestAsManyLargePagesAreReadAsCoresBuild(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		for range 6 {
			h.create(h.as("sam"), "contact", bodyOf(200_000, `, "stage": "won"`))
		}
		cores := admission.NewCores(1)
		h.store.Share(cores)
		for _, known := range []bool{false, true} {
			busy, err := cores.Start(t.Context(), "another tenant")
			if err != nil {
				t.Fatal(err)
			}
			begun := make(chan struct{}, 100)
			var pages sync.WaitGroup
			for range 4 {
				s := records.Spy(h.as("sam"), func(string, []any) { begun <- struct{}{} })
				pages.Go(func() {
					if p, err := s.List(t.Context(), "contact", records.Query{Limit: 50}); err != nil || p.Count != 6 {
						t.Errorf("a page of %d records, %v", p.Count, err)
					}
				})
			}
			<-begun
			time.Sleep(50 * time.Millisecond)
			if n := 1 + len(begun); known && d.Engine() == db.Postgres && n != 1 {
				t.Errorf("the server reads %d pages of large records for one tenant", n)
			}
			busy.Stop()
			pages.Wait()
		}
	})
}
