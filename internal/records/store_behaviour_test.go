package records_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
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

// A record is flat: it has the members of contract R2 and every declared field.
func TestARecordIsFlatAndWhole(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		// Far ahead: the fixture was created by the machine's clock, and a
		// tenant's clock never moves back.
		fake := clock.NewFake(time.Date(2126, 11, 21, 12, 0, 0, 5000, time.UTC))
		h.clk, h.store = fake, records.New(d, h.dir, fake, cursorKey)
		made := h.create(h.as("sam"), "contact", `{"name": "Ana", "score": 3}`)
		wanted := map[string]any{
			"id": made["id"], "owner_id": h.ids["sam"], "created_at": "2126-11-21T12:00:00.000005Z", "updated_at": "2126-11-21T12:00:00.000005Z",
			"name": "Ana", "email": nil, "score": 3.0, "stage": nil, "account": nil, "note": nil, "extra": nil,
		}
		if !reflect.DeepEqual(made, wanted) {
			t.Fatalf("created %v, want %v", made, wanted)
		}
		fake.Advance(-time.Hour) // a clock that moves back has no visible effect
		second := h.create(h.as("sam"), "contact", `{}`)
		if second["created_at"] != "2126-11-21T12:00:00.000006Z" || id(second) <= id(made) {
			t.Errorf("the second is of %v", second["created_at"])
		}
		if r := h.update(h.as("sam"), "contact", id(made), `{"note": "x"}`); r["updated_at"] != wanted["updated_at"] {
			t.Errorf("updated at %v, before it was made", r["updated_at"])
		}
		fake.Advance(2 * time.Hour)
		if r := h.update(h.as("sam"), "contact", id(made), `{}`); r["updated_at"] != wanted["updated_at"] {
			t.Errorf("an empty patch moved updated_at to %v", r["updated_at"])
		}
		if r := h.update(h.as("sam"), "contact", id(made), `{"note": "y"}`); r["updated_at"] != "2126-11-21T13:00:00.000005Z" ||
			r["created_at"] != wanted["created_at"] {
			t.Errorf("updated at %v", r["updated_at"])
		}
	})
}

func TestPatchMergesShallowly(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		sam := h.as("sam")
		made := h.create(sam, "contact", `{"name": "Ana", "note": "n", "extra": {"a": {"b": 1}, "c": 2}}`)
		got := h.update(sam, "contact", id(made), `{"note": null, "extra": {"a": {"d": 3}}, "score": 1}`)
		for name, value := range map[string]any{"name": "Ana", "note": nil, "score": 1.0, "extra": map[string]any{"a": map[string]any{"d": 3.0}}} {
			if !reflect.DeepEqual(got[name], value) {
				t.Errorf("%s is %v, want %v", name, got[name], value)
			}
		}
		if again := h.get(sam, "contact", id(made)); !reflect.DeepEqual(got, again) {
			t.Errorf("answered %v, reads %v", got, again)
		}
	})
}

func TestEveryFailingFieldIsNamedAtOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		h.configure(func(ctx context.Context, tx tenant.ConfigTx) error {
			return schema.PutEntity(ctx, tx, entity("form", "title text required", "kind select required", "n number", "account reference:account"))
		})
		ada := h.as("ada")
		_, err := ada.Create(t.Context(), "form", body(t, `{"kind": "x", "n": "1", "account": "none", "nope": 1, "Title": "t", "__proto__": {},
			"id": "i", "created_at": "2026-01-01T00:00:00Z", "updated_at": null, "version": 1, "created_by": "x"}`))
		want(t, err, fault.Validation, "title", "kind", "n", "account", "nope", "Title", "__proto__", "id", "created_at", "updated_at", "version", "created_by")
		made := h.create(ada, "form", `{"title": "t", "kind": "new"}`)
		_, err = ada.Update(t.Context(), "form", id(made), body(t, `{"title": null, "kind": 1, "n": [], "account": "none", "nope": 1, "id": "x", "owner_id": 5}`))
		want(t, err, fault.Validation, "title", "kind", "n", "account", "nope", "id", "owner_id")
		if after := h.get(ada, "form", id(made)); !reflect.DeepEqual(after, made) {
			t.Errorf("a refused patch left %v of %v", after, made)
		}
		// On PATCH the body may contain the system members with exactly the
		// stored values.
		text := `{"id": "` + id(made) + `", "created_at": "` + made["created_at"].(string) + `", "updated_at": "` + made["updated_at"].(string) + `", "n": 5}`
		if r := h.update(ada, "form", id(made), text); r["n"] != 5.0 {
			t.Errorf("patched to %v", r)
		}
		_, err = ada.Update(t.Context(), "form", id(made), body(t, `{"created_at": "2026-01-01T00:00:00Z"}`))
		want(t, err, fault.Validation, "created_at")
	})
}

func TestAUniqueValueIsTakenOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		sam := h.as("sam")
		h.create(h.as("sue"), "contact", `{"email": "ana@example.com"}`) // sam cannot see this record
		_, err := sam.Create(t.Context(), "contact", body(t, `{"email": "ana@example.com"}`))
		want(t, err, fault.Conflict, "email")
		mine := id(h.create(sam, "contact", `{"email": "bo@example.com"}`))
		_, err = sam.Update(t.Context(), "contact", mine, body(t, `{"email": "ana@example.com"}`))
		want(t, err, fault.Conflict, "email")
		h.update(sam, "contact", mine, `{"email": "bo@example.com"}`)
		h.update(sam, "contact", mine, `{"email": null}`)
		h.update(sam, "contact", id(h.create(sam, "contact", `{}`)), `{"email": "bo@example.com"}`)
		for range 2 {
			h.create(sam, "contact", `{"email": null}`) // null values do not conflict
		}
	})
}

func TestOwnerIDIsTheActingUser(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		sam, owner := h.as("sam"), func(name string) string { return `{"owner_id": "` + h.ids[name] + `"}` }
		made := h.create(sam, "contact", owner("sam"))
		if made["owner_id"] != h.ids["sam"] {
			t.Errorf("owned by %v", made["owner_id"])
		}
		_, err := sam.Create(t.Context(), "contact", body(t, owner("sue")))
		want(t, err, fault.Forbidden, "owner_id")
		_, err = sam.Update(t.Context(), "contact", id(made), body(t, owner("sue")))
		want(t, err, fault.Forbidden, "owner_id")
		h.update(sam, "contact", id(made), owner("sam")) // the present owner
		for _, who := range []string{"olivia", "ada"} {
			h.create(h.as(who), "contact", owner("sue"))
			if r := h.update(h.as(who), "contact", id(made), owner("eva")); r["owner_id"] != h.ids["eva"] {
				t.Errorf("owned by %v", r["owner_id"])
			}
			_, err := sam.Get(t.Context(), "contact", id(made))
			want(t, err, fault.NotFound)
			h.get(h.as("eva"), "contact", id(made))
			h.update(h.as(who), "contact", id(made), owner("sam"))
			h.get(sam, "contact", id(made))
			_, err = h.as(who).Create(t.Context(), "contact", body(t, `{"owner_id": "nobody"}`))
			want(t, err, fault.Validation, "owner_id")
			_, err = h.as(who).Update(t.Context(), "contact", id(made), body(t, `{"owner_id": ""}`))
			want(t, err, fault.Validation, "owner_id")
			_, err = h.as(who).Update(t.Context(), "contact", id(made), body(t, `{"owner_id": null}`))
			want(t, err, fault.Validation, "owner_id")
		}
	})
}

// kim creates the user kim with the given grant and no other rights, and
// returns a session for kim.
func (h *house) kim(g access.EntityGrant) *records.Session {
	h.t.Helper()
	if h.ids["kim"] == "" {
		h.user("kim", user.User{})
	}
	h.set("kim", access.PermissionSet{Entities: map[string]access.EntityGrant{"contact": g}})
	return h.as("kim")
}

func TestFieldsAreMasked(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		kim := h.kim(access.EntityGrant{Create: true, Read: true, Update: true, Fields: map[string]access.FieldGrant{
			"note": {}, "score": {Read: true}, "stage": {Edit: true}, "email": {},
		}})
		made := h.create(kim, "contact", `{"name": "n", "stage": "new"}`)
		h.update(h.as("ada"), "contact", id(made), `{"note": "secret", "score": 5, "email": "e@example.com"}`)
		got := h.get(kim, "contact", id(made))
		if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, []string{
			"account", "created_at", "extra", "id", "name", "owner_id", "score", "stage", "updated_at",
		}) {
			t.Errorf("shows %v", names)
		}
		_, err := kim.Update(t.Context(), "contact", id(made), body(t, `{"note": "x", "nope": 1, "name": 5}`))
		want(t, err, fault.Validation, "note", "nope", "name")
		_, err = kim.Update(t.Context(), "contact", id(made), body(t, `{"score": 5, "note": "x"}`))
		want(t, err, fault.Forbidden, "score")
		_, err = kim.Create(t.Context(), "contact", body(t, `{"score": 6}`))
		want(t, err, fault.Forbidden, "score")
		for _, filter := range []records.Filter{{Field: "email", Value: "e@example.com"}, {Field: "name", Value: "n"}, {Field: "nope", Value: "1"}, {Field: "note", Value: "secret"}} {
			_, err = kim.List(t.Context(), "contact", records.Query{Limit: 1, Filter: []records.Filter{filter}})
			want(t, err, fault.Validation, filter.Field)
		}
		h.update(kim, "contact", id(made), `{"stage": "won"}`)
		if r := h.get(h.as("ada"), "contact", id(made)); r["note"] != "secret" || r["score"] != 5.0 || r["stage"] != "won" {
			t.Errorf("what kim cannot see became %v", r)
		}
	})
}

// A viewer who may create but not read gets only the id (contract R12). A
// required field that the viewer may not edit makes the create fail (contract
// R13).
func TestCreateWithoutReadAndWithClosedFields(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		kim := h.kim(access.EntityGrant{Create: true, Update: true})
		made := h.create(kim, "contact", `{"name": "n"}`)
		if len(made) != 1 || id(made) == "" {
			t.Errorf("answers %v", made)
		}
		if r := h.update(kim, "contact", id(made), `{"name": "m"}`); !reflect.DeepEqual(r, made) {
			t.Errorf("answers %v", r)
		}
		_, err := kim.Get(t.Context(), "contact", id(made))
		want(t, err, fault.Forbidden)
		want(t, kim.Delete(t.Context(), "contact", id(made)), fault.Forbidden)
		_, err = kim.Get(t.Context(), "contacts", id(made))
		want(t, err, fault.NotFound)

		h.configure(func(ctx context.Context, tx tenant.ConfigTx) error {
			return schema.PutEntity(ctx, tx, entity("form", "title text required", "hidden text required"))
		})
		h.user("lea", user.User{})
		h.set("lea", access.PermissionSet{Entities: map[string]access.EntityGrant{"form": {Create: true, Read: true,
			Fields: map[string]access.FieldGrant{"title": {Read: true}}}}})
		for _, text := range []string{`{}`, `{"hidden": "h"}`, `{"title": "t", "hidden": "h"}`, `{"nope": 1}`} {
			_, err = h.as("lea").Create(t.Context(), "form", body(t, text))
			want(t, err, fault.Forbidden, "title")
		}
		h.user("max", user.User{})
		h.set("max", access.PermissionSet{Entities: map[string]access.EntityGrant{"form": {Create: true, Read: true,
			Fields: map[string]access.FieldGrant{"hidden": {}}}}})
		_, err = h.as("max").Create(t.Context(), "form", body(t, `{"title": "t"}`))
		want(t, err, fault.Forbidden)
		if text := describe(err); strings.Contains(text, "hidden") {
			t.Errorf("names the field that may not be known: %s", text)
		}
	})
}

// The zero viewer is a programming error: it has no rights and gets no session.
func TestTheZeroViewerGetsNoSession(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		_, err := access.Viewer{}.On("contact")
		want(t, err, fault.Forbidden)
		defer func() {
			if recover() == nil {
				t.Error("there is a session for nobody")
			}
		}()
		h.store.As(access.Viewer{})
	})
}

// A viewer who reaches records in hundreds of ways reads them like any other
// viewer.
func TestAWideRoleTreeIsReadWhole(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		h.configure(func(ctx context.Context, tx tenant.ConfigTx) (err error) {
			for i := range 450 {
				err = errors.Join(err, access.PutRole(ctx, tx, access.Role{Name: fmt.Sprintf("r%d", i), Parent: "ceo"}))
			}
			return err
		})
		h.user("cleo", user.User{Role: "ceo", Sets: []string{"work"}})
		h.user("rob", user.User{Role: "r449", Sets: []string{"work"}})
		robs := id(h.create(h.as("rob"), "contact", `{"stage": "won"}`))
		adas := id(h.create(h.as("ada"), "contact", `{"stage": "won"}`))
		h.create(h.as("ada"), "contact", `{"stage": "won"}`)
		err := h.as("ada").Share(t.Context(), "contact", adas, records.Share{Principal: access.RolePrincipal("r7"), Access: access.Edit})
		if err != nil {
			t.Fatal(describe(err))
		}
		cleo, wanted := h.as("cleo"), "ok "+adas+" "+robs
		for _, limit := range []int{1, 2, 200} {
			if got := traverse(cleo, "contact", limit); got != wanted {
				t.Errorf("by %d: %s, want %s", limit, got, wanted)
			}
		}
		if got := traverse(cleo, "contact", 1, records.Filter{Field: "stage", Value: "won"}); got != wanted {
			t.Errorf("filtered: %s", got)
		}
		h.update(cleo, "contact", adas, `{"name": "x"}`)
		want(t, cleo.Delete(t.Context(), "contact", adas), fault.Forbidden)
		h.delete(cleo, "contact", robs)
	})
}
