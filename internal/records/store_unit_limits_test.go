package records_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/fault"
	"gatehouse/internal/records"
)

// refusedFor fails the test unless err is EXECUTION_ERROR and names a limit.
func refusedFor(t *testing.T, err error, limit string) {
	t.Helper()
	want(t, err, fault.ExecutionError)
	if err == nil || !strings.Contains(err.Error(), limit) {
		t.Errorf("%v: expected the limit %q", err, limit)
	}
}

// stored returns the number of records, and checks that the size of each is
// stored.
func stored(t *testing.T, d *db.DB) (n int64) {
	t.Helper()
	weighed := int64(0)
	err := d.For("acme").Query(t.Context(), `SELECT COUNT(*), SUM(CASE WHEN data_bytes > 0 THEN 1 ELSE 0 END) FROM records WHERE tenant_id = $1`,
		func(r db.Row) error { n, weighed = r.Int(0), r.Int(1); return nil })
	if err != nil {
		t.Fatal(err)
	}
	if n != weighed {
		t.Errorf("%d of %d records were weighed", weighed, n)
	}
	return n
}

// TestChangesKeepTheirOrder checks that changes keep their order although
// creations are written together: values become free and are taken again, and
// records refer to deleted ones.
func TestChangesKeepTheirOrder(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h, ctx := acme(t, d), t.Context()
		sam := h.as("sam")
		account := id(h.create(sam, "account", `{"name": "stored"}`))
		stored := id(h.create(sam, "contact", `{"email": "a@x", "account": "`+account+`"}`))
		u, p := h.part("sam")
		defer u.Close()
		create := func(entity, text string) string {
			t.Helper()
			r, err := p.Create(ctx, entity, body(t, text))
			return id(must(t, r, err))
		}
		update := func(id, text string) {
			t.Helper()
			r, err := p.Update(ctx, "contact", id, body(t, text))
			must(t, r, err)
		}
		remove := func(entity, id string) {
			t.Helper()
			if err := p.Delete(ctx, entity, id); err != nil {
				t.Fatal(describe(err))
			}
		}
		own := create("account", `{"name": "the unit's"}`)
		second := create("contact", `{"email": "b@x", "account": "`+own+`"}`)
		third := create("contact", `{"email": "c@x", "account": "`+account+`"}`)
		update(stored, `{"email": "d@x"}`)
		fourth := create("contact", `{"email": "a@x", "account": "`+account+`"}`)
		update(second, `{"score": 2}`)
		remove("contact", third)
		fifth := create("contact", `{"email": "c@x", "account": "`+own+`"}`)
		remove("account", own)
		remove("account", account)
		update(stored, `{"score": 1}`)
		update(fifth, `{"score": 5}`)
		_, err := p.Create(ctx, "contact", body(t, `{"email": "z@x", "account": "`+own+`"}`))
		want(t, err, fault.Validation, "account")
		for id, email := range map[string]string{stored: "d@x", second: "b@x", fourth: "a@x", fifth: "c@x"} {
			_, err := p.Create(ctx, "contact", body(t, `{"email": "`+email+`"}`))
			want(t, err, fault.Conflict, "email")
			r, err := p.Get(ctx, "contact", id)
			if got := must(t, r, err); got["account"] != nil || got["email"] != email {
				t.Errorf("in the unit: %v", got)
			}
		}
		if err := u.Commit(ctx, nil); err != nil {
			t.Fatal(describe(err))
		}
		if n := len(h.list(sam, "contact")); n != 4 {
			t.Errorf("%d contacts", n)
		}
		for email, id := range map[string]string{"d@x": stored, "b@x": second, "a@x": fourth, "c@x": fifth} {
			got := h.get(sam, "contact", id)
			if got["account"] != nil || got["email"] != email {
				t.Errorf("%v", got)
			}
			if n := len(h.list(sam, "contact", records.Filter{Field: "email", Value: email})); n != 1 {
				t.Errorf("%s is found %d times", email, n)
			}
		}
	})
}

// TestACommitEndsInTimeOrIsToldAsItIs checks that at its deadline a transaction
// that is not complete is rolled back, and that one that is complete is
// committed.
func TestACommitEndsInTimeOrIsToldAsItIs(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		for name, also := range map[string]func(ctx context.Context, tx db.Tx) error{
			"complete": func(ctx context.Context, _ db.Tx) error { <-ctx.Done(); return nil },
			"not complete": func(ctx context.Context, tx db.Tx) error {
				<-ctx.Done()
				_, err := tx.Exec(ctx, `UPDATE tenants SET version = version WHERE tenant_id = $1`)
				return err
			},
		} {
			before := stored(t, d)
			u, p := h.part("sam")
			r, err := p.Create(t.Context(), "account", body(t, `{"name": "late"}`))
			must(t, r, err)
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			err = u.Commit(ctx, func(tx db.Tx) error { return also(ctx, tx) })
			cancel()
			u.Close()
			done := stored(t, d) - before
			if (name == "complete") != (err == nil) || (err == nil) != (done == 1) || err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v, %d records more", name, err, done)
			}
		}
	})
}
