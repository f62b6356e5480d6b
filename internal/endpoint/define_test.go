package endpoint_test

import (
	"testing"

	"gatehouse/internal/access"
	"gatehouse/internal/endpoint"
	"gatehouse/internal/fault"
	"gatehouse/internal/gatetest"
	"gatehouse/internal/user"
)

// TestMayDefine checks contract A13 for definitions.
func TestMayDefine(t *testing.T) {
	w := gatetest.New(t, "sqlite")
	w.Apply(`
tenant: acme
hosts: [acme.localhost]
permission_sets:
  - {name: endpoints, system: [manage_endpoints]}
  - {name: everything, system: [manage_endpoints], all_entity_access: true}
  - {name: records, all_entity_access: true}
users:
  - {email: olivia@acme.example, name: Olivia, owner: true}
  - {email: emil@acme.example, name: Emil, permission_sets: [endpoints]}
  - {email: alma@acme.example, name: Alma, permission_sets: [everything]}
  - {email: rolf@acme.example, name: Rolf, permission_sets: [records]}
  - {email: eva@customer.example, name: Eva, type: external, permission_sets: [everything]}
`)
	cfg := w.Config("acme")
	viewer := func(name string) access.Viewer {
		t.Helper()
		v, err := w.Nodes[0].Server.Directory().Viewer(t.Context(), cfg, user.ID(w.UserID("acme", name)), false)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	const own, other = "own", "other"
	for _, c := range []struct {
		who    string
		users  []string
		system bool
		may    bool
	}{
		{"olivia@acme.example", nil, false, true},
		{"olivia@acme.example", []string{own, other}, true, true},
		{"emil@acme.example", nil, false, true},
		{"emil@acme.example", []string{own}, false, true},
		{"emil@acme.example", []string{other}, false, false},
		{"emil@acme.example", []string{own, other}, false, false},
		{"emil@acme.example", nil, true, false},
		{"alma@acme.example", nil, true, true},
		{"alma@acme.example", []string{own}, true, true},
		{"alma@acme.example", []string{other}, false, false},
		{"rolf@acme.example", nil, false, false},
		{"rolf@acme.example", []string{own}, true, false},
		{"eva@customer.example", nil, false, false},
		{"eva@customer.example", []string{own}, true, false},
	} {
		v := viewer(c.who)
		var ids []user.ID
		for _, u := range c.users {
			ids = append(ids, map[string]user.ID{own: v.UserID(), other: user.ID(w.UserID("acme", "olivia@acme.example") + map[bool]string{true: "x"}[v.TenantOwner()])}[u])
		}
		err := endpoint.MayDefine(v, ids, c.system)
		if (err == nil) != c.may || err != nil && fault.CodeOf(err) != fault.Forbidden {
			t.Errorf("%s with %v, system %v: %v", c.who, c.users, c.system, err)
		}
	}
	if err := endpoint.MayDefine(access.Viewer{}, nil, false); fault.CodeOf(err) != fault.Forbidden {
		t.Errorf("nobody: %v", err)
	}
}
