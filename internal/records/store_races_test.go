package records_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
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

// together runs fn n times at once and returns the errors.
func together(n int, fn func(i int) error) []error {
	errs := make([]error, n)
	start := make(chan struct{})
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() {
			<-start
			errs[i] = fn(i)
		})
	}
	close(start)
	wait.Wait()
	return errs
}

func TestPatchesOfDifferentFieldsAllSurvive(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		var fields []string
		for i := range 64 {
			fields = append(fields, fmt.Sprintf("f%d number indexed", i))
		}
		h.configure(func(ctx context.Context, tx tenant.ConfigTx) error {
			return schema.PutEntity(ctx, tx, entity("wide", fields...))
		})
		ada := h.as("ada")
		made := id(h.create(ada, "wide", `{}`))
		err := errors.Join(together(64, func(i int) error {
			_, err := ada.Update(t.Context(), "wide", made, body(t, fmt.Sprintf(`{"f%d": %d}`, i, i)))
			return err
		})...)
		if err != nil {
			t.Fatal(describe(err))
		}
		got := h.get(ada, "wide", made)
		for i := range 64 {
			name := fmt.Sprintf("f%d", i)
			if got[name] != float64(i) {
				t.Errorf("%s is %v", name, got[name])
			}
			if found := h.list(ada, "wide", records.Filter{Field: name, Value: fmt.Sprint(i)}); len(found) != 1 {
				t.Errorf("%s is found %d times", name, len(found))
			}
		}
	})
}

func TestOfManyCreatorsOfOneUniqueValueOneWins(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		sam := h.as("sam")
		for round := range 5 {
			text := fmt.Sprintf(`{"email": "%d@example.com"}`, round)
			spare := id(h.create(sam, "contact", `{}`))
			won := 0
			for _, err := range together(16, func(i int) (err error) {
				if i%4 == 3 {
					_, err = sam.Update(t.Context(), "contact", spare, body(t, text))
				} else {
					_, err = sam.Create(t.Context(), "contact", body(t, text))
				}
				return err
			}) {
				if err == nil {
					won++
				} else {
					want(t, err, fault.Conflict, "email")
				}
			}
			found := h.list(sam, "contact", records.Filter{Field: "email", Value: fmt.Sprintf("%d@example.com", round)})
			// Each of the four patches of one record may succeed after another.
			if len(found) != 1 || won != 1 && (won != 4 || id(found[0]) != spare) {
				t.Errorf("round %d: %d won, %d records have the value", round, won, len(found))
			}
		}
	})
}

// A write that refers to a record while it is deleted is refused or its
// reference is cleared: no dangling reference remains, in the data or in the
// index.
func TestNoReferenceDanglesAfterADelete(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		sam := h.as("sam")
		refused := 0
		for range 12 {
			account := id(h.create(sam, "account", `{}`))
			text := `{"account": "` + account + `"}`
			spare := id(h.create(sam, "contact", `{}`))
			for i, err := range together(8, func(i int) (err error) {
				switch {
				case i == 3:
					err = sam.Delete(t.Context(), "account", account)
				case i%2 == 0:
					_, err = sam.Create(t.Context(), "contact", body(t, text))
				default:
					_, err = sam.Update(t.Context(), "contact", spare, body(t, text))
				}
				return err
			}) {
				if err != nil && i != 3 {
					want(t, err, fault.Validation, "account")
					refused++
				} else if err != nil {
					t.Fatal(describe(err))
				}
			}
		}
		for cursor := ""; ; {
			p, err := sam.List(t.Context(), "contact", records.Query{Limit: 200, Cursor: cursor})
			if err != nil {
				t.Fatal(describe(err))
			}
			for _, r := range objects(t, p.Records) {
				if r["account"] != nil {
					t.Errorf("contact %v refers to %v, which is deleted", r["id"], r["account"])
				}
			}
			if cursor = p.Next; cursor == "" {
				break
			}
		}
		if n := h.keys("contact", "account"); n != 0 {
			t.Errorf("%d index rows refer to what is deleted", n)
		}
		t.Logf("%d refused", refused)
	})
}

// A reference that is changed to another record while its old target is deleted
// keeps its new target.
func TestADeleteClearsOnlyReferencesToItsRecord(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		sam := h.as("sam")
		keep := id(h.create(sam, "account", `{}`))
		for round := range 20 {
			gone := id(h.create(sam, "account", `{}`))
			var contacts []string
			for range 4 {
				contacts = append(contacts, id(h.create(sam, "contact", `{"account": "`+gone+`"}`)))
			}
			err := errors.Join(together(5, func(i int) (err error) {
				if i == 4 {
					return sam.Delete(t.Context(), "account", gone)
				}
				_, err = sam.Update(t.Context(), "contact", contacts[i], body(t, `{"account": "`+keep+`"}`))
				return err
			})...)
			if err != nil {
				t.Fatal(describe(err))
			}
			for _, c := range contacts {
				if r := h.get(sam, "contact", c); r["account"] != keep {
					t.Fatalf("round %d: refers to %v, was turned to %s", round, r["account"], keep)
				}
				h.delete(sam, "contact", c)
			}
		}
		if n := h.keys("contact", "account"); n != 0 {
			t.Errorf("%d index rows too many", n)
		}
	})
}

// A rule that is created, or a role that changes, while records are written
// applies to all of them (tenant.Fence).
func TestConfigurationAndRecordsAgreeAfterARace(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		h.user("jim", user.User{Role: "junior", Sets: []string{"work"}})
		for round, stage := range []string{"new", "won", "lost"} {
			rule := &access.SharingRule{Entity: "contact", ShareWithRole: "support", Access: access.ReadOnly,
				Where: []access.Condition{{Field: "stage", Value: []byte(`"` + stage + `"`)}}}
			role := []string{"", "junior", "support"}[round]
			var stop atomic.Bool
			errs := together(7, func(i int) error {
				if i < 6 {
					jim := h.as("jim")
					for n := 0; !stop.Load() || n < 5; n++ {
						if _, err := jim.Create(t.Context(), "contact", body(t, `{"stage": "`+stage+`"}`)); err != nil {
							return err
						}
					}
					return nil
				}
				defer stop.Store(true)
				return errors.Join(h.change(func(ctx context.Context, tx tenant.ConfigTx) error { return access.PutRule(ctx, tx, rule) }),
					h.change(func(ctx context.Context, tx tenant.ConfigTx) error {
						u, err := user.ByID(ctx, tx, user.ID(h.ids["jim"]))
						if err != nil {
							return err
						}
						config, err := access.Load(ctx, tx)
						if err != nil {
							return err
						}
						u.Role = role
						return errors.Join(user.Update(ctx, tx, u), records.ReassignRole(ctx, tx, config, u.ID, role))
					}))
			})
			if err := errors.Join(errs...); err != nil {
				t.Fatal(describe(err))
			}
			filter := records.Filter{Field: "stage", Value: stage}
			all := traverse(h.as("ada"), "contact", 200, filter)
			if got := traverse(h.as("eva"), "contact", 200, filter); got != all {
				t.Errorf("round %d: the rule shows %d bytes of ids of %d", round, len(got), len(all))
			}
			wanted := "ok"
			if role == "junior" { // sue's role is above it
				wanted = all
			}
			if got := traverse(h.as("sue"), "contact", 200, filter); got != wanted {
				t.Errorf("round %d: of a user of role %q sue sees %d bytes of ids of %d", round, role, len(got), len(all))
			}
		}
	})
}
