package records_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// dealer is acme with orders, controlled by their account, and lines, controlled
// by their order.
func dealer(t testing.TB, d *db.DB) *house { return dealerOf(t, d, "acme") }

func dealerOf(t testing.TB, d *db.DB, tenantID tenant.ID) *house {
	h := likeAcme(t, d, tenantID)
	h.configure(func(ctx context.Context, tx tenant.ConfigTx) error {
		grant := access.EntityGrant{Create: true, Read: true, Update: true, Delete: true}
		return errors.Join(
			schema.PutEntity(ctx, tx, childOf("order", "account", "name text", "stage select indexed")),
			schema.PutEntity(ctx, tx, childOf("line", "order", "name text", "stage select indexed", "sku text unique")),
			schema.PutEntity(ctx, tx, entity("note", "line reference:line")),
			access.PutPermissionSet(ctx, tx, &access.PermissionSet{Name: "work", Entities: map[string]access.EntityGrant{
				"contact": grant, "account": grant, "order": grant, "line": grant, "note": grant,
			}}),
		)
	})
	return h
}

// childOf declares a type whose records are controlled by one of another type, to
// which a field of its name refers.
func childOf(name, parent string, fields ...string) *schema.Entity {
	e := entity(name, append(fields, fmt.Sprintf("%s reference:%s required", parent, parent))...)
	e.ControlledBy = parent
	return e
}

func (h *house) under(s *records.Session, kind, parent, of, more string) string {
	h.t.Helper()
	return id(h.create(s, kind, fmt.Sprintf(`{%q: %q%s}`, parent, of, more)))
}

// below reports the ids that a viewer's list shows, oldest first, and checks that
// a filter, point reads and why show the same.
func (h *house) below(name, kind string, all ...string) (list []string) {
	h.t.Helper()
	s := h.as(name)
	for _, r := range h.list(s, kind) {
		list = append([]string{id(r)}, list...)
	}
	var filtered []string
	for _, stage := range []string{"new", "won", "lost"} {
		for _, r := range h.list(s, kind, records.Filter{Field: "stage", Value: stage}) {
			filtered = append(filtered, id(r))
		}
	}
	for _, one := range all {
		_, err := s.Get(context.Background(), kind, one)
		if seen := err == nil; seen != slices.Contains(list, one) {
			h.t.Errorf("%s: a point read of %s %s: %v, the list has %v", name, kind, one, describe(err), list)
		}
		why, err := h.system().Why(context.Background(), h.viewer(name), kind, one)
		if err != nil {
			if fault.CodeOf(err) != fault.NotFound {
				h.t.Fatal(describe(err))
			}
			if slices.Contains(list, one) {
				h.t.Errorf("%s: why does not know %s %s", name, kind, one)
			}
			continue
		}
		if seen := why.Verbs[0].Code == ""; seen != slices.Contains(list, one) {
			h.t.Errorf("%s: why of %s %s says %v, the list has %v", name, kind, one, seen, list)
		}
	}
	for _, one := range filtered {
		if !slices.Contains(list, one) {
			h.t.Errorf("%s: a filter shows %s %s, the list does not", name, kind, one)
		}
	}
	return list
}

func same(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

func TestAParentDecidesWhoReachesARecord(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := dealer(t, d)
		sam, sue := h.as("sam"), h.as("sue")
		a1, a2 := id(h.create(sam, "account", `{}`)), id(h.create(sue, "account", `{}`))
		o1 := h.under(sam, "order", "account", a1, `, "stage": "won"`)
		o2 := h.under(sue, "order", "account", a2, `, "stage": "won"`)
		l1 := h.under(sam, "line", "order", o1, `, "stage": "new"`)
		l2 := h.under(sue, "line", "order", o2, `, "stage": "new"`)
		check := func(name string, accounts, orders, lines []string) {
			t.Helper()
			for kind, want := range map[string][]string{"account": accounts, "order": orders, "line": lines} {
				all := map[string][]string{"account": {a1, a2}, "order": {o1, o2}, "line": {l1, l2}}[kind]
				if kind == "account" {
					continue
				}
				if got := h.below(name, kind, all...); !same(got, want) {
					t.Errorf("%s sees %d of %s: %v, want %v", name, len(got), kind, got, want)
				}
			}
		}
		check("sam", []string{a1}, []string{o1}, []string{l1})
		check("sue", []string{a2}, []string{o2}, []string{l2})
		check("eva", nil, nil, nil)
		check("ada", []string{a1, a2}, []string{o1, o2}, []string{l1, l2})
		// a share of the root, read, then edit
		share := func(level access.Level) {
			if err := sam.Share(t.Context(), "account", a1, records.Share{Principal: access.UserPrincipal(user.ID(h.ids["eva"])), Access: level}); err != nil {
				t.Fatal(describe(err))
			}
		}
		share(access.ReadOnly)
		check("eva", []string{a1}, []string{o1}, []string{l1})
		_, err := h.as("eva").Update(t.Context(), "line", l1, body(t, `{"name": "x"}`))
		want(t, err, fault.Forbidden)
		_, err = h.as("eva").Create(t.Context(), "line", body(t, `{"order": "`+o1+`"}`))
		want(t, err, fault.Forbidden, "order")
		_, err = h.as("eva").Create(t.Context(), "line", body(t, `{"order": "`+o2+`"}`))
		want(t, err, fault.Validation, "order")
		want(t, h.as("eva").Delete(t.Context(), "line", l1), fault.Forbidden)
		share(access.Edit)
		h.update(h.as("eva"), "line", l1, `{"name": "x"}`)
		// moving asks for update on both
		_, err = h.as("eva").Update(t.Context(), "order", o1, body(t, `{"account": "`+a2+`"}`))
		want(t, err, fault.Validation, "account")
		h.update(h.as("ada"), "order", o1, `{"account": "`+a2+`"}`)
		check("eva", []string{a1}, nil, nil)
		check("sue", []string{a2}, []string{o1, o2}, []string{l1, l2})
		h.update(h.as("ada"), "order", o1, `{"account": "`+a1+`"}`)
		check("sue", []string{a2}, []string{o2}, []string{l2})
		check("sam", []string{a1}, []string{o1}, []string{l1})
		if err := sam.Unshare(t.Context(), "account", a1, access.UserPrincipal(user.ID(h.ids["eva"]))); err != nil {
			t.Fatal(err)
		}
		check("eva", nil, nil, nil)
		_, err = sam.Shares(t.Context(), "order", o1)
		want(t, err, fault.Conflict)
		want(t, sam.Share(t.Context(), "line", l1, records.Share{Principal: access.RolePrincipal("ceo"), Access: access.Edit}), fault.Conflict)
		// deletion of the root deletes all
		h.delete(sam, "account", a1)
		check("ada", []string{a2}, []string{o2}, []string{l2})
		for _, kind := range []string{"order", "line"} {
			if n := h.tableRows("records", "entity = $2", kind); n != 1 {
				t.Errorf("%d records of %s are left", n, kind)
			}
		}
		h.delete(sue, "line", l2)
		h.delete(sue, "order", o2)
		if n := h.tableRows("field_values", "1 = 1"); n != 0 {
			t.Errorf("%d index rows are left", n)
		}
	})
}
