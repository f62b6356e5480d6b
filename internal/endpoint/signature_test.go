package endpoint_test

import (
	"fmt"
	"testing"
	"time"

	"gatehouse/internal/gatetest"
)

// TestSignatures: only the right one is accepted, with either secret of a rotation.
func TestSignatures(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(orders + endpoints(signed("shop", "component: act", ", previous_webhook_secret: the-secret-before")))
		n := 0
		for _, c := range []struct {
			slug, secret, change string
			want                 int
		}{
			{"shop", shopSecret, "", 202}, {"shop", "the-secret-before", "", 202}, {"shop", "another", "", 401}, {"shop", "", "", 401},
			{"shop", shopSecret, " ", 401},
		} {
			before := kept(t, w)
			n++
			body := fmt.Sprintf(`{"do": "null", "id": "%d"}`, n)
			a := w.Anyone().With("X-Signature", hmacHex(c.secret, body)).Post(custom+c.slug, body+c.change)
			if a.Status != c.want || c.want == 401 && a.Code() != "UNAUTHORIZED" {
				t.Errorf("%s, signed with %q: %d %s, want %d", c.slug, c.secret, a.Status, a.Body, c.want)
			}
			if ran := kept(t, w) != before; ran != (c.want == 202) {
				t.Errorf("%s, signed with %q: it ran: %v", c.slug, c.secret, ran)
			}
		}
		body := `{"do": "null", "id": "x"}`
		w.Anyone().Post(custom+"shop", body).Want(401, "UNAUTHORIZED")
		sig := hmacHex(shopSecret, body)
		w.Anyone().With("X-Signature", sig).With("X-Signature", sig).Post(custom+"shop", body).Want(401, "UNAUTHORIZED") // joined by a comma
		w.Key("sam@acme.example").Post(custom+"shop", body).Want(401, "UNAUTHORIZED")
	})
}

// TestVerifierResults: anything but {providerEventId, eventKind, canonicalEvent} is a
// rejection (contract W10).
func TestVerifierResults(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		answers := map[string]int{
			`return {providerEventId: "1", eventKind: "k", canonicalEvent: {do: "null"}}`:                 202,
			`return {providerEventId: "2", canonicalEvent: {do: "null"}, more: 1}`:                        202,
			`return {providerEventId: "3", eventKind: null, canonicalEvent: {do: "null"}}`:                202,
			`return Promise.resolve({providerEventId: "4", eventKind: "", canonicalEvent: {do: "null"}})`: 202,
			`return`:                              401,
			`return true`:                         401,
			`return "ok"`:                         401,
			`return {}`:                           401,
			`return []`:                           401,
			`throw "x"`:                           401,
			`null.x`:                              401,
			`fail("x")`:                           401,
			`for (;;);`:                           503, // stopped, so that it has not rejected
			`records.list("order")`:               401,
			`fail("x", {status: 503, code: "X"})`: 401,
			`return {providerEventId: "", eventKind: "k", canonicalEvent: {}}`:             401,
			`return {providerEventId: 5, eventKind: "k", canonicalEvent: {}}`:              401,
			`return {providerEventId: "6", eventKind: 1, canonicalEvent: {}}`:              401,
			`return {providerEventId: "7", eventKind: "k", canonicalEvent: []}`:            401,
			`return {providerEventId: "8", eventKind: "k", canonicalEvent: null}`:          401,
			`return {providerEventId: "9", eventKind: "k"}`:                                401,
			`return {eventKind: "k", canonicalEvent: {}}`:                                  401,
			`return Promise.reject(1)`:                                                     401,
			`const a = []; for (;;) a.push("x".repeat(1 << 20) + a.length)`:                503,
			`return {providerEventId: "10", eventKind: "k", canonicalEvent: {nothing: 1}}`: 422, // the target's own validation
		}
		verifiers, lines, status := "", []string{}, map[string]int{}
		for answer, want := range answers {
			name := fmt.Sprintf("v%d", len(lines))
			verifiers += fmt.Sprintf("  - {name: %s, source: %q}\n", name, "export default function handler(given) { "+answer+" }")
			lines = append(lines, fmt.Sprintf("{slug: %s, target: {component: act}, auth: signed, verifier: %s, webhook_secret: %s}", name, name, shopSecret))
			status[name] = want
		}
		w.Apply(also(verifiers) + endpoints(lines...))
		for name, want := range status {
			before := count(t, w, "events")
			begun := time.Now()
			a := w.Anyone().Post(custom+name, `x`)
			took := time.Since(begun)
			if a.Status != want || want == 401 && (a.Code() != "UNAUTHORIZED" || header(t, a, "Www-Authenticate") == "") {
				t.Errorf("%s: %d %s, want %d", name, a.Status, a.Body, want)
			}
			if n := count(t, w, "events") - before; n != map[bool]int{true: 1}[want == 202] {
				t.Errorf("%s: %d events", name, n)
			}
			if took > 7*time.Second { // 5 s by the clock bound the slowest, however busy the machine is
				t.Errorf("%s took %v", name, took)
			}
		}
	})
}

// TestRejectionsCountAgainstTheirAddress: when its budget is used up, the verifier does
// not run for it, whatever the signature (contract W8).
func TestRejectionsCountAgainstTheirAddress(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(echoes + fewAttempts)
		send := func(ip, secret string) *gatetest.Answer {
			body := with(ok, `"id": "`+names.next("e")+`"`)
			return w.Anyone().With("X-Forwarded-For", ip).With("X-Signature", hmacHex(secret, body)).Post(custom+"signed-act", body)
		}
		for range 10 {
			if a := send("198.51.100.1", shopSecret); a.Status != 202 {
				t.Fatalf("%d %s", a.Status, a.Body)
			}
		}
		for range 4 {
			send("198.51.100.1", "wrong").Want(401, "UNAUTHORIZED")
		}
		before := kept(t, w)
		send("198.51.100.1", "wrong").Want(429, "RATE_LIMITED")
		a := send("198.51.100.1", shopSecret).Want(429, "RATE_LIMITED")
		if header(t, a, "Retry-After") == "" || header(t, a, "X-RateLimit-Remaining") != "0" {
			t.Errorf("%v", a.Header)
		}
		if n := kept(t, w); n != before {
			t.Errorf("it ran: %s, %s before", n, before)
		}
		if a := send("198.51.100.2", shopSecret); a.Status != 202 {
			t.Errorf("another address: %d %s", a.Status, a.Body)
		}
		w.Clock.Advance(time.Minute)
		if a := send("198.51.100.1", shopSecret); a.Status != 202 {
			t.Errorf("a minute later: %d %s", a.Status, a.Body)
		}
	})
}
