package records_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/fault"
	"gatehouse/internal/records"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// TestWhyIsBounded explains a record with 1,000 shares that reach the viewer,
// and checks that only viewers who may do everything may ask.
func TestWhyIsBounded(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		const many = 1000
		h := likeAcme(t, d, "acme")
		h.configure(func(ctx context.Context, tx tenant.ConfigTx) error {
			if err := access.PutRole(ctx, tx, access.Role{Name: "top"}); err != nil {
				return err
			}
			for i := range many {
				if err := access.PutRole(ctx, tx, access.Role{Name: fmt.Sprintf("r%d", i), Parent: "top"}); err != nil {
					return err
				}
			}
			return nil
		})
		h.user("tina", user.User{Role: "top", Sets: []string{"work"}})
		rec := id(h.create(h.system(), "contact", `{"name": "Ada", "owner_id": "`+h.ids["olivia"]+`"}`))
		for i := range many {
			level := access.ReadOnly
			if i == many-1 {
				level = access.Edit
			}
			share := records.Share{Principal: access.RolePrincipal(fmt.Sprintf("r%d", i)), Access: level}
			if err := h.system().Share(context.Background(), "contact", rec, share); err != nil {
				t.Fatal(err)
			}
		}
		why, err := h.system().Why(context.Background(), h.viewer("tina"), "contact", rec)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range why.Ways {
			if w.Cause != access.ShareWithRole {
				continue
			}
			edits := 0
			for _, r := range w.Reasons {
				if r.Opens(access.Update) && strings.Contains(r.Text, "shared with role r999 (edit)") {
					edits++
				}
			}
			if len(w.Reasons) != 11 || w.More != many-11 || edits != 1 {
				t.Errorf("%d reasons, %d more, %d that open it for update", len(w.Reasons), w.More, edits)
			}
		}
		if _, err := h.as("tina").Why(context.Background(), h.viewer("tina"), "contact", rec); fault.CodeOf(err) != fault.Forbidden {
			t.Errorf("tina asks: %v", err)
		}
	})
}

// TestEachWayIsExplained checks that each kind of way has its own explanation.
func TestEachWayIsExplained(t *testing.T) {
	if list := records.IncompleteWays(); len(list) > 0 {
		t.Errorf("these kinds of access.Kind have no complete entry in ways: %v", list)
	}
}
