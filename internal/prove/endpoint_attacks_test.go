package prove

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/db"
)

// Bounds for one attack: it may exceed its deadline and its memory limit by a little, and
// delay other requests by a little.
const (
	attackTimeout = 200 * time.Millisecond
	attackSlack   = 50 * time.Millisecond
	attackMemory  = (32 + 16) << 20
	attackWait    = 20 * time.Millisecond // on the p99 of other requests
)

// besidesManifest is the manifest of the tenant of the attacks, without its components
// and endpoints, which are appended. Reads are not logged, so that the database and its
// caches do not grow during the test.
const besidesManifest = `
tenant: acme
hosts: [acme.localhost]
public_api: {enabled: true, log_standard_requests: false}
unauthenticated_per_ip_per_minute: 100000000
entities: [{name: contact, fields: [{name: first_name, type: text, required: true}]}]
users: [{email: olivia@acme.example, name: Olivia Owner, owner: true}]
`

// neighbour is a component that reports whether anything that attacks patch is still
// patched.
const neighbour = `
const spread = [...[1, 2]].length;
export default async function handler(inputs) {
  await null;
  const own = Object.getOwnPropertyNames(Object.prototype).length + Object.keys(globalThis).length;
  return { n: inputs.n, spread, own, json: JSON.stringify({ a: [1] }), map: [1, 2].map(x => x + 1), x: ({}).x ?? null,
    records: typeof records.get, stack: typeof Error.prepareStackTrace, state: globalThis.state ?? null };
}`

// trial is one attack, with its endpoint and its outcome.
type trial struct {
	name, slug string
	best       time.Duration // the shortest run, as the server measured it
	grown      int64         // the least by which the process grew during a run
	runs       int
}

// within reports whether the shortest run and the least growth are within the bounds.
func (tr *trial) within() bool {
	return tr.best <= attackTimeout+strictly(attackSlack) && tr.grown <= attackMemory
}

// An attack in the sandbox of one component ends in time and takes only its own memory.
// Other requests are hardly delayed, and the process keeps running.
func TestProveAttacksStayInTheirBox(t *testing.T) {
	asShipped(t)
	p := begin(t, "BOX-1", db.SQLite)
	trials, manifest := corpus(p, scale(25, 1000))
	w := bare(t, db.SQLite)
	w.apply(manifest)
	w.token = w.key(owner)
	n := w.start()
	c := n.client(w.token)
	defer c.close()
	m := &meter{p: p, c: n.client(w.token), took: map[bool][]time.Duration{}}
	defer m.c.close()
	for i := range 50 {
		a, err := c.do("POST", contact, fmt.Sprintf(`{"first_name":"Contact %d"}`, i))
		if err != nil || a.status != 201 {
			t.Fatal(a, err)
		}
		r, _ := a.record() // without an id the reads fail
		m.paths = append(m.paths, contact+"/"+r.ID)
	}
	b := &box{p: p, w: w, n: n, c: c, m: m}
	b.clean = b.probe()
	b.measure(trials)
	if n.panicked() || !n.running() {
		p.fail("the process did not stay as it was: %s%s", n.stdout(), n.stderr())
	}
}

// corpus returns some of the attacks of internal/component, chosen at random, and the
// manifest that makes endpoints of them.
func corpus(p *proof, most int) (trials []*trial, manifest string) {
	p.t.Helper()
	text, err := os.ReadFile("../component/testdata/attacks.js")
	if err != nil {
		p.t.Fatal(err)
	}
	parts := strings.Split(string(text), "\n//// ")[1:]
	if len(parts) < 190 {
		p.t.Fatalf("only %d attacks", len(parts))
	}
	p.rand.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	slices.SortStableFunc(parts, func(a, b string) int { return rank(a) - rank(b) })
	components := fmt.Sprintf("logic_components:\n  - {name: neighbour, source: %s}\n", quoted(neighbour))
	endpoints := "custom_endpoints:\n  - {slug: neighbour, target: {component: neighbour}}\n"
	for i, part := range parts[:min(most, len(parts))] {
		name, body, _ := strings.Cut(part, "\n")
		source := "export default async function handler(inputs, ctx) {\nif (inputs.harmless) return 1;\n" + body + "\n}"
		components += fmt.Sprintf("  - {name: attack_%d, timeout_ms: %d, source: %s}\n", i, attackTimeout.Milliseconds(), quoted(source))
		slug := fmt.Sprintf("attack-%d", i)
		endpoints += fmt.Sprintf("  - {slug: %s, target: {component: attack_%d}}\n", slug, i)
		trials = append(trials, &trial{name: name, slug: slug, grown: math.MaxInt64})
	}
	return trials, besidesManifest + components + endpoints
}

// rank puts first the attacks that took the most memory, or the most time in one step of
// the engine, when a limit was missing.
func rank(part string) int {
	name, _, _ := strings.Cut(part, "\n")
	if slices.Contains([]string{"array fill", "array double", "copyWithin", "join huge"}, name) {
		return 0
	}
	return 1
}

// quoted returns a text as a quoted YAML scalar, which a JSON string is.
func quoted(s string) string {
	b, _ := json.Marshal(s) // a string cannot fail
	return string(b)
}

// box is a running server under attack.
type box struct {
	p     *proof
	w     *world
	n     *node
	c     *client
	m     *meter
	mem   *memory
	clean string // the neighbour's answer when nothing is patched

	levels        []int64 // memory in use before each turn
	used          float64 // CPU seconds before the attacks
	alone, beside []time.Duration
}

// measure sends reads at a fifth of the capacity, alternately alone and during some
// attacks, so that other load on the machine slows both.
func (b *box) measure(trials []*trial) {
	p := b.p
	p.t.Helper()
	rate := max(1, b.m.capacity(time.Duration(scale(600, 10_000))*time.Millisecond)/5)
	p.add("reads_per_second", rate)
	b.mem = b.n.watch(p.t.Context())
	ctx, cancel := context.WithCancel(p.t.Context())
	defer cancel()
	done := make(chan struct{})
	go func() { defer close(done); b.m.run(ctx, rate) }()
	for _, tr := range trials { // a compiled component takes up memory, whatever it does
		if a, err := b.c.do("POST", "/public/v1/custom/"+tr.slug, `{"harmless":true}`); err != nil || a.status != 200 {
			p.fail("%s, compiled only: %v %v", tr.name, a, err)
		}
		tr.runs++
	}
	alone := time.Duration(scale(400, 2000)) * time.Millisecond
	time.Sleep(alone)
	b.used = b.cpu()
	b.m.take()
	for turn := range slices.Chunk(trials, scale(5, 10)) {
		time.Sleep(alone)
		b.levels = append(b.levels, b.mem.restart())
		b.m.turn(true)
		for _, tr := range turn {
			b.attack(tr)
		}
		b.m.turn(false)
		b.compare()
	}
	left := trials
	for range 3 { // repeat, because other processes may have taken the cores, other requests the memory
		b.times(left)
		left = slices.DeleteFunc(slices.Clone(left), (*trial).within)
		for _, tr := range left {
			b.attack(tr)
		}
	}
	b.times(left)
	cancel()
	<-done
	b.judge(trials)
}

// compare adds the times of a turn.
func (b *box) compare() {
	alone, beside := b.m.take()
	b.alone, b.beside = append(b.alone, alone...), append(b.beside, beside...)
}

// attack calls one attack, and then its neighbour.
func (b *box) attack(tr *trial) {
	p := b.p
	p.t.Helper()
	p.tried(1)
	tr.runs++
	before := b.mem.restart()
	a, err := b.c.do("POST", "/public/v1/custom/"+tr.slug, `{"a":1}`)
	if err != nil {
		p.fail("%s: %v", tr.name, err)
		return
	}
	if a.status != 200 && a.status != 422 && a.status != 504 {
		p.fail("%s: %s", tr.name, a)
	}
	p.add(fmt.Sprintf("answered_%d", a.status), 1)
	p.most("slowest_answer", a.at.Sub(a.sent))
	tr.grown = min(tr.grown, b.mem.peak()-before)
	if is := b.probe(); is != b.clean {
		p.fail("%s: its neighbour says %s, said %s", tr.name, is, b.clean)
	}
}

// probe calls the neighbour.
func (b *box) probe() string {
	b.p.t.Helper()
	a, err := b.c.do("POST", "/public/v1/custom/neighbour", `{"n":7}`)
	if err != nil || a.status != 200 || !strings.Contains(string(a.body), `"n":7`) {
		b.p.fail("the neighbour: %v %v", a, err)
		return ""
	}
	return string(a.body)
}

// times waits until all runs are stored and reads how long they took, as the server
// measured it.
func (b *box) times(trials []*trial) {
	p := b.p
	p.t.Helper()
	for begun := time.Now(); time.Since(begun) < patience; time.Sleep(50 * time.Millisecond) {
		if b.readTimes(trials) {
			return
		}
	}
	p.fail("not all runs were written")
}

// readTimes keeps the shortest run of each attack, not counting the first run, which was
// harmless. It returns false while runs are missing.
func (b *box) readTimes(trials []*trial) (all bool) {
	p := b.p
	p.t.Helper()
	took := map[string][]time.Duration{} // newest first
	for line := range strings.Lines(b.w.must("run", "list", "--tenant", "acme", "--limit", "0", "--json")) {
		var run struct {
			Endpoint string  `json:"endpoint"`
			MS       float64 `json:"duration_ms"`
		}
		if err := json.Unmarshal([]byte(line), &run); err != nil {
			p.t.Fatal(err)
		}
		took[run.Endpoint] = append(took[run.Endpoint], time.Duration(run.MS*float64(time.Millisecond)))
	}
	for _, tr := range trials {
		if len(took[tr.slug]) < max(tr.runs, 2) {
			return false
		}
		tr.best = slices.Min(took[tr.slug][:tr.runs-1])
	}
	return true
}

// judge compares the figures with the bounds.
func (b *box) judge(trials []*trial) {
	p := b.p
	p.t.Helper()
	for _, tr := range trials {
		p.most("longest_run", tr.best)
		p.highest("grown_mib", tr.grown>>20)
		if !tr.within() {
			p.fail("%s: its shortest run took %s, memory grew by %d MiB at least", tr.name, tr.best, tr.grown>>20)
		}
	}
	for name, took := range map[string][]time.Duration{"alone": b.alone, "attacked": b.beside} {
		p.set("p50_"+name+"_us", quantile(took, 0.5).Microseconds())
		p.set("p99_"+name+"_us", quantile(took, 0.99).Microseconds())
		p.set("reads_"+name, int64(len(took)))
	}
	more := quantile(b.beside, 0.99) - quantile(b.alone, 0.99)
	p.set("p99_more_us", more.Microseconds())
	if more > strictly(attackWait) {
		p.fail("p99 of reads is %s longer beside attacks", more)
	}
	// The memory of each attack was checked separately. What remains after all of them is
	// the heap's peak size, which levels off; a leak would not.
	first, middle, last := b.levels[0], b.levels[len(b.levels)/2], b.mem.now()
	p.set("memory_first_mib", first>>20)
	p.set("memory_middle_mib", middle>>20)
	p.set("memory_last_mib", last>>20)
	if last > middle+2*attackMemory {
		p.fail("memory: %d MiB before, %d MiB after half of the attacks, %d MiB after all", first>>20, middle>>20, last>>20)
	}
	// The CPU time shows which tenant attacks. Beside other tests an attack gets little
	// of the cores before its deadline.
	spent, least := b.cpu()-b.used, 0.2
	if !proving {
		least = 0.01
	}
	p.set("cpu_ms", int64(spent*1000))
	if spent < least*attackTimeout.Seconds()*float64(len(trials)) {
		p.fail("the tenant's CPU time grew by %.3f s with %d attacks", spent, len(trials))
	}
}

// cpu returns the tenant's CPU time in seconds, as /metrics reports it.
func (b *box) cpu() float64 {
	b.p.t.Helper()
	r, err := opsClient.Get(b.n.ops + "/metrics")
	if err != nil {
		b.p.fail("%v", err)
		return 0
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		b.p.fail("%v", err)
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && strings.HasSuffix(name, `component_cpu_seconds_total{tenant="acme"}`) {
			seconds, err := strconv.ParseFloat(value, 64)
			if err != nil {
				b.p.fail("%s: %v", line, err)
			}
			return seconds
		}
	}
	b.p.fail("/metrics has no CPU time of the tenant")
	return 0
}

// set sets a figure of the line.
func (p *proof) set(name string, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.figures[name] = n
}

// highest keeps the largest value of a name.
func (p *proof) highest(name string, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	was, _ := p.figures[name].(int64)
	p.figures[name] = max(was, n)
}
