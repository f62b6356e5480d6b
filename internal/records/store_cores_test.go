package records_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/admission"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/fault"
	"gatehouse/internal/records"
	"gatehouse/internal/schema"
	"gatehouse/internal/user"
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

// TestABatchOfManyIsPreparedOnACore checks that a batch of many items waits for a core
// and gives it back, one that fails too, that one of few needs none, and that batches
// that wait for each other's cores and connections all end.
func TestABatchOfManyIsPreparedOnACore(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		var ids []string
		for i := range 12 {
			ids = append(ids, h.create(h.as("sam"), "contact", bodyOf(i, ""))["id"].(string))
		}
		cores := admission.NewCores(1)
		h.store.Share(cores)
		write := func(wait time.Duration, n int, body func(i int) string) error {
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			defer cancel()
			b := records.Batch{Entity: "contact", Atomic: true}
			for i, id := range ids[:n] {
				b.Items = append(b.Items, updating(t, id, body(i)))
			}
			_, err := h.as("sam").Batch(ctx, b)
			return err
		}
		large := func(i int) string { return bodyOf(100_000+i, "") }
		isFree := func() {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			w, err := cores.Start(ctx, "another tenant")
			if err != nil {
				t.Fatalf("a core is held after the batch: %v", err)
			}
			w.Stop()
		}
		busy, err := cores.Start(t.Context(), "another tenant")
		if err != nil {
			t.Fatal(err)
		}
		if err := write(50*time.Millisecond, len(ids), large); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("a batch of many was prepared without a core: %v", err)
		}
		if err := write(time.Minute, 10, large); err != nil {
			t.Fatalf("a batch of few: %v", err)
		}
		busy.Stop()
		isFree()
		var refused *records.BatchError
		if err := write(time.Minute, len(ids), func(int) string { return `{"stage": "of no kind"}` }); !errors.As(err, &refused) {
			t.Fatalf("a batch that fails: %v", err)
		}
		isFree()
		var all sync.WaitGroup
		for range 16 { // more than there are connections
			all.Go(func() {
				if err := write(time.Minute, len(ids), large); err != nil && fault.CodeOf(err) != fault.Conflict {
					t.Errorf("a batch among others: %v", err)
				}
			})
			all.Go(func() {
				if p, err := h.as("sam").List(t.Context(), "contact", records.Query{Limit: 50}); err != nil || p.Count != len(ids) {
					t.Errorf("a long page among batches: %d records, %v", p.Count, err)
				}
			})
		}
		all.Wait()
		isFree()
	})
}

// TestALargeBodyIsCheckedInTurn checks that creating and updating a large record waits for
// a core, and gives it back, refused or not, and that a small one needs none.
func TestALargeBodyIsCheckedInTurn(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		sam := h.as("sam")
		id := h.create(sam, "contact", bodyOf(1, ""))["id"].(string)
		cores := admission.NewCores(1)
		h.store.Share(cores)
		for what, write := range map[string]func(ctx context.Context, size int, more string) error{
			"create": func(ctx context.Context, size int, more string) error {
				_, err := sam.Create(ctx, "contact", body(t, bodyOf(size, more)))
				return err
			},
			"update": func(ctx context.Context, size int, more string) error {
				_, err := sam.Update(ctx, "contact", id, body(t, bodyOf(size, more)))
				return err
			},
		} {
			busy, err := cores.Start(t.Context(), "another tenant")
			if err != nil {
				t.Fatal(err)
			}
			if err := write(t.Context(), 1000, ""); err != nil {
				t.Errorf("%s of a small record: %v", what, err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			if err := write(ctx, 100_000, ""); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s of a large record without a core: %v", what, err)
			}
			cancel()
			busy.Stop()
			if err := write(t.Context(), 100_000, `, "nope": 1`); fault.CodeOf(err) != fault.Validation {
				t.Errorf("%s with a wrong member: %v", what, err)
			}
			if err := write(t.Context(), 100_000, ""); err != nil {
				t.Errorf("%s of a large record: %v", what, err)
			}
		}
	})
}

// TestAWorkHasNoCoreWhileItAsksTheDatabase checks that a batch leaves its core to others
// during a query, which may wait for a connection, and has it again afterwards.
func TestAWorkHasNoCoreWhileItAsksTheDatabase(t *testing.T) {
	cores := admission.NewCores(1)
	start := func(wait time.Duration) (*admission.Work, error) {
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		defer cancel()
		return cores.Start(ctx, "another tenant")
	}
	work, err := cores.Start(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	asked := func(context.Context, string, func(db.Row) error, ...any) error {
		other, err := start(10 * time.Second)
		other.Stop()
		return err
	}
	if err := records.Pausing(&asking{query: asked}, work).Query(t.Context(), "SELECT 1", nil); err != nil {
		t.Fatalf("during a query: %v", err)
	}
	if _, err := start(20 * time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("after a query the work has no core: %v", err)
	}
	work.Stop()
}

// TestNoCoreIsHeldWhileAReadWaitsForAConnection asks for lists, counts and explanations: none
// has a core when it asks the database for a connection, as those who have all of them may be
// waiting for that core.
func TestNoCoreIsHeldWhileAReadWaitsForAConnection(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		b := records.Batch{Entity: "contact", Atomic: true}
		for i := range 500 {
			b.Items = append(b.Items, creating(t, fmt.Sprintf(`{"name": "Ada", "stage": "won", "score": %d}`, i)))
		}
		done, err := h.as("sam").Batch(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		cores := admission.NewCores(1)
		h.store.Share(cores)
		var what string
		sam := records.Spy(h.as("sam"), func(sql string, _ []any) {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			w, err := cores.Start(ctx, "another tenant")
			if err != nil {
				t.Errorf("%s has a core while it asks %s", what, sql)
			}
			w.Stop()
		})
		won, ada := records.Filter{Field: "stage", Value: "won"}, records.Filter{Field: "name", Op: schema.OpPrefix, Value: "Ada"}
		score := []records.Sort{{Field: "score"}}
		for n, q := range []records.Query{
			{Limit: 200}, {Limit: 200, Filter: []records.Filter{won}}, {Limit: 200, Filter: []records.Filter{won, ada}},
			{Limit: 200, Sort: score}, {Limit: 200, Filter: []records.Filter{won, ada}, Sort: score}, {Limit: 200, Sort: []records.Sort{{Field: "name"}, score[0]}},
		} {
			for first := true; first || q.Cursor != ""; first = false {
				what = fmt.Sprintf("list %d", n)
				page, err := sam.List(t.Context(), "contact", q)
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				q.Cursor = page.Next
			}
			what = fmt.Sprintf("count %d", n)
			if c, err := sam.Count(t.Context(), "contact", q); err != nil || c.N != 500 {
				t.Errorf("%s: %v, %v", what, c, err)
			}
		}
		what = "an explanation"
		sue := viewerOf(h, "sue")
		if _, err := sam.Explain(t.Context(), sue, "contact", done[0].ID, access.Update); err != nil {
			t.Error(err)
		}
		what = "a list of those who see a record"
		if _, err := sam.Seers(t.Context(), records.Ref{Entity: "contact", ID: done[0].ID}, user.Internal, ""); err != nil {
			t.Error(err)
		}
		what = "a count of what a rule opens"
		for _, rule := range []access.SharingRule{
			{Entity: "contact", OwnedByRole: "sales", ShareWithRole: "support", Access: access.ReadOnly},
			{Entity: "contact", Where: []access.Condition{{Field: "stage", Value: jsontext.Value(`won`)}}, ShareWithRole: "support", Access: access.ReadOnly},
		} {
			if _, err := sam.Reach(t.Context(), &rule); err != nil {
				t.Error(err)
			}
		}
	})
}

// asking is a handle whose Query is query.
type asking struct {
	db.Handle
	query func(context.Context, string, func(db.Row) error, ...any) error
}

func (a *asking) Query(ctx context.Context, sql string, each func(db.Row) error, args ...any) error {
	return a.query(ctx, sql, each, args...)
}

// TestHeavyBatchesAreWrittenInTurn checks that while a batch of more than 1 MiB is
// written, however few items it has, no other batch of its tenant is prepared, but that of
// another tenant is, and that the next one is prepared while one of small records is
// written.
func TestHeavyBatchesAreWrittenInTurn(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h, other := acme(t, d), likeAcme(t, d, "bravo")
		h.store.Share(admission.NewCores(1))
		for _, c := range []struct {
			items, size int
			prepared    bool
		}{{12, 100, true}, {12, 100_000, false}, {2, 600_000, false}} {
			writing, written := make(chan struct{}), make(chan struct{})
			var all sync.WaitGroup
			batch := func(s *records.Session, items, size int, also func(db.Tx, []records.Done) error) {
				b := records.Batch{Entity: "contact", Also: also}
				for range items {
					b.Items = append(b.Items, creating(t, bodyOf(size, "")))
				}
				if _, err := s.Batch(t.Context(), b); err != nil {
					t.Errorf("%d items of %d bytes: %v", items, size, err)
				}
			}
			all.Go(func() {
				batch(h.as("sam"), c.items, c.size, func(db.Tx, []records.Done) error {
					close(writing)
					<-written
					return nil
				})
			})
			<-writing
			next, others := &telling{held: make(chan struct{})}, &telling{held: make(chan struct{})}
			all.Go(func() { batch(h.as("sam").Within(next), 12, 100, nil) })
			wait := time.Minute
			if !c.prepared {
				wait = 100 * time.Millisecond
			}
			select {
			case <-next.held:
				if !c.prepared {
					t.Errorf("a batch is prepared while one of %d items of %d bytes is written", c.items, c.size)
				}
			case <-time.After(wait):
				if c.prepared {
					t.Errorf("no batch is prepared while one of %d items of %d bytes is written", c.items, c.size)
				}
			}
			for range 8 { // waiting for turns of their tenant
				all.Go(func() { batch(h.as("sam"), 12, 100, nil) })
			}
			all.Go(func() { batch(h.store.As(viewerOf(other, "sam")).Within(others), 12, 100, nil) })
			select {
			case <-others.held:
			case <-time.After(time.Minute):
				t.Errorf("another tenant's batch waits for one of %d items of %d bytes", c.items, c.size)
			}
			close(written)
			all.Wait()
		}
	})
}

// TestOneHeavyBatchIsWrittenAtATime checks that of two tenants' heavy batches one is
// written at a time where one core is shared.
func TestOneHeavyBatchIsWrittenAtATime(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h, other := acme(t, d), likeAcme(t, d, "bravo")
		h.store.Share(admission.NewCores(1))
		var writing, most atomic.Int32
		var all sync.WaitGroup
		for range 4 {
			for _, s := range []*records.Session{h.as("sam"), h.store.As(viewerOf(other, "sam"))} {
				all.Go(func() {
					b := records.Batch{Entity: "contact", Also: func(db.Tx, []records.Done) error {
						if n := writing.Add(1); n > most.Load() {
							most.Store(n)
						}
						time.Sleep(20 * time.Millisecond)
						writing.Add(-1)
						return nil
					}}
					for range 3 {
						b.Items = append(b.Items, creating(t, bodyOf(500_000, "")))
					}
					if _, err := s.Batch(t.Context(), b); err != nil {
						t.Error(err)
					}
				})
			}
		}
		all.Wait()
		if n := most.Load(); n != 1 {
			t.Errorf("%d heavy batches were written at once", n)
		}
	})
}

// telling is a Holder that tells when it is asked for the first time.
type telling struct {
	once sync.Once
	held chan struct{}
}

func (h *telling) Hold(int) error {
	h.once.Do(func() { close(h.held) })
	return nil
}
