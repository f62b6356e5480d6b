package records_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/fault"
	"gatehouse/internal/records"
)

// referred is an account that n contacts refer to, and a rule that shares those
// contacts with support.
func referred(t *testing.T, d *db.DB, n int) (h *house, account string) {
	h = acme(t, d)
	account = id(h.create(h.as("sam"), "account", `{"name": "wide"}`))
	h.configure(func(ctx context.Context, tx db.Tx) error {
		return access.PutRule(ctx, tx, &access.SharingRule{
			Entity: "contact", Where: []access.Condition{{Field: "account", Value: jsontext.Value(fmt.Sprintf("%q", account))}},
			ShareWithRole: "support", Access: access.ReadOnly,
		})
	})
	sam := h.as("sam")
	for i := range n {
		h.create(sam, "contact", fmt.Sprintf(`{"score": %d, "account": %q}`, i%2, account))
	}
	return h, account
}

// tableRows counts the rows of a table of the tenant that meet a condition.
func (h *house) tableRows(table, where string, args ...any) (n int64) {
	h.t.Helper()
	err := h.d.For(h.tenant).Query(context.Background(), `SELECT count(*) FROM `+table+` WHERE tenant_id = $1 AND `+where,
		func(r db.Row) error { n = r.Int(0); return nil }, args...)
	if err != nil {
		h.t.Fatal(err)
	}
	return n
}

// The transaction that deletes a record clears few of the references to it. The
// others are cleared in short ones, by whoever deleted it or else by a server,
// and leave the same behind.
func TestADeletionThatManyReferToIsSplit(t *testing.T) {
	const n = 1100
	for _, run := range []bool{false, true} {
		t.Run(fmt.Sprint("run=", run), func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				h, account := referred(t, d, n)
				eva, one := h.as("eva"), records.Filter{Field: "score", Value: "1"}
				if seen := len(h.list(eva, "contact", one)); seen != 200 {
					t.Fatalf("eva sees %d contacts by the rule", seen)
				}
				if run {
					unit := h.store.Begin(h.config())
					defer unit.Close()
					if err := unit.As(viewer(h, "sam")).Delete(t.Context(), "account", account); err != nil {
						t.Fatal(err)
					}
					if err := unit.Commit(t.Context(), nil); err != nil {
						t.Fatal(err)
					}
					_, err := h.as("sam").Get(t.Context(), "account", account)
					want(t, err, fault.NotFound)
					if kept := h.tableRows("records", "entity = 'contact' AND version = 1"); kept != n {
						t.Errorf("the deleting transaction changed %d contacts", n-kept)
					}
					_, err = h.as("sam").Create(t.Context(), "contact", body(t, fmt.Sprintf(`{"account": %q}`, account)))
					want(t, err, fault.Validation, "account")
					if err := records.Sweep(t.Context(), d.For(h.tenant)); err != nil {
						t.Fatal(err)
					}
				} else {
					h.delete(h.as("sam"), "account", account)
				}
				if kept := h.tableRows("records", "entity = 'contact' AND (version <> 2 OR updated_by <> $2 OR updated_at < created_at)", h.ids["sam"]); kept != 0 {
					t.Errorf("%d contacts were not changed once, by sam", kept)
				}
				if left := h.tableRows("field_values", "value = $2", account); left != 0 {
					t.Errorf("%d index rows of the reference are left", left)
				}
				if left := h.tableRows("rule_matches", "1 = 1") + h.tableRows("leftovers", "1 = 1"); left != 0 {
					t.Errorf("%d matches and leftovers are left", left)
				}
				for i, r := range append(h.list(h.as("sam"), "contact"), h.list(h.as("sam"), "contact", one)...) {
					if r["account"] != nil {
						t.Fatalf("contact %d still refers to %v", i, r["account"])
					}
				}
				if seen := len(h.list(eva, "contact", one)) + len(h.list(eva, "contact")); seen != 0 {
					t.Errorf("eva still sees %d contacts", seen)
				}
				// '' and the ways of the owner and the owner's role, for each score.
				if rows := h.tableRows("field_values", "field = 'score'"); rows != 3*n {
					t.Errorf("%d index rows of score, want %d", rows, 3*n)
				}
			})
		})
	}
}

func viewer(h *house, name string) access.Viewer {
	h.t.Helper()
	v, err := h.dir.Viewer(context.Background(), h.config(), h.ids[name], false)
	if err != nil {
		h.t.Fatal(err)
	}
	return v
}

// A page of a walk is bounded in bytes, and holds one record at least.
func TestAWalkHoldsFewLargeRecords(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		ada, large := h.as("ada"), strings.Repeat("x", 900<<10)
		for range 7 {
			h.create(ada, "contact", fmt.Sprintf(`{"extra": [%q]}`, large))
		}
		err := d.For(h.tenant).Write(t.Context(), func(tx db.Tx) error {
			n, err := records.WalkPage(t.Context(), tx, "contact")
			if n != 4 {
				t.Errorf("a page of %d records, want 4", n)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
