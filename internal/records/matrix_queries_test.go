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
	{`id eq #0; stage eq "won"`}, {`id in #0 #1 #2; amount eq 1`}, {`owner_id eq ~0; stage eq "won"`},
}

// aboutQueries asks the queries of a type, three records a page, and counts.
func (x *exam) aboutQueries(s *records.Session, p *person, entity string) (list []question) {
	for i, texts := range queries {
		q, groups, known := x.query(entity, texts)
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
	if x.w.has(entity, "parent") {
		list = append(list, question{
			cells: 1, about: x.describe(p, "includes parents", &thing{entity: entity}),
			ask: func() string {
				page, err := s.List(context.Background(), entity, records.Query{Limit: 200, Include: []string{"parent"}})
				return outcome(idsIn(string(page.Included)), err)
			},
			expect: func(o *oracle) string { return o.includes(p, entity) },
		})
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

// query returns a query for conditions in words, and those conditions; known reports
// whether the type has their fields.
func (x *exam) query(entity string, texts []string) (q records.Query, groups [][]asked, known bool) {
	known = true
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
	return q, groups, known
}

// orders are asked of every type that has the fields, beside conditions.
var orders = []struct {
	by         string
	conditions []string
}{
	{"amount", nil}, {"-amount", nil}, {"stage,-amount", nil}, {"-stage,created_at", nil}, {"title", nil}, {"-desk,stage", nil}, {"open,-title", nil}, {"due", nil},
	{"amount", []string{`amount gte 1`}}, {"-amount", []string{`amount lt 2.5; stage ne "won"`}}, {"-due,amount", []string{`stage in "new" "won"`}},
	{"created_at", nil}, {"created_at", []string{`amount gt 0`}}, {"desk", []string{`desk prefix "N"`}}, {"amount,-created_at", []string{`created_at gt @1`}},
	{"-stage,-created_at", []string{`stage is_null false`, `amount eq 1`, `stage eq "won"`}}, {"stage", []string{`owner_id eq ~0`}}, {"-created_at", nil},
}

// aboutOrders asks for lists in an order, three records a page.
func (x *exam) aboutOrders(s *records.Session, p *person, entity string) (list []question) {
	for _, ask := range orders {
		q, groups, known := x.query(entity, ask.conditions)
		for by := range strings.SplitSeq(ask.by, ",") {
			name, desc := strings.CutPrefix(by, "-")
			q.Sort = append(q.Sort, records.Sort{Field: name, Desc: desc})
			known = known && (name == "created_at" || x.w.has(entity, name))
		}
		if !known || len(x.w.of(entity)) == 0 {
			continue
		}
		list = append(list, question{
			cells: 1, about: x.describe(p, fmt.Sprintf("sorts %q by %s", ask.conditions, ask.by), &thing{entity: entity}),
			ask:    func() string { return walk(s, entity, q, 3) },
			expect: func(o *oracle) string { return o.sorts(p, entity, groups, q.Sort) },
		})
	}
	return list
}

// searches are asked of every type, beside conditions and in an order.
var searches = []struct {
	text, by   string
	conditions []string
}{
	{"red", "", nil}, {"north", "", nil}, {"Gre*", "", nil}, {"o'hara x", "", nil}, {"north red", "", nil}, {"nor* green", "", nil}, {"re* no*", "", nil}, {"absent", "", nil},
	{"red", "", []string{`amount gte 1`}}, {"north", "", []string{`stage eq "won"`}}, {"no*", "", []string{`title ne "red"`}}, {"red", "", []string{`id in #0 #1`}},
	{"north", "amount", nil}, {"gre*", "-title", nil}, {"red", "created_at", nil}, {"no* red", "created_at", nil}, {"green", "-stage,amount", nil},
}

// aboutSearches asks for what has some words, three records a page, and counts.
func (x *exam) aboutSearches(s *records.Session, p *person, entity string) (list []question) {
	for i, ask := range searches {
		q, groups, known := x.query(entity, ask.conditions)
		q.Search = ask.text
		for by := range strings.SplitSeq(ask.by, ",") {
			if name, desc := strings.CutPrefix(by, "-"); by != "" {
				q.Sort = append(q.Sort, records.Sort{Field: name, Desc: desc})
				known = known && (name == "created_at" || x.w.has(entity, name))
			}
		}
		if !known || len(x.w.of(entity)) == 0 {
			continue
		}
		about := fmt.Sprintf("searches %q in %q by %q", ask.text, ask.conditions, ask.by)
		expect := func(o *oracle) string { return o.searches(p, entity, ask.text, groups, q.Sort) }
		list = append(list, question{
			cells: 1, about: x.describe(p, about, &thing{entity: entity}),
			ask: func() string { return walk(s, entity, q, 3) }, expect: expect,
		})
		if i%3 != 0 || ask.by != "" {
			continue
		}
		list = append(list, question{
			cells: 1, about: x.describe(p, "counts what "+about, &thing{entity: entity}),
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
	return list
}

// searches returns the oracle's answer to a search: each word is in a searchable field
// that the viewer may read.
func (o *oracle) searches(p *person, entity, text string, groups [][]asked, by []records.Sort) string {
	if !o.may(p, entity, toRead) {
		return string(forbidden)
	}
	var among []field
	for _, f := range o.w.types[entity].fields {
		if f.searchable && o.mayReadField(p, entity, f.name) {
			among = append(among, f)
		}
	}
	if len(among) == 0 {
		return string(invalid)
	}
	always := asked{field: "created_at", op: "is_null", values: []string{"false"}} // a search is enough of an index
	all := [][]asked{append([]asked{always}, slices.Concat(groups...)...)}
	found := o.selects(p, entity, all)
	if len(by) > 0 {
		found = o.sorts(p, entity, all, by)
	}
	ids, ok := strings.CutPrefix(found, "ok")
	if !ok {
		return found
	}
	answer := "ok"
	for id := range strings.FieldsSeq(ids) {
		r := o.w.of(entity)[slices.IndexFunc(o.w.of(entity), func(r *thing) bool { return r.id == id })]
		var words []string
		for _, f := range among {
			words = append(words, plainWords(r.data[f.name])...)
		}
		has := true
		for term := range strings.FieldsSeq(strings.NewReplacer("'", " ").Replace(strings.ToLower(text))) {
			start, prefix := strings.CutSuffix(term, "*")
			has = has && slices.ContainsFunc(words, func(w string) bool { return w == start || prefix && strings.HasPrefix(w, start) })
		}
		if has {
			answer += " " + id
		}
	}
	return answer
}

// sorts returns the oracle's answer to a list in an order: what is not set is greater
// than anything, and records with equal keys are in the order of their creation, in the
// direction of the last key.
func (o *oracle) sorts(p *person, entity string, groups [][]asked, by []records.Sort) string {
	found := o.selects(p, entity, groups)
	ids, ok := strings.CutPrefix(found, "ok")
	if !ok {
		return found
	}
	for _, key := range by {
		if key.Field != "created_at" && !o.mayReadField(p, entity, key.Field) {
			return string(invalid)
		}
	}
	var all []*thing
	for _, r := range o.listed(p, entity) {
		if strings.Contains(ids, r.id) {
			all = append(all, r)
		}
	}
	slices.SortStableFunc(all, func(a, b *thing) int {
		for _, key := range append(slices.Clone(by), records.Sort{Field: "created_at", Desc: by[len(by)-1].Desc}) {
			va, vb, kind := a.data[key.Field], b.data[key.Field], o.w.field(entity, key.Field).kind
			if key.Field == "created_at" {
				va, vb, kind = `"`+a.at+`"`, `"`+b.at+`"`, "datetime"
			}
			c := 0
			switch {
			case va == "" && vb == "":
			case va == "":
				c = 1
			case vb == "":
				c = -1
			default:
				c = ordered(kind, va, vb)
			}
			if key.Desc {
				c = -c
			}
			if c != 0 {
				return c
			}
		}
		return 0
	})
	answer := "ok"
	for _, r := range all {
		answer += " " + r.id
	}
	return answer
}

// idsIn returns the ids of the records in a text.
func idsIn(text string) string {
	var ids []string
	for _, part := range strings.Split(text, `"id":"`)[1:] {
		ids = append(ids, part[:36])
	}
	return strings.Join(ids, " ")
}

// includes returns the oracle's answer to a list with its parents: those that the viewer
// may read, each once.
func (o *oracle) includes(p *person, entity string) string {
	switch {
	case !o.may(p, entity, toRead):
		return string(forbidden)
	case !o.mayReadField(p, entity, "parent"):
		return string(invalid)
	}
	answer := "ok"
	for _, r := range o.listed(p, entity) {
		if r.parent != nil && o.judge(p, r.parent, toRead) == ok && !strings.Contains(answer, r.parent.id) {
			answer += " " + r.parent.id
		}
	}
	return answer
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
	if len(groups) > 0 && !indexed(groups[0]) && (len(groups) == 1 || slices.ContainsFunc(groups[1:], func(g []asked) bool { return !indexed(g) })) {
		return string(invalid)
	}
	ids := "ok"
	for _, r := range o.listed(p, entity) {
		holds := func(group []asked) bool {
			return !slices.ContainsFunc(group, func(a asked) bool { return !a.holds(o.w, r) })
		}
		if len(groups) == 0 || holds(groups[0]) && (len(groups) == 1 || slices.ContainsFunc(groups[1:], holds)) {
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
	return strings.Compare(strings.Trim(a, `"`), strings.Trim(b, `"`))
}
