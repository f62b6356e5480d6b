//go:build !race

package server_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/gatetest"
	"gatehouse/internal/manifest"
	"gatehouse/internal/user"
)

// Whatever is accepted can be read, listed, filtered, shared, changed, exported
// and deleted (contract V5), with the same answers on both engines, none longer
// than twice the limit of a record; and all of it is in the audit log.
func TestWhateverIsAcceptedCanBeUsed(t *testing.T) {
	var worlds [2]*gatetest.World
	var olivia, sam pair
	for i, engine := range []db.Engine{db.SQLite, db.Postgres} {
		worlds[i] = gatetest.New(t, engine)
		worlds[i].Apply(scales)
		olivia[i], sam[i] = worlds[i].Key("olivia@acme.example"), worlds[i].Key("sam@acme.example")
	}
	accepted, calls := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		same := func(path string) [2]string { return [2]string{path, path} }
		made := olivia.do(t, "POST", same(thing), document().Draw(t, "create"))
		calls++
		if made[0].Status != 201 {
			return
		}
		accepted++
		one := [2]string{thing + "/" + made[0].ID(), thing + "/" + made[1].ID()}
		gone := false
		defer func() { // a record that failed must not disturb the next case
			for i, who := range olivia {
				if !gone {
					who.Delete(one[i])
				}
			}
		}()
		want := func(status int, answers [2]*gatetest.Answer) {
			if calls++; answers[0].Status != status {
				t.Fatalf("%s: %d %.300s", answers[0].Call, answers[0].Status, answers[0].Body)
			}
		}
		if read := olivia.do(t, "GET", one, ""); told(read[0]) != strings.Replace(told(made[0]), "201", "200", 1) {
			t.Fatalf("created %.300s\nread    %.300s", made[0].Body, read[0].Body)
		}
		calls++
		if changed := olivia.do(t, "PATCH", one, document().Draw(t, "change")); !slices.Contains([]int{200, 400, 413}, changed[0].Status) {
			t.Fatalf("changed: %d %.300s", changed[0].Status, changed[0].Body)
		}
		calls++
		now := olivia.do(t, "GET", one, "")[0].Record()
		calls++
		want(200, olivia.do(t, "GET", same(thing), ""))
		if title, ok := now["title"].(string); ok && title != "" && len(title) < 2000 {
			want(200, olivia.do(t, "GET", same(thing+"?filter[title]="+url.QueryEscape(title)), ""))
		}
		if n, ok := now["n"].(float64); ok {
			if found := olivia.do(t, "GET", same(thing+fmt.Sprintf("?filter[n]=%v", url.QueryEscape(fmt.Sprint(n)))), ""); len(found[0].Records()) != 1 {
				t.Fatalf("filter[n]=%v: %.300s", n, found[0].Body)
			}
			calls++
		}
		for i, w := range worlds {
			w.Share("thing", one[i][len(thing)+1:], access.UserPrincipal(user.ID(w.UserID("acme", "sam@acme.example"))), access.ReadOnly)
		}
		want(200, sam.do(t, "GET", one, ""))
		// What was read can be written back unchanged.
		if extra := olivia.do(t, "GET", one, "")[0].Member("extra"); extra != "null" {
			want(200, olivia.do(t, "PATCH", one, `{"extra":`+extra+`}`))
		}
		calls++
		want(200, olivia.do(t, "DELETE", one, ""))
		gone = true
	})
	if accepted == 0 {
		t.Fatal("nothing was accepted")
	}
	for _, w := range worlds {
		if _, err := manifest.Export(context.Background(), w.DB(), "acme"); err != nil {
			t.Error(err)
		}
		if n := len(w.AuditLog("acme")); n != calls {
			t.Errorf("%d audit entries of %d calls", n, calls)
		}
	}
}

// TestAPageOfHiddenFieldsEnds: what a page reads is bounded even where its
// viewer may not read the large fields, and the traversal is complete.
func TestAPageOfHiddenFieldsEnds(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(strings.Replace(fmt.Sprintf(large, "acme", gatetest.Host), "users: [", "users: [{email: sam@acme.example, name: Sam, permission_sets: [half]}, ", 1) + `
permission_sets:
  - {name: half, entities: {contact: {read: true, create: true, update: true, delete: true, fields: {extra: {read: false, edit: false}}}}}
`)
		olivia, sam := w.Key("olivia@acme.example", gatetest.RateLimit(1_000_000)), w.Key("sam@acme.example", gatetest.RateLimit(1_000_000))
		samID := sam.Get(me).Want(200, "").Record()["userId"].(string)
		for range 30 {
			olivia.Post(contact, fmt.Sprintf(`{"owner_id": %q, "extra": {"pad": %q}}`, samID, strings.Repeat("p", 1_000_000))).Want(201, "")
		}
		for round := range 2 {
			seen := map[any]bool{}
			for path, pages := contact+"?limit=200", 0; path != ""; pages++ {
				a := sam.Get(path).Want(200, "")
				if n := len(a.Records()); n > 9 || n == 0 {
					t.Fatalf("round %d: a page has %d records of 1 MB that are not shown", round, n)
				}
				for _, r := range a.Records() {
					seen[r["id"]] = true
				}
				if path = ""; a.Meta().HasMore {
					path = contact + "?limit=200&cursor=" + *a.Meta().NextCursor
				}
			}
			if len(seen) != 30 {
				t.Errorf("round %d: %d records of 30", round, len(seen))
			}
		}
	})
}
