package background

import (
	"context"
	"sync"
	"time"
)

// Bounds are the bounds of a Batcher. Counts are of its items.
type Bounds struct {
	Age  time.Duration // how long the first item of a batch waits at most
	Full int           // a batch of this size does not wait
	Most int           // Append waits while so many wait to be written; 0 for no bound
}

// Batcher collects items and writes them in batches, in the background. Batches
// are written one at a time, in the order of Append, while the next one
// collects. A Batcher is safe for concurrent use.
type Batcher[T any] struct {
	bounds  Bounds
	write   func(closing context.Context, batch []T)
	closing context.Context //nolint:containedctx // it ends with Close, and is for the pauses of write
	close   context.CancelFunc
	done    chan struct{}
	begun   chan struct{} // the batch has its first item
	now     chan struct{} // the batch must not wait

	mu     sync.Mutex
	room   sync.Cond // on mu: the batch was taken
	batch  []T
	closed bool // run has ended
}

// NewBatcher starts a Batcher, which Close ends. write is never called twice at
// once, and must not keep the batch. closing ends when Close is called: write
// should then go on without pauses.
func NewBatcher[T any](bounds Bounds, write func(closing context.Context, batch []T)) *Batcher[T] {
	b := &Batcher[T]{
		bounds: bounds, write: write, done: make(chan struct{}), begun: make(chan struct{}, 1), now: make(chan struct{}, 1),
	}
	b.room.L = &b.mu
	b.closing, b.close = context.WithCancel(context.Background()) //nolint:gosec // Close calls it
	go b.run()
	return b
}

// Append calls add with the current batch, which continues with what add
// returns. It waits while the batch is as large as Bounds.Most. What comes after
// Close is written before Append returns, so that it is not lost.
func (b *Batcher[T]) Append(add func(batch []T) []T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.bounds.Most > 0 && len(b.batch) >= b.bounds.Most {
		b.room.Wait()
	}
	first := len(b.batch) == 0
	b.batch = add(b.batch)
	switch {
	case len(b.batch) == 0:
	case b.closed:
		b.write(b.closing, b.batch)
		b.batch = nil
	default:
		if first {
			Signal(b.begun)
		}
		if len(b.batch) >= b.bounds.Full {
			Signal(b.now)
		}
	}
}

// Flush has the current batch written soon, whatever its age and size.
func (b *Batcher[T]) Flush() { Signal(b.now) }

// Len returns how many items wait. Those that are being written do not count.
func (b *Batcher[T]) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.batch)
}

// Close writes what waits and returns when that is done, or returns the error of
// ctx when that ends first; the writes then go on. It may be called again.
func (b *Batcher[T]) Close(ctx context.Context) error {
	b.close()
	select {
	case <-b.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run writes batches until Close is called and nothing waits.
func (b *Batcher[T]) run() {
	defer close(b.done)
	timer := time.NewTimer(b.bounds.Age)
	defer timer.Stop()
	var spare []T // the batch before, for its memory
	for {
		select {
		case <-b.begun:
			timer.Reset(b.bounds.Age)
			select {
			case <-timer.C:
			case <-b.now:
			case <-b.closing.Done():
			}
		case <-b.closing.Done():
		}
		batch, ended := b.take(spare)
		if ended {
			return
		}
		b.write(b.closing, batch)
		clear(batch)
		spare = batch[:0]
	}
}

// take returns the current batch and begins another one in the memory of spare.
// It reports whether the batcher has ended.
func (b *Batcher[T]) take(spare []T) (batch []T, ended bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = len(b.batch) == 0 && b.closing.Err() != nil
	batch, b.batch = b.batch, spare
	b.room.Broadcast()
	return batch, b.closed
}

// Signal wakes the receiver of c, now or at its next receive, and never waits. c
// must have room for one.
func Signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
