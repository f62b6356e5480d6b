package data_test

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gatehouse/internal/gatetest"
)

const users = "/public/v1/data/user"

// The built-in entity type user (contract U3–U6).

func TestUsersAreListedAndRead(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		olivia, sam, otto, petra, nina := w.Key("olivia@acme.example"), w.Key("sam@acme.example"), w.Key("otto@acme.example"), w.Key("petra@acme.example"), w.Key("nina@acme.example")
		samID := w.UserID("acme", "sam@acme.example")
		for _, without := range []*gatetest.Actor{sam, nina} { // no permission, not even for oneself
			without.Get(users).Want(403, "FORBIDDEN")
			without.Get(users+"/"+samID).Want(403, "FORBIDDEN")
			without.Patch(users+"/"+samID, `{"name":"x"}`).Want(403, "FORBIDDEN")
		}
		all := []string{"active", "company", "created_at", "email", "id", "isOwner", "level", "locale", "name", "updated_at", "userType"}
		for who, members := range map[*gatetest.Actor][]string{
			olivia: all, otto: all, petra: slices.DeleteFunc(slices.Clone(all), func(m string) bool { return m == "email" }), // closed to her
		} {
			list := who.Get(users).Want(200, "").Records()
			if len(list) != 6 {
				t.Errorf("%d users", len(list))
			}
			for _, u := range list {
				if names := slices.Sorted(maps.Keys(u)); !slices.Equal(names, members) {
					t.Errorf("members %v, want %v", names, members)
				}
			}
			if got := who.Get(users+"/"+samID).Want(200, "").Record(); got["name"] != "Sam Seller" || got["userType"] != "internal" || got["isOwner"] != false || got["active"] != true {
				t.Errorf("sam is %v", got)
			}
		}
		w.SetActive("acme", "sam@acme.example", false)
		if got := otto.Get(users+"/"+samID).Want(200, "").Record()["active"]; got != false {
			t.Errorf("active %v", got)
		}
		for _, id := range []string{"x", "01890000-0000-7000-8000-000000000000", strings.ToUpper(samID), samID + "%20"} {
			otto.Get(users+"/"+id).Want(404, "NOT_FOUND")
			petra.Patch(users+"/"+id, `{"name":"x"}`).Want(404, "NOT_FOUND")
		}
		otto.Get("/public/v1/data/users").Want(404, "NOT_FOUND")
	})
}

func TestUsersArePagedAndFilteredByEmail(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		otto, petra := w.Key("otto@acme.example"), w.Key("petra@acme.example")
		seen, path := map[string]bool{}, users+"?limit=2"
		for page := 1; ; page++ {
			a := otto.Get(path).Want(200, "")
			for _, u := range a.Records() {
				seen[u["email"].(string)] = true
			}
			m := a.Meta()
			if !m.HasMore {
				if page != 3 {
					t.Errorf("%d pages", page)
				}
				break
			}
			path = users + "?limit=2&cursor=" + *m.NextCursor
		}
		if len(seen) != 6 {
			t.Errorf("walked %v", slices.Sorted(maps.Keys(seen)))
		}
		for email, n := range map[string]int{"sam@acme.example": 1, "SAM@acme.example": 1, "nobody@acme.example": 0} {
			if got := otto.Get(users+"?filter[email]="+email).Want(200, "").Meta().Count; got != n {
				t.Errorf("%s: %d users", email, got)
			}
		}
		failing(t, petra.Get(users+"?filter[email]=sam@acme.example"), "email") // closed to her
		for _, field := range []string{"name", "id", "company", "userType", "nothing"} {
			failing(t, otto.Get(users+"?filter["+field+"]=x"), field)
		}
		failing(t, otto.Get(users+"?limit=0"), "limit")
		failing(t, otto.Get(users+"?cursor=x"), "cursor")
	})
}

func TestUsersCannotBeCreatedOrDeleted(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		id := w.UserID("acme", "sam@acme.example")
		for _, email := range []string{"olivia@acme.example", "alma@acme.example", "petra@acme.example", "nina@acme.example"} {
			who := w.Key(email)
			who.Post(users, `{"email":"new@acme.example","name":"New"}`).Want(403, "FORBIDDEN")
			who.Post(users, `nonsense`).Want(403, "FORBIDDEN")
			who.Delete(users+"/"+id).Want(403, "FORBIDDEN")
			who.Delete(users+"/nobody").Want(403, "FORBIDDEN")
		}
		w.Key("sam@acme.example").Get("/public/v1/me").Want(200, "")
	})
}

func TestOnlyNameLocaleAndCustomFieldsOfUsersChange(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		olivia, petra, otto := w.Key("olivia@acme.example"), w.Key("petra@acme.example"), w.Key("otto@acme.example")
		one := users + "/" + w.UserID("acme", "sam@acme.example")
		changed := olivia.Patch(one, `{"name":"Sam Changed","locale":"de","company":"Acme","level":7}`).Want(200, "")
		again := olivia.Get(one).Want(200, "")
		if string(changed.Body) != string(again.Body) {
			t.Errorf("answered %s, read %s", changed.Body, again.Body)
		}
		r := again.Record()
		if r["name"] != "Sam Changed" || r["locale"] != "de" || r["company"] != "Acme" || r["level"] != 7.0 {
			t.Errorf("sam is %v", r)
		}
		olivia.Patch(one, `{"company":null}`).Want(200, "")
		if r := olivia.Get(one).Record(); r["company"] != nil || r["level"] != 7.0 {
			t.Errorf("after clearing one field: %v", r)
		}
		before := string(olivia.Get(one).Body)
		// Nobody can change the other members of a user here.
		for name, value := range map[string]string{
			"email": `"new@acme.example"`, "userType": `"external"`, "isOwner": `true`, "active": `false`,
		} {
			a := olivia.Patch(one, `{"`+name+`":`+value+`}`).Want(403, "FORBIDDEN")
			if !slices.Equal(a.Fields(), []string{name}) {
				t.Errorf("%s: %s", name, a.Body)
			}
		}
		for name, value := range map[string]string{
			"id": `"x"`, "created_at": `"2020-01-01T00:00:00.000000Z"`, "updated_at": `null`, "password": `"secret-word"`, "password_hash": `"x"`, "role": `"ceo"`,
			"permission_sets": `["all"]`, "owner_id": `"x"`, "is_owner": `true`, "user_type": `"external"`, "email_verified": `true`, "tenant_id": `"other"`,
			"custom_data": `{}`, "Name": `"x"`, "NAME": `"x"`, "first name": `"x"`, "company.x": `1`, "__proto__": `{}`, "nothing": `1`, "level": `"seven"`,
		} {
			failing(t, olivia.Patch(one, `{"`+name+`":`+value+`}`), name)
		}
		for _, value := range []string{`""`, `null`, `1`, `"` + strings.Repeat("x", 201) + `"`} {
			failing(t, olivia.Patch(one, `{"name":`+value+`}`), "name")
		}
		// petra reads locale and level and edits neither; she may not read the e-mail address.
		for _, name := range []string{"locale", "level"} {
			a := petra.Patch(one, `{"`+name+`":`+strconv.Quote("1")+`}`).Want(403, "FORBIDDEN")
			if !slices.Equal(a.Fields(), []string{name}) {
				t.Errorf("%s: %s", name, a.Body)
			}
		}
		failing(t, petra.Patch(one, `{"email":"sam@acme.example"}`), "email")
		if after := string(olivia.Get(one).Body); after != before {
			t.Errorf("sam was %s and is %s", before, after)
		}
		petra.Patch(one, `{"name":"Sam by Petra","company":"Hers"}`).Want(200, "")
		otto.Patch(one, `{"name":"x"}`).Want(403, "FORBIDDEN") // he reads only
		// A user may be sent back unchanged.
		whole := string(olivia.Get(one).Body)
		olivia.Patch(one, whole[len(`{"data":`):len(whole)-len(`,"meta":{}}`)]).Want(200, "")
	})
}
