package component_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"syscall"
	"testing"
	"time"

	"gatehouse/internal/component"
)

const trivialSource = `export default function handler(inputs) { return { ok: true, n: inputs.n + 1 } }`

// orderSource is a typical component of a shop: it checks, reads and computes.
const orderSource = `
const rates = { DE: 0.19, FR: 0.2, IT: 0.22 };
export default function handler(inputs, ctx) {
  const { order } = inputs;
  if (!Array.isArray(order.items) || order.items.length === 0) fail('no items', { status: 400, code: 'EMPTY_ORDER' });
  const customer = records.get('customer', order.customerId);
  const lines = order.items.map(({ sku, name, qty, price, tags }) => ({
    sku: sku.toUpperCase(), name: name.trim(), qty, total: Math.round(qty * price * 100) / 100,
    label: tags.filter(t => /^[a-z]+$/.test(t)).join('/'),
  })).sort((a, b) => b.total - a.total);
  const net = lines.reduce((sum, l) => sum + l.total, 0);
  const tax = net * (rates[order.country] ?? 0);
  return { id: order.id, customer: customer?.name ?? null, lines, net, tax, gross: net + tax, tenant: ctx.tenant };
}`

const verifierSource = `
export default function handler({ rawBody, headers, config }) {
  const parts = Object.fromEntries((headers['stripe-signature'] ?? '').split(',').map(p => p.split('=')));
  if (!checkTimestampFresh(parts.t)) fail('stale');
  const expected = hmacSha256(config.webhook_secret, parts.t + '.' + rawBody);
  if (!safeCompare(expected, parts.v1 ?? '')) fail('bad signature');
  const event = JSON.parse(rawBody);
  return { providerEventId: event.id, eventKind: event.type, canonicalEvent: event };
}`

type hostFunc func(ctx context.Context, name string, args []byte) ([]byte, error)

func (f hostFunc) Call(ctx context.Context, name string, args []byte, _ int) ([]byte, error) {
	return f(ctx, name, args)
}

var customerHost = hostFunc(func(context.Context, string, []byte) ([]byte, error) {
	return []byte(`{"id":"c1","name":"Ana Gomes","email":"ana@example.com"}`), nil
})

// orderInput is an order of about 1.5 KB.
func orderInput() []byte {
	items := []map[string]any{}
	for n := range 12 {
		items = append(items, map[string]any{"sku": fmt.Sprintf("sku-%04d", n), "name": fmt.Sprintf(" Article number %d ", n),
			"qty": n + 1, "price": 9.99 + float64(n), "tags": []string{"new", "sale", "x1"}})
	}
	b, _ := json.Marshal(map[string]any{"order": map[string]any{"id": "o-1", "customerId": "c1", "country": "DE", "items": items}})
	return b
}

func verifierInput(body []byte) *component.VerifierInput {
	const secret = "whsec_0123456789abcdef"
	ts := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(ts + "."))
	mac.Write(body)
	headers, _ := json.Marshal(map[string]string{"stripe-signature": "t=" + ts + ",v1=" + hex.EncodeToString(mac.Sum(nil))})
	config, _ := json.Marshal(map[string]any{"slug": "s", "webhook_secret": secret, "webhook_secrets": []string{secret}})
	return &component.VerifierInput{RawBody: body, Headers: headers, Config: config}
}

// cpuTime returns the CPU time of the process, which depends less on other processes
// than the time that passed.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func bench(b *testing.B, p *component.Program, r component.Run) {
	b.Helper()
	b.ReportAllocs()
	before := cpuTime()
	defer func() { b.ReportMetric(float64((cpuTime()-before).Nanoseconds())/1e3/float64(b.N), "cpu-µs/op") }()
	for b.Loop() {
		result, err := p.Run(context.Background(), r)
		if err != nil || result.Failed != nil {
			b.Fatal(err, result.Failed)
		}
	}
}

func BenchmarkTrivial(b *testing.B) {
	bench(b, compile(b, trivialSource), component.Run{Tenant: "t", Inputs: []byte(`{"n":1}`)})
}

func BenchmarkOrder(b *testing.B) {
	in := orderInput()
	b.Logf("%d bytes in", len(in))
	bench(b, compile(b, orderSource), component.Run{Tenant: "t", Inputs: in, Ctx: []byte(`{"tenant":"acme"}`), Host: customerHost})
}

func BenchmarkVerifier(b *testing.B) {
	body := []byte(`{"id":"evt_1","type":"invoice.paid","data":{"amount":4200,"currency":"eur","customer":"cus_1"}}`)
	bench(b, compile(b, verifierSource), component.Run{Tenant: "t", Verifier: verifierInput(body)})
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		compile(b, orderSource)
	}
}

// BenchmarkCPU runs CPU-heavy components. When the engine was chosen they took 21.8,
// 22.5 and 10.8 ms.
func BenchmarkCPU(b *testing.B) {
	for name, body := range map[string]string{
		"fib25":     `function fib(n) { return n < 2 ? n : fib(n-1) + fib(n-2) } return fib(25)`,
		"sort20k":   `let s = 1; const a = Array.from({length: 20000}, () => (s = s * 16807 % 2147483647)); a.sort((x, y) => x - y); return a[0]`,
		"regex100k": `const t = 'lorem ipsum dolor sit amet 12345 '.repeat(3000); return (t.match(/\b\w+\b \d+/g) ?? []).length`,
		"empty":     ``,
	} {
		p := compile(b, "export default function handler() {"+body+"}")
		b.Run(name, func(b *testing.B) { bench(b, p, component.Run{Tenant: "t"}) })
	}
}
