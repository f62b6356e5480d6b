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
	return newPrograms(e)
}

// TestASourceIsCompiledOnce for a tenant, however many ask at once.
func TestASourceIsCompiledOnce(t *testing.T) {
	p := newTestPrograms(t)
	var mu sync.Mutex
	var wg sync.WaitGroup
	found := map[*component.Program]int{}
	for range 50 {
		wg.Go(func() {
			program, err := p.of(t.Context(), "acme", source(1))
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
	other, err := p.of(t.Context(), "globex", source(1))
	if err != nil || found[other] != 0 {
		t.Errorf("another tenant has the same program, %v", err)
	}
}

// TestOldProgramsAreDropped, the one used longest ago first, when all together
// are too large; who asks again gets it compiled again.
func TestOldProgramsAreDropped(t *testing.T) {
	p := newTestPrograms(t)
	get := func(n int) *component.Program {
		t.Helper()
		program, err := p.of(t.Context(), "acme", source(n))
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
	for i := range 8 { // a crowd that does not fit
		wg.Go(func() {
			for n := range 10 {
				if _, err := p.of(t.Context(), "acme", source(10*i+n)); err != nil {
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

// TestASourceThatDoesNotCompile is EXECUTION_ERROR each time.
func TestASourceThatDoesNotCompile(t *testing.T) {
	p := newTestPrograms(t)
	for range 3 {
		_, err := p.of(t.Context(), "acme", &custom.Component{Name: "broken", Source: "export default function handler( {"})
		if fault.CodeOf(err) != fault.ExecutionError {
			t.Errorf("%v", err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.of(ctx, "acme", source(1)); err != nil { // others may wait for it
		t.Errorf("a caller who hung up: %v", err)
	}
}
