package component_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"gatehouse/internal/component"
)

// TestLanguage runs one expression or body for each feature that is documented.
func TestLanguage(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{`return await (async () => 1 + await 2)()`, `3`},
		{`class A { #x = 1; static s = 2; get x() { return this.#x } static { A.t = 3 } } return [new A().x, A.s, A.t]`, `[1,2,3]`},
		{`return String(2n ** 100n)`, `"1267650600228229401496703205376"`},
		{`function* g() { yield 1; yield* [2, 3] } return [...g()]`, `[1,2,3]`},
		{`async function* g() { yield 1; yield 2 } const r = []; for await (const v of g()) r.push(v); return r`, `[1,2]`},
		{`return new Proxy({}, { get: (_, k) => k + '!' }).hi`, `"hi!"`},
		{`const { a, ...rest } = { a: 1, b: 2, c: 3 }; return rest`, `{"b":2,"c":3}`},
		{`let x = null; x ??= 5; return [x?.y ?? 'none', x]`, `["none",5]`},
		{`return 'x-1 y-2'.replace(/(?<l>\w)-(?<d>\d)/g, '$<d>$<l>')`, `"1x 2y"`},
		{`return /^\p{Lu}\p{Ll}+$/u.test('Ärger')`, `true`},
		{`return 'aXbX'.replaceAll('X', '-') + 'abc'.at(-1)`, `"a-b-c"`},
		{`return [3, 1, 2].toSorted().concat([1, 2, 3].findLast(v => v < 3), [1, 2].with(0, 9))`, `[1,2,3,2,9,2]`},
		{`return [...new Set([1, 1, 2])].length + new Map([[1, 2]]).get(1)`, `4`},
		{`return Object.groupBy([1, 2, 3], v => v % 2 ? 'odd' : 'even')`, `{"odd":[1,3],"even":[2]}`},
		{`const r = await Promise.allSettled([Promise.resolve(1), Promise.reject(new Error('no'))]); return r.map(v => v.status)`, `["fulfilled","rejected"]`},
		{`return await Promise.any([Promise.reject(1), Promise.resolve(2)])`, `2`},
		{"const tag = (s, ...v) => s.raw.join('|') + v; return tag`a${1}b`", `"a|b1"`},
		{`label: for (const i of [1, 2]) { for (;;) continue label } return 'done'`, `"done"`},
		{`try { null.x } catch { return 'caught' } finally { }`, `"caught"`},
		{`return new Date(Date.UTC(2026, 0, 2)).toISOString() + new Date(2026, 0, 2).getTimezoneOffset()`, `"2026-01-02T00:00:00.000Z0"`},
		{`return JSON.stringify({ a: undefined, b: [undefined], c: NaN })`, `"{\"b\":[null],\"c\":null}"`},
		{`return undefined`, `null`},
		{`return () => 1`, `null`},
		{`return { then(ok) { ok('thenable') } }`, `"thenable"`},
		{`return [btoa('hi'), atob('aGk=')]`, `["aGk=","hi"]`},
		{`return [...new TextEncoder().encode('aé€😀\ud800')]`, `[97,195,169,226,130,172,240,159,152,128,239,191,189]`},
		{`return new TextDecoder().decode(new Uint8Array([0xef, 0xbb, 0xbf, 104, 105, 0xff]))`, "\"hi\uFFFD\""},
		{`try { new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array([0xff])) } catch (e) { return e.name }`, `"TypeError"`},
		{`return new TextEncoder().encodeInto('a€', new Uint8Array(3))`, `{"read":1,"written":1}`},
		{`const o = { d: new Date(5), m: new Map([[1, { a: 1 }]]), s: new Set([1]), b: new Uint8Array([1, 2]), r: /x/gi, n: 1n }; o.self = o;
		  const c = structuredClone(o); return [c !== o, c.self === c, c.d.getTime(), c.m.get(1).a, c.s.has(1), [...c.b], String(c.r), String(c.n)]`,
			`[true,true,5,1,true,[1,2],"/x/gi","1"]`},
		{`try { structuredClone(() => 1) } catch (e) { return e.name }`, `"DataCloneError"`},
		{`return typeof queueMicrotask`, `"function"`},
		{`return await new Promise(ok => queueMicrotask(() => ok('later')))`, `"later"`},
		{`return [typeof fetch, typeof require, typeof process, typeof setTimeout, typeof std, typeof os, typeof host, typeof XMLHttpRequest, typeof WebAssembly, typeof print, typeof scriptArgs]`,
			`["undefined","undefined","undefined","undefined","undefined","undefined","undefined","undefined","undefined","undefined","undefined"]`},
		{`return eval('1 + 1') + new Function('a', 'return a')(2)`, `4`},
		{`try { await import('fs') } catch (e) { return e.message }`, `"import() is not available in a run: import modules at the top of the source"`},
		{`return /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(crypto.randomUUID())`, `true`},
		{`const a = crypto.getRandomValues(new Uint32Array(64)); return a.filter(v => v === 0).length < 4`, `true`},
		{`const v = Array.from({ length: 2000 }, Math.random); return v.every(x => x >= 0 && x < 1) && Math.abs(v.reduce((a, b) => a + b) / 2000 - 0.5) < 0.05`, `true`},
	} {
		got := value(t, c.body)
		var want any
		if err := json.Unmarshal([]byte(c.want), &want); err != nil {
			t.Fatal(c.want, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s\n got %#v\nwant %#v", c.body, got, want)
		}
	}
}

// TestSourceErrors checks the message and place of sources that do not compile.
func TestSourceErrors(t *testing.T) {
	for _, c := range []struct {
		source, message string
		line, column    int
	}{
		{"export default function handler() {\n  return 1 +;\n}", "SyntaxError", 2, 13},
		{"const a = 1;\nexport default () => {\n  let a; let a;\n}", "SyntaxError", 3, 0},
		{"\n\nthrow new TypeError('at the top')", "TypeError: at the top", 3, 11},
		{"const x = 1;\nnull.y;\nexport default () => 1", "TypeError", 2, 0},
		{"import fs from 'fs';\nexport default () => 1", `there is no module "fs"`, 1, 16},
		{"await import('x');\nexport default () => 1", `there is no module "x"`, 1, 14},
		{"export const handler = () => 1", "there is no handler", 0, 0},
		{"export default 42", "there is no handler", 0, 0},
		{"", "there is no handler", 0, 0},
		{"await new Promise(() => {}); export default () => 1", "never settled", 0, 0},
		{"for (;;); export default () => 1", "did not finish within", 0, 0},
		{"const a = []; for (;;) a.push(new Uint8Array(1e6)); export default () => 1", "memory limit", 0, 0},
		{"records.get('contact', '1'); export default () => 1", "records.get is not available here", 1, 0},
		{"export default () => '" + strings.Repeat("x", component.MaxSource) + "'", "larger than", 0, 0},
		{"export default () => 1 \x00", "SyntaxError", 1, 0},
	} {
		_, err := engine(t).Compile(context.Background(), c.source)
		var e *component.SourceError
		if !errors.As(err, &e) {
			t.Errorf("%.60q: error %v", c.source, err)
			continue
		}
		if !strings.Contains(e.Message, c.message) || c.line != 0 && e.Line != c.line || c.column != 0 && e.Column != c.column {
			t.Errorf("%.60q: %+v", c.source, e)
		}
	}
}

// TestFailures checks that an uncaught error is EXECUTION_ERROR with its place, and
// that only fail() chooses status and code.
func TestFailures(t *testing.T) {
	for _, c := range []struct {
		body, message, code string
		status, line        int
	}{
		{"\nthrow new Error('plain')", "plain", "EXECUTION_ERROR", 422, 3},
		{"\n\nundefined.x", "TypeError: cannot read property 'x' of undefined", "EXECUTION_ERROR", 422, 4},
		{"await 1;\nawait 2;\nnull()", "TypeError: not a function", "EXECUTION_ERROR", 422, 4},
		{"throw 'text'", "text", "EXECUTION_ERROR", 422, 0},
		{"throw null", "null", "EXECUTION_ERROR", 422, 0},
		{"throw { code: 'EVIL', status: 200, message: 'dressed up' }", "dressed up", "EXECUTION_ERROR", 422, 0},
		{"const e = new Error('x'); e.status = 401; e.code = 'UNAUTHORIZED'; throw e", "x", "EXECUTION_ERROR", 422, 2},
		{"\nfail('gone', { status: 410, code: 'GONE', details: { a: [1] } })", "gone", "GONE", 410, 3},
		{"fail('plain fail')", "plain fail", "EXECUTION_ERROR", 422, 2},
		{"fail('huge', { details: { a: 'x'.repeat(1e6) } })", "huge", "EXECUTION_ERROR", 422, 2},
		{"fail('bad code', { code: 'no good', status: 418 })", "bad code", "EXECUTION_ERROR", 418, 0},
		{"fail('x', { status: 200 })", "RangeError: fail: status must be a whole number from 400 to 599", "EXECUTION_ERROR", 422, 0},
		{"fail('x', { status: 600 })", "RangeError: fail: status", "EXECUTION_ERROR", 422, 0},
		{"fail('x', 404)", "TypeError: fail: expected an object of status, code and details", "EXECUTION_ERROR", 422, 2},
		{"fail('x', 'GONE')", "TypeError: fail: expected an object of status, code and details", "EXECUTION_ERROR", 422, 2},
		{"fail('x', new Map([['status', 404]]))", "TypeError: fail: expected an object of status", "EXECUTION_ERROR", 422, 2},
		{"fail('x', { stats: 404 })", "TypeError: fail: stats is not known: expected status, code and details", "EXECUTION_ERROR", 422, 2},
		{"fail('x', { [Symbol('status')]: 404 })", "TypeError: fail: Symbol(status) is not known", "EXECUTION_ERROR", 422, 2},
		{"fail('x', { status: 404 }, { a: 1 })", "TypeError: fail: expected one object of status, code and details", "EXECUTION_ERROR", 422, 2},
		{"fail('x', { status: '404' })", "RangeError: fail: status", "EXECUTION_ERROR", 422, 0},
		{"fail('x', null)", "x", "EXECUTION_ERROR", 422, 2},
		{"fail('x', { status: undefined, code: undefined, details: undefined })", "x", "EXECUTION_ERROR", 422, 2},
		{"return 1n", "BigInt", "EXECUTION_ERROR", 422, 0},
		{"const a = {}; a.a = a; return a", "circular", "EXECUTION_ERROR", 422, 0},
		{"await new Promise(() => {})", "never settled", "EXECUTION_ERROR", 422, 0},
		{"\n(async () => { throw new Error('nobody waits') })(); return 1", "nobody waits", "EXECUTION_ERROR", 422, 3},
		{"return 'x'.repeat(2 << 20)", "more than 1024 KiB", "EXECUTION_ERROR", 422, 0},
		{"throw new Proxy({}, { get() { throw 1 } })", "", "EXECUTION_ERROR", 422, 0},
		{"try { fail('x', { status: 409 }) } catch (e) { throw new Error(e.message + e.status) }", "x409", "EXECUTION_ERROR", 422, 0},
		{"const f = x => f(x + 1) + 1; return f(0)", "call stack", "EXECUTION_ERROR", 422, 0},
	} {
		r := run(t, compile(t, "export default async function handler() {\n"+c.body+"\n}"), component.Run{})
		f := r.Failed
		if f == nil {
			t.Errorf("%s: returned %s", c.body, r.Value)
			continue
		}
		if !strings.Contains(f.Message, c.message) || f.Code != c.code || f.Status != c.status || c.line != 0 && f.Line != c.line {
			t.Errorf("%s: %+v", c.body, f)
		}
		if strings.Contains(f.Stack, "gatehouse") {
			t.Errorf("%s: our own frames in %q", c.body, f.Stack)
		}
	}
	r := run(t, compile(t, "export default () => fail('d', {details: {a: 1}})"), component.Run{})
	if r.Failed.Details["a"] != 1.0 || r.Failed.Fault().HTTPStatus() != 422 {
		t.Errorf("details %+v", r.Failed)
	}
}

// TestConsole checks the levels of lines, and the limits of the console.
func TestConsole(t *testing.T) {
	r := run(t, compile(t, `export default () => {
		console.log('a', 1, { b: [2n] }, null, undefined, () => 1); console.error(new Error('boom').message); console.warn('\ud800');
		for (let i = 0; i < 5000; i++) console.debug('x'.repeat(500));
	}`), component.Run{})
	if r.Failed != nil {
		t.Fatal(r.Failed)
	}
	if r.Console[0].Level != "log" || !strings.HasPrefix(r.Console[0].Text, `a 1 {"b":["2n"]} null undefined [function `) {
		t.Errorf("%+v", r.Console[0])
	}
	if r.Console[1].Level != "error" || r.Console[1].Text != "boom" || r.Console[2].Text != "\uFFFD" {
		t.Errorf("%+v", r.Console[1:3])
	}
	total, last := 0, int64(1)
	for i, l := range r.Console {
		if want := min(i, 3)/3 + 2; l.Line != want || l.AtUS < last {
			t.Errorf("line %d was printed at line %d of the source, want %d, at %d µs after %d", i, l.Line, want, l.AtUS, last)
		}
		last = l.AtUS
		total += len(l.Text)
	}
	if len(r.Console) > component.MaxConsoleLines || total > component.MaxConsoleBytes {
		t.Errorf("%d lines, %d bytes", len(r.Console), total)
	}
}
