package records_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/fault"
	"gatehouse/internal/records"
	"gatehouse/internal/schema"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// directory returns acme with custom user fields and three users who may work
// with users: ian, an internal user, and the external users ext and ann.
func directory(t *testing.T, d *db.DB) *house {
	h := acme(t, d)
	h.configure(func(ctx context.Context, tx tenant.ConfigTx) error {
		return errors.Join(
			schema.PutUserFields(ctx, tx, entity("user", "company text", "level number").Fields),
			access.PutPermissionSet(ctx, tx, &access.PermissionSet{Name: "people", Entities: map[string]access.EntityGrant{
				"user": {Create: true, Read: true, Update: true, Delete: true},
			}}))
	})
	h.user("ian", user.User{Sets: []string{"people"}, PasswordHash: "$argon2id$secret"})
	h.user("ext", user.User{Type: user.External, Sets: []string{"people", "all"}, Custom: jsontext.Value(`{"company": "Ext", "gone": 1}`)})
	h.user("ann", user.User{Type: user.External, Sets: []string{"people"}, Role: "ceo"})
	return h
}

func TestUsersAreReadByStaffAndByThemselves(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := directory(t, d)
		got := h.get(h.as("ian"), "user", h.ids["ext"])
		wanted := map[string]any{
			"id": h.ids["ext"], "email": "ext@acme.example", "name": "ext", "locale": "", "userType": "external", "isOwner": false,
			"active": true, "created_at": got["created_at"], "updated_at": got["updated_at"], "company": "Ext", "level": nil,
		}
		if fmt.Sprint(got) != fmt.Sprint(wanted) {
			t.Errorf("shows %v, want %v", got, wanted)
		}
		if n := len(h.list(h.as("ian"), "user")); n != 8 {
			t.Errorf("lists %d users", n)
		}
		for name, s := range map[string]*records.Session{"ext": h.as("ext"), "ann": h.as("ann")} {
			for other, otherID := range h.ids {
				_, err := s.Get(t.Context(), "user", otherID)
				if other == name && err != nil {
					t.Error(describe(err))
				} else if other != name {
					want(t, err, fault.NotFound)
				}
				_, err = s.Update(t.Context(), "user", otherID, body(t, `{"locale": "de"}`))
				if other == name && err != nil {
					t.Error(describe(err))
				} else if other != name {
					want(t, err, fault.NotFound)
				}
				if found := h.list(s, "user", records.Filter{Field: "email", Value: other + "@ACME.example"}); (len(found) == 1) != (other == name) {
					t.Errorf("%s finds %v for %s", name, found, other)
				}
			}
			if list := h.list(s, "user"); len(list) != 1 || list[0]["id"] != h.ids[name] {
				t.Errorf("%s lists %v", name, list)
			}
		}
		_, err := h.as("sam").Get(t.Context(), "user", h.ids["sam"]) // without the permission
		want(t, err, fault.Forbidden)
		_, err = h.as("sam").List(t.Context(), "user", records.Query{Limit: 1})
		want(t, err, fault.Forbidden)
		_, err = h.as("ian").Get(t.Context(), "user", "nobody")
		want(t, err, fault.NotFound)
		if ids := traverse(h.as("ian"), "user", 3); ids != traverse(h.as("ian"), "user", 200) {
			t.Errorf("pages of 3 show %s", ids)
		}
	})
}

func TestUsersAreChangedInNameLocaleAndCustomFieldsAlone(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := directory(t, d)
		for _, who := range []string{"ian", "ext", "olivia", "ada"} {
			s := h.as(who)
			if r := h.update(s, "user", h.ids["ext"], `{"name": "Eve", "locale": "de", "company": "`+who+`", "level": 3}`); r["name"] != "Eve" ||
				r["locale"] != "de" || r["company"] != who || r["level"] != 3.0 {
				t.Errorf("%s changed it to %v", who, r)
			}
			for name, value := range map[string]string{"email": `"new@acme.example"`, "userType": `"internal"`, "isOwner": `true`, "active": `false`} {
				_, err := s.Update(t.Context(), "user", h.ids["ext"], body(t, `{"name": "no", "`+name+`": `+value+`}`))
				want(t, err, fault.Forbidden, name)
			}
			for _, name := range []string{"password", "passwordHash", "role", "permission_sets", "gone", "is_owner", "owner_id", "tenant_id"} {
				_, err := s.Update(t.Context(), "user", h.ids["ext"], body(t, `{"`+name+`": "x"}`))
				want(t, err, fault.Validation, name)
			}
			for _, name := range []string{"id", "created_at", "updated_at"} { // as for every record
				_, err := s.Update(t.Context(), "user", h.ids["ext"], body(t, `{"`+name+`": "x"}`))
				want(t, err, fault.Validation, name)
			}
			_, err := s.Update(t.Context(), "user", h.ids["ext"], body(t, `{"level": "3", "name": "", "company": 1}`))
			want(t, err, fault.Validation, "level", "name", "company")
			for name, value := range map[string]string{ // refused like by register and the manifest
				"locale": `"` + strings.Repeat("a", 36) + `"`, "name": `"a\u0000b"`,
			} {
				_, err := s.Update(t.Context(), "user", h.ids["ext"], body(t, `{"`+name+`": `+value+`}`))
				want(t, err, fault.Validation, name)
			}
			_, err = s.Update(t.Context(), "user", h.ids["ext"], body(t, `{"name": "  "}`))
			want(t, err, fault.Validation, "name")
			_, err = s.Create(t.Context(), "user", body(t, `{"email": "x@acme.example"}`))
			want(t, err, fault.Forbidden)
			want(t, s.Delete(t.Context(), "user", h.ids["ext"]), fault.Forbidden)
		}
		r := h.get(h.as("ian"), "user", h.ids["ext"])
		if r["name"] != "Eve" || r["userType"] != "external" || r["isOwner"] != false || r["active"] != true || r["email"] != "ext@acme.example" {
			t.Errorf("is %v now", r)
		}
		// The body may contain read-only members with their present values.
		h.update(h.as("ian"), "user", h.ids["ext"], fmt.Sprintf(`{"id": %q, "email": "ext@acme.example", "isOwner": false, "active": true,
			"userType": "external", "created_at": %q, "company": null}`, h.ids["ext"], r["created_at"]))
		config := h.config()
		u, err := user.ByID(t.Context(), h.d.For("acme"), user.ID(h.ids["ext"]))
		if err != nil || config.Schema.User.Field("company") == nil || !slices.Equal(u.Sets, []string{"all", "people"}) || u.Role != "" {
			t.Errorf("is %+v, %v", u, err)
		}
		// A custom field that is no longer declared keeps its data.
		if text := string(u.Custom); object(t, u.Custom)["gone"] != 1.0 {
			t.Errorf("keeps %s", text)
		}
	})
}

func TestColumnsOfUsersAreMasked(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := directory(t, d)
		h.user("kim", user.User{})
		h.set("kim", access.PermissionSet{Entities: map[string]access.EntityGrant{"user": {Read: true, Update: true, Fields: map[string]access.FieldGrant{
			"email": {}, "isOwner": {}, "locale": {Read: true}, "level": {}, "active": {Edit: true},
		}}}})
		kim := h.as("kim")
		got := h.get(kim, "user", h.ids["ext"])
		if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, []string{"active", "company", "created_at", "id", "locale", "name", "updated_at", "userType"}) {
			t.Errorf("shows %v", names)
		}
		_, err := kim.Update(t.Context(), "user", h.ids["ext"], body(t, `{"email": "ext@acme.example", "level": 1}`))
		want(t, err, fault.Validation, "email", "level")
		_, err = kim.Update(t.Context(), "user", h.ids["ext"], body(t, `{"locale": "de", "active": false}`))
		want(t, err, fault.Forbidden, "locale", "active")
		_, err = kim.List(t.Context(), "user", records.Query{Limit: 1, Filter: []records.Filter{{Field: "email", Value: "ext@acme.example"}}})
		want(t, err, fault.Validation, "email")
		h.update(kim, "user", h.ids["ext"], `{"name": "new"}`)
	})
}
