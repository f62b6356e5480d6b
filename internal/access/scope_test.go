package access

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gatehouse/internal/schema"
	"gatehouse/internal/user"
)

// said returns a scope in one line: all, or the ways to a record.
func said(s *Scope) string {
	if s.All {
		return "all"
	}
	var ways []string
	for _, w := range s.Ways {
		for _, name := range slices.Sorted(slices.Values(w.Names)) {
			ways = append(ways, map[Kind]string{ByOwner: "own", ByOwnerRole: "owned by " + name, ByRule: "rule " + name,
				ByShare: map[bool]string{false: "shared with ", true: "shared to edit with "}[w.EditOnly] + name}[w.Kind])
		}
	}
	return strings.Join(ways, ", ")
}

// TestScopesByRole checks contract A7 to A11: what each verb reaches from each
// place in the role tree ceo > (sales > junior, support).
func TestScopesByRole(t *testing.T) {
	c := configOf(t)
	open := &schema.Entity{Name: "wiki", Sharing: schema.PublicReadWrite}
	c.Schema = schema.New(append(c.Schema.Entities, open), nil)
	byValue := &SharingRule{Entity: "contact", ShareWithRole: "junior", Access: Edit, Where: []Condition{{Field: "name", Value: []byte(`"a"`)}}}
	c.Rules = []*SharingRule{
		{Entity: "contact", OwnedByRole: "support", ShareWithRole: "sales", Access: ReadOnly},
		{Entity: "contact", OwnedByRole: "junior", ShareWithRole: "sales", Access: Edit}, // the role tree already grants this
		{Entity: "contact", OwnedByRole: "ceo", ShareWithRole: "support", Access: Edit},
		{Entity: "news", OwnedByRole: "ceo", ShareWithRole: "support", Access: Edit},
		byValue,
	}
	rule := ", rule " + byValue.ID()
	for _, w := range []struct {
		id     Identity
		entity string
		want   [3]string // read, update, delete
	}{
		{Identity{}, "contact", [3]string{"own, shared with user:u", "own, shared to edit with user:u", "own"}},
		{Identity{Role: "junior"}, "contact", [3]string{
			"own, shared with role:junior, shared with user:u" + rule,
			"own, shared to edit with role:junior, shared to edit with user:u" + rule, "own",
		}},
		{Identity{Role: "sales"}, "contact", [3]string{ // what reaches a role also reaches its ancestors; users of the same role are not below it
			"own, owned by junior, owned by support, shared with role:junior, shared with role:sales, shared with user:u" + rule,
			"own, owned by junior, shared to edit with role:junior, shared to edit with role:sales, shared to edit with user:u" + rule,
			"own, owned by junior",
		}},
		{Identity{Role: "support"}, "contact", [3]string{
			"own, owned by ceo, shared with role:support, shared with user:u",
			"own, owned by ceo, shared to edit with role:support, shared to edit with user:u", "own",
		}},
		{Identity{}, "news", [3]string{"all", "own, shared to edit with user:u", "own"}},
		{Identity{Role: "support"}, "news", [3]string{"all", "own, owned by ceo, shared to edit with role:support, shared to edit with user:u", "own"}},
		{Identity{}, "wiki", [3]string{"all", "all", "own"}},
		{Identity{External: true}, "wiki", [3]string{"own, shared with user:u", "own, shared to edit with user:u", "own"}},
		{Identity{External: true, Role: "support"}, "news", [3]string{
			"own, owned by ceo, shared with role:support, shared with user:u",
			"own, owned by ceo, shared to edit with role:support, shared to edit with user:u", "own",
		}},
		{Identity{Owner: true, Role: "junior"}, "contact", [3]string{"all", "all", "all"}},
		{Identity{Owner: true, External: true}, "contact", [3]string{"own, shared with user:u", "own, shared to edit with user:u", "own"}},
	} {
		w.id.UserID = "u"
		on, err := viewerOf(c, w.id).On(w.entity)
		if err != nil {
			t.Fatal(err)
		}
		for i, verb := range []Verb{Read, Update, Delete} {
			if got := said(on.Scope(verb)); got != w.want[i] {
				t.Errorf("%+v: %s %s reaches\n     %s\nwant %s", w.id, verb, w.entity, got, w.want[i])
			}
		}
		if got := said(on.Scope(Create)); got != "" {
			t.Errorf("%+v: create %s reaches %s", w.id, w.entity, got)
		}
	}
}

// TestAFurtherNameOfARole checks records while users move from one role to
// another: their owner_role is a name of the move, which is a further name of
// the users' previous role.
func TestAFurtherNameOfARole(t *testing.T) {
	c := configOf(t)
	c.Build = &Build{Work: &Work{Moves: []*Move{{Token: "junior>support.0#2", From: "junior", To: "support", Users: []user.ID{"a", "b"}}}}}
	c.nameRole("junior", "junior>support.0#2")
	if got := c.OwnerRole("b", "junior"); got != "junior>support.0#2" {
		t.Errorf("a moving user's records: %s", got)
	}
	if got := c.OwnerRole("c", "junior"); got != "junior" {
		t.Errorf("another user's records: %s", got)
	}
	on, err := viewerOf(c, Identity{UserID: "u", Role: "sales"}).On("contact")
	if err != nil || !strings.HasPrefix(said(on.Scope(Delete)), "own, owned by junior, owned by junior>support.0#2") {
		t.Errorf("%s, %v", said(on.Scope(Delete)), err)
	}
}

// TestARoleOfTheNameOfOneThatIsGone checks that a role with the name of a
// deleted one inherits no shares (contract A9).
func TestARoleOfTheNameOfOneThatIsGone(t *testing.T) {
	roles, err := NewRoles([]Role{{Name: "old"}, {Name: "sales", Since: 7}})
	if err != nil {
		t.Fatal(err)
	}
	for principal, want := range map[Principal]string{"role:old": "role:old true", "role:sales": "role#7:sales true", "role:gone": " false", "user:u": "user:u true"} {
		stored, ok := roles.Stored(principal)
		if got := fmt.Sprint(stored, " ", ok); got != want {
			t.Errorf("%s is stored as %s, want %s", principal, got, want)
		}
	}
	for stored, want := range map[string]string{
		"role#7:sales": "role:sales true", "role#3:sales": "role:sales false", "role:sales": "role:sales false", "role:old": "role:old true", "user:u": "user:u true",
	} {
		principal, ok := roles.Principal(stored)
		if got := fmt.Sprint(principal, " ", ok); got != want {
			t.Errorf("%s is %s, want %s", stored, got, want)
		}
	}
}

// TestSetsUnite checks contract A5: several sets grant the union of their
// rights, and an assignment to a set that does not exist grants nothing.
func TestSetsUnite(t *testing.T) {
	c := configOf(t,
		&PermissionSet{Name: "read", System: []string{ManageUsers}, Entities: map[string]EntityGrant{
			"contact": {Read: true, Fields: map[string]FieldGrant{"name": {}, "score": {}}}, "news": {Read: true},
			"user": {Read: true, Fields: map[string]FieldGrant{"email": {}, "name": {Read: true}}},
		}},
		&PermissionSet{Name: "write", System: []string{LoginAs, ManageUsers}, Entities: map[string]EntityGrant{
			"contact": {Create: true, Fields: map[string]FieldGrant{"score": {Edit: true}}}, "user": {Fields: map[string]FieldGrant{"name": {Edit: true}}},
		}},
		&PermissionSet{Name: "all", AllEntityAccess: true})
	rights := func(sets ...string) string {
		v := viewerOf(c, Identity{UserID: "u", Sets: sets})
		on, err := v.On("contact")
		if err != nil {
			t.Fatal(err)
		}
		users, err := v.OnUsers()
		if err != nil {
			t.Fatal(err)
		}
		var verbs []string
		for verb := Create; verb <= Delete; verb++ {
			if on.May(verb) {
				verbs = append(verbs, verb.String())
			}
		}
		return fmt.Sprint(verbs, " read ", on.ReadField, " edit ", on.EditField, " email ", users.Column("email"), " name ", users.Column("name"), " ", v.v.system)
	}
	for _, w := range []struct {
		sets []string
		want string
	}{
		{nil, "[] read [false false] edit [false false] email {false false} name {false false} []"},
		{[]string{"gone"}, "[] read [false false] edit [false false] email {false false} name {false false} []"},
		{[]string{"read"}, "[read] read [false false] edit [false false] email {false false} name {true false} [manage_users]"},
		{[]string{"write"}, "[create] read [true true] edit [true true] email {true true} name {true true} [login_as manage_users]"},
		{[]string{"read", "write"}, "[create read] read [true true] edit [true true] email {true true} name {true true} [login_as manage_users]"},
		{[]string{"write", "read"}, "[create read] read [true true] edit [true true] email {true true} name {true true} [login_as manage_users]"},
		{[]string{"read", "all"}, "[create read update delete] read [true true] edit [true true] email {true true} name {true true} [manage_users]"},
	} {
		if got := rights(w.sets...); got != w.want {
			t.Errorf("%v:\n got %s\nwant %s", w.sets, got, w.want)
		}
	}
}

// TestWhoLosesRights checks that Loses considers every right that a change may
// remove.
func TestWhoLosesRights(t *testing.T) {
	set := func(g EntityGrant, system ...string) *PermissionSet {
		return &PermissionSet{Name: "set", System: system, Entities: map[string]EntityGrant{"contact": g}}
	}
	full := EntityGrant{Read: true, Update: true, AssignOwner: true}
	rule := &SharingRule{Entity: "contact", OwnedByRole: "support", ShareWithRole: "sales", Access: Edit}
	viewing := &SharingRule{Entity: "contact", ShareWith: InternalUsers, Access: ReadOnly, Where: []Condition{{Field: "name", Viewer: "team"}}}
	sam := Identity{UserID: "u", Role: "sales", Sets: []string{"set"}, Custom: []byte(`{"team#managed":"a"}`)}
	for _, w := range []struct {
		name   string
		change func(c *Config, id *Identity)
		loses  bool
	}{
		{"nothing", func(*Config, *Identity) {}, false},
		{"an entity permission", func(c *Config, _ *Identity) { c.Sets["set"] = set(EntityGrant{Read: true}, ManageUsers) }, true},
		{"a system permission", func(c *Config, _ *Identity) { c.Sets["set"] = set(full) }, true},
		{"a field", func(c *Config, _ *Identity) {
			c.Sets["set"] = set(EntityGrant{Read: true, Update: true, Fields: map[string]FieldGrant{"name": {Read: true}}}, ManageUsers)
		}, true},
		{"more", func(c *Config, _ *Identity) {
			c.Sets["set"] = set(EntityGrant{Create: true, Read: true, Update: true, Delete: true, AssignOwner: true}, ManageUsers, LoginAs)
		}, false},
		{"everything", func(_ *Config, id *Identity) { id.Owner = true }, false},
		{"a rule", func(c *Config, _ *Identity) { c.Rules = nil }, true},
		{"a rule's level", func(c *Config, _ *Identity) {
			less := *rule
			less.Access = ReadOnly
			c.Rules = []*SharingRule{&less, viewing}
		}, true},
		{"a role below", func(c *Config, _ *Identity) {
			c.Roles, _ = NewRoles([]Role{{Name: "ceo"}, {Name: "sales", Parent: "ceo"}, {Name: "junior"}, {Name: "support", Parent: "ceo"}})
		}, true},
		{"the role", func(_ *Config, id *Identity) { id.Role = "support" }, true},
		{"a role above", func(_ *Config, id *Identity) { id.Role = "ceo" }, false},
		{"a set", func(_ *Config, id *Identity) { id.Sets = nil }, true},
		{"being internal", func(_ *Config, id *Identity) { id.External = true }, true},
		{"the name of the type", func(c *Config, _ *Identity) {
			c.Schema = schema.New([]*schema.Entity{{Name: "person", Stored: "contact", Sharing: schema.Private, Fields: c.Schema.Entity("contact").Fields}}, c.Schema.User.Fields)
			c.Sets["set"] = &PermissionSet{Name: "set", System: []string{ManageUsers}, Entities: map[string]EntityGrant{"person": full}}
			c.Rules = []*SharingRule{{Entity: "person", OwnedByRole: "support", ShareWithRole: "sales", Access: Edit}}
			is := *viewing
			is.Entity, is.MatchName = "person", viewing.ID()
			c.Rules = append(c.Rules, &is)
		}, false},
		{"naming owners", func(c *Config, _ *Identity) {
			c.Sets["set"] = set(EntityGrant{Read: true, Update: true}, ManageUsers)
		}, true},
		{"a value that a rule compares", func(_ *Config, id *Identity) { id.Custom = []byte(`{"team#managed":"b"}`) }, true},
		{"the same value, said by the user", func(_ *Config, id *Identity) { id.Custom = []byte(`{"team":"a"}`) }, true},
		{"a rule for everyone in the place of one for staff", func(c *Config, _ *Identity) {
			wide := *viewing
			wide.ShareWith = Everyone
			c.Rules = []*SharingRule{rule, &wide}
		}, true}, // it is another rule: nobody compares what two rules share
		{"a type that is gone", func(c *Config, _ *Identity) { c.Schema = schema.New(nil, nil) }, false},
	} {
		before, after, is := configOf(t, set(full, ManageUsers)), configOf(t, set(full, ManageUsers)), sam
		before.Rules, after.Rules = []*SharingRule{rule, viewing}, []*SharingRule{rule, viewing}
		for _, c := range []*Config{before, after} {
			c.Schema = schema.New(c.Schema.Entities, []*schema.Field{{Name: "team", Type: schema.Text, Managed: true}})
		}
		w.change(after, &is)
		if Loses(before, sam, after, is) != w.loses {
			t.Errorf("%s: loses is %v", w.name, !w.loses)
		}
	}
}
