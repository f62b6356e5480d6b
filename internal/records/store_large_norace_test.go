//go:build !race

package records_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/fault"
	"gatehouse/internal/records"
)

// TestAPageEndsAtItsBytes checks that large records are returned in pages of at
// most 2 MiB, each as full as possible, and that a record larger than that is a
// page by itself.
func TestAPageEndsAtItsBytes(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		sam := h.as("sam")
		sizes := []int{1_000_000, 1_000_000, 1_000_000, 10, 700_000, 700_000, 690_000, 10, 10, 1_040_000, 1_040_000, 1_040_000, 300_000}
		for _, size := range sizes {
			h.create(sam, "contact", bodyOf(size, `, "stage": "won"`))
		}
		viewers := viewersOfLarge(h)
		for name, s := range viewers {
			for _, filter := range [][]records.Filter{nil, {{Field: "stage", Value: "won"}}} {
				for round := range 2 { // the second round knows the record size
					what := fmt.Sprintf("%s, filter %v, round %d", name, filter, round)
					cursor, seen := "", 0
					for {
						p, err := s.List(t.Context(), "contact", records.Query{Limit: 200, Cursor: cursor, Filter: filter})
						if err != nil {
							t.Fatalf("%s: %v", what, describe(err))
						}
						if len(p.Records) > pageBytes && p.Count != 1 || p.Count == 0 {
							t.Errorf("%s: a page of %d records has %d bytes", what, p.Count, len(p.Records))
						}
						if got := len(objects(t, p.Records)); got != p.Count {
							t.Errorf("%s: a page says %d and has %d", what, p.Count, got)
						}
						seen += p.Count
						if cursor = p.Next; cursor == "" {
							break
						}
						if next := sizes[len(sizes)-1-seen]; len(p.Records)+next+400 < pageBytes {
							t.Errorf("%s: a page of %d bytes ended before a record of %d", what, len(p.Records), next)
						}
					}
					if seen != len(sizes) {
						t.Errorf("%s: %d of %d seen", what, seen, len(sizes))
					}
				}
			}
		}
	})
}

// TestAPageReadsNotMuchMoreThanItHolds checks that the memory for a page of
// large records does not grow with the number of records.
func TestAPageReadsNotMuchMoreThanItHolds(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		for range 60 {
			h.create(h.as("sam"), "contact", bodyOf(1_000_000, `, "stage": "won"`))
		}
		for name, s := range viewersOfLarge(h) {
			list := func() {
				p, err := s.List(t.Context(), "contact", records.Query{Limit: 200})
				if err != nil || p.Count != 2 || p.Next == "" {
					t.Fatalf("%s: %d records, more %q, %v", name, p.Count, p.Next, err)
				}
			}
			list()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			list()
			runtime.ReadMemStats(&after)
			if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 24 {
				t.Errorf("%s: a page of 2 MiB took %d MiB", name, took)
			}
		}
	})
}

// TestPagesOfBytesMissAndRepeatNothing creates and deletes records of random
// sizes between the pages of traversals with random limits, in number and in
// bytes. Each record that remains is seen exactly once, no record twice.
func TestPagesOfBytesMissAndRepeatNothing(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		seed := rand.Uint64()
		random := rand.New(rand.NewPCG(seed, 0))
		h := acme(t, d)
		sam := h.as("sam")
		viewers := viewersOfLarge(h)
		gone := map[string]bool{}
		var alive []string
		insert := func() {
			size := []int{random.IntN(100), random.IntN(5_000), random.IntN(80_000)}[random.IntN(3)]
			alive = append(alive, id(h.create(sam, "contact", bodyOf(size, `, "stage": "won"`))))
		}
		for range 60 {
			insert()
		}
		for round := range 4 {
			var walkers []*walker
			for _, s := range viewers {
				for _, filter := range [][]records.Filter{nil, {{Field: "stage", Value: "won"}}} {
					w := &walker{s: s, filter: filter, limit: 1 + random.IntN(40), bytes: 1 + random.IntN(200_000), seen: map[string]int{}, started: map[string]bool{}}
					for _, name := range alive {
						w.started[name] = true
					}
					walkers = append(walkers, w)
				}
			}
			for left, changes := len(walkers), 40; left > 0; {
				if w := walkers[random.IntN(len(walkers))]; !w.done {
					if w.step(t, seed); w.done {
						left--
						w.caughtUp(t, seed, alive)
					}
				}
				if changes--; changes > 0 {
					switch random.IntN(4) {
					case 0:
						insert()
					case 1:
						at := random.IntN(len(alive))
						h.delete(sam, "contact", alive[at])
						gone[alive[at]] = true
						alive = append(alive[:at], alive[at+1:]...)
					}
				}
			}
			for _, w := range walkers {
				for name := range w.started {
					if n := w.seen[name]; n != 1 && !gone[name] {
						t.Errorf("seed %d, round %d: %s was seen %d times by limit %d, %d bytes", seed, round, name, n, w.limit, w.bytes)
					}
				}
				for name, n := range w.seen {
					if n != 1 {
						t.Errorf("seed %d, round %d: %s was seen %d times", seed, round, name, n)
					}
				}
			}
		}
	})
}

// The transaction that deletes a record clears only a few of the references to
// it. Short transactions clear the others, run by the deleting process or by a
// server, with the same result.
func TestADeletionThatManyReferToIsSplit(t *testing.T) {
	const n = 1100
	for _, run := range []bool{false, true} {
		t.Run(fmt.Sprint("run=", run), func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				h, account := referred(t, d, n)
				eva, one := h.as("eva"), records.Filter{Field: "score", Value: "1"}
				if seen := len(h.list(eva, "contact", one)); seen != 200 {
					t.Fatalf("eva sees %d contacts by the rule", seen)
				}
				if run {
					unit := h.store.Begin(h.config())
					defer unit.Close()
					if err := unit.As(viewer(h, "sam")).Delete(t.Context(), "account", account); err != nil {
						t.Fatal(err)
					}
					if err := unit.Commit(t.Context(), nil); err != nil {
						t.Fatal(err)
					}
					_, err := h.as("sam").Get(t.Context(), "account", account)
					want(t, err, fault.NotFound)
					if kept := h.tableRows("records", "entity = 'contact' AND version = 1"); kept != n {
						t.Errorf("the deleting transaction changed %d contacts", n-kept)
					}
					_, err = h.as("sam").Create(t.Context(), "contact", body(t, fmt.Sprintf(`{"account": %q}`, account)))
					want(t, err, fault.Validation, "account")
					if err := records.Sweep(t.Context(), d.For(h.tenant)); err != nil {
						t.Fatal(err)
					}
				} else {
					h.delete(h.as("sam"), "account", account)
				}
				if kept := h.tableRows("records", "entity = 'contact' AND (version <> 2 OR updated_by <> $2 OR updated_at < created_at)", h.ids["sam"]); kept != 0 {
					t.Errorf("%d contacts were not changed once, by sam", kept)
				}
				if left := h.tableRows("field_values", "value = $2", account); left != 0 {
					t.Errorf("%d index rows of the reference are left", left)
				}
				if left := h.tableRows("rule_matches", "1 = 1") + h.tableRows("leftovers", "1 = 1"); left != 0 {
					t.Errorf("%d matches and leftovers are left", left)
				}
				for i, r := range append(h.list(h.as("sam"), "contact"), h.list(h.as("sam"), "contact", one)...) {
					if r["account"] != nil {
						t.Fatalf("contact %d still refers to %v", i, r["account"])
					}
				}
				if seen := len(h.list(eva, "contact", one)) + len(h.list(eva, "contact")); seen != 0 {
					t.Errorf("eva still sees %d contacts", seen)
				}
				// A row for '' and one each for the owner and the owner's role,
				// for each score.
				if rows := h.tableRows("field_values", "field = 'score'"); rows != 3*n {
					t.Errorf("%d index rows of score, want %d", rows, 3*n)
				}
			})
		})
	}
}

// A page of a walk is bounded in bytes, and contains at least one record.
func TestAWalkHoldsFewLargeRecords(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		ada, large := h.as("ada"), strings.Repeat("x", 900<<10)
		for range 7 {
			h.create(ada, "contact", fmt.Sprintf(`{"extra": [%q]}`, large))
		}
		err := d.For(h.tenant).Write(t.Context(), func(tx db.Tx) error {
			n, err := records.WalkPage(t.Context(), tx, "contact")
			if n != 4 {
				t.Errorf("a page of %d records, want 4", n)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// TestAUnitChangesAtMost1000Records also checks that what was done before the
// refusal remains.
func TestAUnitChangesAtMost1000Records(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h, ctx := acme(t, d), t.Context()
		u, p := h.part("sam")
		defer u.Close()
		var first string
		for n := range records.MaxChanged - 1 {
			r, err := p.Create(ctx, "contact", body(t, fmt.Sprintf(`{"email": "e%d@x", "score": %d}`, n, n)))
			if err != nil {
				t.Fatalf("%d: %s", n, describe(err))
			}
			if first == "" {
				first = r.ID()
			}
		}
		r, err := p.Update(ctx, "contact", first, body(t, `{"score": -1}`))
		must(t, r, err)
		_, err = p.Create(ctx, "contact", body(t, `{"email": "more@x"}`))
		refusedFor(t, err, "at most 1000 records")
		_, err = p.Update(ctx, "contact", first, body(t, `{"score": -2}`))
		refusedFor(t, err, "at most 1000 records")
		refusedFor(t, p.Delete(ctx, "contact", first), "at most 1000 records")
		r, err = p.Get(ctx, "contact", first)
		if got := must(t, r, err); got["score"] != -1.0 {
			t.Errorf("the unit has %v", got)
		}
		if err := u.Commit(ctx, nil); err != nil {
			t.Fatal(describe(err))
		}
		if n := stored(t, d); n != records.MaxChanged-1 {
			t.Fatalf("%d records", n)
		}
		for n, r := range h.list(h.as("sam"), "contact") { // newest first
			if want := fmt.Sprintf("e%d@x", records.MaxChanged-2-n); r["email"] != want {
				t.Fatalf("record %d is %v, want %s", n, r["email"], want)
			}
		}
	})
}

func TestAUnitWritesAtMost8MiB(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h, ctx := acme(t, d), t.Context()
		u, p := h.part("sam")
		defer u.Close()
		note := strings.Repeat("n", 1<<20-1<<10)
		var err error
		n := 0
		for ; n < 20 && err == nil; n++ {
			_, err = p.Create(ctx, "contact", body(t, `{"note": "`+note+`"}`))
		}
		refusedFor(t, err, "8 MiB")
		if n != 9 {
			t.Errorf("the %dth create of a MiB was refused", n)
		}
		made, err := p.Create(ctx, "contact", body(t, `{"note": "small"}`)) // this one still fits
		small := id(must(t, made, err))
		_, err = p.Update(ctx, "contact", small, body(t, `{"note": "`+note+`"}`))
		refusedFor(t, err, "8 MiB")
		if err := u.Commit(ctx, nil); err != nil {
			t.Fatal(describe(err))
		}
		if got := h.get(h.as("sam"), "contact", small); got["note"] != "small" {
			t.Errorf("%.20v", got["note"])
		}
	})
}

// TestAUnitReplacesAndDeletesAtMost8MiB checks that what a unit replaces or
// deletes counts like what it writes, because the commit holds it in memory.
func TestAUnitReplacesAndDeletesAtMost8MiB(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h, ctx := acme(t, d), t.Context()
		sam := h.as("sam")
		note := `{"note": "` + strings.Repeat("n", 1<<20-1<<10) + `"}`
		var ids []string
		for range 12 {
			ids = append(ids, id(h.create(sam, "contact", note)))
		}
		for name, change := range map[string]func(p *records.UnitSession, id string) error{
			"shrinks": func(p *records.UnitSession, id string) error {
				_, err := p.Update(ctx, "contact", id, body(t, `{"note": "small"}`))
				return err
			},
			"deletes": func(p *records.UnitSession, id string) error { return p.Delete(ctx, "contact", id) },
		} {
			u, p := h.part("sam")
			for n, id := range ids {
				err := change(p, id)
				if n < 8 && err != nil {
					t.Fatalf("%s %d: %s", name, n, describe(err))
				}
				if n >= 8 {
					refusedFor(t, err, "8 MiB")
				}
			}
			u.Close()
		}
		u, p := h.part("sam")
		defer u.Close()
		for _, id := range ids[:8] {
			if err := p.Delete(ctx, "contact", id); err != nil {
				t.Fatal(describe(err))
			}
		}
		if err := u.Commit(ctx, nil); err != nil {
			t.Fatal(describe(err))
		}
		if n := stored(t, d); n != 4 {
			t.Errorf("%d records are left, want 4", n)
		}
	})
}

func TestAUnitReadsAtMost2000RecordsByID(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h, ctx := acme(t, d), t.Context()
		var ids []string
		for range 3 {
			u, p := h.part("sam")
			for n := range 700 {
				r, err := p.Create(ctx, "account", body(t, fmt.Sprintf(`{"name": "A%d"}`, n)))
				ids = append(ids, id(must(t, r, err)))
			}
			if err := u.Commit(ctx, nil); err != nil {
				t.Fatal(describe(err))
			}
			u.Close()
		}
		u, p := h.part("sam")
		defer u.Close()
		for n, id := range ids {
			_, err := p.Get(ctx, "account", id)
			if n < records.MaxRead && err != nil {
				t.Fatalf("%d: %s", n, describe(err))
			}
			if n >= records.MaxRead {
				refusedFor(t, err, "at most 2000 records")
			}
		}
		r, err := p.Get(ctx, "account", ids[0]) // already read in this unit
		must(t, r, err)
		if err := u.Commit(ctx, nil); err != nil {
			t.Fatal(describe(err))
		}
	})
}

// Where rows are large a page looks at fewer.
func TestAPageLooksAtABoundedNumberOfBytes(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		sam := h.as("sam")
		for i := range 40 {
			h.create(sam, "contact", fmt.Sprintf(`{"name":"x","stage":"won","score":%d,"note":%q}`, i, strings.Repeat("n", 1_000_000)))
		}
		_, err := sam.List(t.Context(), "contact", records.Query{Limit: 10, Filter: []records.Filter{{Field: "stage", Value: "won"}, {Field: "name", Value: "z"}}})
		want(t, err, fault.QueryTooBroad, "name")
	})
}
