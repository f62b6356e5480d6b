package records_test

import (
	"errors"
	"testing"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/fault"
	"gatehouse/internal/records"
)

// What a refused call of several has read, the unit has read: another's change of it makes the unit
// begin anew, and it counts (contracts X4 and X6).
func TestARefusedCallOfSeveralHasRead(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		sam, ctx := h.as("sam"), t.Context()
		rec := id(h.create(sam, "contact", `{"name": "a", "score": 1}`))
		u, p := h.part("sam")
		defer u.Close()
		_, err := p.Many(ctx, "contact", []records.Item{updating(t, rec, `{"score": "x"}`)})
		want(t, err, fault.Validation)
		made, err := p.Create(ctx, "contact", body(t, `{}`))
		must(t, made, err)
		h.update(sam, "contact", rec, `{"name": "changed by another"}`)
		if err := u.Commit(ctx, nil); !errors.Is(err, records.ErrLost) {
			t.Errorf("the commit behind a refused update of what another has changed: %v, want ErrLost", err)
		}
	})
}
