package records_test

import (
	"cmp"
	"context"
	"errors"
	"testing"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/fault"
	"gatehouse/internal/records"
	"gatehouse/internal/schema"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// unitWays are contacts that ada changes in a unit, and what sam, who has the
// role sales, may do with them afterwards: the codes of a read and an update.
var unitWays = []struct {
	name, body, edit string
	owner, becomes   string       // becomes is the owner that the unit sets, "" for none
	share            access.Level // with sam to read, with sales to edit
	known            bool         // to sam, by a managed field
	get, update      fault.Code
}{
	{name: "nothing", owner: "sue", get: fault.NotFound, update: fault.NotFound},
	{name: "the owner", owner: "sue", becomes: "sam"},
	{name: "no longer the owner", owner: "sam", becomes: "sue", get: fault.NotFound, update: fault.NotFound},
	{name: "a role below", owner: "joe"},
	{name: "no longer a role below", owner: "joe", becomes: "sue", get: fault.NotFound, update: fault.NotFound},
	{name: "a rule by role", owner: "sue", becomes: "eva", update: fault.Forbidden},
	{name: "a share", owner: "sue", share: access.ReadOnly, update: fault.Forbidden},
	{name: "a share with a role", owner: "sue", share: access.Edit},
	{name: "a rule by value", owner: "sue", edit: `{"stage": "won"}`, update: fault.Forbidden},
	{name: "a rule on the record itself", owner: "sue", known: true, update: fault.Forbidden},
	{name: "no longer a rule by value", owner: "sue", body: `{"stage": "won"}`, edit: `{"stage": "new"}`, get: fault.NotFound, update: fault.NotFound},
}

// A viewer reaches the same changed records within the unit as after its
// commit, in each kind of way.
func TestAUnitReachesRecordsInEachWay(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h, ctx := acme(t, d), t.Context()
		h.user("joe", user.User{Role: "junior", Sets: []string{"work"}})
		h.configure(func(ctx context.Context, tx tenant.ConfigTx) error {
			return errors.Join(
				schema.PutUserFields(ctx, tx, []*schema.Field{{Name: "known", Type: schema.Multireference, Target: "contact", Managed: true}}),
				access.PutRule(ctx, tx, &access.SharingRule{
					Entity: "contact", Where: []access.Condition{{Field: schema.IDField, Viewer: "known"}}, ShareWithRole: "sales", Access: access.ReadOnly,
				}),
				access.PutRule(ctx, tx, &access.SharingRule{Entity: "contact", OwnedByRole: "support", ShareWithRole: "sales", Access: access.ReadOnly}),
				access.PutRule(ctx, tx, &access.SharingRule{
					Entity: "contact", Where: []access.Condition{{Field: "stage", Value: []byte(`"won"`)}}, ShareWithRole: "sales", Access: access.ReadOnly,
				}))
		})
		for _, c := range unitWays {
			rec := id(h.create(h.as(c.owner), "contact", cmp.Or(c.body, `{}`)))
			if c.share != "" {
				share := records.Share{Principal: access.RolePrincipal("sales"), Access: c.share}
				if c.share == access.ReadOnly {
					share.Principal = access.UserPrincipal(user.ID(h.ids["sam"]))
				}
				if err := h.as(c.owner).Share(ctx, "contact", rec, share); err != nil {
					t.Fatal(describe(err))
				}
			}
			if c.known {
				h.update(h.system(), "user", h.ids["sam"], `{"known": ["`+rec+`"]}`)
			}
			edit := cmp.Or(c.edit, `{"name": "changed"}`)
			if c.becomes != "" {
				edit = `{"owner_id": "` + h.ids[c.becomes] + `"}`
			}
			u, ada := h.part("ada")
			sam := h.join(u, "sam")
			r, err := ada.Update(ctx, "contact", rec, body(t, edit))
			must(t, r, err)
			check := func(when string, get, update error) {
				if fault.CodeOf(get) != c.get || fault.CodeOf(update) != c.update {
					t.Errorf("%s, %s: %v, %v", c.name, when, get, update)
				}
			}
			_, get := sam.Get(ctx, "contact", rec)
			_, update := sam.Update(ctx, "contact", rec, nil)
			check("in the unit", get, update)
			if err := u.Commit(ctx, nil); err != nil {
				t.Fatal(describe(err))
			}
			_, get = h.as("sam").Get(ctx, "contact", rec)
			_, update = h.as("sam").Update(ctx, "contact", rec, nil)
			check("after the commit", get, update)
		}
	})
}
