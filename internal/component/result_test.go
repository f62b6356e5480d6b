package component_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/component"
	"gatehouse/internal/fault"
)

// body runs the body of an asynchronous handler.
func body(t *testing.T, source string, r component.Run) *component.Result {
	t.Helper()
	return run(t, compile(t, "export default async function handler(inputs, ctx) {\n"+source+"\n}"), r)
}

// TestResultIsStrictJSON: strict decoders accept the result, whatever
// JSON.stringify writes for what a handler returns. A verifier's keeps its lone
// surrogates.
func TestResultIsStrictJSON(t *testing.T) {
	const half, number = "half of a surrogate pair", "a number that no IEEE double holds"
	for _, c := range []struct{ source, want, verifier, refused string }{
		{`return '😀'.slice(0, 1)`, `"\ufffd"`, `"\ud83d"`, ""},
		{`return ['😀'.slice(1), 'a\ud800', '\udc00\ud800', '😀', '\ud83d\ude00!']`, `["\ufffd","a\ufffd","\ufffd\ufffd","😀","😀!"]`,
			`["\ude00","a\ud800","\udc00\ud800","😀","😀!"]`, ""},
		{`return ['\\ud800', '\\\\ud800', '\\\ud800', '"\ud800"', '\0']`, `["\\ud800","\\\\ud800","\\\ufffd","\"\ufffd\"","\u0000"]`,
			`["\\ud800","\\\\ud800","\\\ud800","\"\ud800\"","\u0000"]`, ""},
		{`return JSON.rawJSON('"\ud800x"')`, "\"\uFFFDx\"", "\"\uFFFDx\"", ""},
		{`return JSON.rawJSON('"\\uD800x"')`, `"\ufffdx"`, `"\uD800x"`, ""},
		{`return {n: JSON.rawJSON('12345678901234567890'), m: JSON.rawJSON('-1.50e3')}`, `{"n":12345678901234567890,"m":-1.50e3}`, "", ""},
		{`return [1e21, 5e-324, -0, 1.7976931348623157e308]`, `[1e+21,5e-324,0,1.7976931348623157e+308]`, "", ""},
		{`return JSON.rawJSON('1e999')`, "", "", number},
		{`return {a: [JSON.rawJSON('-1E400')]}`, "", "", number},
		{`return [JSON.rawJSON('1e-999')]`, "", "", number},
	} {
		r := body(t, c.source, component.Run{})
		check := func(who string, r *component.Result, want string) {
			switch {
			case c.refused != "":
				if r.Failed == nil || r.Failed.Status != 422 || !strings.Contains(r.Failed.Message, c.refused) {
					t.Errorf("%s: %s returned %s, %+v", who, c.source, r.Value, r.Failed)
				}
			case r.Failed != nil || string(r.Value) != want:
				t.Errorf("%s: %s returned %s, want %s; %+v", who, c.source, r.Value, want, r.Failed)
			case who == "component" && !jsontext.Value(r.Value).IsValid():
				t.Errorf("%s: %s is no strict JSON", c.source, r.Value)
			}
		}
		check("component", r, c.want)
		if c.verifier == "" {
			c.verifier = c.want
		}
		check("verifier", body(t, c.source, component.Run{Verifier: verifierInput(nil)}), c.verifier)
	}
	r := body(t, `return {['😀'.slice(0, 1)]: 1, '\ud800': 2}`, component.Run{})
	if r.Failed == nil || r.Failed.Status != 422 || !strings.Contains(r.Failed.Message, half) {
		t.Errorf("a half in a name: %s %+v", r.Value, r.Failed)
	}
	r = body(t, `return {'\ud800': 2}`, component.Run{Verifier: verifierInput(nil)})
	if string(r.Value) != `{"\ud800":2}` {
		t.Errorf("a half in a name of a verifier's: %s %+v", r.Value, r.Failed)
	}
}

// TestFailKeepsStatusAndMessage: whatever the details are.
func TestFailKeepsStatusAndMessage(t *testing.T) {
	// Nested more deeply than JSON decoders accept.
	const deep = `(() => { let d = []; for (let i = 0; i < 12000; i++) d = [d]; return d })()`
	for details, want := range map[string]map[string]any{
		`{a: 1}`:              {"a": 1.0},
		`new Date(0)`:         {"value": "1970-01-01T00:00:00.000Z"},
		`[1, 'b']`:            {"value": []any{1.0, "b"}},
		`'a text'`:            {"value": "a text"},
		`7`:                   {"value": 7.0},
		`false`:               {"value": false},
		`new String('boxed')`: {"value": "boxed"},
		`new (class { toJSON() { return ['made'] } })`: {"value": []any{"made"}},
		`new Map([[1, 2]])`:                            {},
		`null`:                                         nil,
		`undefined`:                                    nil,
		`() => 1`:                                      nil,
		`Symbol('s')`:                                  nil,
		`1n`:                                           nil,
		`{a: 1n}`:                                      nil,
		`{get a() { throw 1 }}`:                        nil,
		`new Proxy({}, {ownKeys() { throw 1 }})`:       nil,
		`{toJSON() {}}`:                                nil,
		`{a: JSON.rawJSON('1e999')}`:                   {"a": nil},
		`'x'.repeat(1e6)`:                              {"truncated": true},
		`JSON.parse('['.repeat(64) + ']'.repeat(64))`: {"value": nestedLists(64)},
		`JSON.parse('['.repeat(65) + ']'.repeat(65))`: {"truncated": true},
		deep: {"truncated": true},
	} {
		f := body(t, `fail('gone', {status: 410, code: 'GONE', details: `+details+`})`, component.Run{Timeout: component.MaxTimeout}).Failed
		if f == nil || f.Message != "gone" || f.Status != 410 || f.Code != "GONE" || !f.Chosen || !reflect.DeepEqual(f.Details, want) {
			t.Errorf("%s: %+v, want details %v", details, f, want)
		}
	}
}

func nestedLists(n int) any {
	list := []any{}
	for range n - 1 {
		list = []any{list}
	}
	return list
}

// TestFailIgnoresToJSON: a toJSON that the script gives to all objects does not
// change what the prelude reports.
func TestFailIgnoresToJSON(t *testing.T) {
	for _, toJSON := range []string{`() => 'x'`, `() => undefined`, `() => { throw 1 }`} {
		f := body(t, `Object.prototype.toJSON = `+toJSON+`; fail('gone', {status: 410})`, component.Run{}).Failed
		if f == nil || f.Message != "gone" || f.Status != 410 || !f.Chosen {
			t.Errorf("%s: %+v", toJSON, f)
		}
	}
}

// TestFirstRejectionIsReported: of several that are not handled, always the first.
func TestFirstRejectionIsReported(t *testing.T) {
	p := compile(t, `export default async function handler() {
		const late = Promise.reject(new Error('handled later'))
		for (let i = 0; i < 50; i++) Promise.reject(new Error('number ' + i))
		await 1
		late.catch(() => {})
	}`)
	for range 20 {
		if f := run(t, p, component.Run{}).Failed; f == nil || f.Message != "number 0" {
			t.Fatalf("%+v", f)
		}
	}
}

// TestHandledRejectionsAreForgotten: they take no memory, and do not count against
// maxRejections.
func TestHandledRejectionsAreForgotten(t *testing.T) {
	r := body(t, `for (let i = 0; i < 15000; i++) await Promise.reject(new Error('e' + i)).catch(() => {}); return 'done'`, component.Run{Memory: 4 << 20})
	if string(r.Value) != `"done"` {
		t.Errorf("%s %+v", r.Value, r.Failed)
	}
	r = body(t, `for (let i = 0; i < 5000; i++) await Promise.reject(1).catch(() => {}); Promise.reject(new Error('the one'))`, component.Run{})
	if r.Failed == nil || r.Failed.Message != "the one" {
		t.Errorf("%s %+v", r.Value, r.Failed)
	}
}

// TestHelpersReadResizedBuffers: a resizable buffer may have become longer or
// shorter since a view of it was made.
func TestHelpersReadResizedBuffers(t *testing.T) {
	for _, size := range []int{0, 10, 20, 70} {
		for _, view := range []string{"new Uint8Array(b)", "b", "new DataView(b)", "new Int8Array(b)"} {
			source := fmt.Sprintf(`const b = new ArrayBuffer(20, {maxByteLength: 100}); const v = %s; b.resize(%d); const text = '\0'.repeat(%[2]d);
				return [hmacSha256('k', v) === hmacSha256('k', text), safeCompare(v, text), new TextDecoder().decode(v).length]`, view, size)
			if got, want := value(t, source), []any{true, true, float64(size)}; !reflect.DeepEqual(got, want) {
				t.Errorf("%s of %d bytes: %v, want %v", view, size, got, want)
			}
		}
	}
	if got := value(t, `const b = new ArrayBuffer(8, {maxByteLength: 4096}); const v = new Uint8Array(b); b.resize(4096);
		crypto.getRandomValues(v); return v.slice(8).some(x => x !== 0)`); got != true {
		t.Error("getRandomValues filled the old length only")
	}
	if got := value(t, `const b = new ArrayBuffer(8, {maxByteLength: 64}); const k = new Uint8Array(b); b.resize(0);
		try { hmacSha256(k, 'x'); return 'taken' } catch (e) { return e.message }`); got != "hmacSha256: the key is empty" {
		t.Error(got)
	}
}

// TestNoMemoryForAnError: the engine then throws null, or no value at all, which is
// reported as the memory limit. A script that throws null is reported as such.
func TestNoMemoryForAnError(t *testing.T) {
	for _, source := range []string{
		`const a = []; for (;;) a.push(Promise.reject(new Error('x')))`,
		`let l = null; try { for (;;) l = {l} } catch { } for (;;) l = {l}`,
		`const keep = []; (function f() { try { for (;;) keep.push([keep.length]) } finally { f() } })()`,
		`const a = []; try { for (;;) a.push({}) } catch { } await 1; const c = []; for (;;) c.push(await new Promise(ok => ok({})))`,
		`const a = []; for (;;) a.push(Promise.resolve(1).then(x => [x]))`,
	} {
		for memory := 4 << 20; memory <= 6<<20; memory += 500 << 10 {
			r := body(t, source, component.Run{Memory: memory, Timeout: 20 * time.Second})
			if f := r.Failed; f == nil || !strings.Contains(f.Message, "memory limit") && !strings.Contains(f.Message, "stack size") {
				t.Errorf("%s in %d: %s %+v", source, memory, r.Value, f)
			}
		}
	}
	for source, want := range map[string]string{`throw null`: "null", `await Promise.reject(null)`: "null", `throw '[uninitialized]'`: "[uninitialized]"} {
		if f := body(t, source, component.Run{Memory: 4 << 20}).Failed; f == nil || f.Message != want || f.CutOff {
			t.Errorf("%s: %+v", source, f)
		}
	}
}

// TestUncaughtHostErrorKeepsDetails: and its code; the script cannot change them.
func TestUncaughtHostErrorKeepsDetails(t *testing.T) {
	host := hostFunc(func(_ context.Context, name string, _ []byte) ([]byte, error) {
		if name == "records.get" {
			return nil, fault.New(fault.ExecutionError, "too many calls")
		}
		return nil, fault.Fields("some fields are not valid", map[string]string{"total": "expected a number"})
	})
	fields := map[string]any{"total": "expected a number"}
	for source, want := range map[string]map[string]any{
		`records.create('order', {total: 'x'})`:                                                         {"fields": fields, "code": "VALIDATION"},
		`await records.update('order', '1', {total: 'x'})`:                                              {"fields": fields, "code": "VALIDATION"},
		`try { records.create('order', {}) } catch (e) { e.details.fields = 1; e.code = 'X'; throw e }`: {"fields": fields, "code": "VALIDATION"},
		`(async () => { records.create('order', {}) })()`:                                               {"fields": fields, "code": "VALIDATION"},
		`records.get('order', '1')`:                                                                     {},
	} {
		f := body(t, source, component.Run{Host: host}).Failed
		if f == nil || f.Code != "EXECUTION_ERROR" || f.Status != 422 || f.Chosen || !reflect.DeepEqual(f.Details, want) || strings.Contains(f.Message, "Refusal") {
			t.Errorf("%s: %+v", source, f)
		}
	}
	if got := returned(t, host, `try { records.create('order', {}) } catch (e) {
		return [e instanceof Error, e.name, e.constructor === Error, String(e), e.code, e.status, e.details.fields.total, Object.keys(e)] }`); got !=
		`[true,"Error",true,"Error: some fields are not valid","VALIDATION",400,"expected a number",["code","status","details"]]` {
		t.Error(got)
	}
}

func returned(t *testing.T, host component.Host, source string) string {
	t.Helper()
	r := body(t, source, component.Run{Host: host})
	if r.Failed != nil {
		t.Fatalf("%+v", r.Failed)
	}
	return string(r.Value)
}
