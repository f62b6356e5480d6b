package endpoint_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"gatehouse/internal/gatetest"
)

var receiptShape = regexp.MustCompile(`^\{"received":true,"event_id":"([0-9a-f-]{36})"\}$`)

// TestAnswers tries each mode × target × reply mode (contract C2, C4, C5, H6).
func TestAnswers(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(orders + endpoints(append(append(three("c", "component: place"), three("a", "automation: place_flow")...),
			"{slug: receipt-c, target: {component: place}, auth: token, reply: receipt}",
			"{slug: receipt-a, target: {automation: place_flow}, auth: token, reply: receipt}")...))
		call := callers(w, "sam@acme.example")
		for _, c := range []struct {
			mode, slug, by string
			receipt        bool
		}{
			{"key", "key-c", "sam@acme.example", false},
			{"key", "key-a", "", false},
			{"token", "token-c", "olivia@acme.example", false},
			{"token", "token-a", "", false},
			{"token", "receipt-c", "", true},
			{"token", "receipt-a", "", true},
			{"signed", "signed-c", "", true},
			{"signed", "signed-a", "", true},
		} {
			before := count(t, w, "records")
			a := call[c.mode](c.slug, `{"number": "`+c.slug+`", "score": 2.5, "lines": [{"price": 2.5, "quantity": 4}], "tags": ["a"]}`)
			if n := count(t, w, "records"); n != before+1 {
				t.Errorf("%s: %d records were made", c.slug, n-before)
			}
			if c.receipt {
				m := receiptShape.FindStringSubmatch(string(a.Body))
				if a.Status != 202 || m == nil || header(t, a, "X-Event-Id") != m[1] {
					t.Errorf("%s: %d %s %v", c.slug, a.Status, a.Body, a.Header)
				}
				continue
			}
			a.Want(200, "")
			var whole map[string]json.RawMessage
			if err := json.Unmarshal(a.Body, &whole); err != nil || len(whole) != 2 {
				t.Fatalf("%s: %s", c.slug, a.Body)
			}
			data := a.Record()
			if strings.HasSuffix(c.slug, "-c") {
				same(t, c.slug, whole["data"], fmt.Sprintf(`{"id": %q, "total": 10, "by": %q}`, data["id"], c.by))
				same(t, c.slug, whole["meta"], `{}`)
				continue
			}
			same(t, c.slug, whole["data"], fmt.Sprintf(
				`{"order_id": %q, "echo": {"score": 2.5, "yes": null, "tags": ["a"], "number": %q}, "nothing": null}`, data["order_id"], c.slug))
			if !regexp.MustCompile(`^\{"nodesExecuted":2,"durationMs":\d+\}$`).Match(whole["meta"]) {
				t.Errorf("%s: meta %s", c.slug, whole["meta"])
			}
		}
	})
}

// TestADuplicateIsAnsweredBare: with the first event's id, whatever the reply mode.
func TestADuplicateIsAnsweredBare(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(orders + endpoints("{slug: result, target: {component: place}, auth: token}",
			"{slug: receipt, target: {component: place}, auth: token, reply: receipt}", signed("shop", "component: place", "")))
		send := map[string]func(n string) *gatetest.Answer{
			"shop": func(n string) *gatetest.Answer {
				return provider{w.Anyone()}.Post(custom+"shop", `{"id": "evt", "number": "`+n+`"}`)
			},
		}
		for _, slug := range []string{"result", "receipt"} {
			hook := w.Webhook(slug).With("Idempotency-Key", "k")
			send[slug] = func(n string) *gatetest.Answer { return hook.Post(custom+slug, `{"number": "`+n+`"}`) }
		}
		for slug, send := range send {
			first := header(t, send(slug+"1"), "X-Event-Id")
			if m := receiptShape.FindSubmatch(send(slug + "2").Body); m != nil {
				t.Errorf("%s: a second receipt", slug)
			}
			a := send(slug + "3") // whatever its content
			if a.Status != 200 || string(a.Body) != `{"duplicate":true}` || header(t, a, "X-Event-Id") != first {
				t.Errorf("%s: %d %s %s, want the event %s", slug, a.Status, a.Body, a.Header.Get("X-Event-Id"), first)
			}
		}
		if n := kept(t, w); n != "3 records, 3 events, 3 keys" {
			t.Error(n)
		}
	})
}

func TestAHandlersReturnIsTheData(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(orders + endpoints("{slug: act, target: {component: act}}"))
		sam := w.Key("sam@acme.example")
		for do, want := range map[string]string{
			"undefined": `null`, "null": `null`, "nothing": `null`, "text": `"a text"`, "number": `4.5`, "boolean": `false`, "list": `[1,{"a":null}]`,
			"object": `{}`,
		} {
			a := sam.Post(custom+"act", `{"do": "`+do+`"}`)
			if want := `{"data":` + want + `,"meta":{}}`; a.Status != 200 || strings.TrimSpace(string(a.Body)) != want {
				t.Errorf("%s: %d %s, want %s", do, a.Status, a.Body, want)
			}
		}
	})
}

// TestInputsThatFail: 422, with every failing field named in the message and in
// details.fields; nothing runs (contract N2).
func TestInputsThatFail(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(orders + endpoints(append(three("c", "component: place"), three("a", "automation: place_flow")...)...))
		call := callers(w, "sam@acme.example")
		for _, c := range []struct{ target, body, list, fields string }{
			{"c", `{}`, "number: required", `{"number": "required"}`},
			{"c", `{"number": null}`, "number: required", `{"number": "required"}`},
			{"c", `{"lines": "x"}`, "number: required, lines: expected json", `{"number": "required", "lines": "expected json"}`},
			{"a", `{}`, "number: required", `{"number": "required"}`},
			{
				"a", `{"score": "3", "yes": "true", "tags": "[]"}`,
				"number: required, score: expected number, yes: expected boolean, tags: expected json",
				`{"number": "required", "score": "expected number", "yes": "expected boolean", "tags": "expected json"}`,
			},
			{"a", `{"number": "1", "score": {}}`, "score: expected number", `{"score": "expected number"}`},
			{"a", `{"number": "1", "yes": 1}`, "yes: expected boolean", `{"yes": "expected boolean"}`},
			{"a", `{"number": "1", "tags": 1}`, "tags: expected json", `{"tags": "expected json"}`},
		} {
			for _, mode := range modes {
				a := call[mode](mode+"-"+c.target, c.body).Want(422, "EXECUTION_ERROR")
				same(t, mode+" "+c.body, a.Body, fmt.Sprintf(
					`{"error": {"code": "EXECUTION_ERROR", "message": "Input validation failed: [%s]", "details": {"fields": %s}}}`, c.list, c.fields))
			}
		}
		if n := kept(t, w); n != "0 records, 0 events, 0 keys" {
			t.Error(n)
		}
	})
}

// TestTextInputs: what a text input accepts (contract N3), and what a flow reads for
// inputs that were not sent or not declared (contract F4, N4).
func TestTextInputs(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(orders + endpoints("{slug: flow, target: {automation: place_flow}}", "{slug: act, target: {component: act}}"))
		sam := w.Key("sam@acme.example")
		for sent, want := range map[string]string{`{"a": [1, 2]}`: `{"a":[1,2]}`, `[ ]`: `[]`, `12.50`: `12.50`, `true`: `true`, `"x"`: `x`, `""`: ``} {
			a := sam.Post(custom+"flow", `{"number": `+sent+`, "undeclared": 1}`).Want(200, "")
			if n := a.Record()["echo"].(map[string]any)["number"]; n != want {
				t.Errorf("%s became %q, want %q", sent, n, want)
			}
		}
		a := sam.Post(custom+"act", `{"do": "event", "undeclared": {"a": 1}}`).Want(200, "")
		same(t, "a component's inputs", a.Body, fmt.Sprintf(`{"data": {"event": null, "tenant": "acme", "request": %q,
			"inputs": {"do": "event", "undeclared": {"a": 1}}}, "meta": {}}`, header(t, a, "X-Request-Id")))
	})
}

// TestOnlyTokenModeAcceptsForms: numbers, booleans and json are parsed from text.
func TestOnlyTokenModeAcceptsForms(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(orders + endpoints(three("a", "automation: place_flow")...))
		const form = "application/x-www-form-urlencoded"
		hook := w.Webhook("token-a")
		typed := hook.With("Content-Type", form)
		a := typed.Post(custom+"token-a", "number=A%201&score=2.5&yes=true&tags=%5B%221%22%5D&other=x").Want(200, "")
		echo, err := json.Marshal(a.Record()["echo"])
		if err != nil {
			t.Fatal(err)
		}
		same(t, "a form", echo, `{"number": "A 1", "score": 2.5, "yes": true, "tags": ["1"]}`)
		hook.With("Content-Type", form+"; charset=UTF-8").Post(custom+"token-a", "number=2").Want(200, "")
		a = typed.Post(custom+"token-a", "number=3&score=three&yes=ja&tags=%5Bx").Want(422, "EXECUTION_ERROR")
		if want := "[score: expected number, yes: expected boolean, tags: expected json]"; !strings.Contains(string(a.Body), want) {
			t.Errorf("%s, want %s", a.Body, want)
		}
		a = typed.Post(custom+"token-a", "number=4&tags=x").Want(200, "") // one of several checkboxes
		if want := `"tags":["x"]`; !strings.Contains(string(a.Body), want) {
			t.Errorf("%s, want %s", a.Body, want)
		}
		typed.Post(custom+"token-a", "").Want(422, "EXECUTION_ERROR") // it has no number
		typed.Post(custom+"token-a", "number=%zz").Want(400, "VALIDATION")
		typed.Post(custom+"token-a", "number=%ff").Want(400, "VALIDATION")
		typed.Post(custom+"token-a", "number=a%00b").Want(400, "VALIDATION")
		typed.Post(custom+"token-a", "number=5"+strings.Repeat("&a", 20_000)).Want(400, "VALIDATION")
		w.Key("sam@acme.example").With("Content-Type", form).Post(custom+"key-a", "number=4").Want(415, "UNSUPPORTED_MEDIA_TYPE")
		if n := count(t, w, "records"); n != 3 {
			t.Errorf("%d records", n)
		}
	})
}

// TestFailChoosesTheAnswer: a status of 400 to 599 and a code, in both targets and
// both reply modes (contract X5, C6); nothing is committed (contract X1).
func TestFailChoosesTheAnswer(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(orders + endpoints(append(append(three("c", "component: act"), three("a", "automation: act_flow")...),
			"{slug: token-receipt-c, target: {component: act}, auth: token, reply: receipt}",
			"{slug: token-receipt-a, target: {automation: act_flow}, auth: token, reply: receipt}")...))
		call := callers(w, "sam@acme.example")
		for _, slug := range []string{"key-c", "token-c", "token-receipt-c", "signed-c", "key-a", "token-a", "token-receipt-a", "signed-a"} {
			mode, _, _ := strings.Cut(slug, "-")
			for _, status := range []int{400, 401, 404, 409, 418, 429, 500, 503, 599} {
				a := call[mode](slug, fmt.Sprintf(`{"do": "fail", "status": %d, "code": "CHOSEN", "details": {"by": "act"}}`, status))
				if a.Status != status {
					t.Errorf("%s: %d, want %d: %s", slug, a.Status, status, a.Body)
				}
				same(t, slug, a.Body, `{"error": {"code": "CHOSEN", "message": "no", "details": {"by": "act"}}}`)
			}
			if strings.HasSuffix(slug, "-c") {
				for _, status := range []string{"200", "399", "600", "0", `"409"`, "-1", "null"} {
					call[mode](slug, `{"do": "fail", "status": `+status+`}`).Want(422, "EXECUTION_ERROR")
				}
				call[mode](slug, `{"do": "fail", "status": 409, "code": "no code"}`).Want(409, "EXECUTION_ERROR")
				continue
			}
			a := call[mode](slug, `{"do": "failnode"}`).Want(418, "STOPPED")
			if !strings.Contains(string(a.Body), `"stopped at failnode"`) {
				t.Errorf("%s: %s", slug, a.Body)
			}
		}
		if n := kept(t, w); n != "0 records, 0 events, 0 keys" {
			t.Error(n)
		}
	})
}

// TestAnUncaughtErrorIs422: with its message, without stack, place or source.
func TestAnUncaughtErrorIs422(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(orders + endpoints(append(three("c", "component: act"), three("a", "automation: act_flow")...)...))
		call := callers(w, "sam@acme.example")
		for _, target := range []string{"c", "a"} {
			for _, mode := range modes {
				a := call[mode](mode+"-"+target, `{"do": "throw"}`).Want(422, "EXECUTION_ERROR")
				if !strings.Contains(string(a.Body), "it broke") {
					t.Errorf("%s", a.Body)
				}
				b := call[mode](mode+"-"+target, `{"do": "crash"}`).Want(422, "EXECUTION_ERROR")
				for _, leak := range []string{"new TypeError", "inputs.do ===", ".nothing", "at handler", "component.js", ":1", ".go"} {
					if strings.Contains(string(a.Body)+string(b.Body), leak) {
						t.Errorf("%s-%s reveals %q: %s %s", mode, target, leak, a.Body, b.Body)
					}
				}
			}
		}
		if n := kept(t, w); n != "0 records, 0 events, 0 keys" {
			t.Error(n)
		}
	})
}

// inChunks sends a body without announcing its length.
func inChunks(t *testing.T, a *gatetest.Actor, path, body string) *gatetest.Answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.Node.URL+path, io.MultiReader(strings.NewReader(body[:1]), strings.NewReader(body[1:])))
	if err != nil {
		t.Fatal(err)
	}
	r.Host, r.Header = a.Host, a.Header.Clone()
	r.Header.Set("Content-Type", "application/json")
	if a.Token != "" {
		r.Header.Set("Authorization", "Bearer "+a.Token)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return &gatetest.Answer{T: t, Call: "POST " + path + " in chunks", Status: res.StatusCode, Header: res.Header, Body: b}
}
