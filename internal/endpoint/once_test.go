package endpoint_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/internal/endpoint"
	"gatehouse/internal/gatetest"
)

// TestAnIdempotencyKey is 1 to 255 characters, in one header, and in token mode
// only (contract W2).
func TestAnIdempotencyKey(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(orders + endpoints(three("act", "component: act")...))
		hook, sam := w.Webhook("token-act"), w.Key("sam@acme.example")
		for _, c := range []struct {
			keys []string
			want string
		}{
			{nil, "200"},
			{[]string{"k"}, "200"},
			{[]string{" "}, "400 VALIDATION"}, // trimmed by HTTP, it is empty
			{[]string{""}, "400 VALIDATION"},
			{[]string{strings.Repeat("k", 255)}, "200"},
			{[]string{strings.Repeat("k", 256)}, "400 VALIDATION"},
			{[]string{strings.Repeat("é", 255)}, "200"}, // characters, not bytes
			{[]string{strings.Repeat("é", 256)}, "400 VALIDATION"},
			{[]string{"a", "b"}, "400 VALIDATION"},
			{[]string{"c", "c"}, "400 VALIDATION"},
		} {
			before := count(t, w, "events")
			a := hook
			for _, key := range c.keys {
				a = a.With("Idempotency-Key", key)
			}
			answer := a.Post(custom+"token-act", ok)
			if got(answer) != c.want || strings.Contains(string(answer.Body), "duplicate") {
				t.Errorf("%.20q: %s %s, want %s", c.keys, got(answer), answer.Body, c.want)
			}
			if n := count(t, w, "events") - before; n != map[bool]int{true: 1}[c.want == "200"] {
				t.Errorf("%.20q: %d events", c.keys, n)
			}
		}
		hook.With("Idempotency-Key", "K").Post(custom+"token-act", ok).Want(200, "") // keys differ in case
		if a := hook.With("Idempotency-Key", "k").Post(custom+"token-act", ok); string(a.Body) != `{"duplicate":true}` {
			t.Errorf("%s", a.Body)
		}
		// It comes after the credential.
		w.Anyone().With("Idempotency-Key", "").Post(custom+"token-act", ok).Want(401, "UNAUTHORIZED")
		// Other modes have no such header.
		before := kept(t, w)
		for range 2 {
			sam.With("Idempotency-Key", "k").Post(custom+"key-act", ok).Want(200, "")
		}
		sam.With("Idempotency-Key", "").Post(custom+"key-act", ok).Want(200, "")
		if n, want := kept(t, w), strings.Replace(before, "5 records", "8 records", 1); n != want {
			t.Errorf("in key mode: %s, want %s", n, want)
		}
		for _, id := range []string{"1", "2"} {
			body := with(ok, `"id": "`+id+`"`)
			a := w.Anyone().With("Idempotency-Key", "k").With("X-Signature", hmacHex(shopSecret, body)).Post(custom+"signed-act", body)
			if a.Status != 202 {
				t.Errorf("in signed mode: %d %s", a.Status, a.Body)
			}
		}
	})
}

// TestScopeOfKeys: without the header every delivery is new; the same key at another
// endpoint, or of another tenant, is another event.
func TestScopeOfKeys(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(orders + endpoints("{slug: one, target: {component: act}, auth: token}", "{slug: two, target: {component: act}, auth: token}",
			signed("shop1", "component: act", ""), signed("shop2", "component: act", "")))
		one, two := w.Webhook("one"), w.Webhook("two")
		ids := map[string]bool{}
		for range 3 {
			ids[header(t, one.Post(custom+"one", ok).Want(200, ""), "X-Event-Id")] = true
		}
		ids[header(t, one.With("Idempotency-Key", "k").Post(custom+"one", ok).Want(200, ""), "X-Event-Id")] = true
		ids[header(t, two.With("Idempotency-Key", "k").Post(custom+"two", ok).Want(200, ""), "X-Event-Id")] = true
		for _, slug := range []string{"shop1", "shop2"} { // a provider's event id is not a caller's key
			ids[header(t, provider{w.Anyone()}.Post(custom+slug, with(ok, `"id": "k"`)), "X-Event-Id")] = true
		}
		if n := kept(t, w); len(ids) != 7 || n != "7 records, 7 events, 4 keys" {
			t.Errorf("%d ids, %s", len(ids), n)
		}
		w.Apply(strings.NewReplacer("tenant: acme", "tenant: globex", "acme.localhost", "globex.localhost").Replace(
			orders + endpoints("{slug: one, target: {component: act}, auth: token}")))
		token, err := endpoint.NewToken(t.Context(), w.DB(), w.Clock, "test", "globex", "one")
		if err != nil {
			t.Fatal(err)
		}
		globex := w.Anyone().With("X-Webhook-Token", token.Reveal()).With("Idempotency-Key", "k")
		globex.Host = "globex.localhost"
		if a := globex.Post(custom+"one", ok).Want(200, ""); strings.Contains(string(a.Body), "duplicate") {
			t.Error("another tenant's key is known")
		}
	})
}

// TestFailedDeliveriesAreNotSeen, so that the provider's next try runs: "seen" means
// committed.
func TestFailedDeliveriesAreNotSeen(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(orders + endpoints(append(three("c", "component: act"), three("a", "automation: act_flow")...)...))
		for _, slug := range []string{"token-c", "token-a", "signed-c", "signed-a"} {
			send := func(do string) *gatetest.Answer {
				return provider{w.Anyone()}.Post(custom+slug, `{"do": "`+do+`", "status": 500, "id": "e"}`)
			}
			if strings.HasPrefix(slug, "token") {
				hook := w.Webhook(slug).With("Idempotency-Key", "e")
				send = func(do string) *gatetest.Answer { return hook.Post(custom+slug, `{"do": "`+do+`", "status": 500}`) }
			}
			before := kept(t, w)
			for _, do := range []string{"fail", "throw", "loop", "fail"} {
				if do == "loop" && slug != "token-a" && slug != "signed-c" {
					continue // it is slow
				}
				if do == "loop" {
					w.Apply(actWithin(300))
				}
				if a := send(do); a.Status < 400 {
					t.Errorf("%s, %s: %d %s", slug, do, a.Status, a.Body)
				}
				if do == "loop" {
					w.Apply(actWithin(20_000))
				}
			}
			if n := kept(t, w); n != before {
				t.Errorf("%s: %s, %s before", slug, n, before)
			}
			first := send("object")
			if first.Status >= 400 {
				t.Errorf("%s: %d %s", slug, first.Status, first.Body)
			}
			if a := send("fail"); string(a.Body) != `{"duplicate":true}` || header(t, a, "X-Event-Id") != header(t, first, "X-Event-Id") {
				t.Errorf("%s: %d %s", slug, a.Status, a.Body)
			}
		}
		if n := kept(t, w); n != "6 records, 4 events, 4 keys" { // a flow makes two
			t.Error(n)
		}
	})
}

// TestKeysAreKnownAfterARestart, and to every node.
func TestKeysAreKnownAfterARestart(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(orders + endpoints("{slug: hook, target: {component: act}, auth: token}", signed("shop", "component: act", "")))
		hook, body := w.Webhook("hook").With("Idempotency-Key", "k"), with(ok, `"id": "e"`)
		first := header(t, hook.Post(custom+"hook", ok).Want(200, ""), "X-Event-Id")
		shop := header(t, provider{w.Anyone()}.Post(custom+"shop", body), "X-Event-Id")
		w.Nodes[0].Stop()
		again := w.AddNode()
		if a := hook.At(again).Post(custom+"hook", ok).Want(200, ""); header(t, a, "X-Event-Id") != first {
			t.Errorf("%s", a.Body)
		}
		if a := (provider{w.Anyone().At(again)}).Post(custom+"shop", body).Want(200, ""); header(t, a, "X-Event-Id") != shop {
			t.Errorf("%s", a.Body)
		}
	})
}

// TestRetentionOfKeys: keys are kept for ever by default, or for dedup_retention_days;
// a node deletes older ones when it starts.
func TestRetentionOfKeys(t *testing.T) {
	for name, c := range map[string]struct {
		setting string
		days    int
		kept    bool
	}{
		"for ever":         {"", 4000, true},
		"30 days, not yet": {"dedup_retention_days: 30\n", 29, true},
		"30 days":          {"dedup_retention_days: 30\n", 31, false},
	} {
		t.Run(name, func(t *testing.T) {
			gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
				w.Apply(orders + endpoints("{slug: hook, target: {component: act}, auth: token}") + c.setting)
				hook := w.Webhook("hook").With("Idempotency-Key", "k")
				first := header(t, hook.Post(custom+"hook", ok).Want(200, ""), "X-Event-Id")
				w.HousekeepingIsDue()
				w.Nodes[0].Stop() // which writes the run
				w.Clock.Advance(time.Duration(c.days) * 24 * time.Hour)
				hook = hook.At(w.AddNode())
				for begun := time.Now(); time.Since(begun) < 5*time.Second; time.Sleep(10 * time.Millisecond) {
					if (count(t, w, "runs") == 0) == (c.days > 30) && (count(t, w, "events") == 0) != c.kept {
						break
					}
				}
				if n := count(t, w, "runs"); (n == 0) != (c.days > 30) {
					t.Errorf("%d runs after %d days", n, c.days)
				}
				a := hook.Post(custom+"hook", ok).Want(200, "")
				if again := header(t, a, "X-Event-Id") == first; again != c.kept {
					t.Errorf("after %d days: %s", c.days, a.Body)
				}
			})
		})
	}
}

// TestDeliveriesOfAKeyWait: while the first delivery runs, a second of its key waits;
// it runs if the first fails, and is a duplicate otherwise.
func TestDeliveriesOfAKeyWait(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(slow("{slug: slow, target: {component: slow}, auth: token}"))
		hook := w.Webhook("slow")
		for _, c := range []struct{ first, want string }{{`{}`, `{"duplicate":true}`}, {`{"fail": true}`, `{"data":"olivia@acme.example","meta":{}}`}} {
			key := hook.With("Idempotency-Key", c.first)
			var first *gatetest.Answer
			var wg sync.WaitGroup
			wg.Go(func() { first = key.Post(custom+"slow", c.first) })
			w.Nodes[0].AwaitRuns(t, 1)
			second := key.Post(custom+"slow", `{}`).Want(200, "")
			wg.Wait()
			if strings.TrimSpace(string(second.Body)) != c.want {
				t.Errorf("the first was answered %d %s, the second %s, want %s", first.Status, first.Body, second.Body, c.want)
			}
		}
		if n := kept(t, w); n != "2 records, 2 events, 2 keys" {
			t.Error(n)
		}
	})
}

// TestRunsSeeTheirChanges, and refused writes leave nothing.
func TestRunsSeeTheirChanges(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		const several = `
  - name: several
    source: |
      export default function handler(inputs) {
        const a = records.create("order", {number: "A" + inputs.n})
        records.update("order", a.id, {total: 5})
        const seen = records.get("order", a.id)
        let refused = null
        try { records.create("order", {number: "A" + inputs.n}) } catch (e) { refused = e.code }
        const b = records.create("order", {number: "B" + inputs.n})
        records.delete("order", b.id)
        return {total: seen.total, refused, gone: records.get("order", b.id)}
      }
`
		w.Apply(also(several) + endpoints("{slug: several, target: {component: several}, auth: token}"))
		a := w.Webhook("several").Post(custom+"several", `{"n": 1}`).Want(200, "")
		same(t, "it", a.Body, `{"data": {"total": 5, "refused": "CONFLICT", "gone": null}, "meta": {}}`)
		if n := count(t, w, "records"); n != 1 {
			t.Errorf("%d records", n)
		}
	})
}
