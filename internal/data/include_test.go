package data_test

import (
	"fmt"
	"strings"
	"testing"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/gatetest"
)

// A page has the records that it refers to with it, each once, as far as the caller may
// see them (contract P14).
func TestInclude(t *testing.T) {
	for _, engine := range dbtest.Engines {
		t.Run(string(engine), func(t *testing.T) {
			w := gatetest.New(t, engine)
			w.Apply(acme)
			sam, olivia := w.Key("sam@acme.example"), w.Key("olivia@acme.example")
			mine := sam.Post("/public/v1/data/account", `{"name":"mine"}`).Want(201, "").ID()
			hidden := olivia.Post("/public/v1/data/account", `{"name":"hidden"}`).Want(201, "").ID()
			for _, account := range []string{mine, hidden, mine} {
				owner := w.UserID("acme", "sam@acme.example")
				olivia.Post(contact, fmt.Sprintf(`{"first_name":"Ada","account":%q,"owner_id":%q}`, account, owner)).Want(201, "")
			}
			sam.Post(contact, `{"first_name":"without"}`).Want(201, "")
			a := sam.Get(contact+"?include=account&fields=first_name").Want(200, "")
			text := string(a.Body)
			if strings.Count(text, mine) != 1 || strings.Contains(text, hidden) || !strings.Contains(text, `"included":{"account":[{"id":"`+mine) {
				t.Errorf("%s", text)
			}
			if text := string(sam.Get(contact+"?limit=1&include=account").Want(200, "").Body); !strings.Contains(text, `"included":{"account":[]}`) {
				t.Errorf("%s", text)
			}
			if text := string(olivia.Get(contact+"?include=account").Want(200, "").Body); !strings.Contains(text, `{"id":"`+hidden) || strings.Contains(text, "includedCut") {
				t.Errorf("%s", text)
			}
			failing(t, olivia.Get("/public/v1/data/user?include=x"), "include")
		})
	}
}

// What is included is not longer than a page, and says so where something is left out.
func TestIncludeIsBounded(t *testing.T) {
	w := gatetest.New(t, db.SQLite)
	w.Apply(acme)
	olivia := w.Key("olivia@acme.example")
	for range 4 {
		account := olivia.Post("/public/v1/data/account", fmt.Sprintf(`{"name":%q}`, strings.Repeat("n", 800_000))).Want(201, "").ID()
		olivia.Post(contact, fmt.Sprintf(`{"first_name":"Ada","account":%q}`, account)).Want(201, "")
	}
	text := string(olivia.Get(contact+"?include=account").Want(200, "").Body)
	if n := strings.Count(text, `"name":"nnn`); n != 2 || !strings.Contains(text, `"includedCut":true`) {
		t.Errorf("%d of 4 are included, %d bytes", n, len(text))
	}
}
