package records_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/fault"
	"gatehouse/internal/records"
	"gatehouse/internal/schema"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// plainWords returns the different words of a text of plain letters.
func plainWords(text string) []string {
	if text == "null" {
		return nil
	}
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	slices.Sort(words)
	return slices.Compact(words)
}

// searched makes name and note of contacts searchable. The set guest may not read note.
func searched(t testing.TB, d *db.DB) *house {
	h := acme(t, d)
	h.configure(func(ctx context.Context, tx tenant.ConfigTx) error {
		return errors.Join(
			schema.PutEntity(ctx, tx, entity("contact", "name text searchable", "email text unique", "score number indexed",
				"stage select indexed", "account reference:account", "note text searchable", "extra json")),
			access.PutPermissionSet(ctx, tx, &access.PermissionSet{Name: "guest",
				Entities: map[string]access.EntityGrant{"contact": {Create: true, Read: true, Update: true, Delete: true, Fields: map[string]access.FieldGrant{"note": {}}}},
			}))
	})
	h.user("gus", user.User{Role: "sales", Sets: []string{"guest"}})
	return h
}

// found returns the scores of what a search finds, in its order.
func found(t *testing.T, s *records.Session, q records.Query) string {
	t.Helper()
	if q.Limit == 0 {
		q.Limit = 3
	}
	list, err := throughAll(t, s, q, "score")
	if err != nil {
		return string(fault.CodeOf(err))
	}
	return strings.Join(list, " ")
}

func TestSearch(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := searched(t, d)
		sam := h.as("sam")
		for i, text := range []string{
			`"name":"Straße 1","note":"Müller & Söhne, İstanbul"`,
			`"name":"STRASSE","note":"pump"`,
			`"name":"東京都","note":"e-mail: a@b.example"`,
			`"name":"Pump station","note":"שָׁלוֹם"`,
			`"name":"pumps","stage":"won"`,
			`"name":"👍"`,
		} {
			h.create(sam, "contact", fmt.Sprintf(`{"score":%d,%s}`, i, text))
		}
		h.create(h.as("sue"), "contact", `{"score":9,"name":"pump"}`)
		won := []records.Filter{{Field: "stage", Value: "won"}}
		for about, c := range map[string]struct {
			q    records.Query
			want string
		}{
			"a word, in any field":           {records.Query{Search: "pump"}, "3 1"},
			"folded":                         {records.Query{Search: "strasse"}, "1 0"},
			"folded in the search":           {records.Query{Search: "MULLER straße"}, "0"},
			"without a mark":                 {records.Query{Search: "ISTANBUL"}, "0"},
			"words in different fields":      {records.Query{Search: "strasse pump"}, "1"},
			"words that no record has":       {records.Query{Search: "strasse station"}, ""},
			"a beginning":                    {records.Query{Search: "pum*"}, "4 3 1"},
			"a beginning and a word":         {records.Query{Search: "pum* station"}, "3"},
			"two beginnings":                 {records.Query{Search: "pu* sta*"}, "3"},
			"a beginning alone is no word":   {records.Query{Search: "pum"}, ""},
			"characters that stand alone":    {records.Query{Search: "京東"}, "2"},
			"a part of an address":           {records.Query{Search: "a@b.example"}, "2"},
			"without points":                 {records.Query{Search: "שלום"}, "3"},
			"beside a filter":                {records.Query{Search: "pum*", Filter: won}, "4"},
			"beside an unindexed filter":     {records.Query{Search: "pump", Filter: []records.Filter{{Field: "name", Op: schema.OpPrefix, Value: "S"}}}, "1"},
			"sorted":                         {records.Query{Search: "pump", Sort: sortedBy("score")}, "1 3"},
			"a beginning, sorted":            {records.Query{Search: "pum*", Sort: sortedBy("score")}, "1 3 4"},
			"oldest first":                   {records.Query{Search: "pump", Sort: sortedBy("created_at")}, "1 3"},
			"a beginning, oldest first":      {records.Query{Search: "pum*", Sort: sortedBy("created_at")}, "1 3 4"},
			"sorted without an index":        {records.Query{Search: "pum*", Sort: sortedBy("-name")}, "4 1 3"},
			"a beginning beside created_at":  {records.Query{Search: "pum*", Filter: []records.Filter{{Field: "created_at", Op: "gt", Value: "2020-01-01T00:00:00Z"}}}, "4 3 1"},
			"a beginning, sorted in a range": {records.Query{Search: "pum*", Filter: []records.Filter{{Field: "score", Op: "gt", Value: "1"}}, Sort: sortedBy("score")}, "3 4"},
			"no words":                       {records.Query{Search: "👍"}, "VALIDATION"},
			"too short a beginning":          {records.Query{Search: "p*"}, "VALIDATION"},
			"too long":                       {records.Query{Search: strings.Repeat("a", 201)}, "VALIDATION"},
		} {
			if got := found(t, sam, c.q); got != c.want {
				t.Errorf("%s: %q, expected %q", about, got, c.want)
			}
			c.q.Limit = 5
			if n, err := sam.Count(t.Context(), "contact", c.q); err == nil && n.N != len(strings.Fields(c.want)) || (err != nil) != (c.want == "VALIDATION") {
				t.Errorf("%s: counts %v, %v", about, n, err)
			}
		}
		_, err := sam.List(t.Context(), "account", records.Query{Limit: 5, Search: "a"})
		want(t, err, fault.Validation, "search")
		_, err = h.as("olivia").List(t.Context(), "user", records.Query{Limit: 5, Search: "a"})
		want(t, err, fault.Validation, "search")
		p, err := sam.List(t.Context(), "contact", records.Query{Limit: 1, Search: "pump"})
		if err != nil || p.Next == "" {
			t.Fatal(p.Next, err)
		}
		_, err = sam.List(t.Context(), "contact", records.Query{Limit: 1, Search: "pumps", Cursor: p.Next})
		want(t, err, fault.Validation)
	})
}

// A field that the viewer may not read is not searched, and what is hidden is not found.
func TestSearchReadsNoFieldThatTheViewerMayNotRead(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := searched(t, d)
		h.create(h.as("olivia"), "contact", fmt.Sprintf(`{"score":1,"name":"red","note":"blue","owner_id":%q}`, h.ids["gus"]))
		h.create(h.as("olivia"), "contact", fmt.Sprintf(`{"score":2,"name":"blue","note":"red","owner_id":%q}`, h.ids["gus"]))
		h.create(h.as("olivia"), "contact", `{"score":3,"name":"blue","note":"red"}`)
		for search, of := range map[string]map[string]string{
			"blue":     {"gus": "2", "olivia": "3 2 1", "sam": ""},
			"blu*":     {"gus": "2", "olivia": "3 2 1", "sam": ""},
			"red blue": {"gus": "", "olivia": "3 2 1", "sam": ""},
			"re* blue": {"gus": "", "olivia": "3 2 1", "sam": ""},
		} {
			for name, want := range of {
				if got := found(t, h.as(name), records.Query{Search: search}); got != want {
					t.Errorf("%s searches %q: %q, expected %q", name, search, got, want)
				}
			}
		}
		h.configure(func(ctx context.Context, tx tenant.ConfigTx) error {
			return schema.PutEntity(ctx, tx, entity("contact", "name text", "score number indexed", "note text searchable"))
		})
		if got := found(t, h.as("gus"), records.Query{Search: "blue"}); got != "VALIDATION" {
			t.Errorf("gus searches what only others may read: %q", got)
		}
	})
}

// A search answers as a model of it does, for every viewer, while texts, owners and
// shares change.
func TestSearchAnswersAsAModelDoes(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := searched(t, d)
		random := rand.New(rand.NewPCG(3, 4))
		texts := []string{"", "red", "Red green", "green, blue", "BLUE redder", "reds", "gré en", "red red blue"}
		folded := strings.NewReplacer("é", "e")
		type model struct {
			id, owner, name, note string
			shared                map[string]bool
		}
		var all []*model
		owners := []string{"olivia", "sam", "gus", "eva"}
		pick := func(list []string) string { return list[random.IntN(len(list))] }
		for i := range 120 {
			if i < 40 || random.IntN(3) == 0 {
				m := &model{owner: pick(owners), name: pick(texts), note: pick(texts), shared: map[string]bool{}}
				m.id = id(h.create(h.as("olivia"), "contact", fmt.Sprintf(`{"name":%q,"note":%q,"owner_id":%q}`, m.name, m.note, h.ids[m.owner])))
				all = append(all, m)
				continue
			}
			at := random.IntN(len(all))
			m := all[at]
			switch random.IntN(4) {
			case 0:
				m.note = pick(texts)
				h.update(h.as("olivia"), "contact", m.id, fmt.Sprintf(`{"note":%q}`, m.note))
			case 1:
				m.owner = pick(owners)
				h.update(h.as("olivia"), "contact", m.id, fmt.Sprintf(`{"owner_id":%q}`, h.ids[m.owner]))
			case 2:
				with := pick(owners[1:])
				m.shared[with] = true
				share := records.Share{Principal: access.UserPrincipal(user.ID(h.ids[with])), Access: access.ReadOnly}
				if err := h.as("olivia").Share(t.Context(), "contact", m.id, share); err != nil {
					t.Fatal(describe(err))
				}
			default:
				h.delete(h.as("olivia"), "contact", m.id)
				all = slices.Delete(all, at, at+1)
			}
		}
		holds := func(m *model, search string, note bool) bool {
			words := plainWords(folded.Replace(m.name))
			if note {
				words = append(words, plainWords(folded.Replace(m.note))...)
			}
			for term := range strings.FieldsSeq(search) {
				start, prefix := strings.CutSuffix(term, "*")
				if !slices.ContainsFunc(words, func(w string) bool { return w == start || prefix && strings.HasPrefix(w, start) }) {
					return false
				}
			}
			return true
		}
		for _, name := range append(owners, "sue") {
			for _, search := range []string{"red", "green blue", "re*", "gre* red", "en", "bl* re*", "redder", "violet", "red green blue"} {
				var expect []string
				for _, m := range slices.Backward(all) {
					if (name == "olivia" || m.owner == name || m.shared[name]) && holds(m, search, name != "gus") {
						expect = append(expect, m.id)
					}
				}
				q := records.Query{Limit: 1 + random.IntN(7), Search: search}
				got, err := throughAll(t, h.as(name), q, "id")
				if err != nil || !slices.Equal(got, expect) {
					t.Errorf("%s searches %q: %d records, expected %d, %v", name, search, len(got), len(expect), err)
				}
			}
		}
	})
}

// What a search looks at one by one is bounded; what the index of words gives is not.
func TestASearchIsBoundedWhereItIsLookedAt(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := searched(t, d)
		sam := h.as("sam")
		records.SiftAtMost(h.store, 40)
		all := []string{}
		for i := range 100 {
			name := fmt.Sprintf("every w%d", i)
			if i == 3 {
				name += " rare"
			}
			h.create(sam, "contact", fmt.Sprintf(`{"score":%d,"name":%q,"note":"common"}`, i, name))
			all = append([]string{fmt.Sprint(i)}, all...)
		}
		for search, expect := range map[string]string{
			"every": strings.Join(all, " "), "rare": "3", "rar*": "3", "w3 every": "3", "common rare": "3", "commo* rare": "3", "common rar*": "3",
			"com*": strings.Join(all, " "), "ev* rar*": "3", "common w3 every": "3", "common absent": "", "common every": strings.Join(all, " "), "w9* every": strings.Join(slices.Concat(all[:10], all[90:91]), " "),
		} {
			if got := found(t, sam, records.Query{Search: search}); got != expect {
				t.Errorf("%q: %q, expected %q", search, got, expect)
			}
		}
		for range 41 {
			h.create(sam, "contact", `{"name":"every"}`)
		}
		for i := range 41 {
			h.create(sam, "contact", fmt.Sprintf(`{"name":"other","note":"o%d"}`, i))
		}
		_, err := sam.List(t.Context(), "contact", records.Query{Limit: 5, Search: "every other"})
		want(t, err, fault.QueryTooBroad, "search")
		slices.Reverse(all)
		for search, expect := range map[string]string{"common": strings.Join(all, " "), "rare": "3", "rar*": "3"} {
			for _, by := range []string{"score", "created_at"} {
				if got := found(t, sam, records.Query{Search: search, Sort: sortedBy(by)}); got != expect {
					t.Errorf("%q by %s: %q, expected %q", search, by, got, expect)
				}
			}
		}
		if got := found(t, sam, records.Query{Search: "common", Sort: sortedBy("name")}); got != "QUERY_TOO_BROAD" {
			t.Errorf("too many sorted by name: %q", got)
		}
	})
}
