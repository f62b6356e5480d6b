package access

import (
	"encoding/json"
	"testing"

	"gatehouse/internal/schema"
	"gatehouse/internal/tenant"
)

// abilitiesOf returns the abilities in the answer of /me for a user with one
// permission set.
func abilitiesOf(t *testing.T, id Identity, set *PermissionSet) string {
	t.Helper()
	roles, err := NewRoles(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &Config{
		Tenant: &tenant.Tenant{ID: "acme"}, Roles: roles, Sets: map[string]*PermissionSet{"set": set},
		Schema: schema.New([]*schema.Entity{{Name: "contact", Fields: []*schema.Field{
			{Name: "name", Type: schema.Text}, {Name: "score", Type: schema.Number},
		}}}, []*schema.Field{{Name: "company", Type: schema.Text}}),
	}
	id.UserID, id.Sets = "u", []string{"set"}
	b, err := json.Marshal(viewerOf(c, id).Abilities())
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestAbilitiesAreCASLRules(t *testing.T) {
	closed := FieldGrant{}
	for _, c := range []struct {
		name string
		id   Identity
		set  PermissionSet
		want string
	}{
		{"the owner manages all", Identity{Owner: true}, PermissionSet{}, `[{"action":"manage","subject":"all"}]`},
		{"an external owner is none", Identity{Owner: true, External: true}, PermissionSet{}, `[]`},
		{
			"fields where some are left out", Identity{},
			PermissionSet{Entities: map[string]EntityGrant{"contact": {Read: true, Update: true, Delete: true, Fields: map[string]FieldGrant{"score": {Read: true}}}}},
			`[{"action":"delete","subject":"contact"},{"action":"read","subject":"contact"},{"action":"update","subject":"contact","fields":["name"]}]`,
		},
		{
			"nothing but the id", Identity{},
			PermissionSet{Entities: map[string]EntityGrant{"contact": {Read: true, Fields: map[string]FieldGrant{"score": closed, "name": closed}}}},
			`[{"action":"read","subject":"contact","fields":["id"]}]`,
		},
		{
			"of users, what can be changed", Identity{},
			PermissionSet{Entities: map[string]EntityGrant{"user": {Create: true, Read: true, Update: true, Delete: true}}},
			`[{"action":"read","subject":"user"},{"action":"update","subject":"user","fields":["company","locale","name"]}]`,
		},
		{
			"a closed column of users", Identity{},
			PermissionSet{Entities: map[string]EntityGrant{"user": {Read: true, Fields: map[string]FieldGrant{"email": closed}}}},
			`[{"action":"read","subject":"user","fields":["active","company","isOwner","locale","name","userType"]}]`,
		},
		{
			"system permissions are for staff", Identity{}, PermissionSet{System: []string{ManageEndpoints}},
			`[{"action":"manage_endpoints","subject":"system"}]`,
		},
		{"and not for external users", Identity{External: true}, PermissionSet{System: []string{ManageEndpoints}, AllEntityAccess: true}, `[]`},
	} {
		if got := abilitiesOf(t, c.id, &c.set); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}
