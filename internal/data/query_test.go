package data

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"gatehouse/internal/fault"
	"gatehouse/internal/records"
)

// naive parses a query in another way: pair by pair, from its text.
func naive(raw string) (q records.Query, bad []string, wellFormed bool) {
	q.Limit = defaultLimit
	seen := map[string][]string{}
	for pair := range strings.SplitSeq(raw, "&") {
		if pair == "" {
			continue
		}
		key, value, _ := strings.Cut(pair, "=")
		name, err1 := url.QueryUnescape(key)
		text, err2 := url.QueryUnescape(value)
		if err1 != nil || err2 != nil || strings.Contains(pair, ";") {
			return q, nil, false
		}
		seen[name] = append(seen[name], text)
	}
	for name, values := range seen {
		v := values[0]
		field, filter := "", strings.HasPrefix(name, "filter[") && strings.HasSuffix(name, "]")
		if filter {
			field = name[len("filter[") : len(name)-1]
		}
		digits := v != "" && strings.IndexFunc(v, func(r rune) bool { return r < '0' || r > '9' }) < 0
		switch {
		case len(values) > 1 || v == "" || !utf8.ValidString(name) || !utf8.ValidString(v) || strings.Contains(v, "\x00"):
			bad = append(bad, name)
		case filter:
			q.Filter = append(q.Filter, records.Filter{Field: field, Value: v})
		case name == "cursor":
			q.Cursor = v
		case name == "limit" && digits && strings.Trim(v, "0") != "":
			if v = strings.TrimLeft(v, "0"); len(v) > 9 {
				v = "200" // more than any page has
			}
			q.Limit, _ = strconv.Atoi(v)
		default:
			bad = append(bad, name)
		}
	}
	return q, bad, true
}

// FuzzParseQuery compares parseQuery with naive: both accept the same queries with the
// same result, and refuse the same parameters.
func FuzzParseQuery(f *testing.F) {
	for _, seed := range []string{
		"", "limit=1", "limit=0", "limit=201", "limit=99999999999999999999", "limit=+5", "limit=%31", "limit=1&limit=1", "cursor=abc", "cursor=",
		"filter[email]=a%40b", "filter%5Bemail%5D=a", "filter[a]=1&filter[b]=2", "filter[]=x", "filter[a=x", "filter[a]b]=x", "&&", "a;b", "%zz", "=1", "x",
		"filter[a]=%ff", "filter[%ff]=a", "filter[a]=%00", "limit=\x80", "LIMIT=1", "limit=1&x=&cursor=q",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		got, err := parseQuery(&url.URL{RawQuery: raw})
		want, bad, wellFormed := naive(raw)
		if err != nil {
			if fault.CodeOf(err) != fault.Validation {
				t.Fatalf("%q: %v", raw, err)
			}
			if wellFormed && len(bad) == 0 {
				t.Fatalf("%q is refused: %v", raw, err)
			}
			return
		}
		if !wellFormed || len(bad) > 0 {
			t.Fatalf("%q is taken, in spite of %q", raw, bad)
		}
		if got.Limit < 1 || min(got.Limit, records.MaxLimit) != min(want.Limit, records.MaxLimit) || got.Cursor != want.Cursor {
			t.Fatalf("%q: %+v, want %+v", raw, got, want)
		}
		slices.SortFunc(want.Filter, func(a, b records.Filter) int { return strings.Compare(a.Field, b.Field) })
		if !slices.Equal(got.Filter, want.Filter) {
			t.Fatalf("%q: filters %v, want %v", raw, got.Filter, want.Filter)
		}
	})
}
