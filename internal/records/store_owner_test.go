package records_test

import (
	"fmt"
	"testing"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/fault"
	"gatehouse/internal/records"
	"gatehouse/internal/user"
)

// Who may change a record of another, and may name owners, does not make it their
// own, and so does not come to delete and share it, unless a rule names them.
func TestWhoMayUpdateDoesNotTakeTheRecord(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := viewed(t, d, viewing(access.ExternalUsers, access.ReadOnly, "agent=id"))
		h.user("clerk", user.User{})
		h.set("clerk", access.PermissionSet{Entities: map[string]access.EntityGrant{
			"order": {Create: true, Read: true, Update: true, Delete: true, AssignOwner: true},
		}})
		clerk, ctx := h.as("clerk"), t.Context()
		order := id(h.create(h.as("olivia"), "order", `{"name": "another's"}`))
		err := h.as("olivia").Share(ctx, "order", order, records.Share{Principal: access.UserPrincipal(user.ID(h.ids["clerk"])), Access: access.Edit})
		if err != nil {
			t.Fatal(describe(err))
		}
		take := body(t, fmt.Sprintf(`{"owner_id": %q}`, h.ids["clerk"]))
		_, err = clerk.Update(ctx, "order", order, body(t, `{"owner_id": "01890000-0000-7000-8000-000000000000"}`))
		nobody := describe(err)
		if _, err := clerk.Update(ctx, "order", order, take); describe(err) != nobody {
			t.Errorf("clerk takes it: %s, want %s", describe(err), nobody)
		}
		u, p := h.part("clerk")
		defer u.Close()
		if _, err := p.Update(ctx, "order", order, take); describe(err) != nobody {
			t.Errorf("clerk takes it in a run: %s, want %s", describe(err), nobody)
		}
		want(t, clerk.Delete(ctx, "order", order), fault.Forbidden)
		own := id(h.create(clerk, "order", `{"name": "their own"}`)) // as everybody
		h.update(clerk, "order", own, fmt.Sprintf(`{"owner_id": %q}`, h.ids["clerk"]))
		h.delete(clerk, "order", own)
	})
}
