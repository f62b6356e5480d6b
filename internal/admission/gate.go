package admission

import (
	"context"
	"sync"
	"time"
)

// Limits are the bounds of a Gate. All must be positive.
type Limits struct {
	// Running is how many callers may be inside at once, PerKey how many of one
	// key.
	Running, PerKey int
	// Waiting is how many callers may wait, WaitingPerKey how many of one key.
	Waiting, WaitingPerKey int
	// MaxWait is how long a caller waits at most.
	MaxWait time.Duration
}

// Gate is a semaphore that is fair between keys: it lets a bounded number of
// callers in at once, and a place that becomes free goes to the next key in turn.
// A Gate is safe for concurrent use.
type Gate struct {
	limits Limits

	mu      sync.Mutex
	running map[string]int // by key, without zeros
	total   int
	queue   Queue[chan struct{}] // waiting callers; a channel is closed to let its caller in
}

// NewGate returns a gate with the given bounds.
func NewGate(limits Limits) *Gate { return &Gate{limits: limits, running: map[string]int{}} }

// Limits returns the gate's bounds.
func (g *Gate) Limits() Limits { return g.limits }

// Enter waits for a place, at most MaxWait. leave gives the place back and must be
// called exactly once. Enter returns ErrFull if there is no place in time or too
// many callers wait already, and the error of ctx if that ends first.
func (g *Gate) Enter(ctx context.Context, key string) (leave func(), err error) {
	if err := g.enter(ctx, key); err != nil {
		return nil, err
	}
	return func() { g.leave(key, 0) }, nil
}

func (g *Gate) enter(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	g.mu.Lock()
	if g.queue.LenOf(key) == 0 && g.free(key) {
		g.admit(key)
		g.mu.Unlock()
		return nil
	}
	if g.queue.Len() >= g.limits.Waiting || g.queue.LenOf(key) >= g.limits.WaitingPerKey {
		g.mu.Unlock()
		return ErrFull
	}
	turn := make(chan struct{})
	g.queue.Push(key, turn)
	g.mu.Unlock()

	timer := time.NewTimer(g.limits.MaxWait)
	defer timer.Stop()
	var err error
	select {
	case <-turn:
		return nil
	case <-timer.C:
		err = ErrFull
	case <-ctx.Done():
		err = ctx.Err()
	}
	g.mu.Lock()
	withdrawn := g.queue.Remove(key, func(c chan struct{}) bool { return c == turn })
	g.mu.Unlock()
	if !withdrawn { // it was let in meanwhile: pass the place on
		g.leave(key, 0)
	}
	return err
}

// Running returns how many callers are inside.
func (g *Gate) Running() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.total
}

// Waiting returns how many callers wait for a place.
func (g *Gate) Waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.queue.Len()
}

func (g *Gate) free(key string) bool {
	return g.total < g.limits.Running && g.running[key] < g.limits.PerKey
}

func (g *Gate) admit(key string) {
	g.running[key]++
	g.total++
}

// leave gives a place back. The key is charged for the time that it had the place
// only if others wait: otherwise it took nothing from them.
func (g *Gate) leave(key string, took time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.queue.Len() > 0 {
		g.queue.Charge(key, int64(took))
	}
	g.total--
	if g.running[key]--; g.running[key] == 0 {
		delete(g.running, key)
	}
	if next, turn, ok := g.queue.Pop(g.free); ok {
		g.admit(next)
		close(turn)
	}
}
