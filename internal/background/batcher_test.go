package background

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// paper is where a Batcher of a test writes.
type paper struct {
	start   time.Time
	mu      sync.Mutex
	written [][]string // batches
	at      []time.Duration
	hold    chan struct{} // if not nil, each write takes until it is closed or has a value
	writing atomic.Int64
	wrong   atomic.Bool // two writes at once, or an empty one
}

func (p *paper) write(_ context.Context, batch []string) {
	if p.writing.Add(1) > 1 || len(batch) == 0 {
		p.wrong.Store(true)
	}
	defer p.writing.Add(-1)
	if p.hold != nil {
		<-p.hold
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.written = append(p.written, slices.Clone(batch))
	p.at = append(p.at, time.Since(p.start))
}

func (p *paper) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprint(p.written, p.at)
}

func put(b *Batcher[string], items ...string) {
	b.Append(func(batch []string) []string { return append(batch, items...) })
}

func TestABatchIsWrittenWhenItIsOldOrFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &paper{start: time.Now()}
		b := NewBatcher(Bounds{Age: time.Minute, Full: 3}, p.write)
		put(b, "a")
		time.Sleep(50 * time.Second)
		put(b, "b") // the age is that of the first
		time.Sleep(20 * time.Second)
		put(b, "c")
		time.Sleep(10 * time.Second)
		put(b, "d", "e") // full
		time.Sleep(10 * time.Second)
		put(b, "f")
		b.Flush()
		time.Sleep(100 * time.Second)
		put(b) // nothing
		put(b, "g")
		if n := b.Len(); n != 1 {
			t.Errorf("%d wait", n)
		}
		if err := b.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if got := p.String(); got != "[[a b] [c d e] [f] [g]] [1m0s 1m20s 1m30s 3m10s]" || p.wrong.Load() {
			t.Error(got)
		}
		put(b, "h") // after the end
		if err := b.Close(t.Context()); err != nil || len(p.written) != 5 || p.written[4][0] != "h" {
			t.Errorf("%v %v", err, p)
		}
	})
}

func TestWhatComesDuringAWriteIsTheNextBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &paper{start: time.Now(), hold: make(chan struct{})}
		b := NewBatcher(Bounds{Age: time.Minute, Full: 2}, p.write)
		put(b, "a", "b")
		synctest.Wait()
		put(b, "c", "d")
		put(b, "e")
		time.Sleep(time.Hour)
		close(p.hold)
		synctest.Wait()
		if got := p.String(); got != "[[a b] [c d e]] [1h0m0s 1h0m0s]" {
			t.Error(got)
		}
		put(b, "f")
		synctest.Wait()
		if err := b.Close(t.Context()); err != nil || len(p.written) != 3 || p.wrong.Load() {
			t.Errorf("%v, %v", err, p)
		}
	})
}

func TestNobodyAppendsBeyondTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &paper{start: time.Now(), hold: make(chan struct{})}
		b := NewBatcher(Bounds{Age: time.Second, Full: 2, Most: 4}, p.write)
		put(b, "a", "b")
		synctest.Wait() // it is being written, and takes long
		put(b, "c", "d", "e", "f")
		var wait sync.WaitGroup
		var waited atomic.Int64
		for range 3 {
			wait.Go(func() { put(b, "g", "g"); waited.Add(1) })
		}
		synctest.Wait()
		if waited.Load() != 0 || b.Len() != 4 {
			t.Errorf("%d were let in, %d wait", waited.Load(), b.Len())
		}
		p.hold <- struct{}{}
		synctest.Wait() // the second batch was taken: there is room for two of them
		if waited.Load() != 2 || b.Len() != 4 {
			t.Errorf("%d were let in, %d wait", waited.Load(), b.Len())
		}
		close(p.hold)
		wait.Wait()
		if err := b.Close(t.Context()); err != nil || len(p.written) != 4 {
			t.Errorf("%v, %v", err, p)
		}
	})
}

func TestClosingGivesUpAndTellsTheWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		hurried, written := false, 0
		b := NewBatcher(Bounds{Age: time.Second, Full: 2}, func(closing context.Context, batch []string) {
			pause := Backoff{First: time.Hour, Last: time.Hour}
			hurried = pause.Wait(closing, nil) != nil
			<-free
			written += len(batch)
		})
		put(b, "a", "b")
		time.Sleep(time.Minute)
		put(b, "c")
		begun := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := b.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != 10*time.Second {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		close(free)
		if err := b.Close(t.Context()); err != nil || written != 3 || !hurried || time.Since(begun) != 10*time.Second {
			t.Errorf("%v: %d written, hurried: %v, after %v", err, written, hurried, time.Since(begun))
		}
	})
}

// Everything is written once, in the order of each caller, while callers append,
// flush and close at once.
func TestNothingIsLostOrRepeated(t *testing.T) {
	const callers, each = 16, 500
	var got [callers]int
	total := 0
	b := NewBatcher(Bounds{Age: time.Microsecond, Full: 7, Most: 20}, func(_ context.Context, batch [][2]int) {
		for _, item := range batch {
			if got[item[0]] != item[1] {
				t.Errorf("%v comes when %d is due", item, got[item[0]])
			}
			got[item[0]]++
			total++
		}
	})
	var wait sync.WaitGroup
	for c := range callers {
		wait.Go(func() {
			for n := range each {
				b.Append(func(batch [][2]int) [][2]int { return append(batch, [2]int{c, n}) })
				switch {
				case n%50 == c:
					b.Flush()
				case c == 0 && n == each/2: // the others go on
					if err := b.Close(t.Context()); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wait.Wait()
	if err := b.Close(t.Context()); err != nil || total != callers*each {
		t.Errorf("%v: %d of %d", err, total, callers*each)
	}
}
