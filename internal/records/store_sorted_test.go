package records_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/fault"
	"gatehouse/internal/records"
	"gatehouse/internal/schema"
)

// sortedBy reads a sort parameter.
func sortedBy(text string) (list []records.Sort) {
	for key := range strings.SplitSeq(text, ",") {
		field, desc := strings.CutPrefix(key, "-")
		list = append(list, records.Sort{Field: field, Desc: desc})
	}
	return list
}

// throughAll returns a field of all records that a query gives, page by page.
func throughAll(t *testing.T, s *records.Session, q records.Query, field string) (list []string, err error) {
	t.Helper()
	for q.Cursor = ""; ; {
		p, err := s.List(t.Context(), "contact", q)
		if err != nil {
			return list, err
		}
		for _, r := range objects(t, p.Records) {
			list = append(list, fmt.Sprint(r[field]))
		}
		if q.Cursor = p.Next; q.Cursor == "" {
			return list, nil
		}
	}
}

// What the index has in order is listed in order, however much there is. What has to
// be looked at first is bounded, and where it is too much the index still helps if it
// can.
func TestASortedListIsBoundedWhereItIsLookedAt(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		sam := h.as("sam")
		records.SiftAtMost(h.store, 40)
		scores := rand.New(rand.NewPCG(1, 2)).Perm(100)
		for i, score := range scores {
			name := []string{"x", "y"}[min(1, i%20/19)]
			h.create(sam, "contact", fmt.Sprintf(`{"name":%q,"stage":%q,"score":%d}`, name, []string{"won", "won", "won", "lost", "new"}[score/20], score))
		}
		won, y := records.Filter{Field: "stage", Value: "won"}, records.Filter{Field: "name", Value: "y"}
		score := func(op schema.Operator, value string) records.Filter {
			return records.Filter{Field: "score", Op: op, Value: value}
		}
		in := func(keep func(score int) bool, order func(a, b int) int) (list []string) {
			kept := slices.DeleteFunc(slices.Clone(scores), func(s int) bool { return !keep(s) })
			if order != nil {
				slices.SortFunc(kept, order)
			} else {
				slices.Reverse(kept) // newest first
			}
			for _, s := range kept {
				list = append(list, fmt.Sprint(s))
			}
			return list
		}
		all := func(int) bool { return true }
		up, down := func(a, b int) int { return cmp.Compare(a, b) }, func(a, b int) int { return cmp.Compare(b, a) }
		isWon, isY := func(s int) bool { return s < 60 }, func(s int) bool { return slices.Index(scores, s)%20 == 19 }
		for about, c := range map[string]struct {
			filter []records.Filter
			sort   string
			want   []string // nil: QUERY_TOO_BROAD
		}{
			"by an index":                                {nil, "score", in(all, up)},
			"by an index, the greatest first":            {nil, "-score", in(all, down)},
			"oldest first":                               {nil, "created_at", fmtAll(scores)},
			"without an index":                           {nil, "name", nil},
			"more than can be looked at, by an index":    {[]records.Filter{won}, "score", in(isWon, up)},
			"more than can be looked at, by another one": {[]records.Filter{won}, "name", nil},
			"a test beside an index":                     {[]records.Filter{won, y}, "score", in(func(s int) bool { return isWon(s) && isY(s) }, up)},
			"groups that can be looked at":               {[]records.Filter{score("gte", "60")}, "stage,-score", slices.Concat(in(func(s int) bool { return s >= 60 && s < 80 }, down), in(func(s int) bool { return s >= 80 }, down))},
			"groups that cannot":                         {nil, "stage,score", nil},
			"a range, sorted":                            {[]records.Filter{score("lt", "70")}, "-score", in(func(s int) bool { return s < 70 }, down)},
			"a range of few":                             {[]records.Filter{score("gte", "90")}, "", in(func(s int) bool { return s >= 90 }, nil)},
			"a range of many":                            {[]records.Filter{score("gte", "30")}, "", in(func(s int) bool { return s >= 30 }, nil)},
			"what is set":                                {[]records.Filter{{Field: "score", Op: schema.OpIsNull, Value: "false"}}, "score", in(all, up)},
			"what is not":                                {[]records.Filter{{Field: "score", Op: schema.OpIsNull, Value: "true"}}, "-score", []string{}},
		} {
			q := records.Query{Limit: 7, Filter: c.filter}
			if c.sort != "" {
				q.Sort = sortedBy(c.sort)
			}
			got, err := throughAll(t, sam, q, "score")
			if c.want == nil {
				want(t, err, fault.QueryTooBroad)
			} else if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%s: %v\n got %v\nwant %v", about, err, got, c.want)
			}
		}
	})
}

func fmtAll(list []int) (texts []string) {
	for _, n := range list {
		texts = append(texts, fmt.Sprint(n))
	}
	return texts
}

// A traversal gives each record that does not change meanwhile once, in order, however
// the others change.
func TestASortedTraversalIsCompleteForWhatStays(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		sam := h.as("sam")
		rnd := rand.New(rand.NewPCG(3, 4))
		var others []string
		score := func() string { return []string{"null", "0", "-1.5", "7", "1e3", "7"}[rnd.IntN(6)] }
		for i := range 60 {
			r := h.create(sam, "contact", fmt.Sprintf(`{"name":"%d","stage":"new","score":%s}`, i, score()))
			if i%2 == 1 {
				others = append(others, id(r))
			}
		}
		for _, by := range []string{"score", "-score", "stage,-score", "name", "created_at"} {
			q := records.Query{Limit: 4, Sort: sortedBy(by)}
			before, err := throughAll(t, sam, q, "name")
			if err != nil {
				t.Fatal(err)
			}
			stays := func(list []string) []string {
				return slices.DeleteFunc(slices.Clone(list), func(name string) bool { return len(name) > 0 && strings.ContainsRune("13579", rune(name[len(name)-1])) })
			}
			var got []string
			for {
				p, err := sam.List(t.Context(), "contact", q)
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range objects(t, p.Records) {
					got = append(got, fmt.Sprint(r["name"]))
				}
				if q.Cursor = p.Next; q.Cursor == "" {
					break
				}
				at := others[rnd.IntN(len(others))]
				if _, err := sam.Update(t.Context(), "contact", at, body(t, `{"score": `+score()+`}`)); err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Equal(stays(got), stays(before)) {
				t.Errorf("by %s:\n got %v\nwant %v", by, stays(got), stays(before))
			}
		}
	})
}

// What is no order is refused.
func TestOrdersThatAreNone(t *testing.T) {
	h := acme(t, dbtest.Open(t, db.SQLite))
	for _, by := range []string{"nothing", "score,stage,name", "score,-score", "account", "id", "created_at,nothing", "-created_at,account", "created_at,-created_at"} {
		_, err := h.as("sam").List(t.Context(), "contact", records.Query{Limit: 1, Sort: sortedBy(by)})
		want(t, err, fault.Validation, "sort")
	}
	p, err := h.as("sam").List(t.Context(), "contact", records.Query{Limit: 1, Sort: sortedBy("score")})
	if err != nil || p.Next != "" {
		t.Fatal(p, err)
	}
}

// A traversal loses nothing when records of the page go between the moment at which their
// places were found and that at which they are read.
func TestASortedTraversalGoesOnWhereRecordsGo(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		for _, by := range []string{"name", "score", "-stage,name", "created_at"} {
			sam := h.as("sam")
			var ids []string
			for i := range 60 {
				ids = append(ids, id(h.create(sam, "contact", fmt.Sprintf(`{"name":"%02d","stage":%q,"score":%d}`, i, []string{"new", "won"}[i/30], i))))
			}
			gone := 0
			deleter := h.as("sam")
			spied := records.Spy(h.as("sam"), func(sql string, _ []any) {
				if strings.Contains(sql, "VALUES") && gone < 20 { // the rows at places
					at, err := deleter.List(t.Context(), "contact", records.Query{Limit: 60, Sort: sortedBy(by)})
					if err != nil {
						t.Fatal(err)
					}
					for _, r := range objects(t, at.Records)[gone/2 : min(gone/2+8, at.Count)] { // more than a page has
						if n := r["name"].(string); n[1] == '3' || n[1] == '4' || n[1] == '5' || n[1] == '6' {
							gone++
							h.delete(deleter, "contact", id(r))
						}
					}
				}
			})
			got, err := throughAll(t, spied, records.Query{Limit: 4, Sort: sortedBy(by)}, "name")
			if err != nil {
				t.Fatal(err)
			}
			left, err := throughAll(t, sam, records.Query{Limit: 200, Sort: sortedBy(by)}, "name")
			if err != nil || by != "created_at" && gone == 0 {
				t.Fatal(gone, err)
			}
			if got := slices.DeleteFunc(got, func(name string) bool { return !slices.Contains(left, name) }); !slices.Equal(got, left) {
				t.Errorf("by %s, after %d went:\n got %v\nwant %v", by, gone, got, left)
			}
			for _, at := range ids {
				_ = sam.Delete(t.Context(), "contact", at) // some have gone
			}
		}
	})
}

// Groups that can each be looked at are listed one after another, however many there are,
// and filters that an index answers do not bound the order of creation.
func TestSortedListsOfManyGroups(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		sam := h.as("sam")
		records.SiftAtMost(h.store, 40)
		var names []string
		for i := range 90 {
			names = append(names, fmt.Sprintf("%02d", i))
			h.create(sam, "contact", fmt.Sprintf(`{"name":"%02d","stage":%q,"score":%d}`, i, []string{"lost", "new", "won"}[i%3], i/2))
		}
		of := func(keep func(i int) bool) (list []string) {
			for i, name := range names {
				if keep(i) {
					list = append(list, name)
				}
			}
			return list
		}
		third := func(n int) []string { return of(func(i int) bool { return i%3 == n }) }
		down := func(list []string) []string { slices.Reverse(list); return list }
		won := records.Filter{Field: "stage", Op: "in", List: []string{"won", "new"}}
		for about, c := range map[string]struct {
			filter []records.Filter
			sort   string
			want   []string
		}{
			"three groups":                {nil, "stage,name", slices.Concat(third(0), third(1), third(2))},
			"three groups, the other way": {nil, "-stage,-name", slices.Concat(down(third(2)), down(third(1)), down(third(0)))},
			"groups of two, of which few pass": {[]records.Filter{{Field: "score", Op: "gte", Value: "5"}, {Field: "name", Op: "prefix", Value: "1"}}, "score,-name",
				[]string{"11", "10", "13", "12", "15", "14", "17", "16", "19", "18"}},
			"oldest first, of a filter":       {[]records.Filter{won}, "created_at", of(func(i int) bool { return i%3 != 0 })},
			"oldest first, since some moment": {[]records.Filter{{Field: "created_at", Op: "gt", Value: "2020-01-01T00:00:00Z"}}, "created_at", names},
		} {
			got, err := throughAll(t, sam, records.Query{Limit: 7, Filter: c.filter, Sort: sortedBy(c.sort)}, "name")
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%s: %v\n got %v\nwant %v", about, err, got, c.want)
			}
		}
	})
}

// However many records conditions leave and wherever these stand in the order, a traversal
// gives the same: a handful is picked from, the first of the order are tried, the rest is
// picked from or walked through.
func TestEachWayGivesTheSameList(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := searched(t, d)
		records.SiftAtMost(h.store, 100) // 10 are tried, 2 are a handful
		rnd := rand.New(rand.NewPCG(5, 6))
		type contact struct {
			name, stage string
			score       int
		}
		var list []contact
		for i := range 300 {
			c := contact{fmt.Sprintf("w%d common", rnd.IntN(10)), "won", i}
			if i%3 == 0 {
				c.stage = "lost"
			}
			if i < 2 || i >= 280 && i%10 == 0 || i/50 == 3 { // few: the oldest, the newest, some in between
				c.name, c.stage = "rare "+c.name, "new"
			}
			c.score = (i*7)%300/2 - 20
			list = append(list, c)
			h.create(h.as("sam"), "contact", fmt.Sprintf(`{"name":%q,"stage":%q,"score":%d,"note":"%03d"}`, c.name, c.stage, c.score, i))
		}
		byScore := func(a, b int) int { return cmp.Compare(list[a].score, list[b].score) }
		byStage := func(a, b int) int { return strings.Compare(list[a].stage, list[b].stage) }
		newest := func(a, b int) int { return cmp.Compare(b, a) }
		oldest := func(a, b int) int { return cmp.Compare(a, b) }
		less := func(by ...func(a, b int) int) func(a, b int) int {
			return func(a, b int) int {
				for _, f := range by {
					if c := f(a, b); c != 0 {
						return c
					}
				}
				return 0
			}
		}
		orders := map[string]func(a, b int) int{
			"": newest, "created_at": oldest, "score": less(byScore, oldest), "-score": less(func(a, b int) int { return byScore(b, a) }, newest),
			"stage": less(byStage, oldest), "score,-name": nil, "stage,-score": less(byStage, func(a, b int) int { return byScore(b, a) }, newest),
		}
		orders["score,-name"] = less(byScore, func(a, b int) int { return strings.Compare(list[b].name, list[a].name) }, newest)
		is := func(stage string) func(contact) bool { return func(c contact) bool { return c.stage == stage } }
		for about, c := range map[string]struct {
			q    records.Query
			keep func(contact) bool
		}{
			"many of a stage": {records.Query{Filter: []records.Filter{{Field: "stage", Value: "won"}}}, is("won")},
			"few of a stage":  {records.Query{Filter: []records.Filter{{Field: "stage", Value: "new"}}}, is("new")},
			"two stages":      {records.Query{Filter: []records.Filter{{Field: "stage", Op: schema.OpIn, List: []string{"new", "lost"}}}}, func(c contact) bool { return c.stage != "won" }},
			"a stage and a name": {records.Query{Filter: []records.Filter{{Field: "stage", Value: "won"}, {Field: "name", Op: schema.OpPrefix, Value: "w3"}}},
				func(c contact) bool { return c.stage == "won" && strings.HasPrefix(c.name, "w3") }},
			"many scores":       {records.Query{Filter: []records.Filter{{Field: "score", Op: schema.OpGte, Value: "0"}}}, func(c contact) bool { return c.score >= 0 }},
			"some scores":       {records.Query{Filter: []records.Filter{{Field: "score", Op: schema.OpLt, Value: "10"}}}, func(c contact) bool { return c.score < 10 }},
			"a score":           {records.Query{Filter: []records.Filter{{Field: "score", Op: schema.OpLte, Value: "-20"}}}, func(c contact) bool { return c.score <= -20 }},
			"scores of a stage": {records.Query{Filter: []records.Filter{{Field: "stage", Value: "lost"}, {Field: "score", Op: schema.OpGt, Value: "100"}}}, func(c contact) bool { return c.stage == "lost" && c.score > 100 }},
			"a word of few":     {records.Query{Search: "rare"}, func(c contact) bool { return c.stage == "new" }},
			"a beginning":       {records.Query{Search: "ra*"}, func(c contact) bool { return c.stage == "new" }},
			"two beginnings":    {records.Query{Search: "com* w3*"}, func(c contact) bool { return strings.Contains(c.name, "w3") }},
		} {
			var kept []int
			for i := range list {
				if c.keep(list[i]) {
					kept = append(kept, i)
				}
			}
			for by, order := range orders {
				slices.SortFunc(kept, order)
				var want []string
				for _, i := range kept {
					want = append(want, fmt.Sprintf("%03d", i))
				}
				for _, limit := range []int{4, 30} {
					q := c.q
					if q.Limit = limit; by != "" {
						q.Sort = sortedBy(by)
					}
					got, err := throughAll(t, h.as("sam"), q, "note")
					if by == "stage,-score" && slices.ContainsFunc(kept, func(i int) bool { return list[i].stage == "won" }) && fault.CodeOf(err) == fault.QueryTooBroad {
						continue // a stage has too many to be sorted by the score
					}
					if err != nil || !slices.Equal(got, want) {
						t.Errorf("%s, by %q, %d a page: %v\n got %v\nwant %v", about, by, limit, err, got, want)
					}
				}
			}
		}
	})
}
