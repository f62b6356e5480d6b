//go:build !race

package manifest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/manifest"
	"gatehouse/internal/records"
)

// column holds the values of a field by record, whatever the field's current
// name.
type column map[string]string

// namedField and namedEntity are the model of what a manifest declares.
type namedField struct {
	name, from string
	unique     bool
	indexed    bool
	searchable bool
	holds      column
}

type namedEntity struct {
	name, from string
	fields     []*namedField
	kept       map[string]column // values of removed fields
	owners     map[string]string // of its records
	shared     map[string]bool   // with support
}

func (e *namedEntity) field(name string) *namedField {
	if i := slices.IndexFunc(e.fields, func(f *namedField) bool { return f.name == name }); i >= 0 {
		return e.fields[i]
	}
	return nil
}

// renamesModel draws a sequence of manifests and predicts what records hold
// after each.
type renamesModel struct {
	*deals
	rand     *rand.Rand
	entities []*namedEntity
	n        int
}

var (
	modelEntities = []string{"ant", "bee", "cat", "dog"}
	modelFields   = []string{"a", "b", "c", "d", "e"}
	modelPlaces   = []string{"rome", "oslo", "bern"}
)

// unused returns one of names for which used returns false, or "" when there is
// none.
func (m *renamesModel) unused(names []string, used func(string) bool) string {
	for _, i := range m.rand.Perm(len(names)) {
		if !used(names[i]) {
			return names[i]
		}
	}
	return ""
}

func (m *renamesModel) chance(percent int) bool { return m.rand.IntN(100) < percent }

// next draws the declarations of the next manifest.
func (m *renamesModel) next() {
	before := map[string]bool{}
	for _, e := range m.entities {
		before[e.name] = true
		e.from = ""
	}
	m.entities = slices.DeleteFunc(m.entities, func(e *namedEntity) bool { return len(e.owners) == 0 && m.chance(20) })
	taken := maps.Clone(before)
	for _, e := range m.entities {
		if to := m.unused(modelEntities, func(s string) bool { return taken[s] }); to != "" && m.chance(35) {
			e.name, e.from, taken[to] = to, e.name, true
		}
		m.nextFields(e)
	}
	if name := m.unused(modelEntities, func(s string) bool { return taken[s] }); name != "" && (len(m.entities) == 0 || m.chance(30)) {
		e := &namedEntity{name: name, kept: map[string]column{}, owners: map[string]string{}, shared: map[string]bool{}}
		m.entities = append(m.entities, e)
		m.nextFields(e)
	}
}

func (m *renamesModel) nextFields(e *namedEntity) {
	taken := map[string]bool{}
	for _, f := range e.fields {
		taken[f.name], f.from = true, ""
	}
	var stay []*namedField
	for _, f := range e.fields {
		if m.chance(15) {
			e.kept[f.name] = f.holds
			continue
		}
		stay = append(stay, f)
	}
	for _, f := range stay {
		if to := m.unused(modelFields, func(s string) bool { return taken[s] }); to != "" && m.chance(30) {
			f.name, f.from, taken[to] = to, f.name, true
			delete(e.kept, to)
		}
		if m.chance(20) {
			f.indexed = !f.indexed
		}
		if m.chance(20) {
			f.searchable = !f.searchable
		}
		if m.chance(20) {
			f.unique = !f.unique && len(f.holds) == len(valuesOf(f.holds))
		}
	}
	e.fields = stay
	if name := m.unused(modelFields, func(s string) bool { return taken[s] }); name != "" && m.chance(60) {
		f := &namedField{name: name, indexed: m.chance(50), searchable: m.chance(50), holds: e.kept[name]}
		delete(e.kept, name)
		if f.holds == nil {
			f.holds = column{}
		}
		e.fields = append(e.fields, f)
	}
}

func valuesOf(c column) map[string]bool {
	set := map[string]bool{}
	for _, v := range c {
		set[v] = true
	}
	return set
}

// manifest writes the declarations as YAML. The first field of each entity type
// has a rule that shares records with support.
func (m *renamesModel) manifest() string {
	var entities, rules, rights strings.Builder
	from := func(s string) string {
		if s == "" {
			return ""
		}
		return ", renamed_from: " + s
	}
	for i, e := range m.entities {
		fmt.Fprintf(&entities, "  - {name: %s%s, fields: [", e.name, from(e.from))
		for _, f := range e.fields {
			fmt.Fprintf(&entities, "{name: %s%s, type: text, unique: %t, indexed: %t, searchable: %t},", f.name, from(f.from), f.unique, f.indexed, f.searchable)
		}
		entities.WriteString("]}\n")
		if len(e.fields) > 0 {
			fmt.Fprintf(&rules, "  - {entity: %s, where: {%s: rome}, share_with_role: support, access: read}\n", e.name, e.fields[0].name)
		}
		if i > 0 {
			rights.WriteString(", ")
		}
		fmt.Fprintf(&rights, "%s: {create: true, read: true, update: true, delete: true}", e.name)
	}
	section := func(key, list string) string {
		if list == "" {
			return key + ": []\n"
		}
		return key + ":\n" + list
	}
	head, tail, _ := strings.Cut(dealsPlain, "entities:")
	_, tail, _ = strings.Cut(tail, "roles:")
	roles, tail, _ := strings.Cut(tail, "permission_sets:")
	_, users, _ := strings.Cut(tail, "users:")
	return head + section("entities", entities.String()) + "roles:" + roles + "permission_sets:\n  - {name: work, entities: {" + rights.String() + "}}\n" +
		section("sharing_rules", rules.String()) + "users:" + users
}

// write creates and changes some records.
func (m *renamesModel) write() {
	ctx := m.Context()
	for _, e := range m.entities {
		for range m.rand.IntN(4) {
			owner := []string{"ned", "sam", "sue"}[m.rand.IntN(3)]
			fields := m.drawn(e)
			r, err := m.as(owner).Create(ctx, e.name, values(fields...))
			if err != nil {
				m.Fatalf("create %s %v: %v", e.name, fields, err)
			}
			e.owners[r.ID()] = owner
			e.hold(r.ID(), fields)
			if m.chance(25) {
				if err := m.as("olivia").Share(ctx, e.name, r.ID(), records.Share{Principal: access.RolePrincipal("support"), Access: access.ReadOnly}); err != nil {
					m.Fatal(err)
				}
				e.shared[r.ID()] = true
			}
		}
		for _, id := range slices.Sorted(maps.Keys(e.owners)) {
			switch {
			case m.chance(30):
				fields := m.drawn(e)
				if _, err := m.as("olivia").Update(ctx, e.name, id, values(fields...)); err != nil {
					m.Fatalf("update %s %v: %v", e.name, fields, err)
				}
				e.hold(id, fields)
			case m.chance(20):
				if err := m.as("olivia").Delete(ctx, e.name, id); err != nil {
					m.Fatal(err)
				}
				delete(e.owners, id)
				delete(e.shared, id)
				for _, f := range e.fields {
					delete(f.holds, id)
				}
				for _, c := range e.kept {
					delete(c, id)
				}
			}
		}
	}
}

func (m *renamesModel) drawn(e *namedEntity) (pairs []string) {
	for _, f := range e.fields {
		if m.chance(30) {
			continue
		}
		value := modelPlaces[m.rand.IntN(len(modelPlaces))]
		if m.n++; f.unique {
			value = fmt.Sprint("u", m.n)
		}
		pairs = append(pairs, f.name, value)
	}
	return pairs
}

func (e *namedEntity) hold(id string, pairs []string) {
	for i := 0; i < len(pairs); i += 2 {
		e.field(pairs[i]).holds[id] = pairs[i+1]
	}
}

func (m *renamesModel) list(name, entity string, filter ...records.Filter) (ids []string) {
	q := records.Query{Limit: 7, Filter: filter}
	for {
		p, err := m.as(name).List(m.Context(), entity, q)
		if err != nil {
			m.Fatalf("list %s %v as %s: %v", entity, filter, name, err)
		}
		var page []struct{ ID string }
		if err := json.Unmarshal(p.Records, &page); err != nil {
			m.Fatal(err)
		}
		for _, r := range page {
			ids = append(ids, r.ID)
		}
		if q.Cursor = p.Next; q.Cursor == "" {
			slices.Sort(ids)
			return ids
		}
	}
}

// check compares everything that callers see with the model.
func (m *renamesModel) check() {
	m.Helper()
	for _, e := range m.entities {
		sees := map[string][]string{}
		for _, id := range slices.Sorted(maps.Keys(e.owners)) {
			sees["olivia"] = append(sees["olivia"], id)
			owner := e.owners[id]
			if owner == "ned" {
				sees["ned"] = append(sees["ned"], id)
			}
			if owner == "ned" || owner == "sam" {
				sees["sam"] = append(sees["sam"], id)
			}
			if owner == "sue" || e.shared[id] || len(e.fields) > 0 && e.fields[0].holds[id] == "rome" {
				sees["sue"] = append(sees["sue"], id)
			}
			for _, f := range e.fields {
				want := "null"
				if v, ok := f.holds[id]; ok {
					want = fmt.Sprintf("%q", v)
				}
				m.has(e.name, id, f.name, want)
			}
		}
		for _, name := range []string{"olivia", "ned", "sam", "sue"} {
			if got := m.list(name, e.name); !slices.Equal(got, sees[name]) {
				m.Errorf("%s sees %v of %s, want %v", name, got, e.name, sees[name])
			}
			for _, v := range modelPlaces {
				m.searches(name, e, sees[name], v)
			}
			for _, f := range e.fields {
				if !f.unique && !f.indexed {
					continue
				}
				for v := range valuesOf(f.holds) {
					var want []string
					for _, id := range sees[name] {
						if f.holds[id] == v {
							want = append(want, id)
						}
					}
					if got := m.list(name, e.name, records.Filter{Field: f.name, Value: v}); !slices.Equal(got, want) {
						m.Errorf("%s sees %v of %s by %s=%s, want %v", name, got, e.name, f.name, v, want)
					}
				}
			}
		}
	}
}

// searches checks that a user finds the records that have a word in a searchable field,
// of those that they see.
func (m *renamesModel) searches(name string, e *namedEntity, sees []string, word string) {
	var among []*namedField
	for _, f := range e.fields {
		if f.searchable {
			among = append(among, f)
		}
	}
	if len(among) == 0 {
		return
	}
	var want []string
	for _, id := range sees {
		if slices.ContainsFunc(among, func(f *namedField) bool { return f.holds[id] == word }) {
			want = append(want, id)
		}
	}
	p, err := m.as(name).List(m.Context(), e.name, records.Query{Limit: 200, Search: word})
	var got []string
	for _, part := range strings.Split(string(p.Records), `"id":"`)[1:] {
		got = append(got, part[:36])
	}
	slices.Sort(got)
	slices.Sort(want)
	if err != nil || !slices.Equal(got, want) {
		m.Errorf("%s finds %v of %s by %s, want %v, %v", name, got, e.name, word, want, err)
	}
}

// TestRenamesAgainstAModel checks that after a series of applies that rename,
// remove, restore and recreate fields and types, records hold what the model
// predicts and each viewer sees their own.
func TestRenamesAgainstAModel(t *testing.T) {
	for _, seed := range []uint64{2, 20} {
		dbtest.Each(t, func(t *testing.T, d *db.DB) {
			m := &renamesModel{deals: newDealsOf(t, d, dealsPlain, 0), rand: rand.New(rand.NewPCG(seed, 1))}
			if err := m.as("olivia").Delete(t.Context(), "firm", m.firm); err != nil {
				t.Fatal(err)
			}
			var done []string
			for step := range 12 {
				m.next()
				src := m.manifest()
				done = append(done, src)
				opts := manifest.Options{Prune: true, Inline: []int{1 << 30, -1}[m.rand.IntN(2)], Pace: records.Pace{Records: 3}}
				m.with(opts, src)
				m.printed(m.with(opts, src)) // renamed already
				m.check()
				m.printed(m.with(opts, m.export("deals")))
				if m.write(); !t.Failed() {
					m.check()
				}
				if t.Failed() {
					t.Fatalf("seed %d, step %d:\n%s", seed, step, strings.Join(done, "\n---\n"))
				}
			}
			m.settled()
		})
	}
}
