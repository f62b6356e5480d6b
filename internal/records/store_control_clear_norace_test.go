//go:build !race

package records_test

import (
	"testing"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/records"
)

// However many records go with their parent, one transaction clears up to a
// thousand references to them all, and leaves the others to short ones.
func TestWhatRefersToAFamilyIsClearedInSteps(t *testing.T) {
	t.Cleanup(records.ClearFor(0))
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := dealer(t, d)
		sam := h.as("sam")
		account := id(h.create(sam, "account", `{}`))
		order := h.under(sam, "order", "account", account, "")
		for range 3 {
			line := h.under(sam, "line", "order", order, "")
			for range 2 {
				u, p := h.part("sam")
				for range 170 {
					r, err := p.Create(t.Context(), "note", body(t, `{"line": "`+line+`"}`))
					must(t, r, err)
				}
				if err := u.Commit(t.Context(), nil); err != nil {
					t.Fatal(describe(err))
				}
				u.Close()
			}
		}
		h.delete(sam, "account", account)
		naming := func() int64 { return h.keys("note", "line") }
		if n := naming(); n != 340 || h.tableRows("records", "entity IN ('order', 'line')") != 0 {
			t.Errorf("after the deletion %d of 1,020 notes name a line, want 340", n)
		}
		if err := records.Sweep(t.Context(), d.For(h.tenant)); err != nil {
			t.Fatal(err)
		}
		if n := naming() + h.tableRows("leftovers", "1 = 1"); n != 0 {
			t.Errorf("%d notes and leftovers are left", n)
		}
	})
}
