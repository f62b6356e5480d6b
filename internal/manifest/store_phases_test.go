package manifest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/fault"
	"gatehouse/internal/manifest"
	"gatehouse/internal/records"
	"gatehouse/internal/schema"
	"gatehouse/internal/tenant"
)

// dealsBefore and dealsAfter are a configuration before and after a change:
// fields gain an index, become unique, change their type, are restored or are
// removed; rules are added and removed; and two users change their role.
const dealsBefore = `tenant: deals
hosts: [deals.localhost]
entities:
  - {name: firm, sharing: public_read, fields: [{name: name, type: text}]}
  - name: deal
    fields:
      - {name: title, type: text}
      - {name: code, type: text}
      - {name: stage, type: text}
      - {name: place, type: text, indexed: true, searchable: true}
      - {name: old, type: text, indexed: true, searchable: true}
      - {name: firm, type: text}
roles: [{name: ceo}, {name: sales, parent: ceo}, {name: north, parent: sales}, {name: support}, {name: south, parent: support}]
permission_sets:
  - {name: work, entities: {deal: {create: true, read: true, update: true, delete: true}, firm: {create: true, read: true, update: true, delete: true}}}
sharing_rules:
  - {entity: deal, where: {place: rome}, share_with_role: support, access: read}
  - {entity: deal, where: {place: "{{user.desk}}"}, share_with: internal, access: read}
user_fields: [{name: desk, type: text, managed: true}, {name: stages, type: multiselect, options: [won, lost], managed: true}]
users:
  - {email: olivia@x.example, owner: true}
  - {email: ned@x.example, role: north, permission_sets: [work]}
  - {email: nora@x.example, role: north, permission_sets: [work]}
  - {email: sam@x.example, role: sales, permission_sets: [work]}
  - {email: sue@x.example, role: support, permission_sets: [work]}
  - {email: dora@x.example, permission_sets: [work], managed: {desk: oslo, stages: [lost, won]}}
`

var dealsAfter = strings.NewReplacer(
	"{name: title, type: text}", "{name: title, type: text, searchable: true}",
	"{name: place, type: text, indexed: true, searchable: true}", "{name: place, type: text, indexed: true}",
	"{name: code, type: text}", "{name: code, type: text, unique: true, searchable: true}",
	"{name: stage, type: text}", "{name: stage, type: select, options: [new, won, lost], indexed: true}",
	"      - {name: old, type: text, indexed: true, searchable: true}\n", "",
	"{name: firm, type: text}\n", "{name: firm, type: reference, entity: firm, indexed: true}\n",
	"  - {entity: deal, where: {place: rome}, share_with_role: support, access: read}\n",
	"  - {entity: deal, where: {stage: won}, share_with_role: support, access: edit}\n",
	"  - {entity: deal, where: {place: \"{{user.desk}}\"}, share_with: internal, access: read}\n",
	"  - {entity: deal, where: {place: \"{{user.desk}}\", stage: \"{{user.stages}}\"}, share_with: everyone, access: read}\n",
	"ned@x.example, role: north", "ned@x.example, role: south",
	"nora@x.example, role: north", "nora@x.example, role: south",
).Replace(dealsBefore)

// deals is a place with the configuration dealsBefore and some records.
type deals struct {
	*place
	dir   *access.Directory
	store *records.Store
	firm  string
	made  int
}

func newDeals(t *testing.T, d *db.DB, n int) *deals { return newDealsOf(t, d, dealsBefore, n) }

// newDealsOf is newDeals with another configuration.
func newDealsOf(t *testing.T, d *db.DB, src string, n int) *deals {
	x := &deals{place: newPlace(t, d)}
	x.apply(src)
	x.dir = access.NewDirectory(d)
	x.store = records.New(d, x.dir, x.clock, []byte("a key for cursors, in a test only"))
	r, err := x.as("olivia").Create(t.Context(), "firm", nil)
	if err != nil {
		t.Fatal(err)
	}
	x.firm = r.ID()
	for range n {
		x.create([]string{"ned", "nora", "sam", "sue"}[x.made%4])
	}
	return x
}

// as returns the records as a user sees them under the current configuration.
func (x *deals) as(name string) *records.Session {
	x.Helper()
	s, err := x.session(name)
	if err != nil {
		x.Fatalf("as %s: %v", name, err)
	}
	return s
}

func (x *deals) session(name string) (*records.Session, error) {
	ctx := context.Background()
	c, err := x.dir.Current(ctx, "deals")
	if err != nil {
		return nil, err
	}
	v, err := x.dir.Viewer(ctx, c, x.user("deals", name+"@x.example").ID, false)
	return x.store.As(v), err
}

func values(pairs ...string) (list []records.Member) {
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, records.Member{Name: pairs[i], Value: jsontext.Value(fmt.Sprintf("%q", pairs[i+1]))})
	}
	return list
}

func (x *deals) create(name string) string {
	x.Helper()
	x.made++
	r, err := x.as(name).Create(x.Context(), "deal", values("title", "t", "code", fmt.Sprint("c", x.made),
		"stage", []string{"new", "won", "lost"}[x.made%3], "place", []string{"rome", "oslo"}[x.made%2], "firm", x.firm))
	if err != nil {
		x.Fatalf("create: %v", err)
	}
	return r.ID()
}

// sees counts the deals that a user sees: all of them, and those in each of two
// places. It reads every page of a list, unfiltered or filtered by an index
// that the change keeps.
func (x *deals) sees(name string) [3]int {
	x.Helper()
	var n [3]int
	for i, filter := range [][]records.Filter{nil, {{Field: "place", Value: "rome"}}, {{Field: "place", Value: "oslo"}}} {
		q := records.Query{Limit: 7, Filter: filter}
		for {
			p, err := x.as(name).List(x.Context(), "deal", q)
			if err != nil {
				x.Fatalf("list as %s: %v", name, err)
			}
			n[i] += p.Count
			if q.Cursor = p.Next; q.Cursor == "" {
				break
			}
		}
	}
	return n
}

// stands returns every index row and match that the configuration names, under
// the plain names of fields and rules, and the owners' roles. The result of an
// apply does not depend on how the apply was carried out.
func (x *deals) stands() []string {
	x.Helper()
	ctx, h := x.Context(), x.d.For("deals")
	c := x.config("deals")
	fields, rules := map[string]string{}, map[string]string{}
	for _, e := range c.Schema.Entities {
		for _, f := range e.Fields {
			if f.Keyed() {
				fields[e.StoredAs()+" "+f.StoredAs()] = f.Name
			}
			if f.Searchable {
				fields[e.StoredAs()+" "+schema.WordsAs(f.StoredAs())] = "words of " + f.Name
			}
		}
	}
	for _, r := range c.Rules {
		rules[r.StoredAs()] = r.ID()
	}
	plain := func(stored string) string { // "" for a name that the configuration does not have
		rule, member, _ := strings.Cut(stored, "~")
		if rules[rule] == "" {
			return ""
		}
		return rules[rule] + " " + member
	}
	var list []string
	add := func(sql string, each func(r db.Row)) {
		if err := h.Query(ctx, sql, func(r db.Row) error { each(r); return nil }); err != nil {
			x.Fatal(err)
		}
	}
	add(`SELECT entity, field, value, reach, record_created_at, is_unique FROM field_values WHERE tenant_id = $1`, func(r db.Row) {
		name, used := fields[r.Text(0)+" "+r.Text(1)]
		reach := r.Text(3)
		if rule, is := strings.CutPrefix(reach, "m:"); is {
			used = used && plain(rule) != ""
			reach = "m:" + plain(rule)
		}
		if used {
			list = append(list, fmt.Sprint(r.Text(0), " ", name, "=", r.Text(2), " ", reach, " ", r.Int(4), " ", r.Int(5)))
		}
	})
	add(`SELECT rule_id, record_created_at FROM rule_matches WHERE tenant_id = $1`, func(r db.Row) {
		if rule := plain(r.Text(0)); rule != "" {
			list = append(list, fmt.Sprint("match ", rule, " ", r.Int(1)))
		}
	})
	add(`SELECT r.created_at, r.owner_role FROM records r WHERE r.tenant_id = $1`, func(r db.Row) {
		list = append(list, fmt.Sprint("owner ", r.Int(0), " ", r.Text(1)))
	})
	slices.Sort(list)
	return list
}

// settled sweeps everything that no configuration names, and checks that
// nothing else is left.
func (x *deals) settled() {
	x.Helper()
	makeDue(x.place, "deals")
	rest := int64(0)
	err := x.d.For("deals").Query(x.Context(), `SELECT (SELECT count(*) FROM builds WHERE tenant_id = $1) + (SELECT count(*) FROM leftovers WHERE tenant_id = $1)`,
		func(r db.Row) error { rest = r.Int(0); return nil })
	if err != nil || rest != 0 {
		x.Fatalf("%d builds and leftovers, %v", rest, err)
	}
	if n, named := x.rows(), len(x.stands()); n != named {
		x.Errorf("%d rows stand, %d of them are in use", n, named)
	}
}

// rows counts the rows of the tables that stands reads.
func (x *deals) rows() (n int) {
	for _, table := range []string{"field_values", "rule_matches", "records"} {
		err := x.d.For("deals").Query(x.Context(), `SELECT count(*) FROM `+table+` WHERE tenant_id = $1`,
			func(r db.Row) error { n += int(r.Int(0)); return nil })
		if err != nil {
			x.Fatal(err)
		}
	}
	return n
}

// makeDue makes all leftovers of a tenant due and sweeps them, however recent
// they are.
func makeDue(p *place, id string) {
	p.Helper()
	ctx, h := context.Background(), p.d.For(tenant.ID(id))
	err := h.Write(ctx, func(tx db.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE leftovers SET due_at = 0 WHERE tenant_id = $1`)
		return err
	})
	if err := errors.Join(err, records.Sweep(ctx, h)); err != nil {
		p.Fatal(err)
	}
}

// rebuilt rebuilds everything in one transaction and returns the result of
// stands.
func (x *deals) rebuilt() []string {
	x.Helper()
	plain := strings.NewReplacer(", unique: true", "", ", indexed: true", "", ", searchable: true", "").Replace(dealsAfter)
	head, _, _ := strings.Cut(plain, "sharing_rules:")
	_, tail, _ := strings.Cut(plain, "users:")
	plain = head + "sharing_rules: []\nusers:" + tail
	plain = strings.Replace(plain, "type: reference, entity: firm", "type: text", 1)
	x.with(manifest.Options{Prune: true, Inline: 1 << 30}, plain)
	x.with(manifest.Options{Prune: true, Inline: 1 << 30}, dealsAfter)
	return x.stands()
}

func (x *deals) same(got, want []string) {
	x.Helper()
	if slices.Equal(got, want) {
		return
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			x.Errorf("too much: %s", line)
		}
	}
	for _, line := range want {
		if !slices.Contains(got, line) {
			x.Errorf("missing: %s", line)
		}
	}
	if len(got) != len(want) {
		x.Errorf("%d rows, want %d", len(got), len(want))
	}
}

var errStop = errors.New("stop here")

// phased returns the options of an apply that prepares everything in steps of a
// few records. step is called before each.
func phased(step func(n int) error) manifest.Options {
	n := 0
	return manifest.Options{Prune: true, Inline: -1, Pace: records.Pace{Records: 3, Step: func() error {
		n++
		return step(n)
	}}}
}

// An apply that is stopped at any step changes nothing, and continues from
// there when it is run again. Its result is that of an apply that was never
// stopped, and that of one in a single transaction.
func TestAStoppedApplyGoesOn(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		x := newDeals(t, d, 30)
		before, seen := x.export("deals"), map[string][3]int{}
		for _, name := range []string{"olivia", "ned", "sam", "sue", "dora"} {
			seen[name] = x.sees(name)
		}
		steps, last := 0, int64(0)
		for stops := 0; ; stops++ {
			opts := phased(func(n int) error {
				steps++
				if n == 3 {
					return errStop
				}
				return nil
			})
			opts.Pace.Progress = func(p records.Progress) {
				if p.Done < last || p.Total < 30 {
					t.Errorf("went from %d back to %+v", last, p)
				}
				last = p.Done
			}
			_, err := x.try(dealsAfter, opts)
			if err == nil {
				if stops < 5 {
					t.Errorf("%d stops alone", stops)
				}
				break
			}
			if !errors.Is(err, errStop) {
				t.Fatalf("stop %d: %v", stops, err)
			}
			if x.export("deals") != before {
				t.Fatal("a stopped apply changed the configuration")
			}
			for name, was := range seen {
				if is := x.sees(name); is != was {
					t.Fatalf("stop %d: %s sees %v, saw %v", stops, name, is, was)
				}
			}
		}
		x.settled()
		x.printed(x.prune(dealsAfter))
		x.same(x.stands(), x.rebuilt())
	})
}

// Until the transaction that puts a change into force, every user sees exactly
// what they saw before. From then on they see exactly the new state, whatever
// is renamed and removed afterwards.
func TestReadersSeeTheOldStateUntilTheEnd(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		x := newDeals(t, d, 24)
		extra := 0
		names := []string{"olivia", "ned", "nora", "sam", "sue", "dora"}
		look := func() (list [][3]int) {
			for _, name := range names {
				list = append(list, x.sees(name))
			}
			return list
		}
		was := look()
		_, err := x.try(dealsAfter, phased(func(n int) error {
			if is := look(); !slices.Equal(is, was) {
				t.Errorf("before step %d they see %v, saw %v", n, is, was)
			}
			if _, err := x.as("sam").List(t.Context(), "deal", records.Query{Limit: 5, Filter: []records.Filter{{Field: "stage", Value: "won"}}}); fault.CodeOf(err) != fault.Validation {
				t.Errorf("a filter that is not there yet: %v", err)
			}
			if n%3 == 0 { // a user whose role changes writes: the record is visible through the old role
				x.create("ned")
				extra++
				was = look()
				if was[3][0] != 18+extra || was[4][0] <= 6 {
					t.Errorf("sam sees %d of ned's, nora's and his own %d, sue %d", was[3][0], 18+extra, was[4][0])
				}
			}
			return nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		is := look()
		if is[3][0] != 6 || is[4][0] != 24+extra-6 && is[4][0] < 18+extra {
			t.Errorf("afterwards sam sees %v, sue %v", is[3], is[4])
		}
		// The roles of ned and nora are now below sue's; sam's won deals are
		// shared with her.
		if p, err := x.as("sam").List(t.Context(), "deal", records.Query{Limit: 200, Filter: []records.Filter{{Field: "stage", Value: "won"}}}); err != nil || p.Count != 2 {
			t.Errorf("sam finds %d that are won, %v", p.Count, err)
		}
		x.settled()
		if after := look(); !slices.Equal(after, is) {
			t.Errorf("what was left behind mattered: %v, before %v", after, is)
		}
		x.same(x.stands(), x.rebuilt())
	})
}

// A node that has not seen a change yet finds by an index what it found before,
// even if the change was short and rebuilt the index.
func TestANodeReadsWithTheConfigurationBefore(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		x := newDeals(t, d, 24)
		rome := records.Query{Limit: 50, Filter: []records.Filter{{Field: "place", Value: "rome"}}}
		chosen := strings.Replace(dealsBefore, "place, type: text, indexed: true, searchable: true", "place, type: select, indexed: true, options: [rome, oslo]", 1)
		for _, after := range []string{chosen, dealsBefore, chosen} {
			olivia, nora := x.as("olivia"), x.as("nora")
			x.with(manifest.Options{Prune: true}, after)
			for _, s := range []*records.Session{olivia, x.as("olivia")} {
				if p, err := s.List(t.Context(), "deal", rome); err != nil || p.Count != 12 {
					t.Errorf("olivia finds %d, %v", p.Count, err)
				}
			}
			if p, err := nora.List(t.Context(), "deal", rome); err != nil || p.Count == 0 {
				t.Errorf("nora finds %d, %v", p.Count, err)
			}
		}
		x.settled()
	})
}

// Concurrent writers that change, share, delete and create records while a
// change is prepared leave no errors in what is being prepared.
func TestWritersTakePartInWhatIsBeingMade(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		x := newDeals(t, d, 100)
		var wait sync.WaitGroup
		stop := make(chan struct{})
		for i, name := range []string{"ned", "sam", "olivia", "sue"} {
			wait.Go(func() {
				for n := 0; ; n++ {
					select {
					case <-stop:
						return
					default:
					}
					if err := x.disturb(name, i, n); err != nil {
						t.Errorf("%s: %v", name, err)
						return
					}
				}
			})
		}
		_, err := x.try(dealsAfter, phased(func(int) error { return nil }))
		close(stop)
		wait.Wait()
		if err != nil {
			t.Fatal(err)
		}
		x.settled()
		x.same(x.stands(), x.rebuilt())
	})
}

// disturb makes one change of a record that the user sees.
func (x *deals) disturb(name string, i, n int) error {
	ctx := context.Background()
	s, err := x.session(name)
	if err != nil {
		return err
	}
	p, err := s.List(ctx, "deal", records.Query{Limit: 1 + (n*7+i*3)%40})
	if err != nil {
		return err
	}
	ids := strings.Split(string(p.Records), `{"id":"`)
	id := ids[len(ids)-1][:min(36, len(ids[len(ids)-1]))]
	switch n % 6 {
	case 0, 1:
		_, err = s.Update(ctx, "deal", id, values("stage", []string{"new", "won", "lost"}[n%3], "place", []string{"rome", "oslo"}[n%2]))
	case 2:
		_, err = s.Update(ctx, "deal", id, values("code", fmt.Sprint("u", i, ".", n)))
	case 3:
		err = s.Share(ctx, "deal", id, records.Share{Principal: access.RolePrincipal("south"), Access: access.ReadOnly})
	case 4:
		if n%12 == 10 {
			return x.run(name, fmt.Sprint("r", i, ".", n))
		}
		_, err = s.Create(ctx, "deal", values("title", "t", "code", fmt.Sprint("n", i, ".", n), "stage", "won", "place", "rome", "firm", x.firm))
	case 5:
		err = s.Delete(ctx, "deal", id)
	}
	if code := fault.CodeOf(err); code == fault.NotFound || code == fault.Forbidden {
		return nil // the record was deleted, or the user may not change it
	}
	return err
}

// run creates a record as a component run does.
func (x *deals) run(name, code string) error {
	ctx := context.Background()
	c, err := x.dir.Current(ctx, "deals")
	if err != nil {
		return err
	}
	v, err := x.dir.Viewer(ctx, c, x.user("deals", name+"@x.example").ID, false)
	if err != nil {
		return err
	}
	unit := x.store.Begin(c)
	if _, err := unit.As(v).Create(ctx, "deal", values("title", "t", "code", code, "stage", "won", "place", "rome", "firm", x.firm)); err != nil {
		return err
	}
	if err := unit.Commit(ctx, nil); !errors.Is(err, records.ErrLost) {
		return err
	}
	return nil // the configuration has changed: a run would start again
}

// A value that conflicts with a change is found even if it is written after the
// walk has passed, and no longer counts once it is gone.
func TestWhatComesMeanwhileStandsAgainstTheChange(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		x := newDeals(t, d, 12)
		last := x.create("sam")
		before := x.export("deals")
		for _, c := range []struct {
			field, bad, good, problem string
		}{
			{"code", "c1", "own", "acme.yaml:8: entity deal: field code cannot become unique: 2 of 13 records share their value with another"},
			{"stage", "odd", "won", "acme.yaml:9: entity deal: field stage cannot become select of [new won lost]: 1 of 13 records hold a value that does not fit"},
			{"firm", "nobody", "", "acme.yaml:11: entity deal: field firm cannot become reference to firm: 1 of 13 records hold a value that does not fit"},
		} {
			put := func(v string) {
				m := values(c.field, v)
				if v == "" {
					m[0].Value = schema.Null
				}
				if _, err := x.as("olivia").Update(t.Context(), "deal", last, m); err != nil {
					t.Fatal(err)
				}
			}
			_, err := x.try(dealsAfter, phased(func(n int) error {
				if n == 6 {
					put(c.bad)
				}
				return nil
			}))
			if err == nil || err.Error() != c.problem {
				t.Fatalf("refused with %v, want %s", err, c.problem)
			}
			if x.export("deals") != before {
				t.Fatal("a refused apply changed the configuration")
			}
			put(c.bad) // stored from the beginning, and replaced while the change is prepared
			_, err = x.try(dealsAfter, manifest.Options{Prune: true, DryRun: true, Inline: -1})
			if err == nil || err.Error() != c.problem {
				t.Errorf("the dry run said %v, want %s", err, c.problem)
			}
			put(c.good)
			x.settled()
		}
		if _, err := x.as("olivia").Update(t.Context(), "deal", last, values("code", "c1", "stage", "odd")); err != nil {
			t.Fatal(err)
		}
		_, err := x.try(dealsAfter, phased(func(n int) error {
			if n == 6 {
				_, err := x.as("olivia").Update(t.Context(), "deal", last, values("stage", "won", "code", "own"))
				return err
			}
			return nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		x.settled()
		x.same(x.stands(), x.rebuilt())
	})
}

// A dry run writes nothing.
func TestADryRunOfALongChangeWritesNothing(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		x := newDeals(t, d, 12)
		version, rows := x.config("deals").Tenant.Version, x.rows()
		dry := x.with(manifest.Options{Prune: true, DryRun: true, Inline: -1}, dealsAfter)
		if c := x.config("deals"); c.Tenant.Version != version || c.Build != nil || x.rows() != rows {
			t.Errorf("version %d was %d, build %v, %d rows were %d", c.Tenant.Version, version, c.Build, x.rows(), rows)
		}
		x.printed(x.with(phased(func(int) error { return nil }), dealsAfter), dry...)
	})
}

// Only one change may be prepared at a time. While the first apply makes
// progress, another change is refused; once the first is idle, another change
// undoes it. A second apply of the same change joins the first.
func TestTwoAppliesOfOneTenant(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		x := newDeals(t, d, 12)
		other := strings.Replace(dealsBefore, "{name: title, type: text}", "{name: title, type: text, indexed: true}", 1)
		var inner []string
		_, err := x.try(dealsAfter, phased(func(n int) error {
			if n != 4 {
				return nil
			}
			_, err := x.try(other, manifest.Options{Inline: -1})
			if fault.CodeOf(err) != fault.Conflict || !strings.Contains(err.Error(), "another change of records is being made ready") {
				t.Errorf("another apply meanwhile: %v", err)
			}
			x.printed(x.with(manifest.Options{}, "tenant: deals\ndisplay_name: Deals\n"), "update tenant deals: display_name deals → Deals")
			inner = x.with(phased(func(int) error { return nil }), dealsAfter)
			return nil
		}))
		if err != nil || len(inner) == 0 {
			t.Fatalf("the inner apply did %v, the outer one ended with %v", inner, err)
		}
		x.settled()
		x.same(x.stands(), x.rebuilt())
	})
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		x := newDeals(t, d, 12)
		was := x.stands()
		if _, err := x.try(dealsAfter, phased(func(n int) error {
			if n == 5 {
				return errStop
			}
			return nil
		})); !errors.Is(err, errStop) {
			t.Fatal(err)
		}
		err := x.d.For("deals").Write(t.Context(), func(tx db.Tx) error {
			_, err := tx.Exec(t.Context(), `UPDATE builds SET beat_at = 0 WHERE tenant_id = $1`)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		other := strings.Replace(dealsBefore, "{name: title, type: text}", "{name: title, type: text, indexed: true}", 1)
		x.with(manifest.Options{Inline: -1}, other)
		x.with(manifest.Options{Inline: -1}, dealsBefore)
		x.settled()
		x.same(x.stands(), was)
	})
}

// No step visits many records. Between two steps, the same tenant and another
// one can write.
func TestOthersWriteBetweenTheSteps(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		x := newDeals(t, d, 60)
		x.apply("tenant: other\nhosts: [other.localhost]\nentities: [{name: note, fields: [{name: n, type: text}]}]\n")
		opts, steps, last := phased(func(int) error {
			x.record("other", "note", "n", `"x"`)
			x.create("sam")
			return nil
		}), 0, int64(0)
		opts.Pace.Records = 5
		opts.Pace.Progress = func(p records.Progress) {
			if steps++; p.Done-last > 5 {
				t.Errorf("a step visited %d records", p.Done-last)
			}
			last = p.Done
		}
		x.with(opts, dealsAfter)
		if steps < 12 {
			t.Errorf("%d steps", steps)
		}
		x.settled()
		x.same(x.stands(), x.rebuilt())
	})
}

// However many records a step may visit, it visits no more than 256 KiB of them, and one.
func TestAStepVisitsFewLargeRecords(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		x, text := newDeals(t, d, 0), `"`+strings.Repeat("a word ", 10_000)+`"` // 70 KB
		for range 20 {
			x.record("deals", "deal", "title", text)
		}
		opts, most, last := manifest.Options{Prune: true, Inline: -1}, int64(0), int64(0)
		opts.Pace.Progress = func(p records.Progress) { most, last = max(most, p.Done-last), p.Done }
		x.with(opts, dealsAfter)
		if last != 20 || most > 4 {
			t.Errorf("%d records visited, at most %d in a step", last, most)
		}
		x.settled()
		x.same(x.stands(), x.rebuilt())
	})
}
