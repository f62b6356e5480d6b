package records_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/fault"
	"gatehouse/internal/records"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// reader is one traversal while records are inserted and deleted.
type reader struct {
	name   string
	s      *records.Session
	filter []records.Filter
	sees   func(i int, won bool) bool // which of sam's records the reader sees
	order  []shownAt                  // in the order shown
}

type shownAt struct{ id, at string }

// TestPagingMissesAndRepeatsNothing runs eight readers while others insert and
// delete (contract P6). TestPagingMissesAndRepeatsNothingAtLength does so at more
// limits.
func TestPagingMissesAndRepeatsNothing(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) { pagingRound(t, d, 2, 80, 12) })
}

// mostInserts bounds the number of records that one writer inserts, however
// slow the readers are.
const mostInserts = 5000

func pagingRound(t *testing.T, d *db.DB, limit, existing, pages int) {
	h := acme(t, d)
	h.user("cleo", user.User{Role: "ceo", Sets: []string{"work"}})
	h.configure(func(ctx context.Context, tx tenant.ConfigTx) error {
		return access.PutRule(ctx, tx, &access.SharingRule{Entity: "contact", ShareWithRole: "support", Access: access.ReadOnly,
			Where: []access.Condition{{Field: "stage", Value: []byte(`"won"`)}}})
	})
	all := func(int, bool) bool { return true }
	won := []records.Filter{{Field: "stage", Value: "won"}}
	readers := []*reader{
		{name: "all access", s: h.as("ada"), sees: all},
		{name: "the owner", s: h.as("sam"), sees: all},
		{name: "an ancestor", s: h.as("cleo"), sees: all},
		{name: "by shares and a rule", s: h.as("eva"), sees: func(i int, won bool) bool { return won || i >= 0 && i%5 == 0 }},
		{name: "all access, filtered", s: h.as("ada"), filter: won, sees: func(_ int, won bool) bool { return won }},
		{name: "shares and a rule, row by row", s: h.as("eva"), filter: append(won, records.Filter{Field: "name", Op: "ne", Value: "nobody"}), sees: func(_ int, won bool) bool { return won }},
		{name: "the owner, a list of values", s: h.as("sam"), filter: []records.Filter{{Field: "stage", Op: "in", List: []string{"won", "lost"}}}, sees: func(_ int, won bool) bool { return won }},
		{name: "the owner, filtered", s: h.as("sam"), filter: won, sees: func(_ int, won bool) bool { return won }},
	}
	crowd := &crowd{h: h, s: h.as("sam"), expect: map[string]func(*reader) bool{}, deleted: map[string]bool{}}
	crowd.fill(existing)
	victims := crowd.victims(existing / 10)

	var stop atomic.Bool
	var writers, walkers, begun sync.WaitGroup
	begun.Add(4)
	for range 4 {
		writers.Go(func() {
			first := sync.OnceFunc(begun.Done)
			defer first()
			for n := 0; n < mostInserts && !stop.Load(); n++ {
				crowd.create(-1)
				if n == 1 {
					first()
				}
			}
		})
	}
	writers.Go(func() {
		for _, id := range victims {
			crowd.delete(id)
		}
	})
	var underway, through sync.WaitGroup // underway: every reader has seen its first pages
	underway.Add(len(readers))
	through.Add(1)
	for _, r := range readers {
		walkers.Go(func() {
			reached := sync.OnceFunc(underway.Done)
			defer reached() // a reader that finishes early must not block the others
			r.walk(t, limit, func(page int) {
				if page == 1 {
					begun.Wait() // records are inserted while every reader reads
				}
				if page == pages {
					reached()
					through.Wait()
				}
			})
		})
	}
	underway.Wait()
	stop.Store(true)
	writers.Wait()
	through.Done()
	walkers.Wait()
	for _, r := range readers {
		crowd.check(t, r)
	}
	if inserted := len(crowd.expect) - existing; inserted < 1 {
		t.Errorf("nothing was inserted meanwhile")
	}
}

// walk reads until there are no more pages.
func (r *reader) walk(t *testing.T, limit int, between func(page int)) {
	cursor, size := "", 0
	for page := 1; ; page++ {
		p, err := r.s.List(context.Background(), "contact", records.Query{Limit: limit, Cursor: cursor, Filter: r.filter})
		if err != nil {
			t.Errorf("%s: page %d: %v", r.name, page, describe(err))
		}
		size = len(r.order)
		for _, record := range objects(t, p.Records) {
			r.order = append(r.order, shownAt{id(record), createdAt(record)})
		}
		if got := len(r.order) - size; got != p.Count || got > limit || got < limit && p.Next != "" && page == 1 {
			t.Errorf("%s: page %d holds %d records, says %d, of at most %d", r.name, page, got, p.Count, limit)
		}
		between(page)
		if cursor = p.Next; cursor == "" {
			return
		}
		if page == 10_000 {
			t.Errorf("%s: no end after %d pages", r.name, page)
			return
		}
	}
}

// crowd is the goroutines that insert and delete, and the records they wrote.
type crowd struct {
	h       *house
	s       *records.Session
	mu      sync.Mutex
	expect  map[string]func(*reader) bool // which readers should see a record, by id
	deleted map[string]bool
	made    int
}

func (c *crowd) fill(n int) {
	var wait sync.WaitGroup
	for w := range 16 {
		wait.Go(func() {
			for i := w; i < n; i += 16 {
				id := c.create(i)
				if i%5 == 0 {
					err := c.s.Share(context.Background(), "contact", id, records.Share{
						Principal: access.UserPrincipal(user.ID(c.h.ids["eva"])), Access: access.ReadOnly,
					})
					if err != nil {
						c.h.t.Error(describe(err))
					}
				}
			}
		})
	}
	wait.Wait()
}

// create creates the i-th record; i is -1 while readers read.
func (c *crowd) create(i int) string {
	c.mu.Lock()
	c.made++
	won := c.made%2 == 0
	c.mu.Unlock()
	text := `{"name": "x"}`
	if won {
		text = `{"name": "x", "stage": "won"}`
	}
	r, err := c.s.Create(context.Background(), "contact", body(c.h.t, text))
	if err != nil {
		c.h.t.Error(describe(err))
		return ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	name := id(object(c.h.t, r))
	c.expect[name] = func(r *reader) bool { return r.sees(i, won) }
	return name
}

// victims returns n of the records, to be deleted.
func (c *crowd) victims(n int) (ids []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.expect {
		if ids = append(ids, id); len(ids) == n {
			break
		}
	}
	return ids
}

func (c *crowd) delete(id string) {
	c.mu.Lock()
	c.deleted[id] = true
	c.mu.Unlock()
	c.h.delete(c.s, "contact", id)
}

func (c *crowd) check(t *testing.T, r *reader) {
	times := map[string]int{}
	ended, newest, previous := "", "", "9999"
	for _, record := range r.order {
		times[record.id]++
		if record.at > previous { // a new round: its records are newer than all earlier ones
			ended = newest
		}
		if record.at <= ended {
			t.Errorf("%s: %v is shown after newer ones, outside its round", r.name, record)
		}
		previous, newest = record.at, max(newest, record.at)
	}
	missed := 0
	for id, sees := range c.expect {
		switch n := times[id]; {
		case n > 1:
			t.Errorf("%s: %s was shown %d times", r.name, id, n)
		case n == 1 && !sees(r):
			t.Errorf("%s: %s was shown, though not theirs to see", r.name, id)
		case n == 0 && sees(r) && !c.deleted[id]:
			missed++
		}
		delete(times, id)
	}
	if missed > 0 || len(times) > 0 {
		t.Errorf("%s: missed %d records of %d shown; %d are unknown", r.name, missed, len(r.order), len(times))
	}
}

// created_at strictly increases in commit order, whichever node creates the
// record: a client that polls the newest page never sees a new record appear
// below an older one.
func TestCreatedAtGrowsInTheOrderOfCommits(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := dbtest.Config(t, d.Engine())
		h := acme(t, dbtest.OpenConfig(t, c))
		other := *h
		other.d = dbtest.OpenConfig(t, c)
		other.dir = access.NewDirectory(other.d)
		other.store = records.New(other.d, other.dir, other.clk, cursorKey)
		var wait sync.WaitGroup
		var done atomic.Bool
		for i := range 32 {
			wait.Go(func() {
				node := []*house{h, &other}[i%2]
				sam := node.as("sam")
				for range 8 {
					node.create(sam, "contact", `{}`)
				}
			})
		}
		go func() { wait.Wait(); done.Store(true) }()
		seen, newest, polls := map[string]string{}, "", 0
		for last := false; !last; polls++ {
			last = done.Load()
			top := ""
			for _, r := range h.list(h.as("ada"), "contact") {
				at := r["created_at"].(string)
				if seen[id(r)] == "" && at <= newest {
					t.Errorf("a record of %s turned up after one of %s", at, newest)
				}
				if previous := seen[id(r)]; previous != "" && previous != at {
					t.Errorf("created_at moved from %s to %s", previous, at)
				}
				seen[id(r)], top = at, max(top, at)
			}
			newest = max(newest, top)
		}
		instants := map[string]bool{}
		for _, at := range seen {
			instants[at] = true
		}
		if len(instants) != len(seen) {
			t.Errorf("%d records share %d instants", len(seen), len(instants))
		}
		t.Logf("%d polls", polls)
	})
}

// A traversal ends once it has caught up. A list of one page shows one instant.
func TestPagingEndsWhenItHasCaughtUp(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		sam := h.as("sam")
		page := func(limit int, cursor string) (ids []string, next string) {
			p, err := sam.List(t.Context(), "contact", records.Query{Limit: limit, Cursor: cursor})
			if err != nil {
				t.Fatal(describe(err))
			}
			for _, r := range objects(t, p.Records) {
				ids = append(ids, r["name"].(string))
			}
			return ids, p.Next
		}
		same := func(got, want []string) {
			t.Helper()
			if !slices.Equal(got, want) {
				t.Fatalf("got %v, want %v", got, want)
			}
		}
		if ids, next := page(5, ""); len(ids) != 0 || next != "" {
			t.Fatalf("an empty list is %v, more %q", ids, next)
		}
		made := map[string]string{}
		make := func(name string) { made[name] = id(h.create(sam, "contact", `{"name": "`+name+`"}`)) }
		make("a")
		make("b")
		make("c")
		ids, next := page(2, "")
		same(ids, []string{"c", "b"})
		make("d")
		make("e")
		h.delete(sam, "contact", made["b"]) // the record at the cursor
		ids, next = page(2, next)
		same(ids, []string{"a"})
		make("f")
		ids, next = page(2, next)
		same(ids, []string{"f", "e"})
		make("g")
		ids, next = page(2, next)
		same(ids, []string{"d"})
		h.delete(sam, "contact", made["g"]) // the only newer record is deleted
		if ids, next = page(2, next); len(ids) != 0 || next != "" {
			t.Fatalf("the end shows %v, more %q", ids, next)
		}
		// A page that ends exactly at the oldest record has no next cursor.
		if ids, next = page(5, ""); len(ids) != 5 || next != "" {
			t.Fatalf("a page of everything shows %v, more %q", ids, next)
		}
	})
}

// A cursor is valid only for its own tenant, entity type and filter, and only
// unchanged.
func TestPagingRefusesOtherCursors(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		for range 3 {
			h.create(h.as("sam"), "contact", `{"stage": "won", "name": "a"}`)
			h.create(h.as("sam"), "account", `{}`)
		}
		other := newHouse(t, d, h.clk, "other")
		other.configure(putTypes)
		list := func(s *records.Session, entity, cursor string, filter ...records.Filter) (string, error) {
			p, err := s.List(t.Context(), entity, records.Query{Limit: 1, Cursor: cursor, Filter: filter})
			return p.Next, err
		}
		won := records.Filter{Field: "stage", Value: "won"}
		plain, err1 := list(h.as("ada"), "contact", "")
		filtered, err2 := list(h.as("ada"), "contact", "", won)
		if err := errors.Join(err1, err2); err != nil || plain == "" || filtered == "" {
			t.Fatal(plain, filtered, err)
		}
		refused := func(what string, s *records.Session, entity, cursor string, filter ...records.Filter) {
			t.Helper()
			if _, err := list(s, entity, cursor, filter...); fault.CodeOf(err) != fault.Validation {
				t.Errorf("%s: %v, want VALIDATION", what, err)
			}
		}
		refused("another tenant's", other.system(), "contact", plain)
		refused("another entity's", h.as("ada"), "account", plain)
		refused("of a list without the filter", h.as("ada"), "contact", plain, won)
		refused("of a list with a filter", h.as("ada"), "contact", filtered)
		refused("another value's", h.as("ada"), "contact", filtered, records.Filter{Field: "stage", Value: "new"})
		for _, garbage := range []string{"x", "====", plain + "A", plain + "\n", plain[:len(plain)-1], "null", " ", "ünï", plain + plain} {
			refused("garbage "+garbage, h.as("ada"), "contact", garbage)
		}
		ada := h.as("ada")
		for i := range plain {
			for _, c := range []byte{'A', 'b', '_', '\n', plain[i] ^ 1} {
				if c != plain[i] {
					refused(fmt.Sprintf("byte %d as %q", i, c), ada, "contact", plain[:i]+string(rune(c))+plain[i+1:])
				}
			}
		}
		if _, err := list(h.as("ada"), "contact", plain); err != nil {
			t.Errorf("as it was given: %v", err)
		}
		for _, limit := range []int{0, -1} {
			_, err := h.as("ada").List(t.Context(), "contact", records.Query{Limit: limit})
			want(t, err, fault.Validation, "limit")
		}
	})
}
