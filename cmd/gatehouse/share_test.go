package main

import (
	"encoding/json"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/records"
	"gatehouse/internal/user"
)

func TestRecordsAreShared(t *testing.T) {
	each(t, func(x *cli) {
		t := x.t
		d := x.open()
		dir := access.NewDirectory(d)
		c, err := dir.Current(x.ctx(), "acme")
		if err != nil {
			t.Fatal(err)
		}
		store := records.New(d, dir, clock.System(), nil)
		session := func(email string) *records.Session {
			u, err := user.ByEmail(x.ctx(), d.For("acme"), email)
			if err != nil {
				t.Fatal(err)
			}
			v, err := dir.Viewer(x.ctx(), c, u.ID, false)
			if err != nil {
				t.Fatal(err)
			}
			return store.As(v)
		}
		rec, err := session("olivia@acme.example").Create(x.ctx(), "contact", []records.Member{{Name: "first_name", Value: jsontext.Value(`"Ada"`)}})
		if err != nil {
			t.Fatal(err)
		}
		var made struct{ ID string }
		if err := json.Unmarshal(rec, &made); err != nil {
			t.Fatal(err)
		}
		sees := func() bool {
			_, err := session("sam@acme.example").Get(x.ctx(), "contact", made.ID)
			return err == nil
		}
		at := func(command string, more ...string) []string {
			return append([]string{"share", command, "--tenant", "acme", "--entity", "contact", "--record", made.ID}, more...)
		}
		if sees() || len(x.lines(at("list")...)) != 0 {
			t.Fatal("it is shared already")
		}
		x.ok(at("add", "--user", "SAM@acme.example")...)
		x.ok(at("add", "--role", "sales", "--access", "edit")...)
		list := x.lines(at("list")...)
		if len(list) != 2 || keysOf(list[0]) != "access created_at role user" {
			t.Fatalf("%v", list)
		}
		if a, b := list[0], list[1]; a["role"] != "sales" || a["access"] != "edit" || a["user"] != nil ||
			b["user"] != "sam@acme.example" || b["access"] != "read" || b["role"] != nil {
			t.Errorf("%v", list)
		}
		if !sees() {
			t.Error("the share has no effect")
		}
		x.ok(at("add", "--user", "sam@acme.example", "--access", "edit")...)
		x.ok(at("remove", "--role", "sales")...)
		if list := x.lines(at("list")...); len(list) != 1 || list[0]["access"] != "edit" {
			t.Errorf("%v", list)
		}
		x.ok(at("remove", "--user", "sam@acme.example")...)
		if sees() {
			t.Error("it is still shared")
		}

		x.fails(1, "is not shared with", at("remove", "--role", "sales")...)
		x.fails(2, "one of --user and --role", at("add")...)
		x.fails(2, "one of --user and --role", at("add", "--user", "sam@acme.example", "--role", "sales")...)
		x.fails(1, "there is no user with the e-mail address", at("add", "--user", "nobody@acme.example")...)
		x.fails(1, "there is no role boss", at("add", "--role", "boss")...)
		x.fails(1, "gatehouse: access: expected read or edit\n", at("add", "--role", "sales", "--access", "all")...)
		x.fails(1, "there is no entity", "share", "list", "--tenant", "acme", "--entity", "contacts", "--record", made.ID)
		x.fails(1, "there is no such record", "share", "list", "--tenant", "acme", "--entity", "contact", "--record", "x")
		x.fails(1, "there is no such record", "share", "add", "--tenant", "acme", "--entity", "contact", "--record", "x", "--role", "sales")
		x.fails(2, "--record is required", "share", "list", "--tenant", "acme", "--entity", "contact")
	})
}
