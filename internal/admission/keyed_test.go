package admission

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestAKeyedMutexIsOneForEachKey: holders of one key follow one another, those of other
// keys hold at the same time.
func TestAKeyedMutexIsOneForEachKey(t *testing.T) {
	var k KeyedMutex
	var running, most, done atomic.Int64
	var wg sync.WaitGroup
	for i := range 90 {
		wg.Go(func() {
			unlock, err := k.Lock(t.Context(), "a")
			if err != nil {
				t.Errorf("%d: %v", i, err)
				return
			}
			if n := running.Add(1); n > most.Load() {
				most.Store(n)
			}
			other, err := k.Lock(t.Context(), fmt.Sprint("other ", i))
			if err != nil {
				t.Error(err)
				return
			}
			done.Add(1)
			time.Sleep(50 * time.Microsecond)
			running.Add(-1)
			other()
			unlock()
		})
	}
	wg.Wait()
	if most.Load() != 1 || done.Load() != 90 {
		t.Errorf("%d at once, %d in all", most.Load(), done.Load())
	}
	if len(k.m) != 0 {
		t.Errorf("%d keys are left", len(k.m))
	}
}

// TestMaxWaiters: maxWaiters callers of a key may wait, and one more when one of them
// gave up.
func TestMaxWaiters(t *testing.T) {
	var k KeyedMutex
	unlock, err := k.Lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	waiting, cancel := context.WithCancel(t.Context())
	results := make(chan error, maxWaiters)
	for range maxWaiters {
		go func() {
			_, err := k.Lock(waiting, "a")
			results <- err
		}()
	}
	queue := func() int {
		k.mu.Lock()
		defer k.mu.Unlock()
		return k.m["a"].waiters
	}
	for begun := time.Now(); queue() < maxWaiters; time.Sleep(time.Millisecond) {
		if time.Since(begun) > 20*time.Second {
			t.Fatalf("%d wait", queue())
		}
	}
	_, err = k.Lock(t.Context(), "a")
	if !errors.Is(err, ErrFull) {
		t.Errorf("one too many: %v", err)
	}
	if other, err := k.Lock(t.Context(), "b"); err != nil {
		t.Errorf("another key: %v", err)
	} else {
		other()
	}
	cancel()
	for range maxWaiters {
		if err := <-results; !errors.Is(err, context.Canceled) {
			t.Errorf("who gave up: %v", err)
		}
	}
	if n := queue(); n != 0 {
		t.Errorf("%d still wait", n)
	}
	unlock()
	unlock, err = k.Lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}
