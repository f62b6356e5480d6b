package endpoint

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync"
	"sync/atomic"

	"gatehouse/internal/component"
	"gatehouse/internal/custom"
	"gatehouse/internal/fault"
)

// programs keeps compiled components, by what they were compiled from: a new
// version of the configuration that leaves a source as it was compiles nothing.
type programs struct {
	engine *component.Engine
	tick   atomic.Int64

	mu   sync.RWMutex
	m    map[programKey]*compiled
	size int
	held map[string]int // of size, by tenant; none that is 0
}

type programKey struct {
	tenant string
	source [sha256.Size]byte
}

// compiled is one source's program, or why there is none. It is made by
// whoever asks first; done is closed then.
type compiled struct {
	done    chan struct{}
	program *component.Program
	err     error
	used    atomic.Int64 // of programs.tick
	kept    bool         // counted in programs.size; guarded by programs.mu
}

// maxPrograms is what all kept programs may hold together, in bytes. Over it the
// tenant that holds most gives one up.
const maxPrograms = 256 << 20

func newPrograms(e *component.Engine) *programs {
	return &programs{engine: e, m: map[programKey]*compiled{}, held: map[string]int{}}
}

// of is the program of a component. What is wrong with its source, which apply
// would have found, is EXECUTION_ERROR, and is remembered; OVERLOADED, where the
// platform lacks what compiling takes, is not.
func (p *programs) of(ctx context.Context, tenant string, c *custom.Component) (*component.Program, error) {
	key := programKey{tenant, sha256.Sum256([]byte(c.Source))}
	p.mu.RLock()
	had := p.m[key]
	p.mu.RUnlock()
	if had == nil {
		return p.compile(ctx, key, c)
	}
	had.used.Store(p.tick.Add(1))
	select {
	case <-had.done:
		return had.program, had.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// compile makes a program that others who ask meanwhile wait for.
func (p *programs) compile(ctx context.Context, key programKey, c *custom.Component) (*component.Program, error) {
	p.mu.Lock()
	if p.m[key] != nil {
		p.mu.Unlock()
		return p.of(ctx, key.tenant, c)
	}
	own := &compiled{done: make(chan struct{})}
	own.used.Store(p.tick.Add(1))
	p.m[key] = own
	p.mu.Unlock()

	// Others wait for it: the caller's hanging up must not fail them.
	program, err := p.engine.CompileFor(context.WithoutCancel(ctx), key.tenant, c.Source)
	var source *component.SourceError
	keep := err == nil
	if errors.As(err, &source) {
		err, keep = fault.New(fault.ExecutionError, "the component %s does not compile: %s", c.Name, source), true
	}
	own.program, own.err = program, err
	close(own.done)

	p.mu.Lock()
	defer p.mu.Unlock()
	if p.m[key] != own {
		return program, err // it was evicted meanwhile
	}
	if !keep {
		delete(p.m, key)
		return program, err
	}
	own.kept = true
	p.count(key.tenant, own.size())
	for p.size > maxPrograms && len(p.m) > 1 && p.evict() {
	}
	return program, err
}

func (p *programs) count(tenant string, n int) {
	p.size += n
	if p.held[tenant] += n; p.held[tenant] == 0 {
		delete(p.held, tenant)
	}
}

// evict drops, of the tenant that holds most, the program that was used longest
// ago, if there is one that is kept; who runs it goes on.
func (p *programs) evict() bool {
	greedy := ""
	for tenant, n := range p.held {
		if n > p.held[greedy] || n == p.held[greedy] && tenant < greedy {
			greedy = tenant
		}
	}
	var oldest programKey
	var found *compiled
	for key, c := range p.m {
		if key.tenant == greedy && c.kept && (found == nil || c.used.Load() < found.used.Load()) {
			oldest, found = key, c
		}
	}
	if found == nil {
		return false
	}
	p.count(greedy, -found.size())
	delete(p.m, oldest)
	return true
}

func (c *compiled) size() int {
	const overhead = 1 << 10
	if c.program == nil {
		return overhead
	}
	return overhead + c.program.Size()
}
