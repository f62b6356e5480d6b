package component_test

import (
	"context"
	"errors"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/internal/component"
	"gatehouse/internal/fault"
)

const deadline = 100 * time.Millisecond

// starved is how long a run may wait for the cores that other processes use.
const starved = 10 * time.Second

func repeated(s string, n int) string { return strings.Repeat(s, n) }

// sleeper is a Host that is slow for the entity "sleep".
var sleeper = hostFunc(func(ctx context.Context, _ string, args []byte) ([]byte, error) {
	if strings.Contains(string(args), `"sleep"`) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return nil, fault.New(fault.NotFound, "no such record")
})

// rss returns the resident memory of the process.
func rss(t testing.TB) int64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("no /proc/self/statm here")
	}
	pages, err := strconv.ParseInt(strings.Fields(string(b))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// peak samples the resident memory until stop is called, which returns the most.
func peak(t testing.TB) (stop func() int64) {
	var most atomic.Int64
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			most.Store(max(most.Load(), rss(t)))
			select {
			case <-quit:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	return func() int64 { close(quit); <-done; return max(most.Load(), rss(t)) }
}

// cleanSource returns the state of what attacks often patch.
const cleanSource = `
const spread = [...[1, 2]].length;
export default async function handler(inputs) {
  await null;
  const own = Object.getOwnPropertyNames(Object.prototype).length + Object.keys(globalThis).length;
  return { n: inputs.n, spread, own, json: JSON.stringify({ a: [1] }), map: [1, 2].map(x => x + 1), x: ({}).x ?? null,
    records: typeof records.get, stack: typeof Error.prepareStackTrace, state: globalThis.state ?? null };
}`

// clean runs the probe and compares its result with the first.
func clean(t testing.TB, probe *component.Program, want string) string {
	t.Helper()
	r := run(t, probe, component.Run{Tenant: "clean", Inputs: []byte(`{"n":7}`)})
	if r.Failed != nil || want != "" && string(r.Value) != want {
		t.Errorf("the next run is not clean: %s %+v", r.Value, r.Failed)
	}
	return string(r.Value)
}

// TestDeadline checks that a run that exceeds its time is 504 EXECUTION_TIMEOUT with
// the place, and keeps its console.
func TestDeadline(t *testing.T) {
	r := run(t, compile(t, "export default () => {\n console.log('before');\n for (;;) ;\n}"), component.Run{Timeout: 50 * time.Millisecond})
	f := r.Failed
	if f == nil || f.Code != string(fault.ExecutionTimeout) || f.Status != 504 || len(r.Console) != 1 {
		t.Fatalf("%+v %+v", f, r.Console)
	}
	r = run(t, compile(t, "export default () => records.get('sleep', '1')"), component.Run{Timeout: 50 * time.Millisecond, Host: sleeper})
	if r.Failed == nil || r.Failed.Status != 504 || r.CPU > 40*time.Millisecond {
		t.Fatalf("waiting for a host call: %+v, CPU %s", r.Failed, r.CPU)
	}
}

// TestMemoryLimit checks that each run has its own limit.
func TestMemoryLimit(t *testing.T) {
	p := compile(t, "export default ({mb}) => { const a = []; for (let i = 0; i < mb; i++) a.push(new Uint8Array(1 << 20).fill(1)); return a.length }")
	for _, c := range []struct {
		in     string
		memory int
		fails  bool
	}{{`{"mb":24}`, 0, false}, {`{"mb":40}`, 0, true}, {`{"mb":10}`, 16 << 20, false}, {`{"mb":16}`, 16 << 20, true}} {
		r := run(t, p, component.Run{Inputs: []byte(c.in), Memory: c.memory})
		if (r.Failed != nil) != c.fails || c.fails && (r.Failed.Status != 422 || !strings.Contains(r.Failed.Message, "memory limit")) {
			t.Errorf("%s of %d: %s %+v", c.in, c.memory, r.Value, r.Failed)
		}
	}
}

// TestMemoryReturned checks that runs that use up their memory return it.
func TestMemoryReturned(t *testing.T) {
	p := compile(t, "export default () => { const a = []; for (;;) a.push(new Uint8Array(1e5)) }")
	bombs := func(n int) int64 {
		for range n {
			run(t, p, component.Run{})
		}
		runtime.GC()
		debug.FreeOSMemory()
		return rss(t)
	}
	before := bombs(5)
	if after := bombs(50); after > before+8<<20 {
		t.Errorf("%d MiB after 5 bombs, %d MiB after 55", before>>20, after>>20)
	}
}

// TestCancel checks that cancelling the context ends a run at once.
func TestCancel(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := compile(t, "export default () => { for (;;) ; }").Run(ctx, component.Run{})
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > starved {
		t.Fatal(err, time.Since(start))
	}
}

// TestInputLimit checks that input over the limit is refused before anything runs.
func TestInputLimit(t *testing.T) {
	r := run(t, compile(t, "export default () => 1"), component.Run{Inputs: []byte(`"` + repeated("x", component.MaxInput) + `"`)})
	if r.Failed == nil || r.Failed.Status != 422 {
		t.Fatal(r.Failed)
	}
	r = run(t, compile(t, "export default v => v.length"), component.Run{Inputs: []byte(`"` + repeated("x", 6<<20) + `"`)})
	if r.Failed != nil {
		t.Fatal(r.Failed)
	}
}
