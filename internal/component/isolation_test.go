package component_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/internal/component"
	"gatehouse/internal/fault"
	"gatehouse/internal/gatetest/enginecache"
)

// patchSource changes every global that it can, in its top level and in each run,
// and returns how much of an earlier run it can see.
const patchSource = `
let count = 0;
export default function handler({ secret }) {
  const seen = [globalThis.state, globalThis.last, Array.prototype.leak, Object.prototype.leak, JSON.leak, String.prototype.leak,
    records.leak, console.leak, crypto.leak, Function.prototype.leak, Promise.leak, Symbol.for('x').description === 'x' ? null : 1,
    Math.leak, Error.prepareStackTrace, TextEncoder.prototype.leak, Reflect.leak, fail.leak].filter(v => v != null);
  count++;
  globalThis.state = globalThis.last = secret;
  for (const o of [Array.prototype, Object.prototype, JSON, String.prototype, records, console, crypto, Function.prototype, Promise,
    Math, TextEncoder.prototype, Reflect, fail]) Object.defineProperty(o, 'leak', { value: secret, configurable: true });
  const { stringify } = JSON;
  JSON.stringify = () => '"patched"'; JSON.parse = () => ({ patched: true });
  Array.prototype.map = Array.prototype.push = Array.prototype[Symbol.iterator] = () => 'patched';
  Promise.prototype.then = () => 'patched'; Object.defineProperty = null; Reflect.apply = () => 'patched';
  Error.prepareStackTrace = () => 'patched'; Math.random = () => 4; Date.now = () => 0; globalThis.Promise = null;
  delete globalThis.records; globalThis.console = null; globalThis.Object = null; Uint8Array.prototype.set = null;
  TextEncoder.prototype.encode = () => 'patched'; crypto.hmacSha256 = hmacSha256 = safeCompare = () => true;
  return { count, seen };
}`

// TestIsolation runs two tenants' components in turns, a thousand times. Both
// change all globals; neither may see a change of an earlier run.
func TestIsolation(t *testing.T) {
	a, b, probe := compile(t, patchSource), compile(t, patchSource+"\n// b"), compile(t, cleanSource)
	want := clean(t, probe, "")
	for n := range 1000 {
		p, tenant := a, "a"
		if n%2 == 1 {
			p, tenant = b, "b"
		}
		r := run(t, p, component.Run{Tenant: tenant, Inputs: fmt.Appendf(nil, `{"secret":"%s-%d"}`, tenant, n)})
		if r.Failed != nil || string(r.Value) != `{"count":1,"seen":[]}` {
			t.Fatalf("run %d: %s %+v", n, r.Value, r.Failed)
		}
		if n%50 == 0 {
			clean(t, probe, want)
		}
	}
}

// TestRandomDiffers: Math.random and randomUUID are not the same in two runs.
func TestRandomDiffers(t *testing.T) {
	p := compile(t, `const top = Math.random(); export default () => [Math.random(), crypto.randomUUID(), top]`)
	seen := map[any]bool{}
	for range 50 {
		var v []any
		if err := json.Unmarshal(run(t, p, component.Run{}).Value, &v); err != nil {
			t.Fatal(err)
		}
		if seen[v[0]] || seen[v[1]] {
			t.Fatalf("%v again", v)
		}
		seen[v[0]], seen[v[1]] = true, true
	}
}

// TestRecords checks the arguments that Host gets, and what the script gets of its
// answers and errors.
func TestRecords(t *testing.T) {
	var calls []string
	host := hostFunc(func(_ context.Context, name string, args []byte) ([]byte, error) {
		calls = append(calls, name+" "+string(args))
		switch name {
		case "records.create":
			return nil, fault.New(fault.Conflict, "taken").With("field", "email")
		case "records.delete":
			return nil, nil
		}
		return []byte(`{"id":"1","name":"Ana ü 😀"}`), nil
	})
	p := compile(t, `export default async () => {
		const got = await records.get('contact', '1'), list = records.list('contact', { where: { a: 1 }, limit: 5 });
		let refused; try { records.create('contact', { email: 'x' }) } catch (e) { refused = [e instanceof Error, e.message, e.code, e.status, e.details] }
		return [got.name, list.id, refused, records.delete('contact', '1'), records.update('contact', '2', { a: null }).id,
			records.share('contact', '2', { role: 'r', access: 'read' }).id, records.unshare('contact', '2', { user: 'u' }).id] }`)
	r := run(t, p, component.Run{Host: host})
	const want = `["Ana ü 😀","1",[true,"taken","CONFLICT",409,{"field":"email"}],null,"1","1","1"]`
	if r.Failed != nil || string(r.Value) != want {
		t.Errorf("%s %+v", r.Value, r.Failed)
	}
	wantCalls := []string{`records.get {"entity":"contact","id":"1"}`, `records.list {"entity":"contact","where":{"a":1},"limit":5}`,
		`records.create {"entity":"contact","fields":{"email":"x"}}`, `records.delete {"entity":"contact","id":"1"}`,
		`records.update {"entity":"contact","id":"2","fields":{"a":null}}`,
		`records.share {"entity":"contact","id":"2","with":{"role":"r","access":"read"}}`, `records.unshare {"entity":"contact","id":"2","with":{"user":"u"}}`}
	if fmt.Sprint(calls) != fmt.Sprint(wantCalls) {
		t.Errorf("calls %q", calls)
	}

	r = run(t, compile(t, `export default () => records.create('c', {})`), component.Run{Host: host})
	if r.Failed == nil || r.Failed.Code != "EXECUTION_ERROR" || r.Failed.Status != 422 || r.Failed.Message != "taken" {
		t.Errorf("uncaught refusal: %+v", r.Failed)
	}
	r = run(t, compile(t, `export default () => { for (let i = 0; i < 101; i++) records.get('c', '1') }`), component.Run{Host: host})
	if r.Failed == nil || r.Failed.Message != "more than 100 calls of records in one run" {
		t.Errorf("101 calls: %+v", r.Failed)
	}
	broken := errors.New("the database is on fire")
	_, err := compile(t, `export default () => { try { records.get('c', '1') } catch { return 'hidden' } }`).Run(context.Background(),
		component.Run{Host: hostFunc(func(context.Context, string, []byte) ([]byte, error) { return nil, broken })})
	if !errors.Is(err, broken) {
		t.Errorf("a foreign error is %v", err)
	}
	_, err = compile(t, `export default () => records.get('c', '1')`).Run(context.Background(),
		component.Run{Host: hostFunc(func(context.Context, string, []byte) ([]byte, error) { panic("oops") })})
	if err == nil || !strings.Contains(err.Error(), "records.get panicked: oops") {
		t.Errorf("a panic is %v", err)
	}
}

// TestConcurrent runs many components of many tenants at once, some of which use up
// their memory; each must get its own answer.
func TestConcurrent(t *testing.T) {
	e, err := component.NewEngine(context.Background(), component.Options{CacheDir: enginecache.Dir(), Instances: 4, PerTenant: 2, MaxWait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	echo, err := e.Compile(context.Background(), `let n = 0; export default async ({ v }) => { n++; globalThis.v ??= v; await 1; return globalThis.v + n }`)
	if err != nil {
		t.Fatal(err)
	}
	bomb, err := e.Compile(context.Background(), `export default () => { const a = []; for (;;) a.push({}) }`)
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for worker := range 12 {
		group.Go(func() {
			for n := range 30 {
				tenant := fmt.Sprint("t", worker%5)
				if worker == 0 {
					r, err := bomb.Run(context.Background(), component.Run{Tenant: "evil", Timeout: 20 * time.Millisecond})
					// On a busy machine it may get too little CPU time to reach its own limit.
					if fault.CodeOf(err) != fault.Overloaded && (err != nil || r.Failed == nil) {
						t.Error("bomb", err, r.Failed)
					}
					continue
				}
				v := fmt.Sprintf("w%d-%d-", worker, n)
				r, err := echo.Run(context.Background(), component.Run{Tenant: tenant, Inputs: fmt.Appendf(nil, `{"v":%q}`, v)})
				if err != nil || r.Failed != nil || string(r.Value) != fmt.Sprintf("%q", v+"1") {
					t.Errorf("%s %v %+v", r.Value, err, r.Failed)
				}
			}
		})
	}
	group.Wait()
	if e.CPU()["evil"] == 0 || e.CPU()["t1"] == 0 {
		t.Errorf("CPU %v", e.CPU())
	}
	if err := e.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if _, err := echo.Run(context.Background(), component.Run{}); !errors.Is(err, component.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// TestOverloaded checks that a tenant over its limit waits and is then refused,
// while another tenant's runs continue.
func TestOverloaded(t *testing.T) {
	e, err := component.NewEngine(context.Background(), component.Options{CacheDir: enginecache.Dir(), Instances: 3, PerTenant: 2,
		MaxWait: 50 * time.Millisecond, WaitingPerTenant: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Close(context.Background()) }()
	p, err := e.Compile(context.Background(), `export default () => records.get('sleep', '1')`)
	if err != nil {
		t.Fatal(err)
	}
	inside := make(chan struct{}, 8)
	release := make(chan struct{})
	host := hostFunc(func(context.Context, string, []byte) ([]byte, error) {
		inside <- struct{}{}
		<-release
		return []byte("1"), nil
	})
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			if r, err := p.Run(context.Background(), component.Run{Tenant: "busy", Host: host}); err != nil || r.Failed != nil {
				t.Error(err, r.Failed)
			}
		})
		<-inside
	}
	_, err = p.Run(context.Background(), component.Run{Tenant: "busy", Host: host})
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != fault.Overloaded || f.RetryAfter <= 0 {
		t.Errorf("third run of one tenant: %v", err)
	}
	group.Go(func() {
		if _, err := p.Run(context.Background(), component.Run{Tenant: "other", Host: host}); err != nil {
			t.Error(err)
		}
	})
	<-inside
	close(release)
	group.Wait()
}

// TestEngineErrors tries options that contradict each other, and a context that has
// ended.
func TestEngineErrors(t *testing.T) {
	if _, err := component.NewEngine(context.Background(), component.Options{Instances: 1, PerTenant: 2}); err == nil {
		t.Error("two per tenant of one instance")
	}
}
