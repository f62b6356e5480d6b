package data_test

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gatehouse/internal/db"
	"gatehouse/internal/gatetest"
)

func TestLimit(t *testing.T) {
	w := gatetest.New(t, db.SQLite)
	w.Apply(acme)
	sam := w.Key("sam@acme.example")
	for range 3 {
		sam.Post(contact, `{"first_name":"Ada"}`).Want(201, "")
	}
	for value, count := range map[string]int{
		"1": 1, "2": 2, "3": 3, "50": 3, "200": 3, "201": 3, "1000000": 3, "99999999999999999999999999": 3, "002": 2, "%32": 2,
	} {
		if got := sam.Get(contact+"?limit="+value).Want(200, "").Meta().Count; got != count {
			t.Errorf("limit=%s: %d records, want %d", value, got, count)
		}
	}
	for _, value := range []string{
		"0", "00", "-1", "-0", "1.5", "1.0", "+5", "%2B5", "1e2", "0x10", "1_0", "", "%20", "%201", "1%20", "ten", "null", "NaN", "Infinity",
		"1,2", "[1]", "%D9%A3", "１", "1%00", "%ff", "1;2",
	} {
		a := sam.Get(contact + "?limit=" + value)
		if strings.Contains(value, ";") { // net/url takes no semicolons
			invalid(t, value, a, "query")
			continue
		}
		failing(t, a, "limit")
	}
	failing(t, sam.Get(contact+"?limit"), "limit")
	failing(t, sam.Get(contact+"?limit=1&limit=1"), "limit")
	failing(t, sam.Get(contact+"?limit=1&%6cimit=2"), "limit")
	failing(t, sam.Get(contact+"?limit=0&cursor=&x=1"), "limit", "cursor", "x")
}

func TestWrongParameters(t *testing.T) {
	w := gatetest.New(t, db.SQLite)
	w.Apply(acme)
	sam := w.Key("sam@acme.example")
	id := sam.Post(contact, `{"first_name":"Ada"}`).Want(201, "").ID()
	for query, fields := range map[string][]string{
		"limits=1":                 {"limits"},
		"Limit=1":                  {"Limit"},
		"LIMIT=1":                  {"LIMIT"},
		"limit%20=1":               {"limit "},
		"page=2":                   {"page"},
		"offset=2":                 {"offset"},
		"order=created_at":         {"order"},
		"sort=":                    {"sort"},
		"sort=-":                   {"sort"},
		"sort=email,":              {"sort"},
		"sort=nothing":             {"sort"},
		"sort=secret_score":        {"sort"},
		"sort=email,title,phone":   {"sort"},
		"search=":                  {"search"},
		"search=a&search=b":        {"search"},
		"search=a*":                {"search"},
		"search=%F0%9F%91%8D":      {"search"},
		"search=a+b+c+d+e+f+g+h+i": {"search"},
		"include=":                 {"include"},
		"include=nothing":          {"nothing"},
		"include=email":            {"email"},
		"include=account,account":  {"account"},
		"fields=":                  {"fields"},
		"fields=email,nothing":     {"nothing"},
		"fields=email,email":       {"email"},
		"fields=secret_score":      {"secret_score"},
		"count=1":                  {"count"},
		"filter[email][]=x":        {"filter[email][]"},
		"filter[email][eq][ne]=x":  {"filter[email][eq][ne]"},
		"filter[or][12][email]=x":  {"filter[or][12][email]"},
		"filter[email][eq]=x&filter[email][eq]=x": {"filter[email][eq]"},
		"email=ada@x.example":                     {"email"},
		"filter=email":                            {"filter"},
		"filter.email=x":                          {"filter.email"},
		"filter[email=x":                          {"filter[email"},
		"filteremail]=x":                          {"filteremail]"},
		"Filter[email]=x":                         {"Filter[email]"},
		"a=1&b=2&a=3":                             {"a", "b"},
		"=1":                                      {""},
		"cursor=":                                 {"cursor"},
		"cursor=a&cursor=a":                       {"cursor"},
		"filter[email]=":                          {"filter[email]"},
		"filter[email]":                           {"filter[email]"},
		"filter[email]=a&filter[email]=":          {"filter[email]"},
		"filter[email]=a&filter%5Bemail%5D=b":     {"filter[email]"},
		"__proto__=1":                             {"__proto__"},
	} {
		failing(t, sam.Get(contact+"?"+query), fields...)
	}
	invalid(t, "a bad escape", sam.Get(contact+"?limit=%2"), "query")
	invalid(t, "a semicolon", sam.Get(contact+"?limit=1;x=2"), "query")
	// Other routes accept no parameters.
	for _, query := range []string{"limit=1", "x", "fields=email", "%zz"} {
		invalid(t, "get", sam.Get(contact+"/"+id+"?"+query), "query")
		invalid(t, "create", sam.Post(contact+"?"+query, `{"first_name":"Ada"}`), "query")
		invalid(t, "update", sam.Patch(contact+"/"+id+"?"+query, `{}`), "query")
		invalid(t, "delete", sam.Delete(contact+"/"+id+"?"+query), "query")
	}
	sam.Get(contact+"/"+id+"?").Want(200, "") // a question mark alone asks nothing
	if n := sam.Get(contact+"?").Want(200, "").Meta().Count; n != 1 {
		t.Errorf("%d records", n)
	}
}

func TestFiltersAreEqualityOnIndexedFields(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		sam, olivia := w.Key("sam@acme.example"), w.Key("olivia@acme.example")
		for i := range 6 {
			sam.Post(contact, fmt.Sprintf(`{"first_name":"N%d","email":"%d@x.example","score":%d,"vip":%v,"born":"2000-01-0%d","seen":"2026-01-01T00:00:0%d.5+01:00","stage":%q}`,
				i, i, i%3, i%2 == 0, i%2+1, i%2, []string{"new", "won", "lost"}[i%3])).Want(201, "")
		}
		olivia.Post(contact, `{"first_name":"Hers","email":"hers@x.example","score":1,"secret_score":7,"stage":"won"}`).Want(201, "")
		for query, names := range map[string]string{
			"filter[email]=3@x.example":                                 "N3",
			"filter%5Bemail%5D=3%40x.example":                           "N3",
			"filter[email]=3@X.example":                                 "", // equality, with its case
			"filter[email]=%":                                           "bad",
			"filter[email]=3@x.exampl":                                  "",
			"filter[email]=hers@x.example":                              "", // not his to see
			"filter[email]='%20OR%201=1--":                              "",
			"filter[score]=1":                                           "N1 N4",
			"filter[score]=1.0":                                         "N1 N4",
			"filter[score]=1e0":                                         "N1 N4",
			"filter[score]=-0":                                          "N0 N3",
			"filter[score]=9":                                           "",
			"filter[vip]=true":                                          "N0 N2 N4",
			"filter[vip]=false":                                         "N1 N3 N5",
			"filter[born]=2000-01-01":                                   "N0 N2 N4",
			"filter[seen]=2026-01-01T00:00:00.5%2B01:00":                "N0 N2 N4",
			"filter[seen]=2025-12-31T23:00:00.500Z":                     "N0 N2 N4", // the same instant
			"filter[stage]=won":                                         "N1 N4",
			"filter[stage]=won&filter[vip]=true":                        "N4",
			"filter[vip]=true&filter[stage]=won":                        "N4",
			"filter[stage]=won&filter[vip]=true&limit=1":                "N4",
			"filter[email][eq]=3@x.example":                             "N3",
			"filter[score][gte]=1":                                      "N1 N2 N4 N5",
			"filter[score][gt]=0&filter[score][lt]=2":                   "N1 N4",
			"filter[stage][in]=won,lost":                                "N1 N2 N4 N5",
			"filter[first_name][in]=N1,%22N2%22,N9&filter[score][lt]=3": "N1 N2",
			"filter[email][prefix]=3":                                   "N3",
			"filter[first_name][contains]=5&filter[created_at][gte]=2000-01-01T00:00:00Z": "N5",
			"filter[or][0][email]=3@x.example&filter[or][1][score]=2":                     "N2 N3 N5",
			"filter[or][0][email]=3@x.example&filter[or][1][score]=2&filter[vip]=true":    "N2",
			"filter[tags][is_null]=true&filter[vip]=true":                                 "N0 N2 N4",
			"filter[id]=x":                                "",
			"filter[owner_id]=x":                          "",
			"filter[secret_score][is_null]=true":          "unknown",
			"filter[stage]=won&filter[email]=3@x.example": "",
			"limit=1&filter[score]=1":                     "N4",
		} {
			a := sam.Get(contact + "?" + query)
			switch names {
			case "bad":
				invalid(t, query, a, "query")
				continue
			case "unknown":
				failing(t, a, "secret_score")
				continue
			}
			var got []string
			for _, r := range a.Want(200, "").Records() {
				got = append(got, r["first_name"].(string))
			}
			slices.Sort(got)
			if strings.Join(got, " ") != names {
				t.Errorf("%s: %v, want %s", query, got, names)
			}
		}
		if n := len(olivia.Get(contact+"?filter[secret_score]=7").Want(200, "").Records()); n != 1 {
			t.Errorf("the owner finds %d by a field that is closed to others", n)
		}
		for query, field := range map[string]string{
			"filter[first_name]=N1":          "first_name", // not indexed
			"filter[note]=x":                 "note",
			"filter[tags]=a":                 "tags",
			"filter[account]=x":              "account",
			"filter[extra]=x":                "extra",
			"filter[secret_score]=7":         "secret_score", // not his to read
			"filter[nothing]=7":              "nothing",
			"filter[created_at]=x":           "created_at",
			"filter[Email]=x":                "Email",
			"filter[email%20]=x":             "email ",
			"filter[]=x":                     "",
			"filter[email][like]=x":          "email",
			"filter[vip][lt]=true":           "vip",
			"filter[tags][eq]=a":             "tags",
			"filter[extra][contains]=a":      "extra",
			"filter[or][1][secret_score]=7":  "secret_score",
			"filter[or][1][first_name]=7":    "first_name",
			"filter[score][in]=1,x":          "score",
			"filter[score][in]=1,":           "filter[score][in]",
			"filter[email][in]=%22a":         "filter[email][in]",
			"filter[born][is_null]=yes":      "born",
			"filter[email%00]=x":             "email\x00",
			"filter[score]=one":              "score",
			"filter[score]=%201":             "score",
			"filter[score]=null":             "score",
			"filter[score]=1e400":            "score",
			"filter[score]=9007199254740993": "score",
			"filter[vip]=1":                  "vip",
			"filter[vip]=TRUE":               "vip",
			"filter[born]=2000-1-1":          "born",
			"filter[born]=2000-02-30":        "born",
			"filter[seen]=2026-01-01":        "seen",
			"filter[stage]=open":             "stage",
		} {
			failing(t, sam.Get(contact+"?"+query), field)
		}
		failing(t, sam.Get(contact+"?filter[email]=%ff"), "filter[email]")
		failing(t, sam.Get(contact+"?filter[email]=a%00"), "filter[email]")
		failing(t, sam.Get(contact+"?filter[first_name]=a&filter[nothing]=b"), "first_name", "nothing")
	})
}

func TestMeta(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		sam := w.Key("sam@acme.example")
		if got := string(sam.Get(contact).Want(200, "").Body); got != `{"data":[],"meta":{"count":0,"hasMore":false,"nextCursor":null}}` {
			t.Errorf("an empty list: %s", got)
		}
		var made []string
		for i := range 51 {
			made = append(made, sam.Post(contact, `{"first_name":"N`+strconv.Itoa(i)+`"}`).Want(201, "").ID())
		}
		slices.Reverse(made) // newest first
		first := sam.Get(contact).Want(200, "")
		m := first.Meta()
		if m.Count != 50 || !m.HasMore || m.NextCursor == nil || len(first.Records()) != 50 {
			t.Fatalf("the first page: %+v", m)
		}
		if _, err := base64.RawURLEncoding.DecodeString(*m.NextCursor); err != nil {
			t.Errorf("nextCursor is no base64url: %s", *m.NextCursor)
		}
		second := sam.Get(contact+"?cursor="+*m.NextCursor).Want(200, "")
		if m := second.Meta(); m.Count != 1 || m.HasMore || m.NextCursor != nil {
			t.Errorf("the second page: %+v", m)
		}
		var walked []string
		created := ""
		for _, r := range append(first.Records(), second.Records()...) {
			id, _ := r["id"].(string)
			walked = append(walked, id)
			at, _ := r["created_at"].(string)
			if created != "" && at >= created {
				t.Errorf("%s after %s", at, created)
			}
			created = at
		}
		if !slices.Equal(walked, made) {
			t.Error("the walk is not the records, newest first")
		}
		// The same page again is the same page; another size from there is fine.
		again := sam.Get(contact+"?cursor="+*m.NextCursor+"&limit=200").Want(200, "")
		if string(again.Body) != string(second.Body) {
			t.Errorf("again: %s", again.Body)
		}
	})
}

// TestPagesDuringInserts: records inserted between pages appear on a later page, and
// none twice.
func TestPagesDuringInserts(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		sam := w.Key("sam@acme.example")
		want := map[string]int{}
		add := func() { want[sam.Post(contact, `{"first_name":"Ada"}`).Want(201, "").ID()] = 1 }
		for range 7 {
			add()
		}
		got, path := map[string]int{}, contact+"?limit=2"
		for page := 0; ; page++ {
			a := sam.Get(path).Want(200, "")
			for _, r := range a.Records() {
				got[r["id"].(string)]++
			}
			m := a.Meta()
			if !m.HasMore {
				break
			}
			path = contact + "?limit=2&cursor=" + *m.NextCursor
			if page < 4 {
				add()
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("walked %v, want %v", got, want)
		}
	})
}

func TestCursorsBelongToTheirList(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		w.Apply(strings.NewReplacer("tenant: acme", "tenant: other", "acme.localhost", "other.localhost").Replace(acme))
		sam := w.Key("sam@acme.example")
		for _, who := range []*gatetest.Actor{sam, w.KeyOf("other", "other.localhost", "sam@acme.example")} {
			for i := range 3 {
				who.Post(contact, `{"first_name":"Ada","score":`+strconv.Itoa(i%2)+`,"stage":"won"}`).Want(201, "")
				who.Post("/public/v1/data/account", `{"name":"A"}`).Want(201, "")
			}
		}
		next := func(a *gatetest.Actor, path string) string {
			t.Helper()
			m := a.Get(path).Want(200, "").Meta()
			if m.NextCursor == nil {
				t.Fatalf("%s has one page", path)
			}
			return *m.NextCursor
		}
		cursor := next(sam, contact+"?limit=1")
		sam.Get(contact+"?limit=1&cursor="+cursor).Want(200, "")
		refused := func(what, path, cursor string) {
			t.Helper()
			a := sam.Get(path + url.QueryEscape(cursor))
			if a.Status != 400 || !slices.Equal(a.Fields(), []string{"cursor"}) {
				t.Errorf("a cursor %s: %d %s", what, a.Status, a.Body)
			}
		}
		refused("of another tenant", contact+"?limit=1&cursor=", next(w.KeyOf("other", "other.localhost", "sam@acme.example"), contact+"?limit=1"))
		refused("of another entity", contact+"?limit=1&cursor=", next(sam, "/public/v1/data/account?limit=1"))
		refused("at another entity", "/public/v1/data/account?limit=1&cursor=", cursor)
		refused("of a filter", contact+"?limit=1&cursor=", next(sam, contact+"?limit=1&filter[stage]=won"))
		refused("with a filter", contact+"?limit=1&filter[stage]=won&cursor=", cursor)
		refused("with another value", contact+"?limit=1&filter[stage]=new&cursor=", next(sam, contact+"?limit=1&filter[stage]=won"))
		refused("with one filter more", contact+"?limit=1&filter[stage]=won&filter[score]=0&cursor=", next(sam, contact+"?limit=1&filter[stage]=won"))
		// The order of filters does not matter.
		both := next(sam, contact+"?limit=1&filter[stage]=won&filter[score]=0")
		sam.Get(contact+"?filter[score]=0&limit=1&filter[stage]=won&cursor="+both).Want(200, "")

		for i := range len(cursor) {
			bit := byte('A')
			if cursor[i] == 'A' {
				bit = 'B'
			}
			refused("changed at "+strconv.Itoa(i), contact+"?cursor=", cursor[:i]+string(bit)+cursor[i+1:])
		}
		for what, text := range map[string]string{
			"cut short": cursor[:len(cursor)-1], "cut to nothing": cursor[:1], "lengthened": cursor + "A", "padded": cursor + "=", "twice": cursor + cursor,
			"with white space": cursor + "\n", "that is none": "nonsense", "of other characters": "a+/b", "with NUL": cursor + "\x01", "huge": strings.Repeat("A", 20000),
			"of plain words": base64.RawURLEncoding.EncodeToString([]byte(`{"created_at":1,"id":"x"}`)),
			"of 16 zeros":    base64.RawURLEncoding.EncodeToString(make([]byte, 16)),
		} {
			refused(what, contact+"?cursor=", text)
		}
		// A cursor is only a position: another user sees what they may see.
		if n := len(w.Key("alma@acme.example").Get(contact+"?cursor="+cursor).Want(200, "").Records()); n != 2 {
			t.Errorf("alma continues with %d records", n)
		}
		w.Key("nina@acme.example").Get(contact+"?cursor="+cursor).Want(403, "FORBIDDEN")
	})
}

// search finds records by words of fields that the caller may read, in the order of the
// list, with filters, a total and pages.
func TestSearchByWords(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		olivia, sam := w.Key("olivia@acme.example"), w.Key("sam@acme.example")
		for i, note := range []string{"Grüße aus KÖLN", "koln again", "elsewhere", "Kölner Dom"} {
			olivia.Post(contact, fmt.Sprintf(`{"first_name":"c%d","score":%d,"note":%q}`, i, i%2, note)).Want(201, "")
		}
		for query, want := range map[string]string{
			"search=koln":                            "c1 c0",
			"search=K%C3%B6ln*":                      "c3 c1 c0",
			"search=koln+grusse":                     "c0",
			"search=koln*&filter[score]=1":           "c3 c1",
			"search=koln*&sort=first_name":           "c0 c1 c3",
			"search=koln*&limit=1&fields=first_name": "c3",
			"search=paris":                           "",
		} {
			var list []struct {
				Name string `json:"first_name"`
			}
			olivia.Get(contact+"?"+query).Want(200, "").Data(&list)
			var names []string
			for _, r := range list {
				names = append(names, r.Name)
			}
			if got := strings.Join(names, " "); got != want {
				t.Errorf("%s: %s, want %s", query, got, want)
			}
		}
		if a := olivia.Get(contact+"?search=koln*&count=true&limit=1").Want(200, ""); !strings.Contains(string(a.Body), `"total":3`) {
			t.Errorf("%s", a.Body)
		}
		if a := sam.Get(contact+"?search=koln").Want(200, ""); !strings.Contains(string(a.Body), `"data":[]`) {
			t.Errorf("sam finds what olivia has: %s", a.Body)
		}
		failing(t, olivia.Get("/public/v1/data/account?search=a"), "search")
		failing(t, olivia.Get("/public/v1/data/user?search=a"), "search")
	})
}
