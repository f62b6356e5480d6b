package endpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestRecordLocks: a lock is shared, or exclusive; overlapping sets do not deadlock;
// callers that give up hold nothing.
func TestRecordLocks(t *testing.T) {
	var l recordLocks
	type state struct{ shared, alone atomic.Int64 } // how many have the lock now
	var at [8]state
	var most, gaveUp atomic.Int64
	var wg sync.WaitGroup
	for i := range 2000 {
		wg.Go(func() {
			exclusive := i%5 == 0
			var keys []string
			for n := range at {
				if (i>>n)&1 == 1 || n == i%8 {
					keys = append(keys, fmt.Sprint(n))
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%40)*10*time.Millisecond)
			defer cancel()
			release, err := l.acquire(ctx, keys, exclusive)
			if err != nil {
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				gaveUp.Add(1)
				return
			}
			for n := range at {
				if !slices.Contains(keys, fmt.Sprint(n)) {
					continue
				}
				if exclusive {
					if at[n].alone.Add(1) != 1 || at[n].shared.Load() != 0 {
						t.Errorf("%d: another caller holds it", n)
					}
				} else {
					if at[n].alone.Load() != 0 {
						t.Errorf("%d: another caller holds it exclusively", n)
					}
					most.Store(max(most.Load(), at[n].shared.Add(1)))
				}
			}
			time.Sleep(50 * time.Microsecond)
			for n := range at {
				if slices.Contains(keys, fmt.Sprint(n)) {
					if exclusive {
						at[n].alone.Add(-1)
					} else {
						at[n].shared.Add(-1)
					}
				}
			}
			release()
		})
	}
	wg.Wait()
	if most.Load() < 2 {
		t.Error("no lock was shared")
	}
	t.Logf("%d of 2000 gave up", gaveUp.Load())
	if len(l.m) != 0 {
		t.Errorf("%d locks are left", len(l.m))
	}
}

// TestRecordLocksAreGrantedInOrder: callers that would share a lock do not overtake one
// that waits for it exclusively; when that gives up, they get it.
func TestRecordLocksAreGrantedInOrder(t *testing.T) {
	var l recordLocks
	ctx := t.Context()
	first, err := l.acquire(ctx, []string{"a"}, false)
	if err != nil {
		t.Fatal(err)
	}
	other, err := l.acquire(ctx, []string{"b"}, true) // of another record
	if err != nil {
		t.Fatal(err)
	}
	waiting, giveUp := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := l.acquire(waiting, []string{"a"}, true); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	queued := func(n int) {
		t.Helper()
		for begun := time.Now(); ; time.Sleep(100 * time.Microsecond) {
			l.mu.Lock()
			is := len(l.m["a"].queue)
			l.mu.Unlock()
			if is == n {
				return
			}
			if time.Since(begun) > 20*time.Second {
				t.Fatalf("%d wait, expected %d", is, n)
			}
		}
	}
	queued(1)
	var behind atomic.Bool
	wg.Go(func() {
		release, err := l.acquire(ctx, []string{"a"}, false)
		if err != nil {
			t.Error(err)
			return
		}
		behind.Store(true)
		release()
	})
	queued(2)
	if behind.Load() {
		t.Error("one who came later passed by")
	}
	giveUp()
	wg.Wait() // the one behind shares it with the first
	first()
	other()
	if len(l.m) != 0 {
		t.Errorf("%d locks are left", len(l.m))
	}
}
