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
	// CacheDir is a folder for the compiled engine, which saves a fraction of a
	// second at each start; "" means no cache. Its content is run as machine code:
	// nobody but this program may be able to write to it. If it cannot be used, the
	// engine is compiled at each start.
	CacheDir string
	// Instances is how many runs may be in progress at once (32), PerTenant how
	// many of one tenant (8).
	Instances, PerTenant int
	// MaxWait is how long a run waits for a place (1 s), Waiting how many runs may
	// wait (512), WaitingPerTenant how many of one tenant (128).
	MaxWait                   time.Duration
	Waiting, WaitingPerTenant int
	// MemoryBytes is the memory that all runs together may hold in addition to the
	// engine's own (512 MiB). No tenant holds more of it than is left free; a run
	// that would is stopped and fails with OVERLOADED.
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

// Compilations have places of their own, and instances that are not used again. A
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

// ErrClosed means that the engine was closed.
var ErrClosed = errors.New("component: the engine is closed")

// NewEngine starts an engine. It returns at once: the engine is compiled in the
// background, which takes a quarter of a second, or some 10 ms from CacheDir, and
// the first Compile or Run waits for it. Ready returns the error of compiling.
// NewEngine fails when ctx has ended, and when PerTenant is more than Instances.
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

// Cores returns the processor time that runs share, for other work of tenants to
// share it with them.
func (e *Engine) Cores() *admission.Cores {
	if e == nil {
		return nil
	}
	return e.cores
}

// Memory returns the budget of the memory that runs share, for other work of
// tenants to share it with them.
func (e *Engine) Memory() *admission.Budget {
	if e == nil {
		return nil
	}
	return e.memory
}

// Limits returns how many runs may be in progress and wait, for other work that
// has the same limits.
func (e *Engine) Limits() admission.Limits { return e.runs.Limits() }

// Running returns how many runs are in progress.
func (e *Engine) Running() int {
	if e == nil {
		return 0
	}
	return e.runs.Running()
}

// Waiting returns how many runs wait for a place.
func (e *Engine) Waiting() int {
	if e == nil {
		return 0
	}
	return e.runs.Waiting()
}

// Ready waits until the engine can run components. It returns ctx's error when that
// ends first, or the error of an engine that cannot be compiled.
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

// Close waits for running components and frees the engine; later runs fail with
// ErrClosed. It returns ctx's error when that ends first; then nothing is freed. It
// does not wait for an engine that is still being compiled.
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
		return nil // the engine is still being compiled
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
// since NewEngine, without host calls.
func (e *Engine) CPU() map[string]time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	m := make(map[string]time.Duration, len(e.cpu))
	for t, d := range e.cpu {
		m[t] = d
	}
	return m
}

// begin adds a user to e.active, for which Close waits. It returns ErrClosed when
// the engine is closed, and the errors of Ready.
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

// The errors of a run for which the service lacks resources.
var (
	errNoPlace  = fault.New(fault.Overloaded, "Too many components are running. Try again soon.").After(time.Second)
	errNoMemory = fault.New(fault.Overloaded, "Components use too much memory at the moment. Try again soon.").After(time.Second)
	errNoTime   = fault.New(fault.Overloaded, "The service is too busy to finish this in time. Try again soon.").After(2 * time.Second)
)

// enter waits for one of the tenant's places. It returns OVERLOADED when there is
// none in time, and ctx's error.
func enter(ctx context.Context, g *admission.Gate, tenant string) (leave func(), err error) {
	leave, err = g.Enter(ctx, tenant)
	if errors.Is(err, admission.ErrFull) {
		err = errNoPlace
	}
	return leave, err
}

// take returns an idle instance or a new one. It returns OVERLOADED when there is
// no memory for a new one.
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

// put makes an instance idle. It closes one that trapped or was stopped, whose
// state is unknown.
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

// spent adds d to a tenant's CPU time.
func (e *Engine) spent(tenant string, d time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cpu[tenant] += d
}
