package records_test

import (
	"fmt"
	"strings"
	"testing"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/fault"
	"gatehouse/internal/records"
	"gatehouse/internal/user"
)

// note returns a body whose searchable note has n words.
func note(n int) string {
	words := make([]string, n)
	for i := range words {
		words[i] = fmt.Sprintf("w%d", i)
	}
	return `{"note": "` + strings.Join(words, " ") + `"}`
}

// A record has a bounded number of index rows, and a batch and a run change as many
// (contract V4). What is beyond it is refused, and nothing of it is done.
func TestIndexRowsAreBounded(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h, ctx := seers(t, d, "acme"), t.Context()
		records.MaxEntries(t, 100)
		s := h.as("owning")
		_, err := s.Create(ctx, "contact", body(t, note(60)))
		want(t, err, fault.Conflict)
		_, err = s.Batch(ctx, records.Batch{Entity: "contact", Items: []records.Item{creating(t, note(60))}})
		want(t, err, fault.Conflict)
		if n := h.tableRows("records", "1 = 1") + h.tableRows("field_values", "1 = 1"); n != 0 {
			t.Fatalf("%d rows", n)
		}

		at := id(h.create(s, "contact", note(20)))
		for i, name := range []string{"sharing", "lead", "rita", "mat", "wanda"} {
			err := s.Share(ctx, "contact", at, records.Share{Principal: access.UserPrincipal(user.ID(h.ids[name])), Access: access.ReadOnly})
			if i >= 4 { // each share adds 23 rows: 20 words and the three indexed fields
				want(t, err, fault.Conflict)
			} else if err != nil {
				t.Fatal(describe(err))
			}
		}
		_, err = s.Update(ctx, "contact", at, body(t, note(40)))
		want(t, err, fault.Conflict)
		records.MaxEntries(t, 60) // as if the record were older than the bound
		h.update(s, "contact", at, note(19))

		items := []records.Item{creating(t, note(10)), creating(t, note(10)), creating(t, note(10))}
		_, err = s.Batch(ctx, records.Batch{Entity: "contact", Items: items})
		want(t, err, fault.Validation)
		u, p := h.part("owning")
		_, err = p.Many(ctx, "contact", items)
		if err == nil {
			err = u.Commit(ctx, nil)
		}
		want(t, err, fault.ExecutionError)
		u, p = h.part("owning")
		if err := p.Delete(ctx, "contact", at); err != nil {
			t.Fatal(describe(err))
		}
		want(t, u.Commit(ctx, nil), fault.ExecutionError)
		if n := h.tableRows("records", "1 = 1"); n != 1 {
			t.Errorf("%d records", n)
		}
		h.delete(s, "contact", at)
		if n := h.tableRows("field_values", "1 = 1"); n != 0 {
			t.Errorf("%d rows are left", n)
		}
	})
}
