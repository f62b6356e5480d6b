package access_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/fault"
	"gatehouse/internal/tenant"
	"gatehouse/internal/tenant/tenanttest"
	"gatehouse/internal/user"
)

func change(t *testing.T, h db.Handle, fn func(tx tenant.ConfigTx) error) {
	t.Helper()
	if err := tenanttest.Change(t.Context(), h, fn); err != nil {
		t.Fatal(err)
	}
}

func TestWhatDecidesComesBackAsItWas(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx, h := t.Context(), d.For("acme")
		change(t, h, func(tx tenant.ConfigTx) error { return tenant.Put(ctx, tx, &tenant.Tenant{ID: "acme"}, 1) })
		set := &access.PermissionSet{Name: "Sales <&>", System: []string{access.LoginAs}, Entities: map[string]access.EntityGrant{
			"contact": {Read: true, Fields: map[string]access.FieldGrant{"score": {Edit: true}}},
		}}
		rule := &access.SharingRule{Entity: "contact", ShareWithRole: "a", Access: access.ReadOnly, Where: []access.Condition{{Field: "name", Value: []byte(`"<&>"`)}}}
		change(t, h, func(tx tenant.ConfigTx) error {
			return errors.Join(access.PutRole(ctx, tx, access.Role{Name: "a"}), access.PutRole(ctx, tx, access.Role{Name: "b", Parent: "a"}),
				access.PutPermissionSet(ctx, tx, set), access.PutRule(ctx, tx, rule))
		})
		c, err := access.Load(ctx, h)
		if err != nil || !reflect.DeepEqual(c.Sets["Sales <&>"], set) || len(c.Rules) != 1 || c.Rules[0].ID() != rule.ID() || len(c.Roles.Below("a")) != 1 {
			t.Fatalf("%+v, %v", c, err)
		}
		was, _ := c.Roles.Stored("role:b")
		change(t, h, func(tx tenant.ConfigTx) error { return access.PutRole(ctx, tx, access.Role{Name: "b"}) })
		c, err = access.Load(ctx, h)
		if is, _ := c.Roles.Stored("role:b"); err != nil || is != was || len(c.Roles.Below("a")) != 0 {
			t.Errorf("a role that changed is another: %s, was %s, %v", is, was, err)
		}
		change(t, h, func(tx tenant.ConfigTx) error {
			return errors.Join(access.DeleteRole(ctx, tx, "b"), access.DeletePermissionSet(ctx, tx, set.Name), access.DeleteRule(ctx, tx, rule.ID()))
		})
		left, err := access.Leftovers(ctx, h)
		if err != nil || len(left) != 1 || left[0].Kind != access.LeftShares || left[0].Name != was {
			t.Errorf("the shares of a role that is gone are not left to be removed: %+v, %v", left, err)
		}
		change(t, h, func(tx tenant.ConfigTx) error { return access.PutRole(ctx, tx, access.Role{Name: "b"}) })
		c, err = access.Load(ctx, h)
		if is, _ := c.Roles.Stored("role:b"); err != nil || is == was || len(c.Sets)+len(c.Rules) != 0 {
			t.Errorf("a role has the name that one had which is gone: %s, was %s, %v", is, was, err)
		}
	})
}

// TestADirectoryKnowsOneVersion checks that a viewer and all values derived
// from the configuration are kept as long as the version does not change, and
// no longer.
func TestADirectoryKnowsOneVersion(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx, h, dir := t.Context(), d.For("acme"), access.NewDirectory(d)
		if _, err := dir.Current(ctx, "acme"); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("without a tenant: %v", err)
		}
		u := &user.User{Email: "u@acme.example", Type: user.Internal, Active: true, Custom: []byte("{}")}
		change(t, h, func(tx tenant.ConfigTx) error {
			return errors.Join(tenant.Put(ctx, tx, &tenant.Tenant{ID: "acme", Hosts: []string{"acme.example"}}, 1), user.Add(ctx, tx, clock.Micros(clock.System().Now()), u))
		})
		current := func() (*access.Config, string) {
			t.Helper()
			dir.Forget()
			c, kind, err := dir.ByHost(ctx, "acme.example")
			if err != nil || kind != tenant.PublicHost {
				t.Fatal(kind, err)
			}
			_, active := dir.Viewer(ctx, c, u.ID, false)
			_, even := dir.Viewer(ctx, c, u.ID, true)
			return c, fmt.Sprint(fault.CodeOf(active), " ", fault.CodeOf(even))
		}
		first, answer := current()
		if again, _ := current(); again != first || answer != " " {
			t.Errorf("the version is the same, the configuration another: %q", answer)
		}
		change(t, h, func(tx tenant.ConfigTx) error { u.Active = false; return user.Update(ctx, tx, u) })
		next, answer := current()
		if next == first || next.Tenant.Version <= first.Tenant.Version || answer != "UNAUTHORIZED " {
			t.Errorf("version %d after %d: %q", next.Tenant.Version, first.Tenant.Version, answer)
		}
		if _, err := dir.Viewer(ctx, next, "nobody", true); fault.CodeOf(err) != fault.Unauthorized {
			t.Errorf("nobody: %v", err)
		}
		if _, _, err := dir.ByHost(ctx, "other.example"); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("another host: %v", err)
		}
	})
}
