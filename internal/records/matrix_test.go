package records_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"gatehouse/internal/access"
	"gatehouse/internal/fault"
	"gatehouse/internal/records"
)

// question is one call, or one page of calls, whose answer the oracle knows.
// Asking it leaves the world unchanged.
type question struct {
	cells  int // viewer × record × verb: how many it covers
	about  string
	ask    func() string
	expect func(o *oracle) string
	why    bool // whether it asks for an explanation
}

// exam asks every question about a provisioned world and counts the answers
// that differ from the oracle's, and from those of oracles that misread a rule.
type exam struct {
	h      *house
	w      *world
	people []*person // who are asked about
	oracle *oracle
	faulty map[string]*oracle
	// viewers are those of people, under the present configuration.
	viewers map[*person]access.Viewer
	system  *records.Session

	cells, differences, whys int               // whys: differences of explanations
	caught, caughtByWhy      map[string]string // the first difference by fault
	examples                 []string
}

func newExam(h *house, w *world) *exam {
	return &exam{h: h, w: w, people: w.viewers(), oracle: newOracle(w), faulty: map[string]*oracle{}, caught: map[string]string{}, caughtByWhy: map[string]string{}}
}

// take asks the questions, several at once, and checks the answers.
func (x *exam) take(questions []question) {
	answers := make([]string, len(questions))
	var next atomic.Int64
	var wait sync.WaitGroup
	for range 16 {
		wait.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(questions); i = next.Add(1) - 1 {
				answers[i] = questions[i].ask()
			}
		})
	}
	wait.Wait()
	for i, q := range questions {
		x.mark(q, answers[i])
	}
}

func (x *exam) mark(q question, got string) {
	x.cells += q.cells
	if want := q.expect(x.oracle); got != want {
		x.differences++
		if q.why {
			x.whys++
		}
		x.examples = append(x.examples, fmt.Sprintf("%s\n   got  %s\n   want %s", q.about, got, want))
	}
	for name, o := range x.faulty {
		if q.why && !explains(name) {
			continue
		}
		if by := x.by(q); by[name] == "" {
			if want := q.expect(o); got != want {
				by[name] = fmt.Sprintf("%s: %s, not %s", q.about, got, want)
			}
		}
	}
}

func outcome(shows string, err error) string {
	switch code := fault.CodeOf(err); {
	case err == nil:
		return strings.TrimSpace("ok " + shows)
	case code != "":
		return string(code)
	}
	return err.Error()
}

// everything asks all questions, the least disruptive first: reads and writes
// of the present values, then creations, then deletions, each undone.
func (x *exam) everything(there *world) {
	var calm, creations []question
	x.system, x.viewers = x.h.system(), map[*person]access.Viewer{}
	for _, p := range x.people {
		x.viewers[p] = x.h.viewer(p.id)
		s := x.h.store.As(x.viewers[p])
		for _, r := range x.w.things {
			calm = append(append(calm, x.aboutRecord(s, p, r)...), x.aboutWhy(p, r))
		}
		for i, r := range there.things {
			if i%4 == 0 {
				calm = append(append(calm, x.aboutForeign(s, p, r)...), x.aboutWhy(p, r))
			}
		}
		for _, entity := range x.w.entityNames() {
			calm = append(calm, x.aboutLists(s, p, entity)...)
			creations = append(creations, x.aboutCreations(s, p, entity)...)
		}
	}
	x.take(calm)
	x.take(creations)
	x.deletions()
}

func (x *exam) aboutRecord(s *records.Session, p *person, r *thing) []question {
	ctx := context.Background()
	point := func(verb string, ask func() string, expect func(o *oracle) string) question {
		return question{cells: 1, about: x.describe(p, verb, r), ask: ask, expect: expect}
	}
	list := []question{
		point("reads", func() string {
			got, err := s.Get(ctx, r.entity, r.id)
			return outcome(shown(got), err)
		}, func(o *oracle) string { return o.shows(p, r, toRead) }),
		point("updates", func() string {
			got, err := s.Update(ctx, r.entity, r.id, nil)
			return outcome(shown(got), err)
		}, func(o *oracle) string { return o.shows(p, r, toUpdate) }),
		point("shares", func() string {
			return outcome("", s.Share(ctx, r.entity, r.id, share{user: x.w.people[witness].id}.params()))
		}, func(o *oracle) string { return string(o.judge(p, r, toShare)) }),
	}
	for _, f := range slices.Concat(x.w.types[r.entity].fields, []field{{name: "nothing"}}) {
		list = append(list, point("changes "+f.name+" of", func() string {
			value := cmp.Or(r.data[f.name], "null")
			_, err := s.Update(ctx, r.entity, r.id, []records.Member{{Name: f.name, Value: []byte(value)}})
			return outcome("", err)
		}, func(o *oracle) string { return string(o.judgePatch(p, r, f.name)) }))
	}
	if r.parent == nil {
		return list
	}
	for _, to := range ends(x.w.of(r.parent.entity)) {
		list = append(list, point("moves below "+to.id, func() string {
			u := x.h.store.Begin(x.viewers[p].Config()) // never committed
			defer u.Close()
			_, err := u.As(x.viewers[p]).Update(ctx, r.entity, r.id, []records.Member{{Name: "parent", Value: []byte(`"` + to.id + `"`)}})
			return outcome("", err)
		}, func(o *oracle) string { return string(o.judgeMove(p, r, to)) }))
	}
	return list
}

// ends returns the first and the last of a list.
func ends(list []*thing) []*thing {
	if len(list) < 2 {
		return list
	}
	return []*thing{list[0], list[len(list)-1]}
}

// shows returns the oracle's answer to a verb, in the form of shown.
func (o *oracle) shows(p *person, r *thing, v verb) string {
	if verdict := o.judge(p, r, v); verdict != ok {
		return string(verdict)
	}
	var parts []string
	for _, name := range o.members(p, r.entity) {
		value := ""
		switch {
		case name == "owner_id":
			value = `"` + r.owner + `"`
		case o.w.has(r.entity, name):
			value = cmp.Or(r.data[name], "null")
		}
		parts = append(parts, name+"="+value)
	}
	slices.Sort(parts)
	return "ok " + strings.Join(parts, " ")
}

// aboutForeign asks for another tenant's record through a session of this
// tenant.
func (x *exam) aboutForeign(s *records.Session, p *person, r *thing) []question {
	ctx := context.Background()
	var list []question
	for v, ask := range map[verb]func() error{
		toRead:   func() error { _, err := s.Get(ctx, r.entity, r.id); return err },
		toUpdate: func() error { _, err := s.Update(ctx, r.entity, r.id, nil); return err },
		toDelete: func() error { return s.Delete(ctx, r.entity, r.id) },
		toShare: func() error {
			return s.Share(ctx, r.entity, r.id, share{user: x.w.people[witness].id}.params())
		},
	} {
		list = append(list, question{
			cells: 1, about: x.describe(p, string(v)+"s the other tenant's", r),
			ask: func() string { return outcome("", ask()) }, expect: func(o *oracle) string { return string(o.judge(p, r, v)) },
		})
	}
	return list
}

// aboutLists checks that a list shows exactly what point reads show, newest
// first.
func (x *exam) aboutLists(s *records.Session, p *person, entity string) []question {
	whole := func(o *oracle) string { return o.lists(p, entity, nil) }
	list := []question{
		{cells: x.w.count(entity), about: x.describe(p, "lists", &thing{entity: entity}), ask: func() string { return traverse(s, entity, 200) }, expect: whole},
		{cells: x.w.count(entity), about: x.describe(p, "lists by 3", &thing{entity: entity}), ask: func() string { return traverse(s, entity, 3) }, expect: whole},
	}
	for _, f := range x.w.types[entity].fields {
		for i, value := range f.values {
			if i > 0 && !f.indexed {
				break
			}
			list = append(list, x.aboutFilter(s, p, entity, []field{f}, []string{value}))
		}
	}
	if parent := x.w.types[entity].parent; parent != "" {
		for _, r := range ends(x.w.of(parent)) {
			for _, f := range x.w.types[entity].fields {
				if f.name == "parent" {
					list = append(list, x.aboutFilter(s, p, entity, []field{f}, []string{`"` + r.id + `"`}),
						x.aboutFilter(s, p, entity, []field{f, kinds[3]}, []string{`"` + r.id + `"`, `"won"`}))
				}
			}
		}
		return list
	}
	for _, amount := range kinds[1].values {
		for _, stage := range kinds[3].values {
			list = append(list, x.aboutFilter(s, p, entity, []field{kinds[1], kinds[3]}, []string{amount, stage}))
		}
	}
	return list
}

// aboutFilter filters by a value for each of some fields, two records a page.
func (x *exam) aboutFilter(s *records.Session, p *person, entity string, fields []field, values []string) question {
	var filter []records.Filter
	wanted := map[string]string{}
	for i, f := range fields {
		filter = append(filter, records.Filter{Field: f.name, Value: strings.Trim(values[i], `"`)})
		wanted[f.name] = values[i]
	}
	return question{
		cells: 1, about: x.describe(p, fmt.Sprintf("lists by %v", wanted), &thing{entity: entity}),
		ask: func() string { return traverse(s, entity, 2, filter...) },
		expect: func(o *oracle) string {
			for _, f := range fields {
				if o.may(p, entity, toRead) && (!f.indexed || !o.mayReadField(p, entity, f.name)) {
					return string(invalid)
				}
			}
			return o.lists(p, entity, wanted)
		},
	}
}

func (w *world) count(entity string) (n int) {
	for _, r := range w.things {
		if r.entity == entity {
			n++
		}
	}
	return n
}

func (o *oracle) lists(p *person, entity string, wanted map[string]string) string {
	if !o.may(p, entity, toRead) {
		return string(forbidden)
	}
	ids := "ok"
	for _, r := range o.listed(p, entity) {
		matches := true
		for field, value := range wanted {
			matches = matches && r.data[field] == value
		}
		if matches {
			ids += " " + r.id
		}
	}
	return ids
}

// traverse reads a list to its end and returns the records that it showed.
func traverse(s *records.Session, entity string, limit int, filter ...records.Filter) string {
	got, cursor := "ok", ""
	for range 1000 {
		p, err := s.List(context.Background(), entity, records.Query{Limit: limit, Cursor: cursor, Filter: filter})
		if err != nil {
			return outcome("", err)
		}
		for rest := string(p.Records); ; {
			_, after, found := strings.Cut(rest, `"id":"`)
			if !found {
				break
			}
			got, rest = got+" "+after[:36], after
		}
		if cursor = p.Next; cursor == "" {
			return got
		}
	}
	return "no end"
}

// aboutCreations creates records with only the required fields, with each other
// field added, and with an owner. It deletes what was created.
func (x *exam) aboutCreations(s *records.Session, p *person, entity string) (list []question) {
	parents := []*thing{nil}
	if above := x.w.types[entity].parent; above != "" {
		parents = ends(x.w.of(above))
	}
	for _, parent := range parents {
		list = append(list, x.aboutCreationsBelow(s, p, entity, parent)...)
	}
	return list
}

// aboutCreationsBelow is aboutCreations with a parent, nil where the type has
// none.
func (x *exam) aboutCreationsBelow(s *records.Session, p *person, entity string, parent *thing) []question {
	ctx := context.Background()
	create := func(extra records.Member) string {
		members := x.required(entity, extra.Name, parent)
		if extra.Name != "" {
			members = append(members, extra)
		}
		got, err := s.Create(ctx, entity, members)
		if err == nil {
			shows := shown(got)
			x.h.delete(x.system, entity, id(object(x.h.t, got)))
			return "ok " + names(shows)
		}
		return outcome("", err)
	}
	ask := func(verb string, extra records.Member, expect func(o *oracle) string) question {
		return question{
			cells: 1, about: x.describe(p, verb, &thing{entity: entity}),
			ask: func() string { return create(extra) }, expect: expect,
		}
	}
	shows := func(o *oracle, v verdict) string {
		if v != ok {
			return string(v)
		}
		return "ok " + strings.Join(o.members(p, entity), " ")
	}
	list := []question{
		ask("creates", records.Member{}, func(o *oracle) string { return shows(o, o.judgeCreate(p, entity, "", parent)) }),
		ask("creates for themselves", records.Member{Name: "owner_id", Value: []byte(`"` + p.id + `"`)},
			func(o *oracle) string { return shows(o, o.judgeCreate(p, entity, "", parent)) }),
	}
	for _, other := range []*person{x.w.people[witness], x.w.people[someoneExternal]} {
		if other == p {
			continue
		}
		list = append(list, ask("creates for another", records.Member{Name: "owner_id", Value: []byte(`"` + other.id + `"`)},
			func(o *oracle) string {
				if v := o.judgeCreate(p, entity, "", nil); v != ok {
					return shows(o, v)
				}
				if v := o.judgeCreate(p, entity, "", parent); v != ok && o.mayOwn(p, entity, other) != forbidden {
					return shows(o, v)
				}
				return shows(o, o.mayOwn(p, entity, other))
			}))
	}
	list = append(list, question{
		cells: 1, about: x.describe(p, "creates, with nothing,", &thing{entity: entity}),
		ask: func() string {
			got, err := s.Create(ctx, entity, nil)
			if err == nil {
				x.h.delete(x.system, entity, id(object(x.h.t, got)))
			}
			return outcome("", err)
		},
		expect: func(o *oracle) string {
			v := o.judgeCreate(p, entity, "", nil)
			if v == ok && len(x.required(entity, "", parent)) > 0 {
				v = invalid
			}
			return string(v)
		},
	})
	for _, f := range slices.Concat(x.w.types[entity].fields, []field{{name: "nothing", values: []string{"1"}}}) {
		if f.name == "parent" {
			continue
		}
		list = append(list, ask("creates with "+f.name, records.Member{Name: f.name, Value: []byte(f.values[0])},
			func(o *oracle) string { return shows(o, o.judgeCreate(p, entity, f.name, parent)) }))
	}
	return list
}

// required returns a body with the required fields except one.
func (x *exam) required(entity, but string, parent *thing) (members []records.Member) {
	for _, f := range x.w.types[entity].fields {
		if f.name == "parent" {
			members = append(members, records.Member{Name: f.name, Value: []byte(`"` + parent.id + `"`)})
		} else if f.required && f.name != but {
			members = append(members, records.Member{Name: f.name, Value: []byte(f.values[0])})
		}
	}
	return members
}

func names(shown string) string {
	var list []string
	for _, part := range strings.Split(shown, " ") {
		if name, _, found := strings.Cut(part, "="); found {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

// deletions lets every viewer try to delete each record. Deleted records are
// recreated.
func (x *exam) deletions() {
	var wait sync.WaitGroup
	var mu sync.Mutex
	gate := make(chan struct{}, 16)
	one := func(tree []*thing) {
		gate <- struct{}{}
		defer func() { <-gate }()
		for _, r := range tree {
			for _, p := range x.people {
				q := question{cells: 1, about: x.describe(p, "deletes", r), expect: func(o *oracle) string { return string(o.judge(p, r, toDelete)) }}
				got := outcome("", x.h.store.As(x.viewers[p]).Delete(context.Background(), r.entity, r.id))
				mu.Lock()
				x.mark(q, got)
				mu.Unlock()
				if _, err := x.system.Get(context.Background(), r.entity, r.id); (err == nil) == (got == "ok") {
					x.h.t.Errorf("%s: %s, and the record is there: %v", q.about, got, err == nil)
				} else if got == "ok" {
					x.restore(r, tree)
				}
			}
		}
	}
	var trees [][]*thing // before the first deletion: what restores a tree writes to its records
	for _, root := range x.w.rootThings() {
		trees = append(trees, x.w.tree(root))
	}
	for _, tree := range trees {
		wait.Go(func() { one(tree) })
	}
	wait.Wait()
	slices.SortFunc(x.w.things, func(a, b *thing) int { return strings.Compare(a.at, b.at) })
}

// tree returns a record and those below it, parents first.
func (w *world) tree(root *thing) []*thing {
	list := []*thing{root}
	for i := 0; i < len(list); i++ {
		for _, r := range w.things {
			if r.parent == list[i] {
				list = append(list, r)
			}
		}
	}
	return list
}

// restore recreates a deleted record of a tree and those that were deleted with
// it. Others lost their reference to it.
func (x *exam) restore(gone *thing, tree []*thing) {
	again := map[*thing]bool{gone: true}
	x.h.put(gone)
	for _, r := range tree {
		switch _, err := x.system.Get(context.Background(), r.entity, r.id); {
		case r == gone || !again[r.parent]:
		case x.w.types[r.entity].controlled:
			if err == nil {
				x.h.t.Errorf("%s %s is there without its parent", r.entity, r.id)
			}
			x.h.put(r)
			again[r] = true
		case err == nil:
			r.moveTo(r.parent)
			x.h.follow(x.w, change{record: r, fields: []string{"parent"}})
		}
	}
}

func (x *exam) describe(p *person, verb string, r *thing) string {
	kind := "internal"
	if p.external {
		kind = "external"
	}
	about := fmt.Sprintf("%s user %s (owner %v, role %q, sets %v) %s %s (%s)", kind, p.id[len(p.id)-4:], p.owner, p.role, p.sets,
		verb, r.entity, x.w.types[r.entity].sharing)
	if r.owner != "" {
		about += fmt.Sprintf(" of role %q with %v, shared %v", x.w.roleOf(r.owner), r.data, r.shares)
	}
	return about
}
