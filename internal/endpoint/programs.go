package endpoint

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"gatehouse/internal/component"
	"gatehouse/internal/custom"
	"gatehouse/internal/fault"
	"gatehouse/internal/secret"
	"gatehouse/internal/tenant"
)

// programs caches compiled components by tenant, source, modules and settings, so that a
// new version of the configuration compiles only what has changed.
type programs struct {
	engine  *component.Engine
	keyring *secret.Keyring
	tick    atomic.Int64

	mu   sync.RWMutex
	m    map[programKey]*compiled
	size int
	held map[tenant.ID]int // parts of size, by tenant; has no zeros
}

type programKey struct {
	tenant tenant.ID
	digest custom.Digest
}

// compiled is the program of one source, or the error of compiling it. The
// first caller compiles it and closes done.
type compiled struct {
	done    chan struct{}
	program *component.Program
	err     error
	used    atomic.Int64 // value of programs.tick at the last use
	kept    bool         // counted in programs.size; guarded by programs.mu
}

// maxPrograms bounds the bytes of all cached programs. Beyond it, a program of the
// tenant that holds most is evicted.
const maxPrograms = 256 << 20

func newPrograms(e *component.Engine, keyring *secret.Keyring) *programs {
	return &programs{engine: e, keyring: keyring, m: map[programKey]*compiled{}, held: map[tenant.ID]int{}}
}

// of returns the program of a component with the modules that it imports. It returns
// EXECUTION_ERROR for a source that does not compile, which apply would have refused;
// that error is cached. It returns OVERLOADED, which is not cached, when resources for
// compiling are lacking.
func (p *programs) of(ctx context.Context, tenant tenant.ID, defs *custom.Definitions, c *custom.Component) (*component.Program, error) {
	key := programKey{tenant, defs.Digest(c)}
	p.mu.RLock()
	known := p.m[key]
	p.mu.RUnlock()
	if known == nil {
		return p.compile(ctx, key, defs, c)
	}
	known.used.Store(p.tick.Add(1))
	select {
	case <-known.done:
		return known.program, known.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// sourceOf returns what a component is compiled from. The error is that of a secret that
// cannot be opened.
func (p *programs) sourceOf(defs *custom.Definitions, c *custom.Component) (component.Source, error) {
	secrets, err := custom.OpenSecrets(p.keyring, c)
	return component.Source{Text: c.Source, Modules: defs.ModuleSources(), Config: c.Config, Secrets: secrets}, err
}

// compile compiles a program; other callers of the same source wait for it.
func (p *programs) compile(ctx context.Context, key programKey, defs *custom.Definitions, c *custom.Component) (*component.Program, error) {
	p.mu.Lock()
	if p.m[key] != nil {
		p.mu.Unlock()
		return p.of(ctx, key.tenant, defs, c)
	}
	own := &compiled{done: make(chan struct{})}
	own.used.Store(p.tick.Add(1))
	p.m[key] = own
	p.mu.Unlock()

	// Other callers wait for the program, so it is compiled even if this one hangs up.
	var program *component.Program
	given, err := p.sourceOf(defs, c)
	if err == nil {
		program, err = p.engine.CompileFor(context.WithoutCancel(ctx), string(key.tenant), given)
	}
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
		return program, err // the entry was evicted in the meantime
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

func (p *programs) count(tenant tenant.ID, n int) {
	p.size += n
	if p.held[tenant] += n; p.held[tenant] == 0 {
		delete(p.held, tenant)
	}
}

// evict drops the least recently used cached program of the tenant that holds
// most, if there is one. A run that uses it is not affected.
func (p *programs) evict() bool {
	var largest tenant.ID
	for tenant, n := range p.held {
		if n > p.held[largest] || n == p.held[largest] && tenant < largest {
			largest = tenant
		}
	}
	var oldest programKey
	var found *compiled
	for key, c := range p.m {
		if key.tenant == largest && c.kept && (found == nil || c.used.Load() < found.used.Load()) {
			oldest, found = key, c
		}
	}
	if found == nil {
		return false
	}
	p.count(largest, -found.size())
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
