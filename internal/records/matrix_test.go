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
			calm = append(calm, x.aboutQueries(s, p, entity)...)
			calm = append(calm, x.aboutOrders(s, p, entity)...)
			calm = append(calm, x.aboutSearches(s, p, entity)...)
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
	for _, to := range []*person{p, x.w.people[witness], x.w.people[someoneExternal]} {
		list = append(list, point("gives to "+to.id, func() string {
			return x.never(p, func(s *records.UnitSession) error {
				_, err := s.Update(ctx, r.entity, r.id, []records.Member{{Name: "owner_id", Value: []byte(`"` + to.id + `"`)}})
				return err
			})
		}, func(o *oracle) string { return string(o.judgeGift(p, r, to)) }))
	}
	if r.parent == nil {
		return list
	}
	for _, to := range ends(x.w.of(r.parent.entity)) {
		list = append(list, point("moves below "+to.id, func() string {
			return x.never(p, func(s *records.UnitSession) error {
				_, err := s.Update(ctx, r.entity, r.id, []records.Member{{Name: "parent", Value: []byte(`"` + to.id + `"`)}})
				return err
			})
		}, func(o *oracle) string { return string(o.judgeMove(p, r, to)) }))
	}
	return list
}

// never makes a change in a unit of work of a viewer that is never committed.
func (x *exam) never(p *person, change func(s *records.UnitSession) error) string {
	u := x.h.store.Begin(x.viewers[p].Config())
	defer u.Close()
	return outcome("", change(u.As(x.viewers[p])))
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
			indexed := slices.ContainsFunc(fields, func(f field) bool { return f.indexed })
			for _, f := range fields {
				if o.may(p, entity, toRead) && (!indexed || !o.mayReadField(p, entity, f.name)) {
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
	return walk(s, entity, records.Query{Filter: filter}, limit)
}

// walk is traverse for a query.
func walk(s *records.Session, entity string, q records.Query, limit int) string {
	got := "ok"
	q.Limit, q.Cursor = limit, ""
	for range 1000 {
		p, err := s.List(context.Background(), entity, q)
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
		if q.Cursor = p.Next; q.Cursor == "" {
			return got
		}
	}
	return "no end"
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
