package data

import (
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"gatehouse/internal/fault"
	"gatehouse/internal/records"
	"gatehouse/internal/schema"
)

// naive parses a query in another way: pair by pair, from its text. A list is split
// at each comma.
func naive(raw string) (q query, bad []string, wellFormed bool) {
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
	var groups [10][]records.Filter
	for name, values := range seen {
		v := values[0]
		filter := naiveFilter(name)
		digits := v != "" && strings.IndexFunc(v, func(r rune) bool { return r < '0' || r > '9' }) < 0
		switch {
		case len(values) > 1 || v == "" || !utf8.ValidString(name) || !utf8.ValidString(v) || strings.Contains(v, "\x00"):
			bad = append(bad, name)
		case filter != nil:
			f := records.Filter{Field: filter[1], Op: schema.Operator(filter[2]), Value: v}
			if f.Op == "in" || f.Op == "nin" {
				if f.Value, f.List = "", strings.Split(v, ","); slices.Contains(f.List, "") {
					bad = append(bad, name)
				}
			}
			if filter[0] == "" {
				q.Filter = append(q.Filter, f)
			} else {
				groups[filter[0][0]-'0'] = append(groups[filter[0][0]-'0'], f)
			}
		case name == "cursor":
			q.Cursor = v
		case name == "fields":
			q.Fields = strings.Split(v, ",")
		case name == "count" && (v == "true" || v == "false"):
			q.count = v == "true"
		case name == "limit" && digits && strings.Trim(v, "0") != "":
			if v = strings.TrimLeft(v, "0"); len(v) > 9 {
				v = "200" // more than any page has
			}
			q.Limit, _ = strconv.Atoi(v)
		default:
			bad = append(bad, name)
		}
	}
	for _, g := range groups {
		if g != nil {
			q.Or = append(q.Or, g)
		}
	}
	return q, bad, true
}

// naiveFilter returns the group, field and operator of a filter's parameter, nil for
// another one.
func naiveFilter(name string) []string {
	if !strings.HasPrefix(name, "filter[") || !strings.HasSuffix(name, "]") {
		return nil
	}
	parts := strings.Split(name[len("filter["):len(name)-1], "][")
	if strings.ContainsAny(strings.Join(parts, ""), "[]") {
		return nil
	}
	digit := len(parts) > 1 && len(parts[1]) == 1 && parts[1] >= "0" && parts[1] <= "9"
	switch {
	case len(parts) == 1:
		return []string{"", parts[0], ""}
	case len(parts) == 2 && parts[1] != "":
		return []string{"", parts[0], parts[1]}
	case len(parts) == 3 && parts[0] == "or" && digit:
		return []string{parts[1], parts[2], ""}
	case len(parts) == 4 && parts[0] == "or" && digit && parts[3] != "":
		return []string{parts[1], parts[2], parts[3]}
	}
	return nil
}

// FuzzParseQuery compares parseQuery with naive: both accept the same queries with the
// same result, and refuse the same parameters.
func FuzzParseQuery(f *testing.F) {
	for _, seed := range []string{
		"", "limit=1", "limit=0", "limit=201", "limit=99999999999999999999", "limit=+5", "limit=%31", "limit=1&limit=1", "cursor=abc", "cursor=",
		"filter[email]=a%40b", "filter%5Bemail%5D=a", "filter[a]=1&filter[b]=2", "filter[]=x", "filter[a=x", "filter[a]b]=x", "&&", "a;b", "%zz", "=1", "x",
		"filter[a]=%ff", "filter[%ff]=a", "filter[a]=%00", "limit=\x80",
		"filter[a][gte]=1&filter[a][lt]=2", "filter[or][0][a]=1&filter[or][1][b][ne]=2&filter[or][1][c]=3", "filter[or]=1", "filter[or][eq]=1", "filter[or][0]=1",
		"filter[or][10][a]=1", "filter[or][x][a]=1", "filter[a][b][c]=1", "filter[a][in]=1,2", "filter[a][in]=%22a,b%22,c", "filter[a][nin]=1,", "filter[a][in]=%22", "filter[][]=x",
		"fields=a,b", "fields=", "count=true", "count=false", "count=1", "filter[or][0][or][eq]=1", "LIMIT=1", "limit=1&x=&cursor=q",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		if text, err := url.QueryUnescape(raw); err == nil && strings.Contains(text, "in]") && strings.ContainsAny(text, "\"\r\n") {
			return // naive does not know quotation marks
		}
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
		sortFilters(want.Filter)
		for _, g := range want.Or {
			sortFilters(g)
		}
		if want.Limit = got.Limit; !reflect.DeepEqual(got, want) { // the limits are compared above
			t.Fatalf("%q: %+v, want %+v", raw, got, want)
		}
	})
}

// A list of values can have each text that a field can: what stands in quotation marks
// is read as it is (contract P7, V5).
func TestOperandsAreReadAsTheyStand(t *testing.T) {
	for text, want := range map[string][]string{
		"a": {"a"}, "a,b": {"a", "b"}, `"a,b",c`: {"a,b", "c"}, `"say ""hi""",x`: {`say "hi"`, "x"}, `""""`: {`"`}, "\"a\nb\",\"c\r\nd\"": {"a\nb", "c\r\nd"},
		`""`: {""}, `a,""`: {"a", ""}, ` a , b`: {" a ", " b"},
		"": nil, ",": nil, "a,": nil, ",a": nil, `"`: nil, `"a`: nil, `"a"b`: nil, `a"b`: nil, "a\nb": nil, "a,b\r": nil, `"""`: nil,
	} {
		if got, ok := parseOperands(text); ok != (want != nil) || ok && !slices.Equal(got, want) {
			t.Errorf("%q is read as %q, %t: expected %q", text, got, ok, want)
		}
	}
}
