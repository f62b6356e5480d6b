package records_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/fault"
	"gatehouse/internal/records"
	"gatehouse/internal/schema"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// keeping creates a tenant that keeps readings for 30 days, their notes below them, and
// marks that refer to readings for ever.
func keeping(t *testing.T, d *db.DB) (*house, *clock.Fake) {
	clk := clock.NewFake(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	h := newHouse(t, d, clk, "acme")
	reading := entity("reading", "value number indexed", "place text searchable")
	reading.KeepDays = 30
	h.configure(func(ctx context.Context, tx tenant.ConfigTx) error {
		return errors.Join(schema.PutEntity(ctx, tx, reading), schema.PutEntity(ctx, tx, entity("mark", "reading reference:reading indexed")),
			schema.PutEntity(ctx, tx, childOf("note", "reading", "text text indexed")),
			access.PutPermissionSet(ctx, tx, &access.PermissionSet{Name: "all", AllEntityAccess: true}))
	})
	h.user("ada", user.User{Sets: []string{"all"}})
	return h, clk
}

// Records that are older than their entity type keeps them are deleted as by a user:
// with what is below them and the references to them (contract R20).
func TestOldRecordsAreDeleted(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h, clk := keeping(t, d)
		s := h.as("ada")
		old := id(h.create(s, "reading", `{"value": 0, "place": "north hall"}`))
		mark := id(h.create(s, "mark", `{"reading": "`+old+`"}`))
		h.create(s, "note", `{"text": "n", "reading": "`+old+`"}`)
		for i := range 120 {
			h.create(s, "reading", fmt.Sprintf(`{"value": %d}`, i))
		}
		clk.Advance(20 * 24 * time.Hour)
		young := id(h.create(s, "reading", `{"value": 1, "place": "south hall"}`))
		expire := func(want int) {
			t.Helper()
			if err := records.Expire(t.Context(), d.For(h.tenant), clk); err != nil {
				t.Fatal(err)
			}
			if n := len(h.list(s, "reading")); n != want {
				t.Fatalf("%d readings, want %d", n, want)
			}
		}
		clk.Advance(10*24*time.Hour - time.Second)
		expire(122) // a second too early
		clk.Advance(time.Hour)
		expire(1)
		if got := h.get(s, "mark", mark); got["reading"] != nil {
			t.Errorf("the mark is %v", got)
		}
		h.get(s, "reading", young)
		if n := h.tableRows("records", "entity = 'note'"); n != 0 {
			t.Errorf("%d notes", n)
		}
		clk.Advance(30 * 24 * time.Hour)
		expire(0)
		if n := h.tableRows("field_values", "entity <> 'mark'"); n != 0 {
			t.Errorf("%d index rows are left", n)
		}
		h.get(s, "mark", mark)
	})
}

// A pass goes on while there is more than a tenant may delete in its turn.
func TestAPassDeletesWhatItsTurnsLeave(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h, clk := keeping(t, d)
		s := h.as("ada")
		for i := range 120 {
			h.create(s, "reading", fmt.Sprintf(`{"value": %d}`, i))
		}
		clk.Advance(31 * 24 * time.Hour)
		if err := records.ExpireAll(t.Context(), d, clk); err != nil {
			t.Fatal(err)
		}
		if n := h.tableRows("records", "1 = 1"); n != 0 {
			t.Errorf("%d records are left", n)
		}
	})
}

// A change of keep holds for the next pass, and the one that runs ends.
func TestKeepIsChanged(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h, clk := keeping(t, d)
		s := h.as("ada")
		h.create(s, "reading", `{"value": 1}`)
		clk.Advance(40 * 24 * time.Hour)
		for _, keep := range []int{0, 100, 20} {
			reading := entity("reading", "value number indexed", "place text searchable")
			reading.KeepDays = keep
			h.configure(func(ctx context.Context, tx tenant.ConfigTx) error { return schema.PutEntity(ctx, tx, reading) })
			old, err := records.Old(t.Context(), d.For(h.tenant), reading, clk.Now(), 10)
			if err := errors.Join(err, records.Expire(t.Context(), d.For(h.tenant), clk)); err != nil {
				t.Fatal(err)
			}
			left := h.tableRows("records", "1 = 1")
			if gone := keep == 20; (left == 0) != gone || keep > 0 && (old == 1) != gone {
				t.Errorf("keep %d: %d records were old, %d are left", keep, old, left)
			}
			tenants, err := schema.Keeping(t.Context(), d)
			if err != nil || (len(tenants) == 1) != (keep > 0) {
				t.Errorf("keep %d: tenants %v, %v", keep, tenants, err)
			}
		}
	})
}

// Several nodes delete old records while others change them: each is deleted once, and
// no writer fails but by its record being gone.
func TestNodesDeleteOldRecordsTogether(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h, clk := keeping(t, d)
		s := h.as("ada")
		var olds []string
		for i := range 150 {
			olds = append(olds, id(h.create(s, "reading", fmt.Sprintf(`{"value": %d}`, i))))
		}
		clk.Advance(31 * 24 * time.Hour)
		young := id(h.create(s, "reading", `{"value": 0}`))
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if err := records.Expire(context.WithoutCancel(t.Context()), d.For(h.tenant), clk); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Go(func() {
			for i, at := range olds {
				_, err := s.Update(t.Context(), "reading", at, body(t, fmt.Sprintf(`{"value": %d}`, -i)))
				if err != nil && fault.CodeOf(err) != fault.NotFound {
					t.Error(describe(err))
				}
			}
		})
		wg.Wait()
		if n := h.tableRows("records", "1 = 1"); n != 1 {
			t.Errorf("%d records", n)
		}
		if n := h.tableRows("field_values", "field = 'value'"); n != 2 { // everybody's and the owner's
			t.Errorf("%d index rows", n)
		}
		h.get(s, "reading", young)
	})
}
