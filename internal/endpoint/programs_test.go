package endpoint

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"gatehouse/internal/component"
	"gatehouse/internal/custom"
	"gatehouse/internal/fault"
	"gatehouse/internal/gatetest/enginecache"
)

func source(n int) *custom.Component {
	return &custom.Component{Name: fmt.Sprint("c", n), Source: fmt.Sprintf("export default function handler() { return %d }", n)}
}

func newTestPrograms(t *testing.T) *programs {
	t.Helper()
	e, err := component.NewEngine(t.Context(), component.Options{CacheDir: enginecache.Dir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return newPrograms(e, nil)
}

// TestSourcesAreCompiledOnce for a tenant, also by concurrent callers.
func TestSourcesAreCompiledOnce(t *testing.T) {
	p := newTestPrograms(t)
	var mu sync.Mutex
	var wg sync.WaitGroup
	found := map[*component.Program]int{}
	for range 50 {
		wg.Go(func() {
			program, err := p.of(t.Context(), "acme", &custom.Definitions{}, source(1))
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			found[program]++
		})
	}
	wg.Wait()
	if len(found) != 1 {
		t.Errorf("%d programs of one source", len(found))
	}
	other, err := p.of(t.Context(), "globex", &custom.Definitions{}, source(1))
	if err != nil || found[other] != 0 {
		t.Errorf("another tenant has the same program, %v", err)
	}
}

// TestOldProgramsAreEvicted, the least recently used first, when all together are too
// large; they are compiled again when they are used again.
func TestOldProgramsAreEvicted(t *testing.T) {
	p := newTestPrograms(t)
	get := func(n int) *component.Program {
		t.Helper()
		program, err := p.of(t.Context(), "acme", &custom.Definitions{}, source(n))
		if err != nil {
			t.Fatal(err)
		}
		return program
	}
	first := []*component.Program{get(0), get(1), get(2)}
	get(0) // so that 1 is the oldest
	own := p.size / 3
	p.count("acme", maxPrograms-3*own) // as if others took up the rest
	get(3)
	if len(p.m) != 3 || p.size > maxPrograms {
		t.Errorf("%d programs, %d bytes", len(p.m), p.size)
	}
	if get(0) != first[0] || get(2) != first[2] {
		t.Error("a program that was used was dropped")
	}
	if get(1) == first[1] {
		t.Error("the one used longest ago was kept")
	}
	var wg sync.WaitGroup
	for i := range 8 { // more than fit
		wg.Go(func() {
			for n := range 10 {
				if _, err := p.of(t.Context(), "acme", &custom.Definitions{}, source(10*i+n)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if p.size > maxPrograms || len(p.m) > 5 {
		t.Errorf("%d programs, %d bytes", len(p.m), p.size)
	}
}

// TestOverloadedIsNotCached: a component that cannot be compiled for lack of memory is
// OVERLOADED, and compiles once there is some.
func TestOverloadedIsNotCached(t *testing.T) {
	e, err := component.NewEngine(t.Context(), component.Options{CacheDir: enginecache.Dir(), MemoryBytes: 24 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close(context.WithoutCancel(t.Context())) })
	p := newPrograms(e, nil)
	hog, err := p.of(t.Context(), "acme", &custom.Definitions{}, &custom.Component{Name: "hog", Source: `export default () => {
		const a = new Uint8Array(9 << 20).fill(1); records.get("wait", "1"); return a.length }`})
	if err != nil {
		t.Fatal(err)
	}
	wait := &waitingHost{inside: make(chan struct{}), release: make(chan struct{})}
	var wg sync.WaitGroup
	wg.Go(func() {
		if r, err := hog.Run(context.Background(), component.Run{Tenant: "acme", Host: wait}); err != nil || r.Failed != nil {
			t.Error(err, r.Failed)
		}
	})
	<-wait.inside
	tables := &custom.Component{Name: "tables", Source: `const kept = new Uint8Array(4 << 20).fill(1); export default () => kept.length`}
	for range 2 {
		if _, err := p.of(t.Context(), "acme", &custom.Definitions{}, tables); fault.CodeOf(err) != fault.Overloaded {
			t.Errorf("without memory: %v", err)
		}
	}
	close(wait.release)
	wg.Wait()
	if _, err := p.of(t.Context(), "acme", &custom.Definitions{}, tables); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

type waitingHost struct{ inside, release chan struct{} }

func (h *waitingHost) Call(context.Context, string, []byte, int) ([]byte, error) {
	h.inside <- struct{}{}
	<-h.release
	return []byte("1"), nil
}

// TestEvictionIsFair: over the bound, the tenant that holds most loses a program.
func TestEvictionIsFair(t *testing.T) {
	p := newTestPrograms(t)
	mine, err := p.of(t.Context(), "small", &custom.Definitions{}, source(1)) // the oldest of all
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.of(t.Context(), "large", &custom.Definitions{}, source(0)); err != nil {
		t.Fatal(err)
	}
	own := p.held["large"]
	p.count("large", maxPrograms-p.size) // as if it had more
	for n := range 20 {
		if _, err := p.of(t.Context(), "large", &custom.Definitions{}, source(n+1)); err != nil {
			t.Fatal(err)
		}
	}
	if is, err := p.of(t.Context(), "small", &custom.Definitions{}, source(1)); err != nil || is != mine {
		t.Errorf("the other tenant's program was dropped, %v", err)
	}
	if p.size > maxPrograms+own {
		t.Errorf("%d bytes", p.size)
	}
}

// TestASourceThatDoesNotCompile is EXECUTION_ERROR each time.
func TestASourceThatDoesNotCompile(t *testing.T) {
	p := newTestPrograms(t)
	for range 3 {
		_, err := p.of(t.Context(), "acme", &custom.Definitions{}, &custom.Component{Name: "broken", Source: "export default function handler( {"})
		if fault.CodeOf(err) != fault.ExecutionError {
			t.Errorf("%v", err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.of(ctx, "acme", &custom.Definitions{}, source(1)); err != nil { // others may wait for it
		t.Errorf("a caller who hung up: %v", err)
	}
}
