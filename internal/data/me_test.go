package data_test

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"gatehouse/internal/access"
	"gatehouse/internal/gatetest"
)

// TestMe: exactly the members of contract U1, and abilities in the form of CASL
// (contract U2).
func TestMe(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		const closed = `["account","born","email","extra","first_name","note","score","seen","stage","tags","vip"]`
		const edited = `["account","born","email","extra","first_name","score","seen","stage","tags","vip"]`
		for email, want := range map[string]struct {
			name, owner, abilities string
		}{
			"olivia@acme.example": {"Olivia Owner", "true", `[{"action":"manage","subject":"all"}]`},
			"sam@acme.example": {"Sam Seller", "false", `[{"action":"create","subject":"account"},{"action":"read","subject":"account"},` +
				`{"action":"create","subject":"contact","fields":` + edited + `},{"action":"delete","subject":"contact"},` +
				`{"action":"read","subject":"contact","fields":` + closed + `},{"action":"update","subject":"contact","fields":` + edited + `}]`},
			"alma@acme.example": {"Alma All", "false", `[{"action":"create","subject":"account"},{"action":"delete","subject":"account"},` +
				`{"action":"read","subject":"account"},{"action":"update","subject":"account"},{"action":"create","subject":"contact"},` +
				`{"action":"delete","subject":"contact"},{"action":"read","subject":"contact"},{"action":"update","subject":"contact"},` +
				`{"action":"login_as","subject":"system"},{"action":"manage_endpoints","subject":"system"},` +
				`{"action":"read","subject":"user"},{"action":"update","subject":"user","fields":["company","level","locale","name"]}]`},
			"otto@acme.example": {"Otto Onlooker", "false", `[{"action":"read","subject":"user"}]`},
			"nina@acme.example": {"Nina Nobody", "false", `[]`},
		} {
			a := w.Key(email).Get("/public/v1/me").Want(200, "")
			body := `{"data":{"userId":"` + w.UserID("acme", email) + `","email":"` + email + `","name":"` + want.name + `","isOwner":` + want.owner +
				`,"abilities":` + want.abilities + `},"meta":{}}`
			if string(a.Body) != body {
				t.Errorf("%s: %s, want %s", email, a.Body, body)
			}
		}
	})
}

// TestAbilitiesMatchTheAPI compares each ability with the answer to a request that
// needs it.
func TestAbilitiesMatchTheAPI(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		for _, email := range []string{"sam@acme.example", "alma@acme.example", "petra@acme.example", "otto@acme.example", "nina@acme.example"} {
			key := w.Key(email)
			var me struct {
				Data struct{ Abilities []access.Ability }
			}
			if err := json.Unmarshal(key.Get("/public/v1/me").Want(200, "").Body, &me); err != nil {
				t.Fatal(err)
			}
			can := map[string]bool{}
			for _, ability := range me.Data.Abilities {
				can[ability.Action+" "+ability.Subject] = true
				if ability.Fields != nil && (len(ability.Fields) == 0 || !slices.IsSorted(ability.Fields)) {
					t.Errorf("%s: fields %v: CASL takes no empty list, and ours are sorted", email, ability.Fields)
				}
			}
			const none = "/01890000-0000-7000-8000-000000000000"
			for _, entity := range []string{"contact", "account", "user"} {
				path := "/public/v1/data/" + entity
				for verb, a := range map[string]*gatetest.Answer{
					"read": key.Get(path), "create": key.Post(path, `{`), "update": key.Patch(path+none, `{`), "delete": key.Delete(path + none),
				} {
					if allowed := a.Status != 403; allowed != can[verb+" "+entity] {
						t.Errorf("%s: %s %s: ability %v, answered %d", email, verb, entity, can[verb+" "+entity], a.Status)
					}
				}
			}
		}
	})
}

// TestMeIsCurrent: it describes the user now, not when the key was made.
func TestMeIsCurrent(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		nina, alma := w.Key("nina@acme.example"), w.Key("alma@acme.example")
		id := w.UserID("acme", "nina@acme.example")
		alma.Patch("/public/v1/data/user/"+id, `{"name":"Nina Renamed"}`).Want(200, "")
		if got := nina.Get("/public/v1/me").Record()["name"]; got != "Nina Renamed" {
			t.Errorf("name %v", got)
		}
		w.Apply("tenant: acme\nusers: [{email: nina@acme.example, name: Nina, permission_sets: [onlookers]}]\n")
		r := nina.Get("/public/v1/me").Record()
		if list, _ := r["abilities"].([]any); len(list) != 1 {
			t.Errorf("abilities %v", list)
		}
		if names := slices.Sorted(maps.Keys(r)); !slices.Equal(names, []string{"abilities", "email", "isOwner", "name", "userId"}) {
			t.Errorf("members %v", names)
		}
		w.SetActive("acme", "nina@acme.example", false)
		nina.Get("/public/v1/me").Want(401, "UNAUTHORIZED")
		w.SetActive("acme", "nina@acme.example", true)
		nina.Get("/public/v1/me").Want(200, "")
	})
}
