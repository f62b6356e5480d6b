package data_test

import (
	"fmt"
	"sync"
	"testing"

	"gatehouse/internal/gatetest"
)

const everyField = `{"first_name":"Ada","email":"a@x.example","score":1.50,"vip":true,"born":"2000-01-01","seen":"2026-01-01T00:00:00.5+01:00","stage":"won",
	"tags":["b","a"],"extra":{"bb":[1.0,{"z":null,"a":"é"}],"a":1e3}}`

// The entity tag of an answer is that of the record as the same user reads it later,
// whatever its fields.
func TestATagIsOfWhatTheUserReads(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		sam, olivia := w.Key("sam@acme.example"), w.Key("olivia@acme.example")
		made := sam.Post(contact, everyField).Want(201, "")
		one, tag := contact+"/"+made.ID(), made.Header.Get("ETag")
		if read := sam.Get(one).Want(200, "").Header.Get("ETag"); tag == "" || read != tag {
			t.Errorf("created %s, read %s", tag, read)
		}
		if hers := olivia.Get(one).Want(200, "").Header.Get("ETag"); hers == tag {
			t.Error("who reads more has the same tag")
		}
		for _, known := range []string{tag, `"x", ` + tag, "W/" + tag, "*"} {
			a := sam.With("If-None-Match", known).Get(one)
			if a.Status != 304 || len(a.Body) != 0 || a.Header.Get("ETag") != tag || a.Header.Get("Content-Type") != "" {
				t.Errorf("%s: %d %v %q", known, a.Status, a.Header, a.Body)
			}
		}
		sam.With("If-None-Match", `"x"`).Get(one).Want(200, "")
		invalid(t, "a tag without quotation marks", sam.With("If-None-Match", "x").Get(one), "if-none-match")
		changed := sam.Patch(one, `{"score":2,"extra":{"c":2,"b":1}}`).Want(200, "").Header.Get("ETag")
		if read := sam.With("If-None-Match", tag).Get(one).Want(200, "").Header.Get("ETag"); changed == tag || read != changed {
			t.Errorf("changed %s, read %s, before %s", changed, read, tag)
		}
		if same := sam.Patch(one, `{}`).Want(200, "").Header.Get("ETag"); same != changed {
			t.Errorf("%s after no change of %s", same, changed)
		}
		// A hidden record has no tag and no other answer than one that does not exist.
		petra := w.Key("petra@acme.example")
		petra.With("If-None-Match", "*").Get(one).Want(403, "FORBIDDEN")
		sam.With("If-None-Match", "*").Get(contact+"/none").Want(404, "NOT_FOUND")
		user := petra.Get("/public/v1/data/user").Want(200, "").Records()[0]["id"].(string)
		if a := petra.Get("/public/v1/data/user/"+user).Want(200, ""); petra.With("If-None-Match", a.Header.Get("ETag")).Get("/public/v1/data/user/"+user).Status != 304 {
			t.Errorf("a user: %v", a.Header)
		}
	})
}

func TestAChangeOfWhatWasNotReadIsRefused(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		sam, olivia := w.Key("sam@acme.example"), w.Key("olivia@acme.example")
		made := sam.Post(contact, everyField).Want(201, "")
		one, old := contact+"/"+made.ID(), made.Header.Get("ETag")
		now := sam.With("If-Match", `"x", `+old).Patch(one, `{"score":2}`).Want(200, "").Header.Get("ETag")
		for _, stale := range []string{old, `"x"`, "W/" + now, ""} {
			sam.With("If-Match", stale).Patch(one, `{"score":3}`).Want(412, "PRECONDITION_FAILED")
			sam.With("If-Match", stale).Delete(one).Want(412, "PRECONDITION_FAILED")
		}
		invalid(t, "a tag that does not end", sam.With("If-Match", `"x`).Patch(one, `{"score":3}`), "if-match")
		invalid(t, "a tag that does not end", sam.With("If-Match", `"x`).Delete(one), "if-match")
		if got := sam.Get(one).Want(200, "").Header.Get("ETag"); got != now {
			t.Error("a refused change changed the record")
		}
		sam.With("If-Match", "*").Patch(contact+"/none", `{"score":3}`).Want(404, "NOT_FOUND")
		sam.With("If-Match", "*").Patch(one, `{"score":3}`).Want(200, "")
		sam.With("If-Match", olivia.Get(one).Want(200, "").Header.Get("ETag")).Delete(one).Want(412, "PRECONDITION_FAILED") // hers shows more
		sam.With("If-Match", sam.Get(one).Want(200, "").Header.Get("ETag")).Delete(one).Want(200, "")
		// Users have tags, too.
		petra := w.Key("petra@acme.example")
		user := "/public/v1/data/user/" + petra.Get("/public/v1/data/user").Want(200, "").Records()[0]["id"].(string)
		tag := petra.Get(user).Want(200, "").Header.Get("ETag")
		petra.With("If-Match", tag).Patch(user, `{"company":"Acme"}`).Want(200, "")
		petra.With("If-Match", tag).Patch(user, `{"company":"Bcme"}`).Want(412, "PRECONDITION_FAILED")
	})
}

// Of changes that name the same version at once, one is made.
func TestOneOfManyChangesOfOneVersionIsMade(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		sam := w.Key("sam@acme.example", gatetest.RateLimit(10_000))
		for round := range 10 {
			made := sam.Post(contact, `{"first_name":"Ada"}`).Want(201, "")
			var wait sync.WaitGroup
			statuses := make([]int, 8)
			for i := range statuses {
				wait.Go(func() {
					statuses[i] = sam.With("If-Match", made.Header.Get("ETag")).Patch(contact+"/"+made.ID(), fmt.Sprintf(`{"score":%d}`, i)).Status
				})
			}
			wait.Wait()
			done := 0
			for _, s := range statuses {
				if s == 200 {
					done++
				} else if s != 412 {
					t.Errorf("round %d: %d", round, s)
				}
			}
			if done != 1 {
				t.Errorf("round %d: %d changes were made: %v", round, done, statuses)
			}
		}
	})
}
