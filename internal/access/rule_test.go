package access

import (
	"fmt"
	"slices"
	"testing"

	"gatehouse/internal/schema"
)

// teamed is a configuration whose users have managed fields, for the rule of an
// entity type contact with fields of these types.
func teamed(rules ...*SharingRule) *Config {
	roles, _ := NewRoles([]Role{{Name: "sales"}})
	return &Config{
		Schema: schema.New([]*schema.Entity{{Name: "contact", Fields: []*schema.Field{
			{Name: "team", Type: schema.Text, Indexed: true}, {Name: "firm", Type: schema.Reference, Target: "contact"}, {Name: "mail", Type: schema.Text, Unique: true},
		}}}, []*schema.Field{
			{Name: "team", Type: schema.Text, Managed: true}, {Name: "firms", Type: schema.Multireference, Target: "contact", Managed: true}, {Name: "plain", Type: schema.Text},
		}),
		Roles: roles, Rules: rules, Sets: map[string]*PermissionSet{},
	}
}

// A viewer stands in the members that follow from their values, one for each
// combination, and in none where a value lacks (contract A19).
func TestMembersOfARule(t *testing.T) {
	rule := &SharingRule{Entity: "contact", ShareWith: Everyone, Access: ReadOnly, Where: []Condition{
		{Field: "firm", Viewer: "firms"}, {Field: "mail", Value: []byte(`"x"`)}, {Field: "team", Viewer: "team"},
	}}
	c := teamed(rule)
	member := func(keys ...string) string { return Member(rule.StoredAs(), keys) }
	for custom, want := range map[string][]string{
		`{}`:                      {},
		`{"team#managed":"a"}`:    {},
		`{"firms#managed":["f"]}`: {},
		`{"team#managed":"a","firms#managed":["f","g"]}`:   {member("f", "a"), member("g", "a")},
		`{"team#managed":"a","firms#managed":[]}`:          {},
		`{"team":"a","firms":["f"]}`:                       {}, // as the user said
		`{"team#managed":1,"firms#managed":["f"]}`:         {}, // does not fit
		`{"team#managed":"","firms#managed":["f"]}`:        {member("f", "")},
		`{"team#managed":"a","firms#managed":"[\"f\"]"}`:   {},
		`{"team#managed":"a","firms#managed":["f"],"x":1}`: {member("f", "a")},
	} {
		v := viewerOf(c, Identity{UserID: "u", EmailKey: "u@x", Custom: []byte(custom)})
		if got := v.v.standsIn(rule); !slices.Equal(got, want) {
			t.Errorf("%s stands in %v, want %v", custom, got, want)
		}
	}
	if got := System(c, "test").v.standsIn(rule); len(got) > 0 {
		t.Errorf("the system stands in %v", got)
	}
	seen := map[string]bool{}
	for _, keys := range [][]string{{"a", "b"}, {"b", "a"}, {"ab", ""}, {"", "ab"}, {"a b"}, {"a", "b", ""}, {"1 a"}} {
		name := member(keys...)
		if seen[name] || !IsOf(name, rule.ID()) || IsOf(name, rule.ID()[:15]) || IsOf(indexNameOf(rule, 7, keys), rule.ID()) {
			t.Errorf("%q: the name %s", keys, name)
		}
		seen[name] = true
		spans := Spans(rule.StoredAs())
		if own := spans[0]; rule.StoredAs() < own.From || rule.StoredAs() >= own.To || name < own.To {
			t.Errorf("%s and the span of the rule's own name %v", name, own)
		}
		if all := spans[1]; name < all.From || name >= all.To || indexNameOf(rule, 7, keys) >= all.From {
			t.Errorf("%s and the span of members %v", name, all)
		}
	}
}

// indexNameOf is a member of the rule once it was built again.
func indexNameOf(rule *SharingRule, n int, keys []string) string {
	return Member(fmt.Sprintf("%s#%d", rule.ID(), n), keys)
}

// Both sides of a condition have one key exactly where they are equal.
func TestKeysOfConditions(t *testing.T) {
	mail := &schema.Field{Name: "mail", Type: schema.Text}
	for _, w := range []struct{ viewer, value, key string }{
		{ViewerEmail, `" EVA@B\u00fccher.example"`, "eva@xn--bcher-kva.example"}, {ViewerEmail, `"eva@xn--bcher-kva.example"`, "eva@xn--bcher-kva.example"},
		{ViewerEmail, `null`, ""}, {ViewerEmail, `" "`, ""}, {ViewerID, `"U"`, "U"}, {"team", `" A"`, " A"},
	} {
		c := Condition{Field: "mail", Viewer: w.viewer}
		if key, ok := c.Key(mail, []byte(w.value)); key != w.key || ok != (w.key != "") {
			t.Errorf("%s %s: %q, %v", w.viewer, w.value, key, ok)
		}
	}
}

// What a rule says of the viewer is part of its name; rules from before have theirs.
func TestRulesOfTheViewerAreOtherRules(t *testing.T) {
	seen := map[string]bool{}
	for _, rule := range []SharingRule{
		{Entity: "contact", ShareWithRole: "sales", Where: []Condition{{Field: "team", Value: []byte(`"a"`)}}},
		{Entity: "contact", ShareWithRole: "sales", Where: []Condition{{Field: "team", Viewer: "team"}}},
		{Entity: "contact", ShareWithRole: "sales", Where: []Condition{{Field: "team", Viewer: "id"}}},
		{Entity: "contact", ShareWith: Everyone, Where: []Condition{{Field: "team", Viewer: "team"}}},
		{Entity: "contact", ShareWith: InternalUsers, Where: []Condition{{Field: "team", Viewer: "team"}}},
		{Entity: "contact", ShareWith: InternalUsers, OwnedByRole: "sales"},
		{Entity: "contact", ShareWithRole: "internal", OwnedByRole: "sales"},
	} {
		if seen[rule.ID()] {
			t.Errorf("%+v has the name of another rule", rule)
		}
		seen[rule.ID()] = true
	}
	if old := (&SharingRule{Entity: "contact", ShareWithRole: "sales", Where: []Condition{{Field: "name", Value: []byte(`"a"`)}}}).ID(); old != "d3e550faf59144f2" {
		t.Errorf("a rule from before has another name: %s", old)
	}
}
