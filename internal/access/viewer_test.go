package access

import (
	"slices"
	"testing"

	"gatehouse/internal/schema"
	"gatehouse/internal/tenant"
)

func configOf(t *testing.T, sets ...*PermissionSet) *Config {
	t.Helper()
	roles, err := NewRoles([]Role{{Name: "ceo"}, {Name: "sales", Parent: "ceo"}, {Name: "junior", Parent: "sales"}, {Name: "support", Parent: "ceo"}})
	if err != nil {
		t.Fatal(err)
	}
	c := &Config{Tenant: &tenant.Tenant{ID: "acme"}, Roles: roles, Sets: map[string]*PermissionSet{}, Schema: schema.New([]*schema.Entity{
		{Name: "contact", Sharing: schema.Private, Fields: []*schema.Field{{Name: "name", Type: schema.Text}, {Name: "score", Type: schema.Number}}},
		{Name: "news", Sharing: schema.PublicRead},
	}, nil)}
	for _, s := range sets {
		c.Sets[s.Name] = s
	}
	return c
}

// What gives an internal user power gives none to an external user (lock 1).
func TestAnExternalUserHasNoPower(t *testing.T) {
	c := configOf(t, &PermissionSet{
		Name: "all", System: SystemPermissions, AllEntityAccess: true, Entities: map[string]EntityGrant{"contact": {Read: true}},
	})
	id := Identity{UserID: "u", Owner: true, Sets: []string{"all", "gone"}}
	if v := viewerOf(c, id); !v.TenantOwner() || !v.AllEntityAccess() || !v.May(ManageUsers) {
		t.Error("an owner lacks power")
	}
	id.External = true
	v := viewerOf(c, id)
	if v.TenantOwner() || v.AllEntityAccess() || slices.ContainsFunc(SystemPermissions, v.May) {
		t.Error("an external user has power")
	}
	on, err := v.On("contact")
	if err != nil || !on.May(Read) || on.May(Create) || on.Scope(Read).All {
		t.Errorf("%+v %v", on, err)
	}
	if news, err := v.On("news"); err != nil || news.Scope(Read).All {
		t.Errorf("an entity type's default is for internal users: %v", err)
	}
}

func TestTheZeroViewerMayDoNothing(t *testing.T) {
	var v Viewer
	if _, err := v.On("contact"); err == nil {
		t.Error("it has rights on records")
	}
	if _, err := v.OnUsers(); err == nil {
		t.Error("it has rights on users")
	}
	if v.Tenant() != "" || v.UserID() != "" || v.Config() != nil || v.May(ManageUsers) || v.TenantOwner() || v.AllEntityAccess() {
		t.Error("it is somebody")
	}
}

func TestAViewerOfTheSystemNeedsAReason(t *testing.T) {
	c := configOf(t)
	refused := func(fn func()) (yes bool) {
		defer func() { yes = recover() != nil }()
		fn()
		return false
	}
	user := viewerOf(c, Identity{UserID: "u", Role: "sales"})
	if !refused(func() { System(c, "") }) || !refused(func() { SystemAs(user, "") }) || !refused(func() { SystemAs(Viewer{}, "why") }) {
		t.Error("one is made without a reason or a user")
	}
	if v := SystemAs(user, "why"); v.UserID() != "u" || v.Role() != "sales" || !v.AllEntityAccess() || user.AllEntityAccess() {
		t.Error("SystemAs is not the user with more power")
	}
}

func TestGrantsUnite(t *testing.T) {
	c := configOf(t,
		&PermissionSet{Name: "a", Entities: map[string]EntityGrant{"contact": {Read: true, Fields: map[string]FieldGrant{"name": {}, "score": {Edit: true}}}}},
		&PermissionSet{Name: "b", Entities: map[string]EntityGrant{"contact": {Update: true, Fields: map[string]FieldGrant{"name": {Read: true}, "score": {}}}}})
	on, err := viewerOf(c, Identity{UserID: "u", Sets: []string{"a", "b"}}).On("contact")
	if err != nil || !on.May(Read) || !on.May(Update) || on.May(Delete) {
		t.Errorf("%+v %v", on, err)
	}
	if !slices.Equal(on.ReadField, []bool{true, true}) || !slices.Equal(on.EditField, []bool{false, true}) {
		t.Errorf("read %v, edit %v", on.ReadField, on.EditField)
	}
}

func TestScopesFollowTheRoleTree(t *testing.T) {
	c := configOf(t)
	c.Rules = []*SharingRule{{Entity: "contact", OwnedByRole: "support", ShareWithRole: "junior", Access: ReadOnly}}
	on, err := viewerOf(c, Identity{UserID: "u", Role: "sales"}).On("contact")
	if err != nil {
		t.Fatal(err)
	}
	for verb, want := range map[Verb][]string{Read: {"junior", "support"}, Update: {"junior"}, Delete: {"junior"}} {
		s := on.Scope(verb)
		if s.All || !slices.Equal(s.Ways[0].Names, []string{"u"}) || s.Ways[1].Kind != ByOwnerRole || !slices.Equal(s.Ways[1].Names, want) {
			t.Errorf("%s: %+v, want the owner u and the roles %v", verb, s.Ways, want)
		}
	}
}

func TestARoleTreeIsATree(t *testing.T) {
	for what, list := range map[string][]Role{
		"twice": {{Name: "a"}, {Name: "a"}}, "no parent": {{Name: "a", Parent: "b"}}, "a circle": {{Name: "a", Parent: "b"}, {Name: "b", Parent: "a"}},
		"itself": {{Name: "a", Parent: "a"}},
	} {
		if _, err := NewRoles(list); err == nil {
			t.Errorf("%s: it is taken", what)
		}
	}
}

func TestASharingRuleIsKnownByWhatItSays(t *testing.T) {
	rule := SharingRule{Entity: "contact", ShareWithRole: "sales", Where: []Condition{{Field: "name", Value: []byte(`"a"`)}}}
	other, edit := rule, rule
	other.Where = []Condition{{Field: "name", Value: []byte(`"b"`)}}
	edit.Access = Edit
	if rule.ID() == other.ID() || rule.ID() != edit.ID() || rule.StoredAs() != rule.ID() {
		t.Error("two rules are one, or one is two")
	}
}
