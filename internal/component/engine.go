package component

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"gatehouse/internal/admission"
	"gatehouse/internal/fault"
)

// Options of an engine; zero values mean the defaults.
type Options struct {
	// CacheDir keeps the compiled engine between starts (a fraction of a
	// second each). What is in it is run as machine code: it must be writable
	// by this program only. Empty: no cache. A folder that cannot be used, or
	// is on a full disk, costs the time of compiling and nothing else.
	CacheDir string
	// Instances is how many runs may be going on at once (32), PerTenant how
	// many of one tenant (8).
	Instances, PerTenant int
	// MaxWait is how long a run waits for its turn (1 s); Waiting how many may
	// wait altogether (512), WaitingPerTenant how many of one tenant (128).
	MaxWait                   time.Duration
	Waiting, WaitingPerTenant int
	// MemoryBytes is what all runs together may hold beyond the engine itself
	// (512 MiB). No tenant holds more of it than is left free; a run that would
	// is stopped and fails with OVERLOADED.
	MemoryBytes int64
	// Now is the time that components see (the machine's).
	Now func() time.Time
}

func (o *Options) defaults() {
	set := func(n *int, v int) {
		if *n <= 0 {
			*n = v
		}
	}
	set(&o.Instances, 32)
	set(&o.PerTenant, 8)
	set(&o.Waiting, 512)
	set(&o.WaitingPerTenant, 128)
	if o.MaxWait <= 0 {
		o.MaxWait = time.Second
	}
	if o.MemoryBytes <= 0 {
		o.MemoryBytes = 512 << 20
	}
	if o.Now == nil {
		o.Now = time.Now
	}
}

// Compilations have places of their own, and instances that are thrown away. A
// tenant compiles one source at a time.
const (
	maxCompiling        = 2
	maxCompileWaits     = 256
	maxCompileWaitsEach = 64
)

// Engine compiles and runs components. It is safe for concurrent use.
type Engine struct {
	runs      *admission.Gate   // by tenant
	compiling *admission.Gate   // by tenant
	cores     *admission.Cores  // by tenant
	memory    *admission.Budget // by tenant

	ready   chan struct{} // closed when machine or failed is set
	machine *machine
	failed  error

	mu     sync.Mutex
	idle   []*instance
	closed bool
	active sync.WaitGroup
	cpu    map[string]time.Duration
}

// ErrClosed is the error of an engine that was closed.
var ErrClosed = errors.New("component: the engine is closed")

// NewEngine starts an engine. It returns at once: the engine is compiled in
// the background, which takes a quarter of a second, or some 10 ms from
// CacheDir; the first Compile or Run waits for it. Ready tells whether that
// went well.
func NewEngine(ctx context.Context, o Options) (*Engine, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	o.defaults()
	if o.PerTenant > o.Instances {
		return nil, fmt.Errorf("component: %d instances per tenant of %d", o.PerTenant, o.Instances)
	}
	e := &Engine{
		runs: admission.NewGate(admission.Limits{
			Running: o.Instances, PerKey: o.PerTenant, Waiting: o.Waiting, WaitingPerKey: o.WaitingPerTenant, MaxWait: o.MaxWait,
		}),
		compiling: admission.NewGate(admission.Limits{
			Running: maxCompiling, PerKey: 1, Waiting: maxCompileWaits, WaitingPerKey: maxCompileWaitsEach, MaxWait: maxCompileWait,
		}),
		cores:  admission.NewCores(max(1, runtime.GOMAXPROCS(0)-1)), // one is left for everything else
		memory: admission.NewBudget(o.MemoryBytes),
		ready:  make(chan struct{}),
		cpu:    map[string]time.Duration{},
	}
	go func() {
		defer close(e.ready)
		ctx := context.WithoutCancel(ctx)
		if e.machine, e.failed = newMachine(ctx, o.CacheDir, o.Now, e.memory); e.failed != nil && o.CacheDir != "" {
			e.machine, e.failed = newMachine(ctx, "", o.Now, e.memory)
		}
	}()
	return e, nil
}

// Cores returns the processor time that the engine computes in, for other work
// beside it.
func (e *Engine) Cores() *admission.Cores {
	if e == nil {
		return nil
	}
	return e.cores
}

// Memory returns the budget of what all runs hold, for other work of tenants
// beside them.
func (e *Engine) Memory() *admission.Budget {
	if e == nil {
		return nil
	}
	return e.memory
}

// Limits returns the limits of runs, for other work that is admitted by the
// same measure.
func (e *Engine) Limits() admission.Limits { return e.runs.Limits() }

// Ready waits until the engine can run components. It returns why it cannot.
func (e *Engine) Ready(ctx context.Context) error {
	select {
	case <-e.ready:
		return e.failed
	default:
	}
	select {
	case <-e.ready:
		return e.failed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close waits for running components, at most until ctx ends, and frees the
// engine; it does not wait for an engine that is still being compiled. Later
// runs fail with ErrClosed.
func (e *Engine) Close(ctx context.Context) error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	e.mu.Unlock()
	select {
	case <-e.ready:
	default:
		return nil // nobody waits for an engine that is not to be used
	}
	if e.failed != nil {
		return nil //nolint:nilerr // an engine that never started has nothing to free
	}
	done := make(chan struct{})
	go func() { e.active.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
		return ctx.Err() // the runs keep their memory until the process ends
	}
	return e.machine.close(ctx)
}

// CPU returns the CPU time that each tenant's runs and compilations have used
// since the start, without host calls.
func (e *Engine) CPU() map[string]time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	m := make(map[string]time.Duration, len(e.cpu))
	for t, d := range e.cpu {
		m[t] = d
	}
	return m
}

// begin counts one more user of the engine, unless it is closed.
func (e *Engine) begin(ctx context.Context) error {
	if err := e.Ready(ctx); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return ErrClosed
	}
	e.active.Add(1)
	return nil
}

// What the platform lacks is never the script's fault.
var (
	errNoPlace  = fault.New(fault.Overloaded, "Too many components are running. Try again soon.").After(time.Second)
	errNoMemory = fault.New(fault.Overloaded, "Components use too much memory at the moment. Try again soon.").After(time.Second)
	errNoTime   = fault.New(fault.Overloaded, "The service is too busy to finish this in time. Try again soon.").After(2 * time.Second)
)

// enter waits for a place of the tenant's. It returns OVERLOADED without one.
func enter(ctx context.Context, g *admission.Gate, tenant string) (leave func(), err error) {
	leave, err = g.Enter(ctx, tenant)
	if errors.Is(err, admission.ErrFull) {
		err = errNoPlace
	}
	return leave, err
}

// take returns an idle instance or a new one.
func (e *Engine) take() (*instance, error) {
	e.mu.Lock()
	if n := len(e.idle); n > 0 {
		i := e.idle[n-1]
		e.idle = e.idle[:n-1]
		e.mu.Unlock()
		return i, nil
	}
	e.mu.Unlock()
	return e.machine.instantiate()
}

// put takes an instance back. It discards one that trapped or was cut off,
// whose state is unknown.
func (e *Engine) put(i *instance, x *execution) {
	i.wipe()
	i.run = nil
	if i.err != nil || x.expired || x.stopped != nil {
		i.close()
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.idle = append(e.idle, i)
}

// spent adds to a tenant's CPU time.
func (e *Engine) spent(tenant string, d time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cpu[tenant] += d
}
