package component_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"gatehouse/internal/component"
	"gatehouse/internal/fault"
	"gatehouse/internal/gatetest/enginecache"
)

// smallEngine returns an engine with little memory for all runs together.
func smallEngine(t *testing.T, memory int64) *component.Engine {
	t.Helper()
	e, err := component.NewEngine(context.Background(), component.Options{CacheDir: enginecache.Dir(), MemoryBytes: memory})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e
}

func isOverloaded(err error) bool {
	var f *fault.Error
	return errors.As(err, &f) && f.Code == fault.Overloaded && f.RetryAfter > 0
}

// TestMemoryHogsDoNotAffectOthers: while runs of three tenants hold as much of the
// shared memory as they can, a fourth tenant's runs find room. Runs that get none
// are stopped with OVERLOADED, whatever they catch, and not with the error of a
// limit of their own.
func TestMemoryHogsDoNotAffectOthers(t *testing.T) {
	e := smallEngine(t, 96<<20)
	hog, err := e.Compile(t.Context(), `export default () => {
		const a = [];
		try { for (let i = 0; i < 20; i++) a.push(new Uint8Array(1 << 20).fill(1)) } catch { return 'caught' }
		records.get('wait', '1');
		return a.length }`)
	if err != nil {
		t.Fatal(err)
	}
	modest, err := e.Compile(t.Context(), `export default () => new Uint8Array(2 << 20).fill(1).length`)
	if err != nil {
		t.Fatal(err)
	}
	full, release := make(chan struct{}, 48), make(chan struct{})
	host := hostFunc(func(context.Context, string, []byte) ([]byte, error) {
		full <- struct{}{}
		<-release
		return []byte("1"), nil
	})
	var hogs sync.WaitGroup
	for n := range 24 {
		hogs.Go(func() {
			r, err := hog.Run(context.Background(), component.Run{Tenant: fmt.Sprint("hog", n%3), Host: host, Timeout: 20 * time.Second})
			switch {
			case isOverloaded(err):
				full <- struct{}{}
			case err != nil || r.Failed != nil || string(r.Value) != "20":
				t.Errorf("a hog: %v %+v %s", err, r.Failed, r.Value)
				full <- struct{}{}
			}
		})
	}
	for range 24 {
		<-full // every hog has got memory, or was refused
	}
	for n := range 50 {
		r, err := modest.Run(t.Context(), component.Run{Tenant: "modest"})
		if err != nil || r.Failed != nil {
			t.Fatalf("run %d beside the hogs: %v %+v", n, err, r.Failed)
		}
	}
	close(release)
	hogs.Wait()
	if r, err := hog.Run(t.Context(), component.Run{Tenant: "hog0", Host: host}); err != nil || r.Failed != nil {
		t.Errorf("when they are gone: %v %+v", err, r.Failed)
	}
}

// TestImageCountsAsMemory: each run has a copy of what the program's top level has
// built, which counts against the shared memory.
func TestImageCountsAsMemory(t *testing.T) {
	e := smallEngine(t, 64<<20)
	p, err := e.CompileFor(t.Context(), "big", component.Source{Text: `const kept = new Uint8Array(24 << 20).fill(1); export default () => records.get('wait', '1') + kept.length`})
	if err != nil {
		t.Fatal(err)
	}
	inside, release := make(chan struct{}), make(chan struct{})
	host := hostFunc(func(context.Context, string, []byte) ([]byte, error) {
		inside <- struct{}{}
		<-release
		return []byte("1"), nil
	})
	var wg sync.WaitGroup
	wg.Go(func() {
		if r, err := p.Run(context.Background(), component.Run{Tenant: "big", Host: host}); err != nil || r.Failed != nil {
			t.Error(err, r.Failed)
		}
	})
	<-inside
	if _, err := p.Run(t.Context(), component.Run{Tenant: "big", Host: host}); !isOverloaded(err) {
		t.Errorf("a second copy of 24 MiB of 64: %v", err)
	}
	close(release)
	wg.Wait()
}

// TestCompileWithoutMemory: it is OVERLOADED and not a SourceError, and works once
// there is memory again.
func TestCompileWithoutMemory(t *testing.T) {
	e := smallEngine(t, 24<<20)
	const source = `const kept = new Uint8Array(4 << 20).fill(1); export default () => kept.length`
	hog, err := e.Compile(t.Context(), `export default () => { const a = new Uint8Array(9 << 20).fill(1); records.get('wait', '1'); return a.length }`)
	if err != nil {
		t.Fatal(err)
	}
	inside, release := make(chan struct{}), make(chan struct{})
	host := hostFunc(func(context.Context, string, []byte) ([]byte, error) {
		inside <- struct{}{}
		<-release
		return []byte("1"), nil
	})
	var wg sync.WaitGroup
	for _, tenant := range []string{"acme"} {
		wg.Go(func() {
			if r, err := hog.Run(context.Background(), component.Run{Tenant: tenant, Host: host}); err != nil || r.Failed != nil {
				t.Error(err, r.Failed)
			}
		})
		<-inside
	}
	var wrong *component.SourceError
	if _, err = e.CompileFor(t.Context(), "acme", component.Source{Text: source}); !isOverloaded(err) || errors.As(err, &wrong) {
		t.Errorf("without memory: %v", err)
	}
	close(release)
	wg.Wait()
	if _, err = e.CompileFor(t.Context(), "acme", component.Source{Text: source}); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestCompileLimitDoesNotDependOnLoad: whether a source compiles is the same on idle
// and on busy cores.
func TestCompileLimitDoesNotDependOnLoad(t *testing.T) {
	stop := make(chan struct{})
	var hogs sync.WaitGroup
	for range 4 * runtime.GOMAXPROCS(0) {
		hogs.Go(func() {
			for n := 0; ; n++ {
				if n%1_000_000 == 0 { // as often as runs yield
					runtime.Gosched()
					select {
					case <-stop:
						return
					default:
					}
				}
			}
		})
	}
	defer hogs.Wait()
	defer close(stop)
	if _, err := engine(t).Compile(t.Context(), `let n = 0; for (let i = 0; i < 1_000_000; i++) n += i; export default () => n`); err != nil {
		t.Errorf("%v", err)
	}
}

// TestHostFunctionsYield: while many runs compute in host functions, which use almost
// no fuel, another tenant's run waits for slices of a millisecond. (When only fuel
// counted, it waited for most of a second.)
func TestHostFunctionsYield(t *testing.T) {
	e := engine(t)
	crowd, err := e.Compile(t.Context(), `const b = new Uint8Array(4 << 20); export default () => { for (;;) crypto.hmacSha256('k', b) }`)
	if err != nil {
		t.Fatal(err)
	}
	modest, err := e.Compile(t.Context(), `export default () => 1`)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			_, err := crowd.Run(ctx, component.Run{Tenant: "crowd", Timeout: 20 * time.Second})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("a run of the crowd: %v", err)
			}
		})
	}
	for e.Running()+e.Waiting() < 8 {
		time.Sleep(time.Millisecond)
	}
	var took []time.Duration
	for range 5 {
		begun := time.Now()
		if r, err := modest.Run(t.Context(), component.Run{Tenant: "modest"}); err != nil || r.Failed != nil {
			t.Errorf("beside the crowd: %v %+v", err, r.Failed)
		}
		took = append(took, time.Since(begun))
	}
	cancel()
	all.Wait()
	if slices.Sort(took); took[2] > 200*time.Millisecond {
		t.Errorf("a trivial run took %v", took)
	}
}
