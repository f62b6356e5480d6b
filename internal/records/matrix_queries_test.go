package records_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gatehouse/internal/records"
	"gatehouse/internal/schema"
)

// asked is one condition of a query; its values are JSON texts.
type asked struct {
	field, op string
	values    []string
}

// asks reads conditions like `amount gte 1; stage in "new" "won"`.
func asks(text string) (list []asked) {
	for part := range strings.SplitSeq(text, "; ") {
		words := strings.Fields(part)
		list = append(list, asked{words[0], words[1], words[2:]})
	}
	return list
}

// queries are asked of every type that has the fields. Those behind the first of a
// line are groups, of which one must hold.
var queries = [][]string{
	{`amount gte 1`}, {`amount lt 2.5`}, {`amount in 1 -7`}, {`amount ne 1`}, {`amount nin 1 2.5`}, {`amount is_null true`},
	{`stage in "new" "won"; amount gt -7`}, {`stage eq "won"; amount is_null false`}, {`stage in "won" "lost"; amount in 1 2.5; created_at gt @2`},
	{`stage ne "won"`, `amount eq 1`, `stage eq "lost"; amount lte 1`},
	{`title contains "r"`}, {`stage in "new" "lost"; title contains "r"`}, {`desk prefix "N"`}, {`desk gte "a"; open eq true`}, {`stage eq "won"; due gt "2025-01-01"`},
	{`amount in 1 2.5; agent is_null false`}, {`created_at gte @1; created_at lt @3; open ne false`}, {`created_at eq @2`}, {`created_at ne @2; amount gt 0`},
	{`id in #0 #1`}, {`id eq #2; stage ne "new"`}, {`owner_id eq ~0`}, {`owner_id in ~0 ~1; stage in "won" "new"`}, {`owner_id ne ~0; created_at lte @3`},
	{`amount lt 0`, `title eq "red"; amount gt 0`, `owner_id eq ~1`}, {`open eq true`},
}

// aboutQueries asks the queries of a type, three records a page, and counts.
func (x *exam) aboutQueries(s *records.Session, p *person, entity string) (list []question) {
	for i, texts := range queries {
		var q records.Query
		var groups [][]asked
		known := true
		for n, text := range texts {
			group := asks(text)
			var filters []records.Filter
			for at := range group {
				a := &group[at]
				known = known && (systemKinds[a.field] != "" || x.w.has(entity, a.field))
				f := records.Filter{Field: a.field, Op: schema.Operator(a.op)}
				for v := range a.values {
					a.values[v] = x.named(entity, a.values[v])
					f.List = append(f.List, strings.Trim(a.values[v], `"`))
				}
				if !f.Op.TakesList() {
					f.Value, f.List = f.List[0], nil
				}
				filters = append(filters, f)
			}
			groups = append(groups, group)
			if n == 0 {
				q.Filter = filters
			} else {
				q.Or = append(q.Or, filters)
			}
		}
		if !known || len(x.w.of(entity)) == 0 {
			continue
		}
		expect := func(o *oracle) string { return o.selects(p, entity, groups) }
		list = append(list, question{
			cells: 1, about: x.describe(p, fmt.Sprintf("asks %q", texts), &thing{entity: entity}),
			ask: func() string { return walk(s, entity, q, 3) }, expect: expect,
		})
		if i%3 == 0 {
			list = append(list, question{
				cells: 1, about: x.describe(p, fmt.Sprintf("counts %q", texts), &thing{entity: entity}),
				ask: func() string {
					n, err := s.Count(context.Background(), entity, q)
					return outcome(fmt.Sprint(n.N, n.More), err)
				},
				expect: func(o *oracle) string {
					ids, found := strings.CutPrefix(expect(o), "ok")
					if !found {
						return ids
					}
					return fmt.Sprintf("ok %d false", len(strings.Fields(ids)))
				},
			})
		}
	}
	for _, f := range x.w.types[entity].fields {
		list = append(list, question{
			cells: 1, about: x.describe(p, "lists no more than "+f.name, &thing{entity: entity}),
			ask: func() string {
				page, err := s.List(context.Background(), entity, records.Query{Limit: 200, Fields: []string{f.name, "created_at"}})
				return outcome(string(page.Records), err)
			},
			expect: func(o *oracle) string { return o.chooses(p, entity, f.name) },
		})
	}
	return list
}

// chooses returns the oracle's answer to a list of one field and the time of creation.
func (o *oracle) chooses(p *person, entity, name string) string {
	switch {
	case !o.may(p, entity, toRead):
		return string(forbidden)
	case !o.mayReadField(p, entity, name):
		return string(invalid)
	}
	var parts []string
	for _, r := range o.listed(p, entity) {
		parts = append(parts, fmt.Sprintf(`{"id":%q,"created_at":%q,%q:%s}`, r.id, r.at, name, cmp.Or(r.data[name], "null")))
	}
	return "ok [" + strings.Join(parts, ",") + "]"
}

// named replaces #n by the id and @n by the time of creation of a record of the
// type, and ~n by the id of an owner.
func (x *exam) named(entity, value string) string {
	of := x.w.of(entity)
	if len(of) == 0 {
		return value
	}
	at := func() *thing { n, _ := strconv.Atoi(value[1:]); return of[(n*len(of)/4)%len(of)] }
	switch value[0] {
	case '#':
		return `"` + at().id + `"`
	case '@':
		return `"` + at().at + `"`
	case '~':
		return `"` + at().owner + `"`
	}
	return value
}

// systemKinds are the kinds of what every record has.
var systemKinds = map[string]string{"id": "reference", "owner_id": "reference", "created_at": "datetime"}

// selects returns the oracle's answer to a query: all of the first conditions hold,
// and all of at least one other group, if there are any.
func (o *oracle) selects(p *person, entity string, groups [][]asked) string {
	if !o.may(p, entity, toRead) {
		return string(forbidden)
	}
	indexed := func(group []asked) bool {
		return slices.ContainsFunc(group, func(a asked) bool { return systemKinds[a.field] != "" || o.w.field(entity, a.field).indexed })
	}
	for _, a := range slices.Concat(groups...) {
		if systemKinds[a.field] == "" && !o.mayReadField(p, entity, a.field) {
			return string(invalid)
		}
	}
	if !indexed(groups[0]) && (len(groups) == 1 || slices.ContainsFunc(groups[1:], func(g []asked) bool { return !indexed(g) })) {
		return string(invalid)
	}
	ids := "ok"
	for _, r := range o.listed(p, entity) {
		holds := func(group []asked) bool {
			return !slices.ContainsFunc(group, func(a asked) bool { return !a.holds(o.w, r) })
		}
		if holds(groups[0]) && (len(groups) == 1 || slices.ContainsFunc(groups[1:], holds)) {
			ids += " " + r.id
		}
	}
	return ids
}

func (w *world) field(entity, name string) field {
	for _, f := range w.types[entity].fields {
		if f.name == name {
			return f
		}
	}
	return field{}
}

// holds reports whether a record meets a condition.
func (a asked) holds(w *world, r *thing) bool {
	v, kind := r.data[a.field], systemKinds[a.field]
	switch a.field {
	case "id":
		v = `"` + r.id + `"`
	case "owner_id":
		v = `"` + r.owner + `"`
	case "created_at":
		v = `"` + r.at + `"`
	default:
		kind = w.field(r.entity, a.field).kind
	}
	one := func(order ...int) bool { return v != "" && slices.Contains(order, ordered(kind, v, a.values[0])) }
	switch a.op {
	case "eq", "in":
		return v != "" && slices.Contains(a.values, v)
	case "ne", "nin":
		return v == "" || !slices.Contains(a.values, v)
	case "lt":
		return one(-1)
	case "lte":
		return one(-1, 0)
	case "gt":
		return one(1)
	case "gte":
		return one(0, 1)
	case "prefix":
		return v != "" && strings.HasPrefix(v, strings.TrimSuffix(a.values[0], `"`))
	case "contains":
		return v != "" && strings.Contains(strings.Trim(v, `"`), strings.Trim(a.values[0], `"`))
	case "is_null":
		return (v == "") == (a.values[0] == "true")
	}
	panic(a.op)
}

func ordered(kind, a, b string) int {
	switch kind {
	case "number":
		x, _ := strconv.ParseFloat(a, 64)
		y, _ := strconv.ParseFloat(b, 64)
		return cmp.Compare(x, y)
	case "datetime":
		x, _ := time.Parse(`"`+time.RFC3339Nano+`"`, a)
		y, _ := time.Parse(`"`+time.RFC3339Nano+`"`, b)
		return x.Compare(y)
	}
	return strings.Compare(a, b)
}
