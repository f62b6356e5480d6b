package endpoint_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/internal/endpoint"
	"gatehouse/internal/gatetest"
)

// slow is the tenant of orders with a component that takes a while after it has
// changed something.
func slow(lines ...string) string {
	const component = `
  - name: slow
    source: |
      export default function handler(inputs, ctx) {
        records.create("counter", {n: 1})
        const until = Date.now() + 400
        while (Date.now() < until);
        if (inputs.fail) fail("as its inputs say")
        return ctx.user.email
      }
`
	return also(component) + endpoints(lines...)
}

// TestConfigurationChangesDuringARun: a run takes effect under the configuration of its
// commit, once, or not at all.
func TestConfigurationChangesDuringARun(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(slow("{slug: key, target: {component: slow}}", "{slug: hook, target: {component: slow}, auth: token, run_as: rita@acme.example}"))
		sam, hook := w.Key("sam@acme.example"), w.Webhook("hook").With("Idempotency-Key", "k")
		for _, c := range []struct {
			name   string
			actor  *gatetest.Actor
			slug   string
			change func()
			want   string
			after  string
		}{
			{"what does not matter", sam, "key", func() { w.Apply("tenant: acme\ndisplay_name: Another\n") }, "200", "1 records, 0 events, 0 keys"},
			{"the caller is deactivated", sam, "key", func() { w.SetActive("acme", "sam@acme.example", false) }, "401 UNAUTHORIZED", "1 records, 0 events, 0 keys"},
			{"the user it runs as is deactivated", hook, "hook", func() { w.SetActive("acme", "rita@acme.example", false) }, "422 EXECUTION_ERROR", "1 records, 0 events, 0 keys"},
		} {
			var a *gatetest.Answer
			var wg sync.WaitGroup
			wg.Go(func() { a = c.actor.Post(custom+c.slug, `{}`) })
			w.Nodes[0].AwaitRuns(t, 1)
			c.change()
			wg.Wait()
			if got(a) != c.want {
				t.Errorf("%s: %s, want %s", c.name, got(a), c.want)
			}
			if n := kept(t, w); n != c.after {
				t.Errorf("%s: %s, want %s", c.name, n, c.after)
			}
		}
		w.SetActive("acme", "rita@acme.example", true)
		hook.Post(custom+"hook", `{}`).Want(200, "")
		if n := kept(t, w); n != "2 records, 1 events, 1 keys" {
			t.Error(n)
		}
	})
}

// TestACallerWhoHangsUp does not prevent the next delivery of the key from being
// answered; the delivery takes effect once.
func TestACallerWhoHangsUp(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(slow("{slug: hook, target: {component: slow}, auth: token}"))
		hook := w.Webhook("hook").With("Idempotency-Key", "k")
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				defer cancel()
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, hook.Node.URL+custom+"hook", strings.NewReader(`{}`))
				if err != nil {
					t.Error(err)
					return
				}
				r.Host, r.Header = hook.Host, hook.Header.Clone()
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("X-Webhook-Token", hook.Token)
				if res, err := http.DefaultClient.Do(r); err == nil {
					t.Errorf("it was answered: %d", res.StatusCode)
					_ = res.Body.Close() // it is not read
				}
			})
		}
		wg.Wait()
		begun := time.Now()
		hook.Post(custom+"hook", `{}`).Want(200, "")
		if took := time.Since(begun); took > 20*time.Second {
			t.Errorf("it waited %v", took)
		}
		if a := hook.Post(custom+"hook", `{}`).Want(200, ""); string(a.Body) != `{"duplicate":true}` {
			t.Errorf("%s", a.Body)
		}
		if n := kept(t, w); n != "1 records, 1 events, 1 keys" {
			t.Error(n)
		}
	})
}

// TestDuplicatesAreNotCheckedAgain when the target's inputs have changed since the
// first delivery (contract W3, W4).
func TestDuplicatesAreNotCheckedAgain(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		src := orders + endpoints(append(three("c", "component: act"), three("a", "automation: act_flow")...)...)
		w.Apply(src)
		sends := map[string]func() *gatetest.Answer{}
		for _, slug := range []string{"token-c", "token-a"} {
			hook := w.Webhook(slug).With("Idempotency-Key", "k")
			sends[slug] = func() *gatetest.Answer { return hook.Post(custom+slug, ok) }
		}
		for _, slug := range []string{"signed-c", "signed-a"} {
			sends[slug] = func() *gatetest.Answer {
				return provider{w.Anyone()}.Post(custom+slug, with(ok, `"id": "e"`))
			}
		}
		for slug, send := range sends {
			if a := send(); a.Status >= 300 {
				t.Fatalf("%s: %d %s", slug, a.Status, a.Body)
			}
		}
		w.Apply(strings.NewReplacer("{name: do, type: text, required: true}", "{name: do, type: text, required: true}, {name: more, type: text, required: true}",
			`inputs: {do: "{{inputs.do}}"`, `inputs: {more: "{{inputs.more}}", do: "{{inputs.do}}"`).Replace(src))
		for slug, send := range sends {
			if a := send(); string(a.Body) != `{"duplicate":true}` {
				t.Errorf("%s: %d %s", slug, a.Status, a.Body)
			}
		}
	})
}

// TestTargetsSeeTheirEvent: the provider's id and kind, or the id of the receipt.
func TestTargetsSeeTheirEvent(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		const seen = `
  - name: seen
    source: |
      export default function handler(inputs, ctx) {
        records.create("order", {number: "component " + (ctx.event ? ctx.event.id + " " + ctx.event.kind : "none")})
      }
`
		const seenFlow = `  - name: seen_flow
    trigger: http.request
    nodes: [{id: made, type: record.create, entity: order, fields: {number: "flow {{event.id}} {{event.kind}}"}}]
`
		w.Apply(also(seen) + seenFlow + endpoints(append(three("c", "component: seen"), three("a", "automation: seen_flow")...)...))
		call, olivia := callers(w, "sam@acme.example"), w.Key("olivia@acme.example")
		newest := func() any { return olivia.Get("/public/v1/data/order?limit=1").Records()[0]["number"] }
		for target, name := range map[string]string{"c": "component", "a": "flow"} {
			a := call["token"]("token-"+target, `{}`)
			if number := newest(); number != name+" "+header(t, a, "X-Event-Id")+" " {
				t.Errorf("token: %q, the event is %s", number, a.Header.Get("X-Event-Id"))
			}
			provider{w.Anyone()}.Post(custom+"signed-"+target, `{"id": "evt 7"}`)
			if number := newest(); number != name+" evt 7 order" {
				t.Errorf("signed: %q", number)
			}
		}
		call["key"]("key-c", `{}`).Want(200, "")
		if number := newest(); number != "component none" {
			t.Errorf("key: %q", number)
		}
	})
}

// TestStopLetsRunsFinish: they are answered and recorded.
func TestStopLetsRunsFinish(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(slow("{slug: hook, target: {component: slow}, auth: token}"))
		hook := w.Webhook("hook").With("Idempotency-Key", "k")
		var a *gatetest.Answer
		var wg sync.WaitGroup
		wg.Go(func() { a = hook.Post(custom+"hook", `{}`) })
		w.Nodes[0].AwaitRuns(t, 1)
		w.Nodes[0].Stop()
		wg.Wait()
		a.Want(200, "")
		again := w.AddNode()
		if n := kept(t, w); n != "1 records, 1 events, 1 keys" || count(t, w, "runs") != 1 {
			t.Errorf("%s, %d runs", n, count(t, w, "runs"))
		}
		hook.At(again).Post(custom+"hook", `{}`).Want(200, "")
		if n := count(t, w, "events"); n != 1 {
			t.Errorf("%d events", n)
		}
	})
}

// TestEveryRunIsRecorded, whatever its outcome (contract X8). A call whose target did
// not run has no run.
func TestEveryRunIsRecorded(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(orders + endpoints(append(three("c", "component: act"), three("a", "automation: act_flow")...)...))
		sam, hook := w.Key("sam@acme.example"), w.Webhook("token-a").With("Idempotency-Key", "k")
		shop := provider{w.Anyone()}
		type run struct{ slug, auth, user, status, code string }
		var want []run
		expect := func(a *gatetest.Answer, r run) {
			t.Helper()
			if (a.Status < 400) != (r.status == endpoint.Succeeded) {
				t.Errorf("%s: %d %s", a.Call, a.Status, a.Body)
			}
			want = append([]run{r}, want...) // they are listed newest first
		}
		const olivia = "olivia@acme.example"
		expect(sam.Post(custom+"key-c", ok), run{"key-c", "key", "sam@acme.example", endpoint.Succeeded, ""})
		expect(sam.Post(custom+"key-a", ok), run{"key-a", "key", "sam@acme.example", endpoint.Succeeded, ""})
		expect(sam.Post(custom+"key-c", `{"do": "throw"}`), run{"key-c", "key", "sam@acme.example", endpoint.Failed, "EXECUTION_ERROR"})
		expect(hook.Post(custom+"token-a", `{"do": "fail", "status": 500}`), run{"token-a", "token", olivia, endpoint.Failed, "CHOSEN"})
		w.Apply(actWithin(300))
		expect(hook.Post(custom+"token-a", `{"do": "loop"}`), run{"token-a", "token", olivia, endpoint.Failed, "EXECUTION_TIMEOUT"})
		w.Apply(actWithin(20_000))
		expect(hook.Post(custom+"token-a", ok), run{"token-a", "token", olivia, endpoint.Succeeded, ""})
		expect(shop.Post(custom+"signed-c", with(ok, `"id": "e"`)), run{"signed-c", "signed", olivia, endpoint.Succeeded, ""})
		// These do not run.
		hook.Post(custom+"token-a", ok).Want(200, "") // a duplicate
		shop.Post(custom+"signed-c", with(ok, `"id": "e"`)).Want(200, "")
		sam.Post(custom+"key-c", `{}`).Want(422, "EXECUTION_ERROR")
		w.Anyone().Post(custom+"token-a", ok).Want(401, "UNAUTHORIZED")

		ids := map[string]string{}
		for _, email := range []string{olivia, "sam@acme.example"} {
			ids[w.UserID("acme", email)] = email
		}
		w.Nodes[0].Stop()
		var found []run
		err := endpoint.Runs(t.Context(), w.AddNode().DB, "acme", endpoint.RunFilter{}, func(r *endpoint.Run) error {
			found = append(found, run{r.Slug, string(r.Auth), ids[string(r.UserID)], r.Status, r.ErrorCode})
			if r.Tries != 1 || r.RequestID == "" || (r.EventID == "") != (r.Auth == "key") || (r.Trace == "") != strings.HasSuffix(r.Slug, "-c") {
				t.Errorf("%+v", r)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(found, want) {
			t.Errorf("kept are\n%v, want\n%v", found, want)
		}
	})
}
