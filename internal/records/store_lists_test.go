package records_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/records"
	"gatehouse/internal/schema"
	"gatehouse/internal/tenant"
)

// A record of a group that goes to another one, between the statement that finds places and the
// one that reads rows, does not end the group (contract P13).
func TestARecordThatLeavesItsGroupEndsNone(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		var ids []string
		for i := range 20 {
			ids = append(ids, id(h.create(h.as("sam"), "contact", fmt.Sprintf(`{"name":"%d","stage":"lost","score":%d}`, i, i))))
		}
		other, moved := h.as("sam"), false
		spied := records.Spy(h.as("sam"), func(sql string, _ []any) {
			if strings.Contains(sql, "VALUES") && !moved { // the rows at places
				moved = true
				h.update(other, "contact", ids[10], `{"stage":"won"}`)
			}
		})
		got, err := throughAll(t, spied, records.Query{Limit: 4, Sort: sortedBy("stage,-score")}, "score")
		if err != nil || !moved {
			t.Fatal(moved, err)
		}
		for i := range 20 {
			if i != 10 && !slices.Contains(got, fmt.Sprint(i)) {
				t.Errorf("%d is not among %v", i, got)
			}
		}
	})
}

// A record that does not fit on a page is on the next one (contracts P4 and P6), also where the page
// is read by looking at all records and it is the last of a part of them.
func TestARecordThatDoesNotFitIsOnTheNextPage(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		sam := h.as("sam")
		var want []string
		put := func(name string, size int) {
			h.create(sam, "contact", fmt.Sprintf(`{"name":%q,"note":%q}`, name, strings.Repeat("x", size)))
			want = append([]string{name}, want...)
		}
		put("oldest", 10)
		put("large", 950_000)
		for i := range 149 {
			put(fmt.Sprint(i), 9_300)
			if i == 70 {
				h.create(sam, "contact", `{"name":"skip"}`)
			}
		}
		if _, err := sam.List(t.Context(), "contact", records.Query{Limit: 1}); err != nil { // finds out that sam sees most
			t.Fatal(err)
		}
		got, err := throughAll(t, sam, records.Query{Limit: 150, Filter: []records.Filter{
			{Field: "created_at", Op: "gt", Value: "2020-01-01T00:00:00Z"}, {Field: "name", Op: "ne", Value: "skip"},
		}}, "name")
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%v: %d of %d; large is there: %v", err, len(got), len(want), slices.Contains(got, "large"))
		}
	})
}

// What is created during a round on which nothing is found is on the traversal (contract P6).
func TestARoundWithoutMatchesIsFollowedByOne(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		sam := h.as("sam")
		records.SiftAtMost(h.store, 20)
		put := func(name, note string) {
			h.create(sam, "contact", fmt.Sprintf(`{"name":%q,"note":%q}`, name, note))
		}
		for i := range 3 {
			put("m", fmt.Sprint(i))
		}
		q := records.Query{Limit: 2, Filter: []records.Filter{{Field: "created_at", Op: "gt", Value: "2020-01-01T00:00:00Z"}, {Field: "name", Op: "eq", Value: "m"}}}
		var got []string
		for page := 1; ; page++ {
			p, err := sam.List(t.Context(), "contact", q)
			if err != nil {
				t.Fatal(page, err)
			}
			for _, r := range objects(t, p.Records) {
				got = append(got, fmt.Sprint(r["note"]))
			}
			if q.Cursor = p.Next; q.Cursor == "" {
				break
			}
			switch page {
			case 1:
				for range 30 {
					put("other", "")
				}
			case 3: // it is empty
				put("m", "late")
			}
		}
		if !slices.Equal(got, []string{"2", "1", "0", "late"}) {
			t.Error(got)
		}
	})
}

// A range that few records are in answers beside any other condition, whatever the order, and the
// total is the same in each (contracts P10 and P12).
func TestOneRangeOfFewIsEnough(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		h.configure(func(ctx context.Context, tx tenant.ConfigTx) error {
			return schema.PutEntity(ctx, tx, entity("contact", "name text searchable", "a number indexed", "b number indexed", "stage select indexed"))
		})
		sam := h.as("sam")
		records.SiftAtMost(h.store, 20)
		for i := range 60 {
			h.create(sam, "contact", fmt.Sprintf(`{"name":"pump","a":%d,"b":%d,"stage":%q}`, i, i, []string{"won", "lost"}[i%2]))
		}
		a, b := records.Filter{Field: "a", Op: "gte", Value: "0"}, records.Filter{Field: "b", Op: "lt", Value: "4"}
		stage := records.Filter{Field: "stage", Op: "in", List: []string{"won", "new"}}
		won, since := records.Filter{Field: "stage", Value: "won"}, records.Filter{Field: "created_at", Op: "gt", Value: "2020-01-01T00:00:00Z"}
		for about, q := range map[string]records.Query{
			"alone": {Filter: []records.Filter{b}}, "before another": {Filter: []records.Filter{b, a}}, "behind another": {Filter: []records.Filter{a, b}},
			"with a value": {Filter: []records.Filter{b, won}}, "with values": {Filter: []records.Filter{b, stage}}, "with a time": {Filter: []records.Filter{b, since}},
			"with a word": {Filter: []records.Filter{b}, Search: "pump"}, "with a beginning": {Filter: []records.Filter{a, b, won}, Search: "pu*"},
		} {
			want := []string{"3", "2", "1", "0"}
			if slices.ContainsFunc(q.Filter, func(f records.Filter) bool { return f.Field == "stage" }) {
				want = []string{"2", "0"}
			}
			for _, by := range []string{"", "-a", "-b", "-updated_at", "-b,a"} {
				if q.Limit = 3; by != "" {
					q.Sort = sortedBy(by)
				}
				got, err := throughAll(t, sam, q, "a")
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("%s, by %q: %v, want %v; %v", about, by, got, want, err)
				}
				if n, err := sam.Count(t.Context(), "contact", q); err != nil || n != (records.Count{N: len(want)}) {
					t.Errorf("%s, by %q: counts %v, %v", about, by, n, err)
				}
			}
		}
	})
}

// A text that ends as the key of a long text does is in its own range.
func TestATextThatLooksLikeAKeyIsInItsRange(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		h.configure(func(ctx context.Context, tx tenant.ConfigTx) error {
			return schema.PutEntity(ctx, tx, entity("contact", "name text", "code text indexed"))
		})
		sam := h.as("sam")
		code := "a…" + strings.Repeat("0", 64)
		h.create(sam, "contact", fmt.Sprintf(`{"name":"it","code":%q}`, code))
		h.create(sam, "contact", fmt.Sprintf(`{"name":"longer","code":%q}`, code+"b"))
		for op, want := range map[schema.Operator][]string{"eq": {"it"}, "lte": {"it"}, "gte": {"it", "longer"}, "lt": nil, "gt": {"longer"}} {
			for _, by := range []string{"name", "code"} {
				got, err := throughAll(t, sam, records.Query{Limit: 5, Filter: []records.Filter{{Field: "code", Op: op, Value: code}}, Sort: sortedBy(by)}, "name")
				slices.Sort(got)
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("%s, by %s: %v, want %v; %v", op, by, got, want, err)
				}
			}
		}
	})
}
