package data

import (
	"cmp"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gatehouse/internal/fault"
	"gatehouse/internal/records"
	"gatehouse/internal/schema"
)

// defaultLimit is a page's size when the caller names none (contract P3).
const defaultLimit = 50

// query is what the parameters of a list ask for.
type query struct {
	records.Query
	count bool
}

// parseQuery reads the parameters of a list: limit, cursor, sort, search, fields, count and
// filters (contract P3 to P15). Unknown, repeated and empty ones are VALIDATION.
func parseQuery(u *url.URL) (query, error) {
	q := query{Query: records.Query{Limit: defaultLimit}}
	if u.RawQuery == "" {
		return q, nil
	}
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return q, fault.New(fault.Validation, "the query is not well-formed")
	}
	bad, groups := map[string]string{}, map[int][]records.Filter{}
	for name, list := range values {
		if reason := q.parameter(name, list, groups); reason != "" {
			bad[strings.ToValidUTF8(name, "\uFFFD")] = reason
		}
	}
	sortFilters(q.Filter)
	for _, n := range slices.Sorted(maps.Keys(groups)) {
		sortFilters(groups[n])
		q.Or = append(q.Or, groups[n])
	}
	if len(bad) > 0 {
		return q, fault.Fields("some query parameters are not valid", bad)
	}
	return q, nil
}

// ReadQuery is parseQuery for an export, which lists records in another form.
func ReadQuery(u *url.URL) (records.Query, error) {
	q, err := parseQuery(u)
	return q.Query, err
}

// parameter reads one parameter. It returns the reason why it is not valid, "" if it
// is.
func (q *query) parameter(name string, list []string, groups map[int][]records.Filter) (reason string) {
	value := list[0]
	at, isFilter := parseFilterName(name)
	switch {
	case !utf8.ValidString(name) || !utf8.ValidString(value) || strings.ContainsRune(value, 0):
		return "expected valid UTF-8"
	case len(list) > 1:
		return "given more than once"
	case !isFilter && !slices.Contains([]string{"limit", "cursor", "sort", "search", "fields", "include", "count"}, name):
		return "unknown parameter"
	case value == "":
		return "expected a value"
	case isFilter:
		return q.filter(at, value, groups)
	case name == "cursor":
		q.Cursor = value
	case name == "sort":
		var ok bool
		if q.Sort, ok = records.ParseSort(strings.Split(value, ",")); !ok {
			return `expected one or two fields with a comma between them, each with "-" before it to begin with the greatest`
		}
	case name == "search":
		q.Search = value
	case name == "include":
		q.Include = strings.Split(value, ",")
	case name == "fields":
		q.Fields = strings.Split(value, ",")
	case name == "count":
		if q.count = value == "true"; !q.count && value != "false" {
			return "expected true or false"
		}
	default:
		var ok bool
		if q.Limit, ok = parseLimit(value); !ok {
			return "expected an integer from 1 to 200"
		}
	}
	return ""
}

// filter adds a filter.
func (q *query) filter(at filterName, value string, groups map[int][]records.Filter) (reason string) {
	f := records.Filter{Field: at.field, Op: at.op, Value: value}
	if at.op.TakesList() {
		var ok bool
		if f.List, ok = parseOperands(value); !ok {
			return `expected values with commas between them; one with a comma, a quotation mark or a line break in it stands in quotation marks, as in "a,b",c, and so does an empty text`
		}
		f.Value = ""
	}
	if at.group < 0 {
		q.Filter = append(q.Filter, f)
	} else {
		groups[at.group] = append(groups[at.group], f)
	}
	return ""
}

// parseOperands splits a list of values as a record of CSV. Unlike encoding/csv it keeps
// each line break as it is and tells an empty text, which stands in quotation marks, from nothing.
func parseOperands(text string) (list []string, ok bool) {
	for {
		operand, rest, more := "", "", false
		if quoted, is := strings.CutPrefix(text, `"`); is {
			if operand, rest, ok = unquoteOperand(quoted); !ok {
				return nil, false
			}
			if rest, more = strings.CutPrefix(rest, ","); !more && rest != "" {
				return nil, false
			}
		} else if operand, rest, more = strings.Cut(text, ","); operand == "" || strings.ContainsAny(operand, "\"\r\n") {
			return nil, false
		}
		if list = append(list, operand); !more {
			return list, true
		}
		text = rest
	}
}

// unquoteOperand reads a value up to its closing quotation mark; one that is doubled
// belongs to the value.
func unquoteOperand(text string) (operand, rest string, ok bool) {
	var b strings.Builder
	for {
		part, behind, closed := strings.Cut(text, `"`)
		if !closed {
			return "", "", false
		}
		b.WriteString(part)
		if text, closed = strings.CutPrefix(behind, `"`); !closed {
			return b.String(), behind, true
		}
		b.WriteByte('"')
	}
}

func sortFilters(list []records.Filter) {
	slices.SortFunc(list, func(a, b records.Filter) int {
		return cmp.Or(strings.Compare(a.Field, b.Field), strings.Compare(string(a.Op), string(b.Op)), strings.Compare(a.Value, b.Value), slices.Compare(a.List, b.List))
	})
}

// parseLimit parses a page size; records.Session.List lowers one that is too large.
func parseLimit(s string) (int, bool) {
	if strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return records.MaxLimit, true // digits fail only when there are too many
	}
	return n, n >= 1
}

// filterName is what the name of a filter's parameter says.
type filterName struct {
	group int // of filter[or][group]; -1 outside of groups
	field string
	op    schema.Operator // "" in the short form, which is for equality
}

// filterForm is filter[field] or filter[field][op], or either behind filter[or][n].
var filterForm = regexp.MustCompile(`^filter(?:\[or\]\[([0-9])\])?\[([^\[\]]*)\](?:\[([^\[\]]+)\])?$`)

// parseFilterName reads the name of a filter's parameter. What has two parts is a
// field and an operator, also where the field is called or.
func parseFilterName(name string) (at filterName, ok bool) {
	if !strings.HasPrefix(name, "filter[") {
		return at, false
	}
	part := filterForm.FindStringSubmatch(name)
	if part == nil {
		return at, false
	}
	at = filterName{group: -1, field: part[2], op: schema.Operator(part[3])}
	if part[1] != "" {
		at.group = int(part[1][0] - '0')
	}
	return at, true
}
