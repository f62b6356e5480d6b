package endpoint_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/gatetest"
)

// bench is a verifier whose rejections say more than they should.
const bench = `
  - name: talks
    source: |
      export default function handler({rawBody, headers, config, method, query, url}) {
        console.log("the secret is", config.webhook_secret)
        const want = hmacSha256(config.webhook_secret, rawBody)
        if (!headers["x-signature"]) fail("there is no X-Signature")
        if (headers["x-signature"] !== want) fail("expected " + want)
        if (rawBody.startsWith("a=")) return {providerEventId: "1", eventKind: "order", canonicalEvent: {a: "1", b: decodeURIComponent("Gr%C3%B6%C3%9Fe")}}
        const event = JSON.parse(rawBody)
        if (event.reply) return {reply: event.leak ? {[event.leak]: config.webhook_secret, ...(event.name ? {[config.webhook_secret]: 1} : {})} : {body: {method, query, url}}}
        if (event.parts) return event.parts === "reply" ? {reply: {status: 201, body: config.webhook_secret.slice(0, 8)}}
          : {providerEventId: config.webhook_secret.slice(0, 8), eventKind: btoa(config.webhook_secret), canonicalEvent: {half: config.webhook_secret.slice(8)}}
        if (event.echo) return {reply: {body: event.echo}}
        return {providerEventId: event.id, eventKind: "order", canonicalEvent: event.leak ? {secret: config.webhook_secret} : event}
      }
`

func verifierTry(t *testing.T, given map[string]any, signature, body string) string {
	t.Helper()
	given["body"], given["headers"] = body, []map[string]string{}
	if signature != "" {
		given["headers"] = []map[string]string{{"name": "X-Signature", "value": signature}}
	}
	text, err := json.Marshal(given)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestTheVerifierTestBench: a stored verifier and a draft, with a secret that is given or
// with the endpoint's own, of which nothing is told (contract W15).
func TestTheVerifierTestBench(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(also(bench) + endpoints(strings.Replace(signed("hook", "component: act", ""), "verifier: simple", "verifier: talks", 1)))
		w.Apply(builders)
		m := w.Staff(mark)
		const at, body = "/admin/v1/verifier/try", `{"id": "evt_1"}`
		verdict := func(given map[string]any, signature, body string) (map[string]any, string) {
			t.Helper()
			a := m.Post(at, verifierTry(t, given, signature, body)).Want(200, "")
			return a.Record(), string(a.Body)
		}
		own := func() map[string]any {
			return map[string]any{"verifier": "talks", "secrets": []string{"another secret of mine"}}
		}
		stored := func() map[string]any { return map[string]any{"endpoint": "hook"} }

		v, _ := verdict(own(), hmacHex("another secret of mine", body), body)
		if v["accepted"] != true || v["providerEventId"] != "evt_1" || v["eventKind"] != "order" || v["canonicalEvent"].(map[string]any)["id"] != "evt_1" || len(v["console"].([]any)) != 1 {
			t.Errorf("a right signature: %v", v)
		}
		if v, _ := verdict(own(), "wrong", body); v["accepted"] != false || v["outcome"] != "rejected" || !strings.HasPrefix(v["reason"].(string), "expected ") || v["line"] != 5.0 {
			t.Errorf("a wrong signature, with a secret of one's own: %v", v)
		}
		if v, _ := verdict(map[string]any{"source": "export default (", "secrets": []string{"s"}}, "", body); v["outcome"] != "source" || v["line"] != 1.0 {
			t.Errorf("a source that does not compile: %v", v)
		}
		if v, _ := verdict(map[string]any{"source": "export default () => 1", "secrets": []string{"s"}}, "", body); v["outcome"] != "result" || v["reason"] != "it did not return an object" {
			t.Errorf("a wrong result: %v", v)
		}

		right := hmacHex(shopSecret, body)
		if v, text := verdict(stored(), right, body); v["accepted"] != true || v["providerEventId"] != "evt_1" || strings.Contains(text, shopSecret) {
			t.Errorf("the stored secret, a right signature: %s", text)
		}
		if v, text := verdict(stored(), "wrong", body); v["accepted"] != false || strings.Contains(text, right) || len(v["console"].([]any)) != 0 || v["line"] != 0.0 {
			t.Errorf("the stored secret, a wrong signature: %s", text)
		}
		if v, _ := verdict(stored(), "", body); v["reason"] != "there is no X-Signature" { // words of the source as they are
			t.Errorf("the stored secret, no signature: %v", v)
		}
		const leak = `{"id": "evt_2", "leak": true}`
		if v, text := verdict(stored(), hmacHex(shopSecret, leak), leak); v["accepted"] != true || strings.Contains(text, shopSecret) || v["canonicalEvent"] != nil {
			t.Errorf("an event with the stored secret: %s", text)
		}
		// A challenge is answered, and nothing with the stored secret is shown.
		const challenge = `{"reply": true}`
		given := own()
		given["method"], given["query"] = "GET", "a=1&b=x%20y"
		v, _ = verdict(given, hmacHex("another secret of mine", challenge), challenge)
		reply, _ := v["reply"].(map[string]any)
		if v["accepted"] != false || v["outcome"] != "reply" || v["providerEventId"] != nil || reply == nil || reply["status"] != 200.0 || reply["contentType"] != "application/json" {
			t.Errorf("a challenge: %v", v)
		} else {
			same(t, "the reply", []byte(reply["body"].(string)), `{"method": "GET", "query": {"a": "1", "b": "x y"}, "url": "https://acme.localhost/public/v1/custom/test-bench?a=1&b=x%20y"}`)
		}
		for body, outcome := range map[string]string{
			`{"reply": true, "leak": "body"}`: "reply", `{"reply": true, "leak": "contentType"}`: "result", `{"reply": true, "leak": "body", "name": true}`: "result",
		} {
			if v, text := verdict(stored(), hmacHex(shopSecret, body), body); v["outcome"] != outcome || v["reply"] != nil || strings.Contains(text, shopSecret) {
				t.Errorf("the stored secret, %s: %s", body, text)
			}
		}
		w.Clock.Advance(time.Minute) // a user has 20 tries in it
		// Neither are parts of it and what was made of it; what stands in the delivery is.
		const halves, half, echo = `{"parts": "event"}`, `{"parts": "reply"}`, `{"echo": "3eZbrw1aB"}`
		v, text := verdict(stored(), hmacHex(shopSecret, halves), halves)
		if v["accepted"] != true || v["providerEventId"] != nil || v["eventKind"] != nil || v["canonicalEvent"] != nil ||
			!strings.Contains(v["reason"].(string), "not the providerEventId of 8 bytes, the eventKind of ") || strings.Contains(text, shopSecret[:8]) {
			t.Errorf("an event with parts of the stored secret: %s", text)
		}
		v, text = verdict(stored(), hmacHex(shopSecret, half), half)
		if reply, _ := v["reply"].(map[string]any); reply == nil || reply["status"] != 201.0 || reply["body"] != "" ||
			!strings.Contains(v["reason"].(string), "not the reply's body of 8 bytes") || strings.Contains(text, shopSecret[:8]) {
			t.Errorf("a reply with a part of the stored secret: %s", text)
		}
		v, text = verdict(stored(), hmacHex(shopSecret, echo), echo)
		if reply, _ := v["reply"].(map[string]any); reply == nil || reply["body"] != "3eZbrw1aB" || v["reason"] != "" {
			t.Errorf("a reply of what was given: %s", text)
		}
		const form = `a=1&b=Gr%C3%B6%C3%9Fe`
		if v, text := verdict(stored(), hmacHex(shopSecret, form), form); v["canonicalEvent"] == nil || v["canonicalEvent"].(map[string]any)["b"] != "Größe" {
			t.Errorf("the fields of a form: %s", text)
		}
		const spaced = `{ "id":"evt_3", "n": 1.50, "text": "Gr\u00f6\u00dfe" }`
		if v, text := verdict(stored(), hmacHex(shopSecret, spaced), spaced); v["reason"] != "" || v["canonicalEvent"] == nil || v["canonicalEvent"].(map[string]any)["text"] != "Größe" {
			t.Errorf("an event as it was given: %s", text)
		}
		given = own()
		given["method"] = "PUT"
		m.Post(at, verifierTry(t, given, "", body)).Want(400, "VALIDATION")
		// The stored secret goes with the endpoint's verifier alone.
		for _, more := range []map[string]any{{"source": "export default ({config}) => fail(config.webhook_secret)"}, {"verifier": "simple"}, {"secrets": []string{"x"}}} {
			more["endpoint"] = "hook"
			m.Post(at, verifierTry(t, more, "", body)).Want(400, "VALIDATION")
		}
		m.Post(at, verifierTry(t, map[string]any{"endpoint": "nothing"}, "", body)).Want(404, "NOT_FOUND")
		m.Post(at, verifierTry(t, map[string]any{}, "", body)).Want(400, "VALIDATION")
		w.Clock.Stop()
		last := 0
		for range 30 {
			if last = m.Post(at, verifierTry(t, stored(), "wrong", body)).Status; last == 429 {
				break
			}
		}
		if last != 429 {
			t.Error("no limit for tries")
		}
		if n := len(m.Get(events).Want(200, "").Records()); n != 0 {
			t.Errorf("%d events of tries", n)
		}
	})
}
