package records_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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

// viewed declares the type order, managed fields of users, and rules of order that
// match the viewer. eva, emil and ina have the set work.
func viewed(t testing.TB, d *db.DB, rules ...*access.SharingRule) *house {
	h := acme(t, d)
	account := entity("account", "name text")
	account.Sharing = schema.PublicRead
	h.configure(func(ctx context.Context, tx tenant.ConfigTx) error {
		errs := []error{
			schema.PutEntity(ctx, tx, account),
			schema.PutEntity(ctx, tx, entity("order", "name text", "account reference:account", "agent reference:user", "mail text indexed",
				"stage select indexed", "size number indexed", "sent boolean")),
			schema.PutUserFields(ctx, tx, []*schema.Field{
				{Name: "nick", Type: schema.Text},
				{Name: "account", Type: schema.Reference, Target: "account", Managed: true},
				{Name: "branches", Type: schema.Multireference, Target: "account", Managed: true},
				{Name: "stages", Type: schema.Multiselect, Options: []string{"new", "won", "lost"}, Managed: true},
				{Name: "size", Type: schema.Number, Managed: true},
			}),
			access.PutPermissionSet(ctx, tx, &access.PermissionSet{Name: "order", Entities: map[string]access.EntityGrant{
				"order": {Create: true, Read: true, Update: true, Delete: true}, "user": {Read: true, Update: true},
			}}),
			access.PutPermissionSet(ctx, tx, &access.PermissionSet{Name: "people", System: []string{access.ManageUsers}}),
			access.PutPermissionSet(ctx, tx, &access.PermissionSet{Name: "portal", System: []string{access.ManageExternalUsers}}),
		}
		for _, q := range rules {
			errs = append(errs, access.PutRule(ctx, tx, q))
		}
		return errors.Join(errs...)
	})
	h.user("ext", user.User{Type: user.External, Sets: []string{"order"}})
	h.user("emil", user.User{Type: user.External, Sets: []string{"order"}})
	h.user("ina", user.User{Sets: []string{"order"}})
	h.user("pam", user.User{Sets: []string{"order", "work", "people"}})
	h.user("shop", user.User{Sets: []string{"order", "work", "portal"}})
	return h
}

// viewing is a rule of order whose conditions are written field=viewer, or
// field==JSON for a constant.
func viewing(with access.Audience, level access.Level, where ...string) *access.SharingRule {
	q := &access.SharingRule{Entity: "order", ShareWith: with, Access: level}
	slices.Sort(where)
	for _, text := range where {
		field, viewer, _ := strings.Cut(text, "=")
		if value, constant := strings.CutPrefix(viewer, "="); constant {
			q.Where = append(q.Where, access.Condition{Field: field, Value: []byte(value)})
		} else {
			q.Where = append(q.Where, access.Condition{Field: field, Viewer: viewer})
		}
	}
	return q
}

// sees checks which orders a user sees, by name, in every way to ask.
func (h *house) sees(who string, names ...string) {
	h.t.Helper()
	s := h.as(who)
	var got []string
	for _, r := range h.list(s, "order") {
		got = append(got, r["name"].(string))
	}
	slices.Sort(got)
	slices.Sort(names)
	if !slices.Equal(got, names) {
		h.t.Errorf("%s lists %v, want %v", who, got, names)
	}
	for _, r := range h.list(h.system(), "order") {
		_, err := s.Get(context.Background(), "order", id(r))
		if seen := slices.Contains(names, r["name"].(string)); seen != (err == nil) || err != nil && fault.CodeOf(err) != fault.NotFound {
			h.t.Errorf("%s gets %s: %v, want %v", who, r["name"], describe(err), seen)
		}
		for _, f := range []string{"mail", "stage", "size"} {
			if r[f] == nil {
				continue
			}
			found := false
			for _, one := range h.list(s, "order", filterOf(f, r[f])) {
				found = found || id(one) == id(r)
			}
			if found != slices.Contains(names, r["name"].(string)) {
				h.t.Errorf("%s filters %s by %s: %v", who, r["name"], f, found)
			}
		}
	}
}

func filterOf(field string, value any) records.Filter {
	return records.Filter{Field: field, Value: fmt.Sprint(value)}
}

// manage sets managed fields of a user, as olivia does, who reaches what the
// values open.
func (h *house) manage(who, text string) {
	h.t.Helper()
	h.update(h.as("olivia"), "user", h.ids[who], text)
}

func TestARuleMatchesTheViewer(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := viewed(t, d,
			viewing(access.ExternalUsers, access.ReadOnly, "account=account", "sent==true"),
			viewing(access.ExternalUsers, access.Edit, "account=branches", "stage=stages"),
			viewing(access.Everyone, access.ReadOnly, "mail=email"),
			viewing(access.InternalUsers, access.ReadOnly, "agent=id"),
			viewing(access.InternalUsers, access.ReadOnly, "size=size"))
		a, b := id(h.create(h.as("olivia"), "account", `{"name": "a"}`)), id(h.create(h.as("olivia"), "account", `{"name": "b"}`))
		order := func(name, format string, args ...any) string {
			return id(h.create(h.as("olivia"), "order", fmt.Sprintf(`{"name": %q, `+format+`}`, append([]any{name}, args...)...)))
		}
		order("a sent", `"account": %q, "sent": true`, a)
		order("a not sent", `"account": %q, "sent": false, "stage": "new"`, a)
		order("b won", `"account": %q, "stage": "won", "sent": true`, b)
		order("nobody's", `"stage": "won", "sent": true, "size": 1`)
		order("mail", `"mail": " EXT@Acme.Example"`)
		order("agent", `"agent": %q, "size": 2.5`, h.ids["ina"])
		h.sees("ext", "mail")
		h.sees("emil")
		h.sees("ina", "agent")
		h.manage("ext", fmt.Sprintf(`{"account": %q}`, a))
		h.sees("ext", "mail", "a sent")
		h.manage("ext", fmt.Sprintf(`{"account": %q, "branches": [%q, %q]}`, b, a, b))
		h.sees("ext", "mail", "b won")
		h.manage("ext", `{"stages": ["new", "won"]}`)
		h.sees("ext", "mail", "b won", "a not sent")
		h.manage("ext", `{"branches": null, "stages": []}`)
		h.sees("ext", "mail", "b won")
		h.manage("ina", `{"size": 2.50, "account": null}`)
		h.sees("ina", "agent")
		h.manage("ina", `{"size": 1e0}`)
		h.sees("ina", "agent", "nobody's")
		h.manage("emil", fmt.Sprintf(`{"branches": [%q], "stages": ["won"]}`, b))
		h.sees("emil", "b won")

		// Its level is that of the rule, and records follow their values.
		won := id(h.list(h.as("emil"), "order")[0])
		h.update(h.as("emil"), "order", won, `{"name": "b won"}`)
		want(t, h.as("emil").Delete(t.Context(), "order", won), fault.Forbidden)
		_, err := h.as("ext").Update(t.Context(), "order", won, body(t, `{"name": "x"}`))
		want(t, err, fault.Forbidden)
		h.update(h.as("olivia"), "order", won, fmt.Sprintf(`{"account": %q}`, a))
		h.sees("emil")
		h.sees("ext", "mail")
		h.update(h.as("olivia"), "order", won, fmt.Sprintf(`{"account": %q, "stage": null}`, b))
		h.sees("emil")
		h.sees("ext", "mail", "b won")

		// A deleted account is cleared, and its id opens nothing.
		h.delete(h.as("olivia"), "account", b)
		h.sees("ext", "mail")
		if got := h.get(h.as("pam"), "user", h.ids["ext"])["account"]; got != b {
			t.Errorf("the user's account is %v", got)
		}
		if n := h.tableRows("rule_matches", "1 = 1"); n != 6 {
			t.Errorf("%d matches are left", n)
		}
		h.configure(func(ctx context.Context, tx tenant.ConfigTx) error {
			config, err := access.Load(ctx, tx)
			if err != nil {
				return err
			}
			for _, q := range config.Rules {
				err = errors.Join(err, access.DeleteRule(ctx, tx, q.ID()))
			}
			return err
		})
		if n := h.tableRows("rule_matches", "1 = 1") + h.tableRows("field_values", "reach LIKE 'm:%'"); n != 0 {
			t.Errorf("%d rows of the rules are left", n)
		}
		h.sees("ext")
		h.sees("ina")
	})
}

// Who may not set a managed field does not, and what they give anyway changes
// nothing (contract U9).
func TestOnlyOthersSetManagedFields(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := viewed(t, d, viewing(access.Everyone, access.Edit, "account=account"))
		a := id(h.create(h.as("olivia"), "account", `{"name": "a"}`))
		h.create(h.as("olivia"), "order", fmt.Sprintf(`{"name": "a", "account": %q}`, a))
		try := func(who, whom, format string, code fault.Code) {
			t.Helper()
			_, err := h.as(who).Update(t.Context(), "user", h.ids[whom], body(t, fmt.Sprintf(format, a)))
			if code == "" && err != nil || code != "" && fault.CodeOf(err) != code {
				t.Errorf("%s sets %s of %s: %v, want %q", who, format, whom, describe(err), code)
			}
		}
		const account = `{"account": %q}`
		try("ext", "ext", account, fault.Forbidden)
		try("ext", "emil", account, fault.NotFound)
		try("ina", "ina", account, fault.Forbidden)
		try("ina", "ext", account, fault.Forbidden)
		try("pam", "pam", account, fault.Forbidden)
		try("shop", "shop", account, fault.Forbidden)
		try("shop", "ina", account, fault.Forbidden)
		try("ext", "ext", `{"account": [%q]}`, fault.Forbidden)
		try("pam", "pam", `{"account": [%q]}`, fault.Forbidden)
		try("olivia", "olivia", account, fault.Forbidden)
		try("ext", "ext", `{"nick": "x", "branches": [%q]}`, fault.Forbidden)
		for _, who := range []string{"ext", "emil", "ina", "pam", "shop"} {
			h.sees(who)
		}
		// A plain field of the name in stored data is none of theirs, and neither is
		// one that an earlier plain field left.
		try("ext", "ext", `{"account#managed": %q}`, fault.Validation)
		try("ext", "ext", `{"nick": %q}`, "")
		rename := func(managed bool, name string) {
			h.configure(func(ctx context.Context, tx tenant.ConfigTx) error {
				return schema.PutUserFields(ctx, tx, []*schema.Field{
					{Name: "account", Type: schema.Reference, Target: "account", Managed: true},
					{Name: name, Type: schema.Reference, Target: "account", Managed: managed},
				})
			})
		}
		rename(true, "nick")
		if got := h.get(h.as("pam"), "user", h.ids["ext"])["nick"]; got != nil {
			t.Errorf("what the user said is managed: %v", got)
		}
		rename(true, "other") // nick is gone
		rename(true, "nick")
		if got := h.get(h.as("pam"), "user", h.ids["ext"])["nick"]; got != nil {
			t.Errorf("what the user said is managed, once the field is back: %v", got)
		}
		rename(false, "nick")
		if got := h.get(h.as("pam"), "user", h.ids["ext"])["nick"]; got != a {
			t.Errorf("what the user said is gone: %v", got)
		}
		h.sees("ext")

		// Those who may, do.
		try("shop", "ext", account, "")
		try("pam", "ina", account, fault.Forbidden) // it would open an order that pam does not reach
		try("olivia", "pam", account, "")
		try("pam", "ina", account, "") // pam gives what pam has
		try("olivia", "pam", `{"account": null, "nick": %q}`, "")
		try("olivia", "shop", account, "")
		unit := h.store.Begin(h.config())
		defer unit.Close()
		system := unit.As(access.SystemAs(h.viewer("emil"), "test"))
		if _, err := system.Update(t.Context(), "user", h.ids["emil"], body(t, fmt.Sprintf(account, a))); err != nil {
			t.Fatal(describe(err))
		}
		h.sees("emil")
		if err := unit.Commit(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		for _, who := range []string{"ext", "ina", "shop", "emil"} {
			h.sees(who, "a")
		}
		h.sees("pam")
		try("shop", "ext", `{"account": null, "nick": %q}`, "")
		h.sees("ext")
		for _, wrong := range []string{`{"account": "x%.0q"}`, `{"branches": [%[1]q, %[1]q]}`, `{"branches": %q}`, `{"size": %q}`} {
			try("pam", "ext", wrong, fault.Validation)
		}
		_, err := h.as("pam").Update(t.Context(), "user", h.ids["ext"], body(t, `{"branches": [`+strings.Repeat(`"x", `, 100)+`"y"]}`))
		want(t, err, fault.Validation, "branches")
	})
}

func TestOwnersAreThoseWhomARuleNames(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := viewed(t, d, viewing(access.ExternalUsers, access.ReadOnly, "agent=id"))
		h.set("shop", access.PermissionSet{Entities: map[string]access.EntityGrant{"order": {Create: true, AssignOwner: true}}})
		h.user("rolf", user.User{Role: "support"})
		create := func(who, owner string) error {
			_, err := h.as(who).Create(t.Context(), "order", body(t, fmt.Sprintf(`{"name": %q, "owner_id": %q}`, owner, cmp.Or(h.ids[owner], owner))))
			return err
		}
		for _, owner := range []string{"ext", "emil", "eva", "shop"} {
			if err := create("shop", owner); err != nil {
				t.Errorf("shop names %s: %v", owner, describe(err))
			}
		}
		h.sees("ext", "ext")
		stranger := create("shop", "01890000-0000-7000-8000-000000000000")
		want(t, stranger, fault.Validation, "owner_id")
		for _, owner := range []string{"ina", "olivia", "rolf", "sam"} {
			if err := create("shop", owner); describe(err) != describe(stranger) {
				t.Errorf("shop names %s: %v, not as for nobody: %v", owner, describe(err), describe(stranger))
			}
			want(t, create("ina", owner+"#"), fault.Forbidden, "owner_id")
		}
		want(t, create("ina", "ext"), fault.Forbidden, "owner_id")
		want(t, create("ext", "emil"), fault.Forbidden, "owner_id")

		// On update, within the right to update.
		own := h.list(h.as("ext"), "order")[0]
		_, err := h.as("shop").Update(t.Context(), "order", id(own), body(t, fmt.Sprintf(`{"owner_id": %q}`, h.ids["shop"])))
		want(t, err, fault.NotFound)
		mine := id(h.create(h.as("shop"), "order", `{"name": "mine"}`))
		_, err = h.as("shop").Update(t.Context(), "order", mine, body(t, fmt.Sprintf(`{"owner_id": %q}`, h.ids["ina"])))
		want(t, err, fault.Validation, "owner_id")
		h.update(h.as("shop"), "order", mine, fmt.Sprintf(`{"owner_id": %q}`, h.ids["emil"]))
		h.sees("emil", "emil", "mine")
		want(t, h.as("shop").Delete(t.Context(), "order", mine), fault.NotFound)

		// The rule's role, and no role above or below it.
		h.configure(func(ctx context.Context, tx tenant.ConfigTx) error {
			return access.PutRule(ctx, tx, &access.SharingRule{Entity: "order", OwnedByRole: "ceo", ShareWithRole: "sales", Access: access.ReadOnly})
		})
		h.user("joe", user.User{Role: "junior"})
		h.user("carl", user.User{Role: "ceo"})
		if err := create("shop", "sam"); err != nil {
			t.Errorf("shop names one of the rule's role: %v", describe(err))
		}
		for _, owner := range []string{"joe", "carl", "rolf"} {
			want(t, create("shop", owner), fault.Validation, "owner_id")
		}
		unit := h.store.Begin(h.config())
		defer unit.Close()
		run := unit.As(h.viewer("shop"))
		if _, err := run.Create(t.Context(), "order", body(t, fmt.Sprintf(`{"name": "run", "owner_id": %q}`, h.ids["ext"]))); err != nil {
			t.Fatal(describe(err))
		}
		_, err = run.Create(t.Context(), "order", body(t, fmt.Sprintf(`{"owner_id": %q}`, h.ids["carl"])))
		want(t, err, fault.Validation, "owner_id")
		if err := unit.Commit(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		h.sees("ext", "ext", "run")
	})
}

// References to users are made by those who may name them (contract R10, A17).
func TestReferencesToUsers(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := viewed(t, d)
		other := likeAcme(t, d, "other")
		other.user("far", user.User{})
		refer := func(who, whom string) error {
			_, err := h.as(who).Create(t.Context(), "order", body(t, fmt.Sprintf(`{"agent": %q}`, whom)))
			return err
		}
		nobody := refer("ext", "01890000-0000-7000-8000-000000000000")
		want(t, nobody, fault.Validation, "agent")
		for _, whom := range []string{h.ids["emil"], h.ids["ina"], other.ids["far"]} {
			if err := refer("ext", whom); describe(err) != describe(nobody) {
				t.Errorf("ext refers to another: %v", describe(err))
			}
		}
		want(t, refer("ina", other.ids["far"]), fault.Validation, "agent")
		want(t, refer("sam", h.ids["ext"]), fault.Forbidden)
		for who, whom := range map[string]string{"ext": "ext", "ina": "ext", "olivia": "emil"} {
			if err := refer(who, h.ids[whom]); err != nil {
				t.Errorf("%s refers to %s: %v", who, whom, describe(err))
			}
		}
		account := id(other.create(other.as("olivia"), "account", `{"name": "far"}`))
		_, err := h.as("pam").Update(t.Context(), "user", h.ids["ext"], body(t, fmt.Sprintf(`{"branches": [%q]}`, account)))
		want(t, err, fault.Validation, "branches")
	})
}
