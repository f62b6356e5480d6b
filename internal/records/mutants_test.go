package records_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// mutant is a fault to be made in the product's source text.
type mutant struct{ name, file, from, to string }

var mutants = []mutant{
	{"peers of the same role see", "../access/source.go", "below = v.config.Roles.Below(v.role)", "below = append(v.config.Roles.Below(v.role), v.role)"},
	{"ancestors are missing", "../access/source.go", "below = v.config.Roles.Below(v.role)", "below = nil"},
	{"descendants instead of ancestors", "../access/access.go", "r.children[role.Parent] = append(r.children[role.Parent], role.Name)",
		"r.children[role.Name] = append(r.children[role.Name], role.Parent)"},
	{"only the parent", "../access/access.go", "next = append(next[1:], r.children[at]...)", "next = next[1:]"},
	{"the default applies to externals", "../access/source.go", "if !v.external && verb != Delete", "if verb != Delete"},
	{"delete by the default", "../access/source.go", "if !v.external && verb != Delete", "if !v.external"},
	{"public_read lets update", "../access/source.go", "e.Sharing == schema.PublicRead && verb == Read", "e.Sharing == schema.PublicRead"},
	{"a share lets delete", "../access/source.go", "if verb == Delete {\n\t\treturn", "if verb == Delete && v.userID == \"\" {\n\t\treturn"},
	{"EditOnly is not set", "../access/source.go", "editOnly := verb == Update", "editOnly := false"},
	{"EditOnly is ignored", "way.go", "if w.EditOnly {", "if false {"},
	{"rules of level read let update", "../access/source.go", "|| editOnly && rule.Access != Edit", ""},
	{"rules do not reach ancestors", "../access/source.go", "mine[role] = true", "_ = role"},
	{"shares do not reach ancestors", "../access/source.go", "src.Role, src.Name = role, v.config.Roles.shares[role]\n\t\tadd(src)", "_ = role"},
	{"shares reach descendants", "../access/source.go", "src.Role, src.Name = v.role, v.config.Roles.shares[v.role]\n\tadd(src)",
		"src.Role, src.Name = v.role, v.config.Roles.shares[v.role]\n\tadd(src)\n\tsrc.Name = v.config.Roles.shares[v.config.Roles.parent[v.role]]\n\tadd(src)"},
	{"rules of every type", "../access/source.go", "rule.Entity != e.Name ||", ""},
	{"owned_by_role reaches descendants", "../access/source.go", "v.config.ownedBy(rule.OwnedByRole, Source{",
		"for _, role := range v.config.Roles.Below(rule.OwnedByRole) {\n\t\t\t\tv.config.ownedBy(role, Source{Cause: RuleByOwnerRole, Rule: rule}, add)\n\t\t\t}\n\t\t\tv.config.ownedBy(rule.OwnedByRole, Source{"},
	{"externals keep all_entity_access", "../access/viewer.go", "return set.AllEntityAccess && !v.external", "return set.AllEntityAccess"},
	{"edit does not imply read", "../access/viewer.go", "fg.Read = fg.Read || fg.Edit", ""},
	{"a field not named is closed", "../access/viewer.go", "if !named {\n\t\treturn FieldGrant{Read: true, Edit: true}", "if !named {\n\t\treturn FieldGrant{}"},
	{"field rights intersect", "../access/viewer.go", "r.EditField[i] = r.EditField[i] || fg.Edit", "r.EditField[i] = r.EditField[i] && fg.Edit"},
	{"another record's share", "way.go", "s.WriteString(\" AND s.record_id = \")\n\t\t\ts.column(\"record_id\")", ""},
	{"another record's match", "way.go", "s.column(\"created_at\")\n\t\t\ts.WriteString(\" AND m.rule_id IN \")", "s.WriteString(\"m.record_created_at AND m.rule_id IN \")"},
	{"lists leave rules out", "way.go", `"s.rule_id"}, w.Names, nil`, `"s.rule_id"}, w.Names[:0], nil`},
	{"filtered lists leave rules out", "way.go", "list = append(list, ways[w.Kind].reach(name))", "if w.Kind != access.ByRule {\n\t\t\t\tlist = append(list, ways[w.Kind].reach(name))\n\t\t\t}"},
	{"index rows leave the owner's role out", "way.go", "if st.ownerRole == \"\" {", "if st.ownerRole != \"none\" {"},
	{"index rows of shares are not written", "store_share.go", "return insertEntries(ctx, v.tx, e, rec.createdAt, list)", "return nil"},
	{"index rows do not follow a change of role", "store_fill.go", "return deleteEntries(ctx, tx, e.StoredAs(), rec.createdAt, of(rec.ownerRole))", "return nil"},
	{"index rows do not follow a change of values", "store_tx.go", "if spreadChanges(e, p) ||", "if"},
	{"index rows do not follow rules that come", "store_shape.go", "list, entity := s.kept(), s.shape.Entity.StoredAs()", "list, entity := s.kept()[:0], s.shape.Entity.StoredAs()"},
	{"lists show shared records of any principal", "predicate.go", `a.WriteString(" = "); a.statement.arg(v)`, `a.WriteString(" >= "); a.statement.arg(v)`},
	{"lists that walk ignore the scope", "store_read.go", "if !dbRow.Bool(5) {", "if false {"},
	{"filters ignore the scope", "predicate.go", "key) + \" AND s.reach\"}, reachesFor(scope), nil)", "key) + \" AND s.reach\"}, []string{everybody}, nil)"},
	{"a list of values is its first", "predicate.go", "for _, key := range filters[0].keys {", "for _, key := range filters[0].keys[:1] {"},
	{"conditions on rows are not asked", "sieve.go", "if s.passes(rec) {", "if s.passes(rec) || s.rows > 0 {"},
	{"one condition on rows is enough", "plan.go", "if !slices.ContainsFunc(t, func(group []rowCondition) bool {", "if t != nil && slices.ContainsFunc(t, func(group []rowCondition) bool {"},
	{"a condition on rows sees what comes next", "plan.go", "return values[c.field.Index]", "return values[len(values)-1-c.field.Index]"},
	{"bounds of the creation are left out", "plan.go", "w.after = max(w.after, p.after)", ""},
	{"ids are looked up without the viewer", "store_read.go", "st.WriteString(\" AND \")\n\t\tst.reached(scope)\n\t\tinOrder", "if len(filters) == 0 || filters[0].field != byID {\n\t\t\tst.WriteString(\" AND \")\n\t\t\tst.reached(scope)\n\t\t}\n\t\tinOrder"},
	{"counts are of all", "store_count.go", "st.WriteString(\" AND \")\n\t\tst.reached(scope)", ""},
	{"an index in one group is enough", "plan.go", "!slices.ContainsFunc(either, func(group []rowCondition) bool { return !slices.ContainsFunc(group, isIndexed) })", "slices.ContainsFunc(either, func(group []rowCondition) bool { return slices.ContainsFunc(group, isIndexed) })"},
	{"further filters are ignored", "predicate.go", "for _, f := range filters[1:] {", "for _, f := range filters[len(filters):] {"},
	{"a filter by an unreadable field", "plan.go", "if field != nil && !m.r.ReadField[field.Index] {", "if false {"},
	{"what is not set is sorted as an empty text", "order.go", "return schema.Unset\n", "return \"\"\n"},
	{"a sorted page begins with the record before it", "store_span.go", `sign := " > "`, `sign := " >= "`},
	{"equal records of a sorted list go the other way", "order.go", "return directed(cmp.Compare(a.at, b.at), o.desc)", "return directed(cmp.Compare(a.at, b.at), !o.desc)"},
	{"a page of groups ends within one", "store_sorted.go", "if groups && (last == nil || rec.keys[0] != group) {", "if groups {"},
	{"a list is sorted by what may not be read", "order.go", "if field != nil && !m.r.ReadField[field.Index] {", "if field == nil {"},
	{"a range leaves out its beginning", "store_span.go", "s.WriteString(\" AND s.value >= \")", "s.WriteString(\" AND s.value > \")"},
	{"the second key is not asked", "order.go", "for i, key := range o.keys {\n\t\tif c :=", "for i, key := range o.keys[:min(1, len(o.keys))] {\n\t\tif c :="},
	{"a page begins anew behind a trial", "sieve.go", "v.rows > before {", "v.rows < before {"},
	{"a field that may not be read is searched", "search.go", "if f.Searchable && m.r.ReadField[f.Index] {", "if f.Searchable {"},
	{"one field is searched", "predicate.go", "for _, field := range filters[0].fields() {", "for _, field := range filters[0].fields()[:1] {"},
	{"one of the words is enough", "search.go", "p.tests = append(p.tests, test{{*c}})", ""},
	{"words have rows for everybody alone", "reach.go", "dst = appendEntries(dst, schema.WordsAs(name), word, reaches)\n\t}\n\treturn dst\n}\n\n// appendReached", "}\n\treturn dst\n}\n\n// appendReached"},
	{"words do not follow shares and roles", "reach.go", "dst = appendEntries(dst, schema.WordsAs(name), word, reaches)\n\t}\n\treturn dst\n}\n\nfunc appendEntries", "_ = word\n\t}\n\treturn dst\n}\n\nfunc appendEntries"},
	{"a search loses what may be kept for its parent", "predicate.go", "case p != nil && !scope.All:", "case p != nil:"},
	{"update needs read alone", "store_tx.go", "st.reached(r.Scope(verb))", "st.reached(r.Scope(access.Read))"},
	{"rule matches are not kept true", "store_tx.go", "range missing(after.rules, before.rules)", "range missing(before.rules, before.rules)"},
	{"one condition is enough", "validate.go", "if want, ok := f.Key(c.Value); !ok || want != have {\n\t\t\treturn \"\", false\n\t\t}", "if want, ok := f.Key(c.Value); ok && want == have {\n\t\t\treturn rule.StoredAs(), true\n\t\t}"},
	{"members leave a value out", "../access/rule.go", "for _, key := range keys {", "for _, key := range keys[:1] {"},
	{"a member is the rule", "../access/rule.go", "names[i] = Member(rule.StoredAs(), keys)", "names[i] = rule.StoredAs() + strings.Repeat(\"\", len(keys))"},
	{"every record is of one member", "validate.go", "keys = append(keys, have)", "keys = append(keys, c.Field)"},
	{"every record is of itself", "validate.go", "have, set := id, id != \"\"", "have, set := e.Name, id != \"\""},
	{"who has one of its records has all", "../access/rule.go", "v.keys(c, e.Comparand(c.Field))", "v.keys(c, e.Field(c.Field))"},
	{"one element of a list counts", "../access/rule.go", "range own.Elements(v.managed[own.Name]) {", "range own.Elements(v.managed[own.Name])[:min(1, len(own.Elements(v.managed[own.Name])))] {"},
	{"addresses as they were entered", "../access/rule.go", "return []string{v.emailKey}", "return []string{v.email}"},
	{"addresses of records as they were entered", "../access/rule.go", "case c.Viewer != ViewerEmail || schema.IsNull(v):", "case true:"},
	{"rules for external users reach staff", "../access/rule.go", "a == ExternalUsers && external", "a == ExternalUsers"},
	{"rules for staff reach external users", "../access/rule.go", "a == InternalUsers && !external", "a == InternalUsers"},
	{"who has no role gets no rule", "../access/source.go", "reached := mine[rule.ShareWithRole] || rule.ShareWith.Has(v.external)", "reached := mine[rule.ShareWithRole] || v.role != \"\" && rule.ShareWith.Has(v.external)"},
	{"a change of what a user has is not followed", "../tenant/store.go", "SELECT t.version, COALESCE(p.version, 0) FROM tenants t", "SELECT t.version, 0 FROM tenants t"},
	{"rule matches are not made", "store_tx.go", "range missing(before.rules, after.rules) {", "range missing(before.rules, after.rules)[:0] {"},
	{"anybody of the tenant may be made owner", "../access/viewer.go", "return q.Entity == e.Name && (q.ShareWith.Has(external) || q.ShareWithRole != \"\" && q.ShareWithRole == role)", "return true"},
	{"rules of another type name owners", "../access/viewer.go", "return q.Entity == e.Name && (q.ShareWith.Has(", "return (q.ShareWith.Has("},
	{"who may update a record takes it", "store_tx.go", "if !isNew || owner != s.viewer.UserID() {", "if owner != s.viewer.UserID() {"},
	{"whom rules name may be made owner by all", "../access/viewer.go", "r.assigns = r.assigns || g.AssignOwner", "r.assigns = true"},
	{"explanations take rules for one another", "../access/rule.go", "case r.MatchesViewer():", "case false:"},
	{"new rules find no records", "transition.go", "if len(s.Fields) == 0 && !fresh {", "if len(s.Fields) == 0 {"},
	{"records do not follow a change of role", "store_fill.go", "SET owner_role = $6 WHERE", "SET owner_role = owner_role WHERE $6 = '' AND"},
	{"who sees may share", "store_share.go", "r, id, access.Delete, \"share\"", "r, id, access.Read, \"share\""},
	{"unreadable fields are shown", "render.go", "dst = renderFields(dst, r.Entity, r.ReadField, rec.data)", "dst = renderFields(dst, r.Entity, append(r.ReadField[:0:0], r.EditField...), rec.data)"},
	{"unreadable fields may be chosen", "render.go", "case field != nil && r.ReadField[field.Index]:", "case field != nil:"},
	{"the chosen fields are all", "render.go", "renderFields(dst, e, sel.fields, rec.data)", "renderFields(dst, e, append([]bool{true}, sel.fields[1:]...), rec.data)"},
	{"the unreadable is known", "validate.go", "case f == nil || !r.ReadField[f.Index]:", "case f == nil:"},
	{"every field may be edited", "validate.go", "case !r.EditField[f.Index]:", "case false:"},
	{"a closed required field is no matter", "validate.go", "if f.Required && !r.EditField[i] {", "if false {"},
	{"create shows what may not be read", "verbs.go", "if !r.May(access.Read) {", "if false {"},
	{"anybody sets the owner", "verbs.go", "if !r.MayName() {", "if false {"},
	{"a parent may be read for an update", "../access/source.go", "r.scopes[verb] = v.scope(of, verb)\n\t}\n\treturn &Parent{Of: e, Field: e.Controller(), Entity: of, Scope: r.scopes[verb]}", "r.scopes[verb] = v.scope(of, verb)\n\t}\n\treturn &Parent{Of: e, Field: e.Controller(), Entity: of, Scope: v.scope(of, Read)}"},
	{"no permission on the parent is needed", "../access/source.go", "if !r.May(Read) || !r.May(verb) {", "if false {"},
	{"a deletion asks to delete the parent", "../access/source.go", "\t\tverb = Update\n", ""},
	{"records below a parent keep their own ways", "../access/source.go", "add(Source{Cause: ControlledByParent, Kind: ByParent, parent: p})\n\t\t}\n\t\treturn", "add(Source{Cause: ControlledByParent, Kind: ByParent, parent: p})\n\t\t}"},
	{"any parent will do", "lineage.go", "s.reached(p.Scope)", "s.WriteString(\"1 = 1\")"},
	{"a list walks down from every root", "lineage.go", "d.list(reachesOf(of.Scope))", "d.list(append(reachesOf(of.Scope), everybody))"},
	{"a filtered list takes every parent", "lineage.go", "d.given + \" AND s.reach \" + below", "d.given + \" AND s.reach <> '' AND u.id <> ''\""},
	{"creating asks only to read the parent", "verbs.go", "reaches(ctx, f.Target, id, access.Update)", "reaches(ctx, f.Target, id, access.Read)"},
	{"a move is not followed", "store_tx.go", "return follow(ctx, v.tx, config, e, p.was.families, p.was.data, rec.data)", "return nil"},
	{"the rows of a root do not follow its shares", "store_share.go", "entriesOf(s.viewer.Config(), e, rec.data, below", "entriesOf(s.viewer.Config(), e, rec.data, below[:0]"},
	{"the rows of a root do not follow its owner's role", "store_fill.go", "&list[i], below[list[i].createdAt], role", "&list[i], nil, role"},
	{"a parent is deleted without its children", "store_tx.go", "if f == from.Controller() {", "if false {"},
	{"a type that becomes controlled gets no rows", "transition.go", "!slices.Equal(links, t.linksBefore(e))", "t.linksBefore(e) != nil && !slices.Equal(links, t.linksBefore(e))"},
	{"explanations take read for edit", "../access/source.go", "EditOnly: s.EditOnly}", "EditOnly: false}"},
	{"explanations leave sets out", "../access/source.go", "} else if g, ok := set.Entities[e.Name]; ok {", "} else if g, ok := set.Entities[e.Name]; ok && len(list) == 0 {"},
	{"explanations leave permissions out", "store_why.go", "case !r.May(v):", "case false:"},
	{"explanations leave conditions out", "store_why.go", "ways[w.Kind].condition(st, &w)", "st.WriteString(\"1 = 1\")"},
	{"explanations forget the default", "store_why.go", "why.add(&all[i], v, whole(e))", "_ = whole"},
	{"no entity permission is needed", "records.go", "if !r.May(verb) {", "if !r.May(verb) && verb != access.Update {"},
}

// TestMutantsAreInTheText checks that the product's text still contains what
// each mutant replaces.
func TestMutantsAreInTheText(t *testing.T) {
	for _, m := range mutants {
		if text, err := os.ReadFile(m.file); err != nil || strings.Count(string(text), m.from) != 1 {
			t.Errorf("%s: %s has %d times: %s (%v)", m.name, m.file, strings.Count(string(text), m.from), m.from, err)
		}
	}
}

// TestProveMatrixCatchesMutants builds the product with each fault in its text,
// through an overlay, and checks that the matrix fails.
func TestProveMatrixCatchesMutants(t *testing.T) {
	if os.Getenv("GATEHOUSE_PROVE") == "" {
		t.Skip("a build for each mutant; GATEHOUSE_PROVE=1")
	}
	caught, explained := 0, 0
	for _, m := range mutants {
		if !strings.Contains(m.name, os.Getenv("MUTANTS")) {
			continue
		}
		if out := m.run(t); strings.Contains(out, "differences, seed") && strings.Contains(out, "--- FAIL: TestAuthorizationMatrixAtLength") {
			caught++
			if differs := !strings.Contains(out, "; 0 differences of explanations"); differs {
				explained++
			} else if m.misleads() {
				t.Errorf("%s: not caught by an explanation", m.name)
			}
		} else {
			t.Errorf("%s: not caught\n%s", m.name, out)
		}
	}
	t.Logf("matrix: %d of %d mutants of the product caught, %d by an explanation", caught, len(mutants), explained)
}

// misleads reports whether the mutant is in code that explanations are made
// from.
func (m mutant) misleads() bool {
	return m.file == "../access/source.go" || m.file == "../access/access.go" || m.file == "store_why.go"
}

// run returns the output of the matrix run against the mutant.
func (m mutant) run(t *testing.T) string {
	path, err := filepath.Abs(m.file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	changed := filepath.Join(dir, "mutant.go")
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		changed: strings.Replace(string(text), m.from, m.to, 1), filepath.Join(dir, "overlay.json"): string(overlay),
	} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-overlay", filepath.Join(dir, "overlay.json"),
		"-run", "^TestAuthorizationMatrixAtLength$/sqlite", ".")
	c.Env = append(os.Environ(), "GATEHOUSE_PROVE=")
	out, _ := c.CombinedOutput() // a failure is expected
	return string(out)
}
