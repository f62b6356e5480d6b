package data_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/internal/data"
	"gatehouse/internal/db"
	"gatehouse/internal/gatetest"
)

func TestARepeatedRequestIsDoneOnce(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		w.Clock.Stop()
		sam, alma := w.Key("sam@acme.example"), w.Key("alma@acme.example")
		const body = `{"first_name":"Ada"}`
		keyed := sam.With("Idempotency-Key", "k")
		first := keyed.Post(contact, body).Want(201, "")
		if first.Header.Get("Idempotent-Replay") != "" {
			t.Error("the first is a replay")
		}
		again := keyed.Post(contact, body).Want(201, "")
		if again.ID() != first.ID() || again.Header.Get("Idempotent-Replay") != "true" || string(again.Body) != string(first.Body) || again.Header.Get("ETag") != first.Header.Get("ETag") {
			t.Errorf("%v %s", again.Header, again.Body)
		}
		// Another body, path or entity is another request.
		keyed.Post(contact, `{"first_name":"Bo"}`).Want(422, "IDEMPOTENCY_KEY_REUSED")
		keyed.Post("/public/v1/data/account", body).Want(422, "IDEMPOTENCY_KEY_REUSED")
		keyed.Post(contact+"/batch", `{"items":[{"op":"create","fields":`+body+`}]}`).Want(422, "IDEMPOTENCY_KEY_REUSED")
		// Keys are their user's own, by whichever credential.
		if other := alma.With("Idempotency-Key", "k").Post(contact, body).Want(201, ""); other.ID() == first.ID() || other.Header.Get("Idempotent-Replay") != "" {
			t.Errorf("another user: %s", other.Body)
		}
		if same := w.Key("sam@acme.example").With("Idempotency-Key", "k").Post(contact, body).Want(201, ""); same.ID() != first.ID() {
			t.Errorf("another key of the user: %s", same.Body)
		}
		// The answer has the record as it is now, and its id alone once it is gone.
		sam.Patch(contact+"/"+first.ID(), `{"score":7}`).Want(200, "")
		if now := keyed.Post(contact, body).Want(201, ""); !strings.Contains(string(now.Body), `"score":7`) {
			t.Errorf("changed meanwhile: %s", now.Body)
		}
		sam.Delete(contact+"/"+first.ID()).Want(200, "")
		if gone := keyed.Post(contact, body).Want(201, ""); string(gone.Body) != `{"data":{"id":"`+first.ID()+`"},"meta":{}}` {
			t.Errorf("deleted meanwhile: %s", gone.Body)
		}
		// A request that failed is not remembered.
		sam.With("Idempotency-Key", "f").Post(contact, `{}`).Want(400, "VALIDATION")
		sam.With("Idempotency-Key", "f").Post(contact, body).Want(201, "")
		// After a day the key is new.
		w.Clock.Advance(24*time.Hour - time.Second)
		if late := keyed.Post(contact, body).Want(201, ""); late.ID() != first.ID() {
			t.Error("not known after 23 hours")
		}
		w.Clock.Advance(time.Second)
		if new := keyed.Post(contact, `{"first_name":"New"}`).Want(201, ""); new.ID() == first.ID() || new.Header.Get("Idempotent-Replay") != "" {
			t.Error("known after a day")
		}
		for _, key := range []string{"", strings.Repeat("k", 256)} {
			invalid(t, "a key", sam.With("Idempotency-Key", key).Post(contact, body), "idempotency-key: expected one text")
			invalid(t, "a key", sam.With("Idempotency-Key", key).Post(contact+"/batch", `{"items":[{"op":"delete","id":"x"}]}`), "idempotency-key: expected one text")
		}
	})
}

func TestARepeatedBatchAnswersTheSame(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		own := w.Key("sam@acme.example")
		sam := own.With("Idempotency-Key", "k")
		old := own.Post(contact, `{"first_name":"Old"}`).Want(201, "").ID()
		body := `{"atomic":false,"items":[{"op":"create","fields":{"first_name":"A"}},{"op":"delete","id":"` + old + `"},{"op":"create","fields":{"score":"x"}},
			{"op":"upsert","by":"email","fields":{"first_name":"B","email":"b@x"}},{"op":"upsert","by":"email","fields":{"email":"b@x"}}]}`
		first := sam.Post(contact+"/batch", body).Want(200, "")
		again := sam.Post(contact+"/batch", body).Want(200, "")
		if again.Header.Get("Idempotent-Replay") != "true" || string(again.Body) != string(first.Body) {
			t.Errorf("%s\n%s", first.Body, again.Body)
		}
		sam.Post(contact+"/batch", body+" ").Want(422, "IDEMPOTENCY_KEY_REUSED")
		if n := len(sam.Get(contact).Want(200, "").Records()); n != 2 {
			t.Errorf("%d records", n)
		}
	})
}

// Of several requests of one key at once, on one node or on two, one is done and all
// answer with its record. With a look-up before the batch and nothing else (no lock, no
// primary key) several are done.
func TestConcurrentRepeatsAreDoneOnce(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		sam := w.Key("sam@acme.example", gatetest.RateLimit(100_000))
		nodes := []*gatetest.Node{w.Nodes[0]}
		if strings.HasSuffix(t.Name(), "postgres") {
			nodes = append(nodes, w.AddNode())
		}
		for round := range 10 {
			key := fmt.Sprint("k", round)
			var wg sync.WaitGroup
			var mu sync.Mutex
			ids, fresh := map[string]int{}, 0
			for i := range 12 {
				wg.Go(func() {
					a := sam.With("Idempotency-Key", key).At(nodes[i%len(nodes)]).Post(contact, `{"first_name":"`+key+`"}`).Want(201, "")
					mu.Lock()
					defer mu.Unlock()
					ids[a.ID()]++
					if a.Header.Get("Idempotent-Replay") == "" {
						fresh++
					}
				})
			}
			wg.Wait()
			if len(ids) != 1 || fresh != 1 {
				t.Errorf("%s: records %v, %d first answers", key, ids, fresh)
			}
		}
		if n := len(sam.Get(contact).Want(200, "").Records()); n != 10 {
			t.Errorf("%d records", n)
		}
	})
}

// A repetition on another node that finds the value taken, or the record deleted, by the
// request that it repeats answers with that one's outcome. Without a second look-up after
// a failure it is 409 or 404.
func TestARepetitionDoesNotFailByWhatItRepeats(t *testing.T) {
	w := gatetest.New(t, db.Postgres)
	w.Apply(acme)
	sam := w.Key("sam@acme.example", gatetest.RateLimit(100_000))
	nodes := []*gatetest.Node{w.Nodes[0], w.AddNode()}
	for round := range 10 {
		key := fmt.Sprint("k", round)
		gone := sam.Post(contact, `{"first_name":"Gone"}`).Want(201, "").ID()
		var wg sync.WaitGroup
		var mu sync.Mutex
		ids := map[string]int{}
		for i := range 8 {
			wg.Go(func() {
				at := sam.At(nodes[i%len(nodes)])
				a := at.With("Idempotency-Key", key).Post(contact, `{"first_name":"`+key+`","email":"`+key+`"}`)
				if a.Status != 201 {
					t.Errorf("create: %d %s", a.Status, a.Body)
				}
				b := at.With("Idempotency-Key", key+"b").Post(contact+"/batch", `{"items":[{"op":"delete","id":"`+gone+`"}]}`)
				if b.Status != 200 {
					t.Errorf("delete: %d %s", b.Status, b.Body)
				}
				mu.Lock()
				defer mu.Unlock()
				ids[a.ID()]++
			})
		}
		wg.Wait()
		if len(ids) != 1 {
			t.Errorf("%s: records %v", key, ids)
		}
	}
	sam.With("Idempotency-Key", "k0").Post(contact, `{"first_name":"k0","email":"k1"}`).Want(422, "IDEMPOTENCY_KEY_REUSED")
	sam.With("Idempotency-Key", "other").Post(contact, `{"first_name":"k0","email":"k1"}`).Want(409, "CONFLICT")
}

func TestOldKeysAreForgotten(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		w.Clock.Stop()
		sam := w.Key("sam@acme.example")
		for i := range 5 {
			if i == 3 {
				w.Clock.Advance(24 * time.Hour)
			}
			sam.With("Idempotency-Key", fmt.Sprint(i)).Post(contact, `{"first_name":"Ada"}`).Want(201, "")
		}
		kept := func() (n int64) {
			err := w.DB().For("acme").Query(t.Context(), `SELECT count(*) FROM idempotency_keys WHERE tenant_id = $1`, func(r db.Row) error { n = r.Int(0); return nil })
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		if n := kept(); n != 5 {
			t.Errorf("%d keys", n)
		}
		w.HousekeepingIsDue()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			data.New(data.Options{DB: w.DB(), Clock: w.Clock, Emit: func(event string, members map[string]any) { t.Errorf("%s %v", event, members) }}).RunRetention(ctx)
		}()
		for begun := time.Now(); kept() != 2 && time.Since(begun) < 10*time.Second; time.Sleep(time.Millisecond) {
		}
		cancel()
		<-ended
		if n := kept(); n != 2 {
			t.Errorf("%d keys are left", n)
		}
	})
}
