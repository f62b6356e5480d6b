package endpoint_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"gatehouse/internal/db"
	"gatehouse/internal/gatetest"
)

// orders is a tenant with components and flows for every occasion. A test adds
// its custom_endpoints, the last section.
const orders = `
tenant: acme
hosts: [acme.localhost]
public_api: {enabled: true}
roles: [{name: ceo}, {name: sales, parent: ceo}]
entities:
  - name: order
    fields:
      - {name: number, type: text, required: true, unique: true}
      - {name: total, type: number}
  - name: counter
    fields: [{name: n, type: number, indexed: true}]
permission_sets:
  - name: sales
    entities: {order: {create: true, read: true, update: true}, counter: {create: true, read: true, update: true}}
users:
  - {email: olivia@acme.example, name: Olivia, owner: true, role: ceo}
  - {email: sam@acme.example, name: Sam, role: sales, permission_sets: [sales]}
  - {email: rita@acme.example, name: Rita, role: sales, permission_sets: [sales]}
  - {email: uma@acme.example, name: Uma, role: sales, permission_sets: [sales]}
  - {email: eva@customer.example, name: Eva, type: external, permission_sets: [sales]}
logic_components:
  - name: place
    inputs: [{name: number, type: text, required: true}, {name: lines, type: json}]
    source: |
      export default function handler(inputs, ctx) {
        const total = (inputs.lines ?? []).reduce((sum, l) => sum + l.price * l.quantity, 0)
        if (total < 0) fail("a negative total", {status: 409, code: "NEGATIVE", details: {total}})
        const order = records.create("order", {number: inputs.number, total})
        return {id: order.id, total, by: ctx.user.email}
      }
` + actComponent + `  - name: bump
    timeout_ms: 20000
    source: |
      export default function handler(inputs) {
        const was = records.get("counter", inputs.id).n
        records.update("counter", inputs.id, {n: was + 1})
        return was
      }
  - name: simple
    source: |
      export default function handler({rawBody, headers, config}) {
        if (!config.webhook_secrets.some(s => safeCompare(hmacSha256(s, rawBody), headers["x-signature"] ?? ""))) fail("bad signature")
        const event = JSON.parse(rawBody)
        return {providerEventId: event.id, eventKind: "order", canonicalEvent: event}
      }
automations:
  - name: place_flow
    trigger: http.request
    input_schema: [{name: number, type: text, required: true}, {name: score, type: number}, {name: yes, type: boolean}, {name: tags, type: json}]
    outputs: [{name: order_id, type: text}, {name: echo, type: json}, {name: nothing, type: text}]
    nodes:
      - {id: made, type: record.create, entity: order, fields: {number: "{{inputs.number}}", total: "{{inputs.score}}"}}
      - {id: out, type: output, set: {order_id: "{{made.id}}", echo.score: "{{inputs.score}}", echo.yes: "{{inputs.yes}}", echo.tags: "{{inputs.tags}}", echo.number: "{{inputs.number}}"}}
  - name: act_flow
    trigger: http.request
    input_schema: [{name: do, type: text, required: true}, {name: status, type: number}]
    outputs: [{name: result, type: json}]
    nodes:
      - {id: kept, type: record.create, entity: counter, fields: {n: 2}}
      - {id: chosen, type: if, when: inputs.do == "failnode", then: [{id: stop, type: fail, message: "stopped at {{inputs.do}}", code: STOPPED, status: 418}]}
      - {id: acted, type: component, component: act, inputs: {do: "{{inputs.do}}", status: "{{inputs.status}}", code: CHOSEN, details: {by: act}}, outputs: {result: result}}
  - name: squares
    trigger: http.request
    input_schema: [{name: list, type: json, required: true}]
    outputs: [{name: n, type: number}]
    nodes:
      - {id: kept, type: record.create, entity: counter, fields: {n: 3}}
      - {id: outer, type: each, in: "{{inputs.list}}", as: a, do: [{id: inner, type: each, in: "{{inputs.list}}", as: b, do: [{id: put, type: set, values: {last: "{{b}}"}}]}]}
      - {id: out, type: output, set: {n: "{{vars.last}}"}}
`

// actComponent creates a record and then does what its input says. Its time is long
// enough for a busy machine; tests of the time limit apply actWithin.
const actComponent = `  - name: act
    inputs: [{name: do, type: text, required: true}]
    timeout_ms: 20000
    source: |
      const returns = {undefined: undefined, null: null, text: "a text", number: 4.5, boolean: false, list: [1, {a: null}], object: {}}
      export default async function handler(inputs, ctx) {
        records.create("counter", {n: 1})
        if (inputs.do in returns) return returns[inputs.do]
        if (inputs.do === "throw") throw new TypeError("it broke")
        if (inputs.do === "crash") return the_text_of_the_source.nothing
        if (inputs.do === "loop") for (;;);
        if (inputs.do === "memory") { const all = []; for (;;) all.push("x".repeat(1 << 20) + all.length) }
        if (inputs.do === "event") return {event: ctx.event, tenant: ctx.tenant, request: ctx.requestId, inputs}
        if (inputs.do === "fail") fail(inputs.message ?? "no", {status: inputs.status, code: inputs.code, details: inputs.details})
      }
`

// actWithin is a manifest that limits act to so many milliseconds.
func actWithin(ms int) string {
	return "tenant: acme\nlogic_components:\n" + strings.Replace(actComponent, "timeout_ms: 20000", fmt.Sprintf("timeout_ms: %d", ms), 1)
}

// shopSecret is the secret of signed endpoints.
const shopSecret = "the-secret-of-the-shop"

// endpoints is the section that gives the tenant its endpoints, one a line.
func endpoints(lines ...string) string {
	return "custom_endpoints:\n  - " + strings.Join(lines, "\n  - ") + "\n"
}

// signed is an endpoint in signed mode.
func signed(slug, target string, more string) string {
	return fmt.Sprintf("{slug: %s, target: {%s}, auth: signed, verifier: simple, webhook_secret: %s%s}", slug, target, shopSecret, more)
}

// also is the tenant of orders with more components.
func also(components string) string {
	return strings.Replace(orders, "\nautomations:\n", "\n"+strings.Trim(components, "\n")+"\nautomations:\n", 1)
}

// three is a target behind an endpoint of each mode: key-NAME, token-NAME, signed-NAME.
func three(name, target string) []string {
	return []string{
		fmt.Sprintf("{slug: key-%s, target: {%s}}", name, target),
		fmt.Sprintf("{slug: token-%s, target: {%s}, auth: token}", name, target),
		signed("signed-"+name, target, ""),
	}
}

const custom = "/public/v1/custom/"

func hmacHex(secret, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return hex.EncodeToString(mac.Sum(nil))
}

// provider signs what it sends with the shop's secret.
type provider struct{ *gatetest.Actor }

func (p provider) Post(path, body string) *gatetest.Answer {
	p.T.Helper()
	return p.With("X-Signature", hmacHex(shopSecret, body)).Post(path, body)
}

// with puts members into a JSON object.
func with(body, members string) string {
	return strings.TrimSuffix(body, "}") + map[bool]string{true: ", "}[body != "{}"] + members + "}"
}

// counted numbers event ids and orders, which must differ.
type counted struct {
	mu sync.Mutex
	n  int
}

func (c *counted) next(prefix string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	return fmt.Sprint(prefix, c.n)
}

var names counted

// caller calls an endpoint of one mode with a body; a provider's body gets an event id.
type caller func(slug, body string) *gatetest.Answer

// callers returns a caller with a valid credential for each mode.
func callers(w *gatetest.World, email string) map[string]caller {
	key := w.Key(email)
	tokens := map[string]*gatetest.Actor{}
	return map[string]caller{
		"key": func(slug, body string) *gatetest.Answer { w.T.Helper(); return key.Post(custom+slug, body) },
		"token": func(slug, body string) *gatetest.Answer {
			w.T.Helper()
			if tokens[slug] == nil {
				tokens[slug] = w.Webhook(slug)
			}
			return tokens[slug].Post(custom+slug, body)
		},
		"signed": func(slug, body string) *gatetest.Answer {
			w.T.Helper()
			return provider{w.Anyone()}.Post(custom+slug, with(body, `"id": "`+names.next("evt-")+`"`))
		},
	}
}

// modes are the ways to call, in a fixed order.
var modes = []string{"key", "token", "signed"}

// count is how many rows of a table the tenant has.
func count(t testing.TB, w *gatetest.World, table string) int {
	t.Helper()
	n := 0
	node := w.Nodes[len(w.Nodes)-1]
	err := node.DB.For("acme").Query(t.Context(), `SELECT COUNT(*) FROM `+table+` WHERE tenant_id = $1`,
		func(r db.Row) error { n = int(r.Int(0)); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// kept counts what runs have committed: records, events and keys.
func kept(t testing.TB, w *gatetest.World) string {
	t.Helper()
	return fmt.Sprintf("%d records, %d events, %d keys", count(t, w, "records"), count(t, w, "events"), count(t, w, "event_keys"))
}

// same compares JSON, without regard to the order of members.
func same(t testing.TB, what string, got []byte, want string) {
	t.Helper()
	var a, b any
	if err := json.Unmarshal(got, &a); err != nil {
		t.Errorf("%s: %v: %q", what, err, got)
		return
	}
	if err := json.Unmarshal([]byte(want), &b); err != nil {
		t.Fatal(err)
	}
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	if string(x) != string(y) {
		t.Errorf("%s: got %s, want %s", what, x, y)
	}
}

// header is a header's one value.
func header(t testing.TB, a *gatetest.Answer, name string) string {
	t.Helper()
	values := a.Header[http.CanonicalHeaderKey(name)]
	if len(values) != 1 {
		t.Errorf("%s: %d headers %s", a.Call, len(values), name)
		return ""
	}
	return values[0]
}

// got is an answer's status and code in one text.
func got(a *gatetest.Answer) string {
	a.T.Helper()
	return strings.TrimSpace(fmt.Sprint(a.Status, " ", a.Code()))
}
