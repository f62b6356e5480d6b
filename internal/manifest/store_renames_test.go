package manifest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/fault"
	"gatehouse/internal/manifest"
	"gatehouse/internal/records"
)

// dealsPlain is dealsBefore without rules that match the viewer, and dealsNamed that
// configuration with references. ordersNamed is the
// same configuration after nearly everything is renamed and some of it changed
// further.
var (
	dealsPlain = strings.NewReplacer( // without what matches the viewer
		"  - {entity: deal, where: {place: \"{{user.desk}}\"}, share_with: internal, access: read}\n", "",
		"user_fields: [{name: desk, type: text, managed: true}, {name: stages, type: multiselect, options: [won, lost], managed: true}]\n", "",
		"  - {email: dora@x.example, permission_sets: [work], managed: {desk: oslo, stages: [lost, won]}}\n", "",
	).Replace(dealsBefore)
	dealsNamed  = strings.Replace(dealsPlain, "{name: firm, type: text}", "{name: firm, type: reference, entity: firm}", 1)
	ordersNamed = strings.NewReplacer(
		"{name: firm, sharing", "{name: company, renamed_from: firm, sharing",
		"- name: deal\n", "- name: order\n    renamed_from: deal\n",
		"{name: code, type: text}", "{name: number, renamed_from: code, type: text, unique: true}",
		"{name: place, type: text, indexed: true, searchable: true}", "{name: city, renamed_from: place, type: text, indexed: true, searchable: true}",
		"{name: old, type: text, indexed: true, searchable: true}", "{name: old, type: text}",
		"{name: firm, type: reference, entity: firm}", "{name: company, renamed_from: firm, type: reference, entity: company}",
		"{entity: deal, where: {place: rome}", "{entity: order, where: {city: rome}",
		"{deal: {", "{order: {", "firm: {create", "company: {create",
	).Replace(dealsNamed)
)

// eachWay runs a test on both engines, with changes in one transaction and in short steps.
func eachWay(t *testing.T, fn func(x *deals, opts manifest.Options)) {
	for about, inline := range map[string]int{"at once": 1 << 30, "in steps": -1} {
		t.Run(about, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				x := newDealsOf(t, d, dealsPlain, 0)
				x.apply(dealsNamed)
				fn(x, manifest.Options{Inline: inline, Pace: records.Pace{Records: 3}})
			})
		})
	}
}

func (x *deals) count(name, entity string, filter ...records.Filter) int {
	x.Helper()
	p, err := x.as(name).List(x.Context(), entity, records.Query{Limit: 100, Filter: filter})
	if err != nil {
		x.Fatalf("list %s as %s: %v", entity, name, err)
	}
	return p.Count
}

// has checks one member of a record, as JSON.
func (x *deals) has(entity, id, member, want string) {
	x.Helper()
	r, err := x.as("olivia").Get(x.Context(), entity, id)
	if err != nil || !strings.Contains(string(r), fmt.Sprintf("%q:%s", member, want)) {
		x.Errorf("%s: %s %v, want %s %s", entity, r, err, member, want)
	}
}

func (x *deals) code(err error) fault.Code { return fault.CodeOf(err) }

func TestARenameKeepsTheData(t *testing.T) {
	eachWay(t, func(x *deals, opts manifest.Options) {
		ctx := x.Context()
		var ids []string
		for range 12 {
			ids = append(ids, x.create([]string{"ned", "nora", "sam", "sue"}[x.made%4]))
		}
		share := records.Share{Principal: access.RolePrincipal("support"), Access: access.ReadOnly}
		if err := x.as("olivia").Share(ctx, "deal", ids[2], share); err != nil {
			x.Fatal(err)
		}
		seen := map[string]int{}
		for _, name := range []string{"olivia", "ned", "sam", "sue"} {
			seen[name] = x.count(name, "deal")
		}
		dry := opts
		dry.DryRun = true
		lines := x.with(dry, ordersNamed)
		if again := x.with(opts, ordersNamed); strings.Join(again, "") != strings.Join(lines, "") {
			x.Errorf("the dry run printed %v, the apply %v", lines, again)
		}
		x.printed(lines,
			"update entity company: label Firm → Company, renamed from firm",
			"update entity order: fields.city renamed from place, fields.company renamed from firm, fields.company.entity firm → company, "+
				"fields.number renamed from code, fields.number.unique none → true, fields.old.indexed true → none, fields.old.searchable true → none, label Deal → Order, renamed from deal",
			"update permission set work: entities.company added, entities.deal removed, entities.firm removed, entities.order added",
			"create sharing rule order where city=rome → support", "delete sharing rule deal where place=rome → support")
		for name, want := range seen {
			if got := x.count(name, "order"); got != want {
				x.Errorf("%s sees %d orders, saw %d deals", name, got, want)
			}
		}
		x.has("order", ids[0], "number", `"c1"`)
		x.has("order", ids[0], "city", `"oslo"`)
		x.has("order", ids[0], "company", `"`+x.firm+`"`)
		if n := x.count("olivia", "order", records.Filter{Field: "city", Value: "rome"}); n != 6 {
			x.Errorf("%d orders in Rome", n)
		}
		if n := x.count("olivia", "order", records.Filter{Field: "number", Value: "c3"}); n != 1 {
			x.Errorf("%d orders with the number c3", n)
		}
		if _, err := x.as("ned").List(ctx, "deal", records.Query{Limit: 1}); x.code(err) != fault.NotFound {
			x.Errorf("the old name: %v", err)
		}
		// A conflict names the field by its new name, and a reference points to
		// the renamed type.
		_, err := x.as("ned").Create(ctx, "order", values("number", "c3"))
		if f, ok := err.(*fault.Error); !ok || f.Code != fault.Conflict || fmt.Sprint(f.Details["fields"]) != "map[number:the value is taken]" { //nolint:errorlint // as it is
			x.Errorf("a number that is taken: %v", err)
		}
		if _, err := x.as("ned").Create(ctx, "order", values("number", "c99", "company", ids[0])); x.code(err) != fault.Validation {
			x.Errorf("an order for a company: %v", err)
		}
		made, err := x.as("ned").Create(ctx, "order", values("number", "c99", "city", "rome", "company", x.firm))
		if err != nil {
			x.Fatal(err)
		}
		if n := x.count("sue", "order"); n != seen["sue"]+1 {
			x.Errorf("sue sees %d orders, the new one in Rome is not among them", n)
		}
		if _, err := x.as("olivia").Update(ctx, "order", ids[1], values("city", "oslo")); err != nil {
			x.Error(err)
		}
		x.settled()
		before := x.stands()
		bare := strings.NewReplacer(", unique: true", "", ", indexed: true", "", ", searchable: true", "").Replace(ordersNamed)
		head, rest, _ := strings.Cut(bare, "sharing_rules:")
		_, tail, _ := strings.Cut(rest, "users:")
		x.with(manifest.Options{Prune: true, Inline: 1 << 30}, head+"sharing_rules: []\nusers:"+tail)
		x.with(manifest.Options{Prune: true, Inline: 1 << 30}, ordersNamed)
		x.same(before, x.stands()) // the rebuilt rows equal those stored before
		// Applying the same manifest again, or its export, changes nothing.
		x.printed(x.with(opts, ordersNamed))
		x.printed(x.with(opts, x.export("deals")))
		if strings.Contains(x.export("deals"), "renamed_from") {
			x.Error("the export renames")
		}
		if err := x.as("olivia").Delete(ctx, "company", x.firm); err != nil {
			x.Fatal(err)
		}
		x.has("order", made.ID(), "company", "null")
		x.has("order", ids[0], "company", "null")
		x.settled()
	})
}

// TestANameThatBecameFreeIsNew checks that a reused name finds nothing of what
// had it before.
func TestANameThatBecameFreeIsNew(t *testing.T) {
	eachWay(t, func(x *deals, opts manifest.Options) {
		ctx := x.Context()
		id := x.create("ned")
		x.create("sue")
		x.with(opts, ordersNamed)
		renamed := strings.NewReplacer("    renamed_from: deal\n", "", "renamed_from: code, ", "", "renamed_from: place, ", "", "renamed_from: firm, ", "").Replace(ordersNamed)
		both := strings.Replace(renamed, "{name: old, type: text}\n",
			"{name: old, type: text}\n      - {name: place, type: text, indexed: true}\n      - {name: code, type: text, unique: true}\n  - {name: deal, fields: [{name: code, type: text, unique: true}]}\n", 1)
		// The deal's fields were inserted between those of the order: the
		// remaining ones belong to the deal.
		both = strings.Replace(both, "  - {name: deal, fields: [{name: code, type: text, unique: true}]}\n      - {name: company,", "      - {name: company,", 1)
		both = strings.Replace(both, "roles:", "  - {name: deal, fields: [{name: code, type: text, unique: true}]}\nroles:", 1)
		x.with(opts, both)
		x.has("order", id, "place", "null")
		x.has("order", id, "code", "null")
		x.has("order", id, "number", `"c1"`)
		for i := range 2 {
			_, err := x.as("olivia").Create(ctx, "order", values("code", "c1", "place", "rome"))
			if want := map[int]fault.Code{1: fault.Conflict}[i]; x.code(err) != want {
				x.Errorf("order %d with the code c1: %v", i, err)
			}
		}
		if got, want := x.count("olivia", "order", records.Filter{Field: "place", Value: "rome"}), 1; got != want {
			x.Errorf("%d orders by place, want %d", got, want)
		}
		if n := x.count("olivia", "deal"); n != 0 {
			x.Errorf("%d deals", n)
		}
		deal, err := x.as("olivia").Create(ctx, "deal", values("code", "c1"))
		if err != nil {
			x.Fatal(err)
		}
		if n := x.count("olivia", "order"); n != 3 {
			x.Errorf("%d orders", n)
		}
		if _, err := x.as("olivia").Get(ctx, "order", deal.ID()); x.code(err) != fault.NotFound {
			x.Errorf("a deal among the orders: %v", err)
		}
		x.settled()
		// A field that is removed and restored has its old values, whatever its
		// stored name.
		x.with(opts, strings.Replace(both, "      - {name: number, type: text, unique: true}\n", "", 1))
		x.with(opts, both)
		x.has("order", id, "number", `"c1"`)
		// Rename everything back to the first names, once they are free again.
		if err := x.as("olivia").Delete(ctx, "deal", deal.ID()); err != nil {
			x.Fatal(err)
		}
		x.with(manifest.Options{Prune: true, Inline: opts.Inline, Pace: opts.Pace}, renamed)
		back := strings.NewReplacer(
			"{name: company, sharing", "{name: firm, renamed_from: company, sharing",
			"- name: order\n", "- name: deal\n    renamed_from: order\n",
			"{name: number, type: text, unique: true}", "{name: code, renamed_from: number, type: text}",
			"{name: city,", "{name: place, renamed_from: city,",
			"{name: company, type: reference, entity: company}", "{name: firm, renamed_from: company, type: reference, entity: firm}",
			"{entity: order, where: {city: rome}", "{entity: deal, where: {place: rome}",
			"{order: {", "{deal: {", "company: {create", "firm: {create").Replace(renamed)
		x.with(opts, back)
		x.has("deal", id, "code", `"c1"`)
		x.has("deal", id, "place", `"oslo"`)
		x.has("deal", id, "firm", `"`+x.firm+`"`)
		x.settled()
	})
}

// TestDataOfARemovedFieldStaysGone checks that a removed field's data stays
// inaccessible once another field has had its name, whichever field gets the
// name next.
func TestDataOfARemovedFieldStaysGone(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		x := newDealsOf(t, d, dealsPlain, 0)
		id := x.create("ned")
		with := func(fields string) {
			t.Helper()
			x.apply("tenant: deals\nentities: [{name: deal, fields: [{name: place, type: text}, " + fields + "]}]\n")
		}
		with("{name: title, type: text}")                     // code is removed,
		with("{name: code, type: text, renamed_from: title}") // title takes its name,
		with("{name: title, type: text, renamed_from: code}") // and gives it up again
		with("{name: title, type: text}, {name: code, type: text}")
		x.has("deal", id, "title", `"t"`)
		x.has("deal", id, "code", "null")
	})
}

// TestARenameFromNothingIsToldOf checks that apply reports a renamed_from that
// names nothing, because the name may be mistyped, but not for a new tenant,
// nor once the rename was applied.
func TestARenameFromNothingIsToldOf(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		p := newPlace(t, d)
		warned := func(src string, want ...string) {
			t.Helper()
			r, err := p.try("tenant: acme\nusers: [{email: o@x.example, owner: true}]\n"+src, manifest.Options{})
			if err != nil || strings.Join(r.Warnings, "\n") != strings.Join(want, "\n") {
				t.Errorf("warned %q, %v; want %q", r.Warnings, err, want)
			}
		}
		const deal = "entities:\n  - {name: deal, renamed_from: old, fields: [{name: a, type: text, renamed_from: b}]}\nuser_fields: [{name: town, type: text, renamed_from: city}]\n"
		warned(deal)
		warned(deal)
		warned(strings.NewReplacer("name: deal, renamed_from: old", "name: order, renamed_from: ordr", "name: town, type: text, renamed_from: city", "name: place, type: text, renamed_from: cty").Replace(deal),
			"user_fields: field place: renamed_from names cty, and there is no such field: nothing was renamed",
			"entity order: renamed_from names ordr, and there is no such entity: nothing was renamed")
		warned(strings.Replace(deal, "name: a,", "name: c,", 1), "user_fields: field town: renamed_from names city, and there is no such field: nothing was renamed",
			"deal: field c: renamed_from names b, and there is no such field: nothing was renamed")
		warned(strings.NewReplacer("name: deal, renamed_from: old", "name: task, renamed_from: deal", "name: a, type: text, renamed_from: b", "name: a, type: text, renamed_from: c").Replace(deal))
	})
}

func TestRenamesThatCannotBeAreRefused(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		x := newDealsOf(t, d, dealsPlain, 2)
		x.apply(dealsNamed)
		const entities = "tenant: deals\nentities:\n"
		const plain = entities + "  - name: order\n    renamed_from: deal\n    fields: [{name: title, type: text}]\n"
		x.refused(manifest.Options{}, plain,
			"acme.yaml:2: entity deal cannot be renamed to order: permission set work names it",
			"acme.yaml:2: entity deal cannot be renamed to order: sharing rule deal where place=rome → support needs it")
		x.refused(manifest.Options{}, entities+"  - {name: company, renamed_from: firm, fields: [{name: name, type: text}]}\n",
			"acme.yaml:2: entity firm cannot be renamed to company: field firm of entity deal refers to it",
			"acme.yaml:2: entity firm cannot be renamed to company: permission set work names it")
		x.refused(manifest.Options{}, entities+"  - {name: firm, renamed_from: deal}\n",
			"acme.yaml:3: entity firm: renamed_from: there are both an entity deal and an entity firm, so that nothing can be renamed: leave renamed_from out")
		x.refused(manifest.Options{}, entities+"  - {name: order, renamed_from: firm}\n  - {name: firm, sharing: public_read, fields: [{name: name, type: text}]}\n",
			"acme.yaml:3: entity order: renamed_from: entity firm stands in the manifest too: a renamed one stands in it under its new name alone")
		fields := strings.Replace(dealsNamed, "{name: place,", "{name: city, renamed_from: place,", 1)
		x.refused(manifest.Options{}, strings.Split(fields, "sharing_rules:")[0],
			"acme.yaml:5: field place of deal cannot be renamed to city: sharing rule deal where place=rome → support needs it")
		x.refused(manifest.Options{}, strings.Replace(dealsNamed, "{name: stage,", "{name: stage, renamed_from: title,", 1),
			"acme.yaml:9: field stage: renamed_from: field title stands in the manifest too: a renamed one stands in it under its new name alone")
		x.refused(manifest.Options{}, strings.NewReplacer("{name: stage,", "{name: stage, renamed_from: title,", "      - {name: title, type: text}\n", "").Replace(dealsNamed),
			"acme.yaml:8: field stage: renamed_from: there are both a field title and a field stage, so that nothing can be renamed: leave renamed_from out")
	})
}

func TestAFieldOfUsersIsRenamed(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		x := newDealsOf(t, d, dealsPlain, 0)
		with := func(fields string) string {
			return strings.Replace(dealsPlain, "entities:\n", "user_fields: ["+fields+"]\nentities:\n", 1)
		}
		x.apply(with("{name: town, type: text}"))
		id := x.user("deals", "olivia@x.example").ID
		set := func(member, value string) {
			t.Helper()
			if _, err := x.as("olivia").Update(t.Context(), "user", string(id), values(member, value)); err != nil {
				t.Fatal(err)
			}
		}
		set("town", "Bern")
		x.printed(x.apply(with("{name: city, renamed_from: town, type: text}")), "update user fields: fields.city renamed from town")
		x.has("user", string(id), "city", `"Bern"`)
		set("city", "Basel")
		x.apply(with("{name: city, type: text}, {name: town, type: text}"))
		x.has("user", string(id), "city", `"Basel"`)
		x.has("user", string(id), "town", "null")
		set("town", "Biel")
		x.has("user", string(id), "city", `"Basel"`)
		x.has("user", string(id), "town", `"Biel"`)
		// A new type is checked against the values that the field holds,
		// whatever its name.
		x.refused(manifest.Options{}, with("{name: place, renamed_from: city, type: number}, {name: town, type: text}"),
			"acme.yaml:3: user_fields: field place cannot become number: 1 user(s) hold a value that does not fit")
	})
}

// TestApplySaysWhatGoes checks that apply reports what it removes and how many
// records hold a value. The manual says that the values are kept.
func TestApplySaysWhatGoes(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		x := newDealsOf(t, d, dealsPlain, 5)
		x.apply(strings.Replace(dealsPlain, "entities:\n", "user_fields: [{name: company, type: text}, {name: town, type: text}]\nentities:\n", 1))
		olivia := x.user("deals", "olivia@x.example")
		if _, err := x.as("olivia").Update(t.Context(), "user", string(olivia.ID), []records.Member{{Name: "town", Value: jsontext.Value(`"Bern"`)}}); err != nil {
			t.Fatal(err)
		}
		less := strings.NewReplacer("      - {name: stage, type: text}\n", "", "      - {name: old, type: text, indexed: true, searchable: true}\n", "",
			"{email: ned@x.example, role: north, permission_sets: [work]}", "{email: ned@x.example}",
			"entities:\n  - {name: firm", "user_fields: [{name: company, type: text}]\nentities:\n  - {name: firm").Replace(dealsPlain)
		want := []string{
			"user ned@x.example: role north", "user ned@x.example: permission set work",
			"entity deal: field stage; 5 of 5 records hold a value: it is kept, and is back when the field is",
			"entity deal: field old; none of 5 records holds a value",
			"user_fields: field town; 1 of 5 users hold a value: it is kept, and is back when the field is",
		}
		for _, dry := range []bool{true, false} {
			r, err := x.try(less, manifest.Options{DryRun: dry})
			if err != nil {
				t.Fatal(err)
			}
			x.printed(r.Gone, want...)
		}
		if r, err := x.try(less, manifest.Options{}); err != nil || len(r.Gone) != 0 {
			t.Errorf("applied again: %v, %v", r.Gone, err)
		}
	})
}
