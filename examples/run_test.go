package examples_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/automation"
	"gatehouse/internal/component"
	"gatehouse/internal/fault"
	"gatehouse/internal/gatetest/enginecache"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/inputs"
)

// start starts the engine that all these tests share.
var start = sync.OnceValues(func() (*component.Engine, error) {
	return component.NewEngine(context.Background(), component.Options{CacheDir: enginecache.Dir()})
})

// object returns the members of a JSON object, as an endpoint reads its body.
func object(t *testing.T, body string) []inputs.Member {
	t.Helper()
	var members map[string]jsontext.Value
	if err := json.Unmarshal([]byte(body), &members); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	var list []inputs.Member
	for _, name := range slices.Sorted(maps.Keys(members)) {
		list = append(list, inputs.Member{Name: name, Value: members[name]})
	}
	return list
}

// call runs a component as its endpoint does and returns the envelope of the answer.
func (x *example) call(t *testing.T, name, body string) any {
	t.Helper()
	given, err := inputs.FromJSON(x.declared[name], object(t, body), true)
	if err != nil {
		return failed(t, err)
	}
	result, err := x.components[name].Run(t.Context(), component.Run{Tenant: x.Tenant, Inputs: given.JSON(), Ctx: []byte(`{}`), Host: x})
	if err != nil {
		t.Fatal(err)
	}
	if result.Failed != nil {
		return failed(t, result.Failed.Fault())
	}
	return map[string]any{"data": decoded(t, result.Value), "meta": map[string]any{}}
}

// flow runs an automation as its endpoint does.
func (x *example) flow(t *testing.T, name string, given inputs.Object, err error) any {
	t.Helper()
	if err != nil {
		return failed(t, err)
	}
	result, err := x.flows[name].Run(t.Context(), automation.Run{Inputs: given, Host: x})
	if err != nil {
		return failed(t, err)
	}
	return map[string]any{"data": decoded(t, result.Outputs), "meta": map[string]any{"nodesExecuted": float64(result.NodesExecuted), "durationMs": 0.0}}
}

func decoded(t *testing.T, text []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

// failed returns the envelope of an error, with its status.
func failed(t *testing.T, err error) any {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) {
		t.Fatal(err)
	}
	details := map[string]any{}
	if text, err := json.Marshal(f.Details); err == nil && f.Details != nil {
		details = decoded(t, text).(map[string]any)
	}
	return map[string]any{"status": float64(f.HTTPStatus()), "error": map[string]any{"code": string(f.Code), "message": f.Message, "details": details}}
}

// want compares an answer with JSON in which "…" matches any value.
func want(t *testing.T, what string, got any, text string) {
	t.Helper()
	expected := decoded(t, []byte(text)).(map[string]any)
	if m := got.(map[string]any); expected["status"] == nil {
		delete(m, "status")
	}
	if !like(got, expected) {
		shown, _ := json.Marshal(got)
		t.Errorf("%s: got %s\nwant %s", what, shown, text)
	}
}

func like(got, expected any) bool {
	switch e := expected.(type) {
	case string:
		return e == "…" && got != nil || got == e
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok || len(g) != len(e) {
			return false
		}
		for name, v := range e {
			if one, there := g[name]; !there || !like(one, v) {
				return false
			}
		}
		return true
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(e) {
			return false
		}
		for i := range e {
			if !like(g[i], e[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(got, expected)
}

var block = regexp.MustCompile("(?s)```json\n(.*?)\n```")

// answers returns the JSON blocks of a README.
func (x *example) answers(t *testing.T) []string {
	t.Helper()
	var list []string
	for _, m := range block.FindAllSubmatch(x.file(t, "README.md"), -1) {
		list = append(list, string(m[1]))
	}
	return list
}

// arguments returns the values of an option in the README's curl line for the endpoint.
func (x *example) arguments(t *testing.T, option string) []string {
	t.Helper()
	for line := range strings.Lines(string(x.file(t, "README.md"))) {
		if !strings.Contains(line, "/custom/") || !strings.HasPrefix(line, "curl") {
			continue
		}
		var list []string
		for _, m := range regexp.MustCompile(` `+option+` (?:'([^']*)'|(\S+))`).FindAllStringSubmatch(line, -1) {
			list = append(list, m[1]+m[2])
		}
		return list
	}
	t.Fatal("README.md has no curl line")
	return nil
}

func TestOrderIntake(t *testing.T) {
	x := load(t, "order-intake")
	order := string(x.file(t, "order.json"))
	refused := func(what, old, with, answer string) {
		t.Helper()
		if !strings.Contains(order, old) {
			t.Fatalf("%s: order.json has no %s", what, old)
		}
		want(t, what, x.call(t, "take_order", strings.Replace(order, old, with, 1)), answer)
		if len(x.records["order"]) != 0 {
			t.Fatalf("%s: an order was written", what)
		}
	}
	refused("no customer", "SO-", "SO-", `{"status":422,"error":{"code":"UNKNOWN_CUSTOMER","message":"There is no customer ada@lovelace.example.","details":{}}}`)
	customer := map[string]any{"id": "customer-1", "name": "Ada Lovelace", "email": "ada@lovelace.example", "blocked": true}
	x.records["customer"] = []map[string]any{customer}
	refused("blocked", "SO-", "SO-", `{"status":409,"error":{"code":"CUSTOMER_BLOCKED","message":"The customer ada@lovelace.example is blocked.","details":{}}}`)
	customer["blocked"] = nil
	refused("total", "1024.53", "1024.54", `{"status":409,"error":{"code":"TOTAL_MISMATCH","message":"…","details":{"sent":1024.54,"expected":1024.53}}}`)
	refused("quantity", `"quantity": 12`, `"quantity": 0.5`, `{"status":422,"error":{"code":"INVALID_ORDER","message":"…","details":{"fields":{"lines.2.quantity":"expected a whole number of 1 to 9999"}}}}`)
	refused("price", `184.5,`, `184.505,`, `{"status":422,"error":{"code":"INVALID_ORDER","message":"…","details":{"fields":{"lines.0.unit_price":"expected an amount"}}}}`)
	refused("city", `"city": "London",`, ``, `{"status":422,"error":{"code":"INVALID_ORDER","message":"…","details":{"fields":{"ship_to.city":"expected text"}}}}`)
	refused("line", `"lines": [`, `"lines": [null, `, `{"status":422,"error":{"code":"INVALID_ORDER","message":"…","details":{"fields":{"lines.0.sku":"…","lines.0.quantity":"…","lines.0.unit_price":"…","lines.0.tax_rate":"…"}}}}`)
	refused("no total", `"total"`, `"sum"`, `{"status":422,"error":{"code":"EXECUTION_ERROR","message":"Input validation failed: [total: required]","details":{"fields":{"total":"required"}}}}`)
	answers := x.answers(t)
	want(t, "the order", x.call(t, "take_order", order), answers[0])
	want(t, "the order again", x.call(t, "take_order", order), answers[1])
	written := x.records["order"][0]
	if len(x.records["order"]) != 1 || written["customer"] != "customer-1" || written["total"] != 1024.53 || written["status"] != "new" || len(written["lines"].([]any)) != 8 {
		t.Errorf("written: %v", x.records["order"])
	}
}

func TestIoTReading(t *testing.T) {
	x := load(t, "iot-reading")
	send := func(body string) any {
		given, err := inputs.FromJSON(x.schemas["store_reading"], object(t, body), false)
		return x.flow(t, "store_reading", given, err)
	}
	body := x.arguments(t, "-d")[0]
	want(t, "an unknown device", send(strings.Replace(body, "TX-4711", "TX-9999", 1)), x.answers(t)[1])
	if len(x.records["reading"]) != 0 {
		t.Error("the reading of an unknown device was stored")
	}
	device := map[string]any{"id": "device-1", "serial": "TX-4711"}
	x.records["device"] = []map[string]any{{"id": "device-0", "serial": "TX-0"}, device}
	want(t, "a reading", send(body), `{"data":{"reading":"reading-1"},"meta":{"nodesExecuted":6,"durationMs":"…"}}`)
	if r := x.records["reading"]; len(r) != 1 || r[0]["device"] != "device-1" || r[0]["value"] != 21.5 || r[0]["unit"] != "°C" || r[0]["diagnostics"] == nil {
		t.Errorf("stored: %v", r)
	}
	if device["last_seen"] != "2026-05-04T08:15:00Z" || device["last_value"] != 21.5 || x.records["device"][0]["last_seen"] != nil {
		t.Errorf("devices: %v", x.records["device"])
	}
	want(t, "a reading without a unit", send(`{"serial":"TX-4711","measured_at":"2026-05-04T08:20:00Z","value":22}`), `{"data":{"reading":"reading-2"},"meta":{"nodesExecuted":6,"durationMs":"…"}}`)
	want(t, "a reading without a value", send(`{"serial":"TX-4711","measured_at":"2026-05-04T08:20:00Z"}`), `{"status":422,"error":{"code":"EXECUTION_ERROR","message":"Input validation failed: [value: required]","details":{"fields":{"value":"required"}}}}`)
	device["retired"] = true
	want(t, "a retired device", send(body), `{"status":409,"error":{"code":"DEVICE_RETIRED","message":"The device TX-4711 is retired.","details":{}}}`)
}

func TestLeadForm(t *testing.T) {
	x := load(t, "lead-form")
	send := func(form url.Values) any {
		given, err := inputs.FromForm(x.schemas["take_lead"], form, false, httpapi.ParseValue)
		return x.flow(t, "take_lead", given, err)
	}
	form := url.Values{}
	for _, option := range []string{"-d", "--data-urlencode"} {
		for _, pair := range x.arguments(t, option) {
			name, value, _ := strings.Cut(pair, "=")
			form.Set(name, value)
		}
	}
	answers := x.answers(t)
	want(t, "a lead", send(form), answers[0])
	want(t, "a lead again", send(form), `{"data":{"lead":"lead-1"},"meta":{"nodesExecuted":2,"durationMs":"…"}}`)
	leads := x.records["lead"]
	if len(leads) != 1 || leads[0]["newsletter"] != true || leads[0]["message"] != "40 m², in the shade & a bit damp" || leads[0]["topic"] != "terrace" || leads[0]["stage"] != "new" {
		t.Errorf("leads: %v", leads)
	}
	form.Set("email", "grace")
	want(t, "no address", send(form), answers[2])
	form.Del("email")
	want(t, "no e-mail", send(form), answers[1])
}

func TestDealer(t *testing.T) {
	x := load(t, "dealer")
	send := func(body string) any {
		given, err := inputs.FromJSON(x.schemas["store_reading"], object(t, body), false)
		return x.flow(t, "store_reading", given, err)
	}
	body := `{"serial": "HP-40-0017", "measured_at": "2026-05-04T08:15:00Z", "pressure": 212.5}`
	want(t, "an unknown device", send(body), `{"status":422,"error":{"code":"UNKNOWN_DEVICE","message":"There is no device HP-40-0017.","details":{}}}`)
	x.records["device"] = []map[string]any{{"id": "device-0", "serial": "HP-1"}, {"id": "device-1", "serial": "HP-40-0017"}}
	want(t, "a reading", send(body), `{"data":{"reading":"reading-1"},"meta":{"nodesExecuted":"…","durationMs":"…"}}`)
	if r := x.records["reading"]; len(r) != 1 || r[0]["device"] != "device-1" || r[0]["pressure"] != 212.5 {
		t.Errorf("stored: %v", r)
	}
}
