//go:build !race

package component_test

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"gatehouse/internal/component"
	"gatehouse/internal/fault"
)

// slack is how long after its deadline a run may compute beside other tests: what ends it
// waits for a core, too. TestProveAttacksStayInTheirBox judges the 50 ms.
const slack = 2 * time.Second

// compileAtWorst is how long CompileTurns may take on a busy machine.
const compileAtWorst = 20 * time.Second

// TestAttacks runs the corpus one by one: none crashes the process or runs on past its
// deadline, memory stays within the limit + 16 MiB, and the next run
// is not affected.
func TestAttacks(t *testing.T) {
	if n := len(attacks) + len(topLevel); n < 100 {
		t.Fatalf("only %d attacks", n)
	}
	probe := compile(t, cleanSource)
	want := clean(t, probe, "")
	names := make([]string, 0, len(attacks))
	for name := range attacks {
		names = append(names, name)
	}
	slices.Sort(names)
	var latest time.Duration
	var most int64
	for _, name := range names {
		p, err := engine(t).Compile(context.Background(), "export default async function handler(inputs, ctx) {\n"+attacks[name]+"\n}")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		late, grown := attack(t, func() (time.Duration, error) {
			start := time.Now()
			r, err := p.Run(context.Background(), component.Run{Tenant: "evil", Timeout: deadline, Host: sleeper, Inputs: []byte(`{"a":1}`)})
			if testing.Verbose() {
				t.Logf("%-22s %8s %v %v", name, r.Wall.Round(100*time.Microsecond), r.Failed, err)
			}
			late := time.Since(start) - deadline - starved
			if r != nil {
				late = max(late, r.CPU-deadline)
			}
			return late, err
		})
		latest, most = max(latest, late), max(most, grown)
		if late > slack || grown > component.MaxMemory+16<<20 {
			t.Errorf("%s: %s past its deadline, memory grew by %d MiB", name, late, grown>>20)
		}
		clean(t, probe, want)
	}
	t.Logf("%d attacks: at most %s past the deadline, at most %d MiB more memory", len(names), latest, most>>20)
}

// attack runs one attack, again if it was late: what ends it may have waited for a
// core while it computed. It returns the least lateness and the most memory.
func attack(t *testing.T, do func() (time.Duration, error)) (late time.Duration, grown int64) {
	t.Helper()
	late = time.Hour
	for range 3 {
		debug.FreeOSMemory()
		before := rss(t)
		stop := peak(t)
		l, err := do()
		grown = max(grown, stop()-before)
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if late = min(late, l); late <= slack {
			break
		}
	}
	return late, grown
}

// TestAttacksAtCompile runs the corpus and topLevel against Compile.
func TestAttacksAtCompile(t *testing.T) {
	probe := compile(t, cleanSource)
	want := clean(t, probe, "")
	var latest time.Duration
	for name, source := range topLevel {
		late, grown := attack(t, func() (time.Duration, error) {
			start := time.Now()
			_, err := engine(t).Compile(context.Background(), source)
			var e *component.SourceError
			if !errors.As(err, &e) && fault.CodeOf(err) != fault.Overloaded { // which a busy machine may say
				t.Errorf("%s: error %v", name, err)
			}
			if testing.Verbose() {
				t.Logf("%-18s %8s %.100v", name, time.Since(start).Round(100*time.Microsecond), err)
			}
			return time.Since(start) - compileAtWorst - starved, nil
		})
		latest = max(latest, late)
		if late > slack || grown > component.MaxMemory+16<<20 {
			t.Errorf("%s: %s past its deadline, memory grew by %d MiB", name, late, grown>>20)
		}
		clean(t, probe, want)
	}
	t.Logf("%d attacks: at most %s past the deadline", len(topLevel), latest)
}

// TestUnusableCacheDir checks that the engine works without its cache.
func TestUnusableCacheDir(t *testing.T) {
	e, err := component.NewEngine(context.Background(), component.Options{CacheDir: "/dev/null/no"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close(context.Background()) })
	if _, err := e.Compile(context.Background(), "export default () => 1"); err != nil {
		t.Error(err)
	}
}
