package endpoint_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"gatehouse/internal/gatetest"
)

// odd is a tenant with targets that inspect their inputs, and some that return what
// strict JSON cannot express.
func odd() string {
	notes := "\n  - name: note\n    fields: [{name: more, type: json}]\n  - name: counter\n"
	return strings.NewReplacer("\n  - name: counter\n", notes, "\nautomations:\n", oddFlows).Replace(also(`
  - name: exact
    source: |
      // The event contains its expected content, with escapes escaped.
      export default function handler(inputs, ctx) {
        const {want, id, ...rest} = inputs
        records.create("counter", {n: 1})
        if (JSON.stringify(rest) !== want) fail("given " + JSON.stringify(rest))
        if (ctx.event.id !== JSON.parse(JSON.stringify(id))) fail("the event is " + JSON.stringify(ctx.event))
      }
  - name: returns
    inputs: [{name: what, type: text, required: true}]
    source: |
      export default (given) => ({value: make(given)})
      function make({what}) {
        switch (what) {
          case "half": return "a" + "😀".slice(0, 1)
          case "list": return [{name: "😀".slice(1)}, "fine 😀"]
          case "huge": return JSON.rawJSON("1e999")
          case "tiny": return {n: [JSON.rawJSON("1e-999")]}
          case "name": return {["😀".slice(0, 1)]: 1}
          case "refused": return records.create("order", {number: 7, total: "x"})
        }
      }
`))
}

const oddFlows = `
automations:
  - name: returns_flow
    trigger: http.request
    input_schema: [{name: what, type: text}]
    outputs: [{name: result, type: json}]
    nodes: [{id: called, type: component, component: returns, inputs: {what: "{{inputs.what}}"}, outputs: {value: result}}]
  - name: exact_flow
    trigger: http.request
    input_schema: [{name: x, type: json}, {name: want, type: text}, {name: id, type: text}]
    outputs: []
    nodes: [{id: called, type: component, component: exact, inputs: {id: "{{event.id}}", want: "{{inputs.want}}", x: "{{inputs.x}}"}}]
  - name: stores
    trigger: http.request
    input_schema: [{name: number, type: text}, {name: find, type: text}, {name: get, type: text}, {name: more, type: json}]
    outputs: []
    nodes:
      - {type: if, when: inputs.find != nil, then: [{id: found, type: record.list, entity: order, where: {number: "{{inputs.find}}"}}]}
      - {type: if, when: inputs.get != nil, then: [{id: got, type: record.get, entity: order, record_id: "{{inputs.get}}"}]}
      - {type: if, when: inputs.number != nil, then: [{id: made, type: record.create, entity: order, fields: {number: "{{inputs.number}}"}}]}
      - {type: if, when: inputs.more != nil, then: [{id: kept, type: record.create, entity: note, fields: {more: "{{inputs.more}}"}}]}
`

func nested(n int) string {
	return strings.Repeat(`{"a":[`, n/2) + strings.Repeat(`[`, n%2) + strings.Repeat(`]`, n%2) + strings.Repeat(`]}`, n/2)
}

// TestEventsArePassedOnUnchanged: an event may contain all of JSON, nested up to 256
// levels, and reaches a component byte by byte.
func TestEventsArePassedOnUnchanged(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(odd() + endpoints(signed("exact", "component: exact", ""), signed("flow", "automation: exact_flow", "")))
		many := make([]string, 21_000) // more than a body may contain
		for i := range many {
			many[i] = fmt.Sprintf(`"m%d":%d`, i, i)
		}
		n := 0
		send := func(slug, members string) *gatetest.Answer {
			n++
			want, _ := json.Marshal("{" + members + "}")
			half := map[bool]string{true: `\ud800`}[slug == "exact"]
			return provider{w.Anyone()}.Post(custom+slug, fmt.Sprintf(`{"id":"e%d%s","want":%s,%s}`, n, half, want, members))
		}
		for name, members := range map[string]string{
			"U+0000": `"x":["\u0000",{"a\u0000":1}],"n\u0000":"\u0000"`,
			"halves": `"x":["\ud83d","a\ude00b",{"\ud800":1,"\ud801":2}],"\ud800":1,"\ud801":"\udfff"`,
			"nested": `"x":` + nested(70),
			"deep":   `"x":` + nested(255),
			"many":   strings.Join(many, ","),
		} {
			send("exact", members).Want(202, "")
			if name == "U+0000" || name == "nested" || name == "deep" {
				send("flow", strings.Split(members, `,"n`)[0]).Want(202, "")
			}
		}
		send("exact", `"x":`+nested(256)).Want(401, "UNAUTHORIZED")

		// A flow reads a lone surrogate as U+FFFD, and passes it on unchanged.
		n++
		want, _ := json.Marshal(`{"x":["\ud83d"]}`)
		provider{w.Anyone()}.Post(custom+"flow", fmt.Sprintf(`{"id":"e%d","want":%s,"x":["\ud83d"]}`, n, want)).Want(202, "")

		// Two ids that differ only in a lone surrogate are two events.
		for _, id := range []string{`\ud800`, `\ud801`} {
			provider{w.Anyone()}.Post(custom+"exact", `{"id":"twin`+id+`","want":"{}"}`).Want(202, "") // 200 is a duplicate
		}
	})
}

// TestRecordsRefuseWhatEventsMayContain: an event may contain what a record cannot.
func TestRecordsRefuseWhatEventsMayContain(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(odd() + endpoints(signed("stores", "automation: stores", "")))
		for i, c := range []struct{ members, says string }{
			{`"number":"a\u0000b"`, "expected text without U+0000"},
			{`"more":{"a":["b\u0000"]}`, "expected text without U+0000 at /a/0"},
			{`"more":{"a\u0000":1}`, "expected text without U+0000"},
			{`"more":` + nested(70), "at most 63 levels"},
			{`"find":"a\u0000b"`, ""},
			{`"get":"a\u0000b"`, ""},
			{`"get":"a\ud800b"`, ""},
		} {
			a := provider{w.Anyone()}.Post(custom+"stores", fmt.Sprintf(`{"id":"s%d",%s}`, i, c.members))
			if a.Status != 422 && !(c.says == "" && a.Status == 202) || !strings.Contains(string(a.Body), c.says) {
				t.Errorf("%s: %d %s", c.members, a.Status, a.Body)
			}
		}
		provider{w.Anyone()}.Post(custom+"stores", `{"id":"half","number":"x\ud83d"}`).Want(202, "")
	})
}

// TestComponentResultsAreTheSameInFlows: called directly and in a flow.
func TestComponentResultsAreTheSameInFlows(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(odd() + endpoints("{slug: direct, target: {component: returns}}", "{slug: flow, target: {automation: returns_flow}}"))
		olivia := w.Key("olivia@acme.example")
		for what, want := range map[string]string{
			"half": "\"a\uFFFD\"", "list": "[{\"name\": \"\uFFFD\"}, \"fine 😀\"]",
			"huge": "", "tiny": "", "name": "",
		} {
			direct, flow := olivia.Post(custom+"direct", `{"what":"`+what+`"}`), olivia.Post(custom+"flow", `{"what":"`+what+`"}`)
			if want == "" {
				direct.Want(422, "EXECUTION_ERROR")
				flow.Want(422, "EXECUTION_ERROR")
				continue
			}
			same(t, what, direct.Want(200, "").Body, `{"data":{"value":`+want+`},"meta":{}}`)
			var out struct{ Result json.RawMessage }
			flow.Want(200, "").Data(&out)
			same(t, what+" in a flow", out.Result, want)
		}
		// An uncaught VALIDATION of records.* names the fields.
		const fields = `{"number":"expected text","total":"expected a number"}`
		a := olivia.Post(custom+"direct", `{"what":"refused"}`).Want(422, "EXECUTION_ERROR")
		same(t, "direct", a.Body, `{"error":{"code":"EXECUTION_ERROR","message":"some fields are not valid","details":{"fields":`+fields+`,"code":"VALIDATION"}}}`)
		a = olivia.Post(custom+"flow", `{"what":"refused"}`).Want(422, "EXECUTION_ERROR")
		same(t, "flow", a.Body, `{"error":{"code":"EXECUTION_ERROR","message":"called: some fields are not valid","details":{"fields":`+fields+`,"code":"VALIDATION","node":"called"}}}`)
	})
}

// TestRejectionReasons are in the request log and in the audit log, of each delivery,
// and not in the answer.
func TestRejectionReasons(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(also(`
  - name: picky
    source: |
      export default function handler({rawBody, headers}) {
        const given = JSON.parse(rawBody)
        if (given.do === "fail") fail("the clock of svc_whk_0123456789abcdef0123456789abcdef is off by " + given.by + "\u0000" + "x".repeat(5000))
        if (given.do === "loop") for (;;);
        return {providerEventId: given.id, canonicalEvent: given.event}
      }
`) + fewAttempts + endpoints("{slug: shop, target: {component: act}, auth: signed, verifier: picky, webhook_secret: "+shopSecret+"}"))
		reasons := map[string]string{
			`{"do":"fail","by":301}`:                 "is off by 301",
			`no JSON`:                                "SyntaxError",
			`{"id":"1","event":[]}`:                  "canonicalEvent is not an object",
			`{"event":{}}`:                           "providerEventId is not a text, or empty",
			`{"id":"1","event":` + nested(258) + `}`: "at most 256 levels",
			`{"do":"loop"}`:                          "did not finish within 250ms of CPU time",
		}
		requests := map[string]string{} // their bodies
		for body, want := range reasons {
			a := w.Anyone().With("X-Forwarded-For", names.next("203.0.113.")).Post(custom+"shop", body)
			if a.Status != 401 && !(strings.Contains(body, "loop") && a.Status == 503) {
				t.Errorf("%.60s: %d %s", body, a.Status, a.Body)
			}
			if strings.Contains(string(a.Body), want) || strings.Contains(string(a.Body), "reason") {
				t.Errorf("%.60s: the answer is %s", body, a.Body)
			}
			requests[header(t, a, "X-Request-Id")] = body
		}
		log, lines := w.AuditLog("acme"), map[string]map[string]any{}
		for _, line := range w.Nodes[0].Log.Lines(t) {
			if line["event"] == "public_api.request" {
				lines[fmt.Sprint(line["request_id"])] = line
			}
		}
		for id, body := range requests {
			want := reasons[body]
			var kept struct{ Reason string }
			if e := log[id]; e == nil || json.Unmarshal([]byte(e.Response), &kept) != nil || !strings.Contains(kept.Reason, want) || len(kept.Reason) > 1100 {
				t.Errorf("%.60s: the audit log has %+v", body, e)
			}
			if strings.Contains(kept.Reason, "0123456789abcdef0123456789abcdef") {
				t.Errorf("a token in the audit log: %s", kept.Reason)
			}
			if reason := fmt.Sprint(lines[id]["reason"]); reason != kept.Reason {
				t.Errorf("%.60s: the log has %q", body, reason)
			}
		}
	})
}
