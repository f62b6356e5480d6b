package records_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// referred creates an account that n contacts refer to, a rule that shares those
// contacts with support, and one of which each contact matches a member of its own.
func referred(t *testing.T, d *db.DB, n int) (h *house, account string) {
	h = acme(t, d)
	account = id(h.create(h.as("sam"), "account", `{"name": "wide"}`))
	h.configure(func(ctx context.Context, tx tenant.ConfigTx) error {
		return errors.Join(access.PutRule(ctx, tx, &access.SharingRule{
			Entity: "contact", Where: []access.Condition{{Field: "account", Value: jsontext.Value(fmt.Sprintf("%q", account))}},
			ShareWithRole: "support", Access: access.ReadOnly,
		}), access.PutRule(ctx, tx, &access.SharingRule{
			Entity: "contact", Where: []access.Condition{{Field: "account", Viewer: "firm"}, {Field: "id", Viewer: "friends"}},
			ShareWithRole: "support", Access: access.ReadOnly,
		}))
	})
	sam := h.as("sam")
	for i := range n {
		h.create(sam, "contact", fmt.Sprintf(`{"score": %d, "account": %q}`, i%2, account))
	}
	return h, account
}

// tableRows counts the tenant's rows in a table that satisfy a condition.
func (h *house) tableRows(table, where string, args ...any) (n int64) {
	h.t.Helper()
	err := h.d.For(h.tenant).Query(context.Background(), `SELECT count(*) FROM `+table+` WHERE tenant_id = $1 AND `+where,
		func(r db.Row) error { n = r.Int(0); return nil }, args...)
	if err != nil {
		h.t.Fatal(err)
	}
	return n
}

func viewer(h *house, name string) access.Viewer {
	h.t.Helper()
	v, err := h.dir.Viewer(context.Background(), h.config(), user.ID(h.ids[name]), false)
	if err != nil {
		h.t.Fatal(err)
	}
	return v
}
