package records_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/records"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// pageBytes is the size at which a page ends, as the reference documents it.
const pageBytes = 2 << 20

// bodyOf returns a body whose record, rendered, is longer than size by less
// than 400 bytes.
func bodyOf(size int, more string) string {
	return `{"extra": {"pad": "` + strings.Repeat("p", size) + `"}` + more + `}`
}

// viewersOfLarge returns viewers who see all of sam's records, each read in a
// different way.
func viewersOfLarge(h *house) map[string]*records.Session {
	h.user("cleo", user.User{Role: "ceo", Sets: []string{"work"}})
	h.configure(func(ctx context.Context, tx tenant.ConfigTx) error {
		return access.PutRule(ctx, tx, &access.SharingRule{Entity: "contact", ShareWithRole: "support", Access: access.ReadOnly,
			Where: []access.Condition{{Field: "stage", Value: []byte(`"won"`)}}})
	})
	return map[string]*records.Session{"all access": h.as("ada"), "the owner": h.as("sam"), "an ancestor": h.as("cleo"), "a rule": h.as("eva")}
}

// counted is a Holder that refuses an answer longer than most bytes.
type counted struct{ most, largest int }

var errTooLong = errors.New("too long")

func (c *counted) Hold(n int) error {
	c.largest = max(c.largest, n)
	if n > c.most {
		return errTooLong
	}
	return nil
}

// TestAHolderIsAskedBeforeAnythingHappens checks that what a Holder refuses is
// not read further, created or changed.
func TestAHolderIsAskedBeforeAnythingHappens(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		sam, ctx := h.as("sam"), t.Context()
		var large string
		for range 5 {
			large = id(h.create(sam, "contact", bodyOf(100_000, "")))
		}
		c := &counted{most: 150_000}
		bound := h.as("sam").Within(c)
		refused := func(what string, err error) {
			t.Helper()
			if !errors.Is(err, errTooLong) {
				t.Errorf("%s: %v", what, err)
			}
		}
		_, err := bound.List(ctx, "contact", records.Query{Limit: 200})
		refused("a list", err)
		if c.largest > 250_000 {
			t.Errorf("%d bytes were built", c.largest)
		}
		p, err := bound.List(ctx, "contact", records.Query{Limit: 200, Bytes: 150_000})
		if err != nil || p.Count != 1 || p.Next == "" {
			t.Errorf("a shorter page: %d records, %v", p.Count, err)
		}
		c.most = 50_000
		_, err = bound.Get(ctx, "contact", large)
		refused("a read", err)
		_, err = bound.Create(ctx, "contact", body(t, bodyOf(60_000, "")))
		refused("a creation", err)
		_, err = bound.Update(ctx, "contact", large, body(t, `{"name": "changed"}`))
		refused("a change", err)
		unit := h.store.Begin(h.config())
		part := unit.As(viewerOf(h, "sam")).Within(c)
		_, err = part.Create(ctx, "contact", body(t, bodyOf(60_000, "")))
		refused("a creation in a unit", err)
		_, err = part.Update(ctx, "contact", large, body(t, `{"name": "changed"}`))
		refused("a change in a unit", err)
		if unit.Changed() {
			t.Error("the unit has something to commit")
		}
		if list := h.list(sam, "contact"); len(list) != 5 || list[0]["name"] != nil {
			t.Errorf("%d records, the first is named %v", len(list), list[0]["name"])
		}
	})
}

func viewerOf(h *house, name string) access.Viewer {
	v, err := h.dir.Viewer(context.Background(), h.config(), user.ID(h.ids[name]), false)
	if err != nil {
		h.t.Fatal(err)
	}
	return v
}

// walker is one traversal of TestPagesOfBytesMissAndRepeatNothing.
type walker struct {
	s       *records.Session
	filter  []records.Filter
	limit   int
	bytes   int
	cursor  string
	pages   int
	done    bool
	seen    map[string]int
	started map[string]bool // the records that were there when it began
}

// caughtUp checks that a traversal of several pages has seen every live record
// when it ends.
func (w *walker) caughtUp(t *testing.T, seed uint64, alive []string) {
	t.Helper()
	if w.pages == 1 {
		return // a single page shows one instant
	}
	for _, name := range alive {
		if w.seen[name] != 1 {
			t.Errorf("seed %d: a traversal of %d pages ended, %s was seen %d times", seed, w.pages, name, w.seen[name])
		}
	}
}

func (w *walker) step(t *testing.T, seed uint64) {
	p, err := w.s.List(t.Context(), "contact", records.Query{Limit: w.limit, Cursor: w.cursor, Filter: w.filter, Bytes: w.bytes})
	if err != nil {
		t.Fatalf("seed %d: %v", seed, describe(err))
	}
	if p.Count > w.limit || len(p.Records) > w.bytes && p.Count > 1 {
		t.Errorf("seed %d: a page of %d records and %d bytes, limits %d and %d", seed, p.Count, len(p.Records), w.limit, w.bytes)
	}
	for _, r := range objects(t, p.Records) {
		w.seen[id(r)]++
	}
	w.pages++
	w.cursor, w.done = p.Next, p.Next == ""
}
