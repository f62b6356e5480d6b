package endpoint_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"gatehouse/internal/gatetest"
)

// challenged is a tenant whose verifier replies as its query or body asks, signed or not, and
// accepts what is signed.
func challenged(more ...string) string {
	return also(`
  - name: challenge
    source: |
      export default function handler({rawBody, headers, config, method, query, url}) {
        if (query["hub.mode"] === "subscribe") {
          if (query["hub.verify_token"] !== "the-verify-word") fail("hub.verify_token is wrong")
          return {reply: {status: 200, contentType: "text/plain", body: query["hub.challenge"]}}
        }
        if (method === "GET" && query.event) return {providerEventId: "1", eventKind: "", canonicalEvent: {do: "null"}}
        if (method === "GET" && query.seen) return {reply: {body: {method, query, url, rawBody, body: headers["content-length"] ?? null}}}
        const event = JSON.parse(rawBody)
        if ("reply" in event) return event
        if (event.raw === "huge") return {reply: {body: "x".repeat(event.n)}}
        if (!safeCompare(hmacSha256(config.webhook_secret, rawBody), headers["x-signature"] ?? "")) fail("bad signature")
        return {providerEventId: event.id, eventKind: "order", canonicalEvent: event}
      }
`) + endpoints(append([]string{
		"{slug: hook, target: {component: act}, auth: signed, verifier: challenge, webhook_secret: " + shopSecret + ", allow_get: true}",
		"{slug: posts, target: {component: act}, auth: signed, verifier: challenge, webhook_secret: " + shopSecret + "}",
		"{slug: key, target: {component: act}}", "{slug: token, target: {component: act}, auth: token}",
	}, more...)...)
}

// TestAVerifierReplies: the challenge is answered, nothing runs, and neither an event nor what it
// is known by is kept, so that a delivery with the same id runs.
func TestAVerifierReplies(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(challenged())
		for body, want := range map[string]string{
			`{"reply": {"status": 200, "contentType": "text/plain", "body": "3eZbrw1aB"}}`:             "200 text/plain; charset=utf-8 3eZbrw1aB",
			`{"reply": {"status": 200, "contentType": "application/json", "body": "{\"type\":1}"}}`:    `200 application/json {"type":1}`,
			`{"reply": {"contentType": "Application/JSON; charset=UTF-8", "body": {"challenge":"x"}}}`: `200 application/json {"challenge":"x"}`,
			`{"reply": {"body": [1, 2]}}`:           "200 application/json [1,2]",
			`{"reply": {"body": ["\ud83d\ude00"]}}`: `200 application/json ["😀"]`,
			`{"reply": {"body": "Größe"}}`:          "200 text/plain; charset=utf-8 Größe",
			`{"reply": {"body": "\ud800"}}`:         "200 text/plain; charset=utf-8 \uFFFD",
			`{"reply": {}}`:                         "200 text/plain; charset=utf-8 ",
			`{"reply": {"status": 204}}`:            "204  ",
			`{"reply": {"status": 202, "contentType": "text/xml", "body": "<Response/>", "id": null}, "x": 1}`: "401",
			`{"reply": {"status": 202, "contentType": "text/xml", "body": "<Response/>"}}`:                     "202 text/xml; charset=utf-8 <Response/>",
		} {
			a := w.Anyone().Post(custom+"posts", body)
			got := fmt.Sprint(a.Status, " ", a.Header.Get("Content-Type"), " ", string(a.Body))
			if want == "401" {
				a.Want(401, "UNAUTHORIZED")
				continue
			}
			if got != want {
				t.Errorf("%s: %q, want %q", body, got, want)
			}
			if a.Header.Get("X-Content-Type-Options") != "nosniff" || a.Header.Get("Content-Security-Policy") != "default-src 'none'; sandbox" ||
				a.Header.Get("X-Event-Id") != "" || a.Header.Get("Cache-Control") != "no-store" || a.Header.Get("X-Request-Id") == "" {
				t.Errorf("%s: headers %v", body, a.Header)
			}
		}
		w.Settle()
		if n, runs := kept(t, w), count(t, w, "runs"); n != "0 records, 0 events, 0 keys" || runs != 0 {
			t.Errorf("%s, %d runs", n, runs)
		}
		provider{w.Anyone()}.Post(custom+"posts", with(ok, `"id": "3eZbrw1aB"`)).Want(202, "")
		if n := kept(t, w); n != "1 records, 1 events, 1 keys" {
			t.Error(n)
		}
	})
}

// TestAWrongReply is a rejection, whose reason is in the logs alone.
func TestAWrongReply(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(challenged())
		reasons := map[string]string{} // by request id
		for reply, want := range map[string]string{
			`{"status": 199}`: "reply.status: expected a whole number from 200 to 299",
			`{"status": 300}`: "reply.status", `{"status": 404}`: "reply.status", `{"status": 500}`: "reply.status", `{"status": 101}`: "reply.status",
			`{"status": "200"}`: "reply.status", `{"status": 200.5}`: "reply.status", `{"status": -200}`: "reply.status", `{"status": 1e99}`: "reply.status",
			`{"contentType": "text/html", "body": "<script>"}`: "reply.contentType: expected one of application/json, application/xml, text/csv, text/plain, text/xml",
			`{"contentType": "image/svg+xml"}`:                 "reply.contentType", `{"contentType": "application/xhtml+xml"}`: "reply.contentType",
			`{"contentType": "application/javascript"}`: "reply.contentType", `{"contentType": "text/plain; charset=utf-7"}`: "reply.contentType",
			`{"contentType": "text/plain; charset=utf-8; x=y"}`: "reply.contentType", `{"contentType": "text/plain\r\nX-Evil: 1"}`: "reply.contentType",
			`{"contentType": "text/plain, text/html"}`: "reply.contentType", `{"contentType": 7}`: "reply.contentType", `{"contentType": ""}`: "reply.contentType",
			`{"body": 5}`: "reply.body: expected a text", `{"body": true}`: "reply.body",
			`{"contentType": "text/plain", "body": {}}`: "reply.body: an object or a list goes with application/json only",
			`{"body": {"a": ["\ud800"]}}`:               "reply.body is not strict JSON: expected no half of a surrogate pair",
			`{"body": {"\udc00": 1}}`:                   "reply.body is not strict JSON", `{"body": ["\ud800\ud800"]}`: "reply.body is not strict JSON",
			`{"status": 204, "body": "x"}`:   "reply.body: an answer with status 204 has none",
			`{"status": 200, "headers": {}}`: "reply has another member than status",
			`{"Status": 200}`:                "reply has another member than status",
			`"text"`:                         "reply is not an object", `[]`: "reply is not an object", `true`: "reply is not an object",
		} {
			a := w.Anyone().Post(custom+"posts", `{"reply": `+reply+`}`).Want(401, "UNAUTHORIZED")
			if !strings.Contains(string(a.Body), "the signature was rejected") || strings.Contains(string(a.Body), "reply") {
				t.Errorf("%s: %s", reply, a.Body)
			}
			reasons[header(t, a, "X-Request-Id")] = want
		}
		a := w.Anyone().Post(custom+"posts", `{"raw": "huge", "n": 65536}`)
		if a.Status != 200 || len(a.Body) != 65536 {
			t.Errorf("%d, %d bytes", a.Status, len(a.Body))
		}
		a = w.Anyone().Post(custom+"posts", `{"raw": "huge", "n": 65537}`).Want(401, "UNAUTHORIZED")
		reasons[header(t, a, "X-Request-Id")] = "reply.body is larger than 64 KiB"
		if n := kept(t, w); n != "0 records, 0 events, 0 keys" {
			t.Error(n)
		}
		w.Nodes[0].Stop() // which writes the log
		for _, line := range w.Nodes[0].Log.Lines(t) {
			id := fmt.Sprint(line["request_id"])
			if want, one := reasons[id]; one && !strings.Contains(fmt.Sprint(line["reason"]), want) {
				t.Errorf("the log has %v, want %q", line["reason"], want)
			}
			delete(reasons, id)
		}
		if len(reasons) > 0 {
			t.Errorf("the log lacks %v", reasons)
		}
	})
}

// TestGet: with allow_get the verifier answers it; elsewhere it does not exist, as before.
func TestGet(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(challenged())
		const meta = "?hub.mode=subscribe&hub.verify_token=the-verify-word&hub.challenge=1158201444"
		a := w.Anyone().Get(custom + "hook" + meta)
		if a.Status != 200 || string(a.Body) != "1158201444" || a.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
			t.Errorf("%v %s", a.Header, a.Body)
		}
		w.Anyone().Get(custom+"hook"+strings.Replace(meta, "word", "wort", 1)).Want(401, "UNAUTHORIZED")
		w.Anyone().Get(custom+"hook").Want(401, "UNAUTHORIZED")
		w.Anyone().Get(custom+"hook?event=1").Want(401, "UNAUTHORIZED") // a GET is no delivery
		a = w.Anyone().Do(http.MethodGet, custom+"hook?seen=1&a=%C3%B6+x&a=2&%FF=3&%zz=4&b", `{"reply": {}}`)
		same(t, "what it sees", a.Body, `{"method": "GET", "query": {"seen": "1", "a": ["ö x", "2"], "\ufffd": "3", "b": ""}, "rawBody": "",
			"url": "https://acme.localhost/public/v1/custom/hook?seen=1&a=%C3%B6+x&a=2&%FF=3&%zz=4&b", "body": "`+fmt.Sprint(len(`{"reply": {}}`))+`"}`)
		for _, slug := range []string{"posts", "key", "token", "nothing"} {
			a := w.Anyone().Get(custom+slug+meta).Want(405, "METHOD_NOT_ALLOWED")
			if header(t, a, "Allow") != "POST" {
				t.Errorf("%s: Allow %v", slug, a.Header["Allow"])
			}
		}
		for _, method := range []string{http.MethodHead, http.MethodPut, http.MethodOptions} {
			if a := w.Anyone().Do(method, custom+"hook"+meta, ""); a.Status != 405 || header(t, a, "Allow") != "POST" {
				t.Errorf("%s: %d %v", method, a.Status, a.Header)
			}
		}
		w.Settle()
		if n, runs := kept(t, w), count(t, w, "runs"); n != "0 records, 0 events, 0 keys" || runs != 0 {
			t.Errorf("%s, %d runs", n, runs)
		}
		for path, e := range w.AuditLog("acme") {
			if strings.Contains(fmt.Sprint(e), "the-verify-word") {
				t.Errorf("%s: the audit log has the token: %+v", path, e)
			}
		}
	})
}

// TestRepliesCountAgainstTheAddress, and not against the endpoint, whose budget is the provider's.
func TestRepliesCountAgainstTheAddress(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Clock.Stop()
		w.Apply(strings.Replace(challenged(
			"{slug: small, target: {component: act}, auth: signed, verifier: challenge, webhook_secret: "+shopSecret+", allow_get: true, rate_limit_per_minute: 2}"),
			"public_api: {enabled: true}", "public_api: {enabled: true}\nunauthenticated_per_ip_per_minute: 5", 1))
		for range 2 {
			if a, b := w.Anyone().Post(custom+"small", `{"reply": {}}`), w.Anyone().Get(custom+"small?seen=1"); a.Status != 200 || b.Status != 200 {
				t.Errorf("%d %d", a.Status, b.Status)
			}
		}
		a := w.Anyone().Post(custom+"small", `{"reply": {}}`)
		if a.Status != 200 || a.Header.Get("X-RateLimit-Limit") != "5" || a.Header.Get("X-RateLimit-Remaining") != "0" {
			t.Errorf("%v", a.Header)
		}
		w.Anyone().Post(custom+"small", `{"reply": {}}`).Want(429, "RATE_LIMITED")
		w.Anyone().Get(custom+"small?seen=1").Want(429, "RATE_LIMITED")
		w.Anyone().Get(custom+"posts").Want(429, "RATE_LIMITED") // the method does not exist
	})
}
