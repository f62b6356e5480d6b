package schema_test

import (
	"errors"
	"testing"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/schema"
	"gatehouse/internal/tenant"
	"gatehouse/internal/tenant/tenanttest"
)

// A rename changes names alone: what is stored stays where it is, and what comes
// to have the old name is stored elsewhere.
func TestRenamesLeaveWhatIsStored(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx, h := t.Context(), d.For("acme")
		change := func(list ...*schema.Entity) *schema.Schema {
			t.Helper()
			err := tenanttest.Change(ctx, h, func(tx tenant.ConfigTx) (err error) {
				for _, e := range list {
					err = errors.Join(err, schema.PutEntity(ctx, tx, e))
				}
				return err
			})
			s, errLoad := schema.Load(ctx, h)
			if err := errors.Join(err, errLoad); err != nil {
				t.Fatal(err)
			}
			return s
		}
		field := func(name, from string) *schema.Field {
			return &schema.Field{Name: name, RenamedFrom: from, Type: schema.Text}
		}
		entity := func(name, from string, fields ...*schema.Field) *schema.Entity {
			return &schema.Entity{Name: name, RenamedFrom: from, Sharing: schema.Private, Fields: fields}
		}
		change(entity("lead", "", field("name", ""), field("mail", "")))
		s := change(entity("person", "lead", field("full_name", "name"), field("mail", "")))
		e := s.Entity("person")
		if s.Entity("lead") != nil || e == nil || e.StoredAs() != "lead" || e.Field("full_name").MemberName() != "name" || e.Field("full_name").StoredAs() != "name" {
			t.Fatalf("%+v", e)
		}
		s = change(entity("lead", ""), entity("person", "", field("full_name", ""), field("name", ""), field("mail", "")))
		if is := s.Entity("lead").StoredAs(); is == "lead" || is == "person" {
			t.Errorf("a new type is stored as %s", is)
		}
		if e := s.Entity("person"); e.StoredAs() != "lead" || e.Field("name").MemberName() == "name" || e.Field("full_name").MemberName() != "name" {
			t.Errorf("a new field finds another's values: %+v", e.Field("name"))
		}
		err := tenanttest.Change(ctx, h, func(tx tenant.ConfigTx) error { return schema.DeleteEntity(ctx, tx, "person") })
		if s, errLoad := schema.Load(ctx, h); errors.Join(err, errLoad) != nil || s.Entity("person") != nil || s.Entity("lead") == nil {
			t.Errorf("%v %v", err, errLoad)
		}
	})
}
