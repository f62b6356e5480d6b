package records_test

import (
	"context"
	"errors"
	"fmt"
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

// reshape declares the type again, with other fields.
func (h *house) reshape(name string, fields ...string) error {
	return h.change(func(ctx context.Context, tx tenant.ConfigTx) error {
		return schema.PutEntity(ctx, tx, entity(name, fields...))
	})
}

// refused checks that a change of configuration returns a CONFLICT that counts
// the records that conflict with it.
func refused(t *testing.T, err error, entity, field string, n int64) {
	t.Helper()
	want(t, err, fault.Conflict)
	var e *fault.Error
	errors.As(err, &e)
	if e.Details["entity"] != entity || e.Details["records"] != n || field != "" && e.Details["field"] != field {
		t.Fatalf("refused with %v, want %d records of %s.%s", describe(err), n, entity, field)
	}
}

func TestAFieldThatIsRemovedKeepsItsData(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(describe(err))
			}
		}
		must(h.reshape("thing", "a text", "b text unique", "c json"))
		ada := h.as("ada")
		made := id(h.create(ada, "thing", `{"a": "1", "b": "2", "c": {"x": [1, "two"]}}`))
		must(h.reshape("thing", "a text"))
		ada = h.as("ada")
		if r := h.update(ada, "thing", made, `{"a": "3"}`); len(r) != 5 {
			t.Errorf("shows %v", r)
		}
		_, err := ada.Update(t.Context(), "thing", made, body(t, `{"b": "x"}`))
		want(t, err, fault.Validation, "b")
		if n := h.keys("thing", "b"); n != 0 {
			t.Errorf("%d index rows of a field that is gone", n)
		}
		must(h.reshape("thing", "a text", "c json", "b text unique"))
		ada = h.as("ada")
		if r := h.get(ada, "thing", made); r["a"] != "3" || r["b"] != "2" || fmt.Sprint(r["c"]) != "map[x:[1 two]]" {
			t.Errorf("is back as %v", r)
		}
		_, err = ada.Create(t.Context(), "thing", body(t, `{"b": "2"}`))
		want(t, err, fault.Conflict, "b")
	})
}

func TestAChangeThatWouldBreakDataIsRefusedWithCounts(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		if err := h.reshape("thing", "a text", "b number", "c text", "ref reference:account"); err != nil {
			t.Fatal(describe(err))
		}
		ada := h.as("ada")
		account := id(h.create(ada, "account", `{}`))
		for i := range 5 {
			h.create(ada, "thing", fmt.Sprintf(`{"a": "%d", "b": %d, "c": "won", "ref": %q}`, i, i%2, account))
		}
		plain := id(h.create(ada, "thing", `{"a": "2026-01-31"}`))
		for _, c := range []struct {
			field   string
			records int64
			fields  []string
		}{
			{"a", 6, []string{"a number", "b number", "c text"}},
			{"a", 5, []string{"a date", "b number", "c text"}},
			{"b", 5, []string{"a text", "b boolean", "c text"}},
			{"b", 5, []string{"a text", "b number unique", "c text"}},
			{"c", 5, []string{"a text", "b number", "c text unique"}},
			{"a", 6, []string{"a reference:account", "b number", "c text"}},
			{"ref", 5, []string{"a text", "b number", "c text", "ref reference:contact"}},
		} {
			refused(t, h.reshape("thing", c.fields...), "thing", c.field, c.records)
			ada = h.as("ada")
			if r := h.get(ada, "thing", plain); r["a"] != "2026-01-31" || len(h.list(ada, "thing")) != 6 {
				t.Fatalf("%v left %v", c.fields, r)
			}
		}
		refused(t, h.change(func(ctx context.Context, tx tenant.ConfigTx) error { return schema.DeleteEntity(ctx, tx, "thing") }), "thing", "", 6)
		// Values that fit allow the change: text to one of the options, ids to
		// references.
		if err := h.reshape("thing", "a text unique", "b number indexed", "c select indexed", "ref text"); err != nil {
			t.Fatal(describe(err))
		}
		if err := h.reshape("thing", "a text", "b number indexed", "c select", "ref reference:account"); err != nil {
			t.Fatal(describe(err))
		}
		ada = h.as("ada")
		if n := len(h.list(ada, "thing", records.Filter{Field: "b", Value: "1"})); n != 2 {
			t.Errorf("found %d", n)
		}
		h.delete(ada, "account", account)
		for _, r := range h.list(ada, "thing") {
			if r["ref"] != nil {
				t.Errorf("still refers to %v", r["ref"])
			}
		}
	})
}

// A restored reference field refers to the same record as before, or to none.
func TestAReferenceThatComesBackDoesNotDangle(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		ada := h.as("ada")
		keep, gone := id(h.create(ada, "account", `{}`)), id(h.create(ada, "account", `{}`))
		one := id(h.create(ada, "contact", `{"name": "n", "account": "`+keep+`"}`))
		two := id(h.create(ada, "contact", `{"name": "n", "account": "`+gone+`"}`))
		if err := h.reshape("contact", "name text"); err != nil {
			t.Fatal(describe(err))
		}
		h.delete(h.as("ada"), "account", gone)
		// Words are not ids: they are never cleared, even in a restored field.
		if err := h.reshape("contact", "account reference:account"); err != nil {
			t.Fatal(describe(err))
		}
		refused(t, h.reshape("contact", "account reference:account", "name reference:account"), "contact", "name", 2)
		if err := h.reshape("contact", "account reference:account", "name text"); err != nil {
			t.Fatal(describe(err))
		}
		ada = h.as("ada")
		if a, b := h.get(ada, "contact", one), h.get(ada, "contact", two); a["account"] != keep || b["account"] != nil || b["name"] != "n" {
			t.Errorf("refer to %v and %v", a, b)
		}
		if n := h.keys("contact", "account"); n != 1 {
			t.Errorf("%d index rows", n)
		}
	})
}

// Matches of rules by field value are kept up to date when rules are created,
// changed and removed, and when records are created, changed and deleted.
func TestRulesByFieldValueAreKeptTrue(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		sam := h.as("sam")
		rule := &access.SharingRule{Entity: "contact", ShareWithRole: "support", Access: access.ReadOnly, Where: []access.Condition{
			{Field: "extra", Value: []byte(`{}`)}, {Field: "stage", Value: []byte(`"won"`)},
		}}
		put := func(r *access.SharingRule) {
			t.Helper()
			h.configure(func(ctx context.Context, tx tenant.ConfigTx) error { return access.PutRule(ctx, tx, r) })
		}
		sees := func(wanted ...string) {
			t.Helper()
			var got []string
			for _, r := range h.list(h.as("eva"), "contact") {
				got = append([]string{r["name"].(string)}, got...)
			}
			if fmt.Sprint(got) != fmt.Sprint(wanted) {
				t.Errorf("eva sees %v, want %v", got, wanted)
			}
		}
		for i := range 3 {
			h.create(sam, "contact", fmt.Sprintf(`{"name": "won%d", "stage": "won", "score": %d.0, "extra": {}}`, i, i))
		}
		moved := id(h.create(sam, "contact", `{"name": "moved", "stage": "new"}`))
		sees()
		put(rule)
		sees() // a json field has no value to compare
		rule.Where = rule.Where[1:]
		put(rule)
		sees("won0", "won1", "won2")
		h.update(sam, "contact", moved, `{"stage": "won"}`)
		sees("won0", "won1", "won2", "moved")
		_, err := h.as("eva").Update(t.Context(), "contact", moved, nil)
		want(t, err, fault.Forbidden)
		edit := *rule
		edit.Access = access.Edit
		put(&edit)
		h.update(h.as("eva"), "contact", moved, `{"name": "seen"}`)
		want(t, h.as("eva").Delete(t.Context(), "contact", moved), fault.Forbidden)
		h.update(h.as("eva"), "contact", moved, `{"stage": null}`) // eva can no longer see it
		sees("won0", "won1", "won2")
		h.update(h.as("sam"), "contact", moved, `{"stage": "won"}`)
		h.delete(h.as("sam"), "contact", moved)
		sees("won0", "won1", "won2")
		two := &access.SharingRule{Entity: "contact", ShareWithRole: "support", Access: access.ReadOnly, Where: []access.Condition{
			{Field: "score", Value: []byte(`1`)}, {Field: "stage", Value: []byte(`"won"`)},
		}}
		h.configure(func(ctx context.Context, tx tenant.ConfigTx) error {
			return errors.Join(access.DeleteRule(ctx, tx, edit.ID()), access.PutRule(ctx, tx, two))
		})
		sees("won1")
		h.configure(func(ctx context.Context, tx tenant.ConfigTx) error { return access.DeleteRule(ctx, tx, two.ID()) })
		sees()
	})
}

// The owner role of records follows their owner's role.
func TestRecordsFollowTheirOwnersRole(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		h.user("jim", user.User{Role: "junior", Sets: []string{"work"}})
		made := id(h.create(h.as("jim"), "contact", `{}`))
		h.get(h.as("sam"), "contact", made) // sales is above junior
		assign := func(role string) {
			h.configure(func(ctx context.Context, tx tenant.ConfigTx) error {
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
			})
		}
		for _, role := range []string{"sales", "", "support", "ceo"} {
			assign(role)
			_, err := h.as("sam").Get(t.Context(), "contact", made)
			want(t, err, fault.NotFound)
			h.get(h.as("jim"), "contact", made)
		}
		assign("junior")
		h.update(h.as("sam"), "contact", made, `{"name": "x"}`)
		h.delete(h.as("sam"), "contact", made)
	})
}
