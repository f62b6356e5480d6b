package records_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/fault"
	"gatehouse/internal/records"
	"gatehouse/internal/schema"
)

// A page looks at a bounded number of rows, none of them hidden. One on which
// something was found ends there and the next goes on; one on which nothing was found
// is QUERY_TOO_BROAD, which names what would help.
func TestAPageLooksAtABoundedNumberOfRows(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		sam, eva := h.as("sam"), h.as("eva")
		records.SiftAtMost(h.store, 40)
		var matches []string
		for i := range 100 {
			name := "x"
			if i%30 == 5 { // newest first: behind 4, 34, 64 and 94 others
				name = "y"
			}
			r := h.create(sam, "contact", fmt.Sprintf(`{"name":%q,"stage":"won","score":%d}`, name, i))
			if name == "y" {
				matches = append([]string{id(r)}, matches...)
			}
		}
		won := records.Filter{Field: "stage", Value: "won"}
		find := func(name string) records.Query {
			return records.Query{Limit: 10, Filter: []records.Filter{won, {Field: "name", Op: schema.OpEq, Value: name}}}
		}
		var got []string
		for q, pages := find("y"), 0; ; pages++ {
			p, err := sam.List(t.Context(), "contact", q)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range objects(t, p.Records) {
				got = append(got, id(r))
			}
			if q.Cursor = p.Next; q.Cursor == "" {
				if pages != 2 {
					t.Errorf("%d pages", pages+1)
				}
				break
			}
		}
		if !slices.Equal(got, matches) {
			t.Errorf("found %v, want %v", got, matches)
		}
		_, err := sam.List(t.Context(), "contact", find("z"))
		want(t, err, fault.QueryTooBroad, "name")
		if n, err := sam.Count(t.Context(), "contact", find("y")); err != nil || n != (records.Count{N: 2, More: true}) {
			t.Errorf("counts %v, %v", n, err)
		}
		for _, c := range []struct {
			q    records.Query
			hint string
		}{
			{find("z"), "an index on it would answer this"},
			{records.Query{Limit: 10, Filter: []records.Filter{won, {Field: "name", Op: schema.OpPrefix, Value: "z"}}}, "an index on it would answer this"},
			{records.Query{Limit: 10, Filter: []records.Filter{won, {Field: "name", Op: "contains", Value: "z"}}}, "no index answers this"},
			{records.Query{Limit: 10, Filter: []records.Filter{{Field: "score", Op: "lt", Value: "50"}}}, "narrow it, or sort by it"},
			{records.Query{Limit: 10, Sort: sortedBy("name")}, "or index it"},
			{records.Query{Limit: 10, Sort: sortedBy("updated_at")}, "or narrow created_at"},
		} {
			_, err := sam.List(t.Context(), "contact", c.q)
			want(t, err, fault.QueryTooBroad)
			if !strings.Contains(describe(err), c.hint) {
				t.Errorf("%+v: %s, want the hint %q", c.q, describe(err), c.hint)
			}
		}
		// eva sees none of it, however much there is.
		if p, err := eva.List(t.Context(), "contact", find("z")); err != nil || p.Count != 0 || p.Next != "" {
			t.Errorf("%+v, %v", p, err)
		}
		// What the index answers has no such bound.
		if p, err := sam.List(t.Context(), "contact", records.Query{Limit: 200, Filter: []records.Filter{{Field: "stage", Op: "in", List: []string{"won", "new"}}}}); err != nil || p.Count != 100 {
			t.Errorf("%d, %v", p.Count, err)
		}
	})
}

func TestQueriesThatAreRefused(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		sam := acme(t, d).as("sam")
		type list = []records.Filter
		for field, q := range map[string]records.Query{
			"name":       {Filter: list{{Field: "name", Value: "x"}}},
			"note":       {Or: [][]records.Filter{{{Field: "stage", Value: "won"}}, {{Field: "note", Value: "x"}}}},
			"nope":       {Filter: list{{Field: "nope", Value: "x"}}},
			"score":      {Filter: list{{Field: "score", Op: "contains", Value: "1"}}},
			"stage":      {Filter: list{{Field: "stage", Op: "in", List: []string{"won", "gone"}}}},
			"email":      {Filter: list{{Field: "email", Op: "in", List: slices.Repeat([]string{"x"}, 101)}}},
			"created_at": {Filter: list{{Field: "created_at", Op: "gt", Value: "yesterday"}}},
			"extra":      {Filter: list{{Field: "extra", Op: "eq", Value: "{}"}}},
			"updated_at": {Filter: list{{Field: "updated_at", Op: "prefix", Value: "2026"}}},
			"account":    {Fields: []string{"account", "account"}},
			"secret":     {Fields: []string{"secret"}},
		} {
			q.Limit = 1
			_, err := sam.List(t.Context(), "contact", q)
			want(t, err, fault.Validation, field)
			if _, err := sam.Count(t.Context(), "contact", q); len(q.Fields) == 0 {
				want(t, err, fault.Validation, field)
			}
		}
		_, err := sam.List(t.Context(), "contact", records.Query{Limit: 1, Or: [][]records.Filter{{{Field: "stage", Value: "won"}}, {}}})
		want(t, err, fault.Validation)
		_, err = sam.Count(t.Context(), "user", records.Query{})
		want(t, err, fault.Validation, "count")
		many := records.Query{Limit: 1, Filter: slices.Repeat(list{{Field: "stage", Value: "won"}}, 31)}
		_, err = sam.List(t.Context(), "contact", many)
		want(t, err, fault.Validation)
		_, err = sam.List(t.Context(), "contact", records.Query{Limit: 1, Or: slices.Repeat([][]records.Filter{{{Field: "stage", Value: "won"}}}, 11)})
		want(t, err, fault.Validation)
	})
}

// A cursor holds for the query that it came from, whatever the order of its parts.
func TestACursorIsOfItsQuery(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		sam := h.as("sam")
		for i := range 3 {
			h.create(sam, "contact", fmt.Sprintf(`{"name":"x","stage":"won","score":%d}`, i))
		}
		at := func(q records.Query, cursor string) (string, error) {
			q.Limit, q.Cursor = 1, cursor
			p, err := sam.List(t.Context(), "contact", q)
			return p.Next, err
		}
		won, some := records.Filter{Field: "stage", Value: "won"}, records.Filter{Field: "score", Op: "gte", Value: "0"}
		first := records.Query{Filter: []records.Filter{won, some}}
		cursor, err := at(first, "")
		if err != nil || cursor == "" {
			t.Fatal(cursor, err)
		}
		for _, same := range []records.Query{first, {Filter: []records.Filter{some, won}}, {Filter: []records.Filter{won, some}, Fields: []string{"name"}}} {
			if _, err := at(same, cursor); err != nil {
				t.Errorf("%+v: %v", same, err)
			}
		}
		for _, other := range []records.Query{
			{Filter: []records.Filter{won}}, {Filter: []records.Filter{won, {Field: "score", Op: "gt", Value: "0"}}}, {Or: [][]records.Filter{{won, some}}},
			{Filter: []records.Filter{won, {Field: "score", Value: "0"}}}, {Filter: []records.Filter{won, some, {Field: "name", Op: "ne", Value: "z"}}},
		} {
			_, err := at(other, cursor)
			want(t, err, fault.Validation, "cursor")
		}
	})
}

// A list that leaves out fields has the id and what was asked for, in the usual order.
func TestAListOfSomeFields(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		sam := h.as("sam")
		r := h.create(sam, "contact", `{"name":"x","stage":"won","score":3}`)
		for asked, shown := range map[string]string{
			"name": `,"name":"x"`, "score,name": `,"name":"x","score":3`, "id": "", "created_at,note": `,"created_at":"` + createdAt(r) + `","note":null`,
			"owner_id": `,"owner_id":"` + r["owner_id"].(string) + `"`,
		} {
			p, err := sam.List(t.Context(), "contact", records.Query{Limit: 1, Fields: strings.Split(asked, ",")})
			if want := `[{"id":"` + id(r) + `"` + shown + `}]`; err != nil || string(p.Records) != want {
				t.Errorf("%s: %s, want %s, %v", asked, p.Records, want, err)
			}
		}
	})
}

// Filters by columns of the record go with filters by fields that are indexed, in lists
// and totals (contract P7).
func TestFiltersByColumnsGoWithOthers(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		olivia, sam := h.as("olivia"), h.as("sam")
		won, lost := id(h.create(sam, "contact", `{"stage":"won"}`)), id(h.create(sam, "contact", `{"stage":"lost"}`))
		ids := won + "," + lost
		for _, s := range []*records.Session{olivia, sam} {
			for _, first := range []records.Filter{
				{Field: "id", Value: won}, {Field: "id", Op: schema.OpIn, List: strings.Split(ids, ",")}, {Field: "owner_id", Value: h.ids["sam"]},
			} {
				for _, sort := range [][]records.Sort{nil, {{Field: "score"}}, {{Field: "stage", Desc: true}}} {
					q := records.Query{Limit: 10, Filter: []records.Filter{first, {Field: "stage", Value: "won"}}, Sort: sort}
					p, err := s.List(t.Context(), "contact", q)
					if err != nil || p.Count != 1 || id(objects(t, p.Records)[0]) != won {
						t.Errorf("%v: %s, %v", q, p.Records, err)
					}
					if n, err := s.Count(t.Context(), "contact", q); err != nil || n != (records.Count{N: 1}) {
						t.Errorf("%v: %v, %v", q, n, err)
					}
				}
			}
		}
	})
}
