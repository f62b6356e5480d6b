package admission_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/internal/admission"
)

// TestACrowdComputesOneAtATime: of one key's crowd only as many compute as there
// are cores, and another key's work gets its turn after a slice, not after the
// crowd. (Without turns by key it waits for all twenty.)
func TestACrowdComputesOneAtATime(t *testing.T) {
	cores := admission.NewCores(1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var computing, most atomic.Int64
	var turns atomic.Int64
	var all sync.WaitGroup
	begun := make(chan struct{}, 20)
	for range 20 {
		all.Go(func() {
			w, err := cores.Start(ctx, "crowd")
			if err != nil {
				return
			}
			defer w.Stop()
			begun <- struct{}{}
			for {
				n := computing.Add(1)
				for was := most.Load(); n > was && !most.CompareAndSwap(was, n); was = most.Load() {
				}
				for until := time.Now().Add(1500 * time.Microsecond); time.Now().Before(until); {
				}
				computing.Add(-1)
				turns.Add(1)
				if w.Yield() != nil {
					return
				}
			}
		})
	}
	for range 20 {
		<-begun
	}
	least := int64(20) // the system may let sam wait before Start, too
	for range 5 {
		before := turns.Load()
		w, err := cores.Start(ctx, "sam")
		if err != nil {
			t.Fatal(err)
		}
		least = min(least, turns.Load()-before)
		w.Pause()
		if err := w.Resume(); err != nil {
			t.Fatal(err)
		}
		if w.Waited() <= 0 {
			t.Error("the wait is not counted")
		}
		w.Stop()
		w.Stop()
	}
	if least > 3 {
		t.Errorf("sam waited for %d turns of the crowd, and never for fewer", least)
	}
	if most.Load() != 1 {
		t.Errorf("%d computed at once on one core", most.Load())
	}
	cancel()
	all.Wait()
}

func TestWorkWithoutACoreEndsWithItsContext(t *testing.T) {
	cores := admission.NewCores(1)
	w, err := cores.Start(t.Context(), "sam")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	late, err := cores.Start(ctx, "sam")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%v: expected the error of the context", err)
	}
	late.Stop()
	w.Stop()
	if w, err = cores.Start(t.Context(), "eva"); err != nil {
		t.Fatal(err)
	}
	w.Stop()
}

// TestTurnsAtTheCoresCostTheirTime: a key whose turns are twenty slices long has
// no more of the core than one whose turns are a slice.
func TestTurnsAtTheCoresCostTheirTime(t *testing.T) {
	cores := admission.NewCores(1)
	ctx, cancel := context.WithTimeout(t.Context(), 600*time.Millisecond)
	defer cancel()
	var used [2]atomic.Int64
	var all sync.WaitGroup
	for i, turn := range []time.Duration{20 * time.Millisecond, time.Millisecond} {
		for range 2 {
			all.Go(func() {
				for ctx.Err() == nil {
					w, err := cores.Start(ctx, []string{"long", "short"}[i])
					if err != nil {
						return
					}
					begun := time.Now()
					for time.Since(begun) < turn {
					}
					used[i].Add(int64(time.Since(begun)))
					w.Stop()
				}
			})
		}
	}
	all.Wait()
	if long, short := time.Duration(used[0].Load()), time.Duration(used[1].Load()); short*2 < long {
		t.Errorf("long turns had %s of the core, short ones %s", long, short)
	}
}
