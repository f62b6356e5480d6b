package admission

import (
	"context"
	"sync"
	"time"
)

// Limits are the bounds of a Gate. All must be positive.
type Limits struct {
	// Running is how many may be inside at once, PerKey how many of one key.
	Running, PerKey int
	// Waiting is how many may wait altogether, WaitingPerKey how many of one key.
	Waiting, WaitingPerKey int
	// MaxWait is how long one waits.
	MaxWait time.Duration
}

// Gate lets a bounded number in at once. A place that falls free goes to the
// next key in turn. A Gate may be used by many goroutines.
type Gate struct {
	limits Limits

	mu      sync.Mutex
	running map[string]int // by key; none that is 0
	total   int
	queue   Queue[chan struct{}] // closed to let its owner in
}

// NewGate returns a gate with nobody inside.
func NewGate(limits Limits) *Gate { return &Gate{limits: limits, running: map[string]int{}} }

// Limits are the bounds that the gate keeps.
func (g *Gate) Limits() Limits { return g.limits }

// Enter waits for a place, at most MaxWait; leave gives it back and must be
// called once. It fails with ErrFull, or with the error of ctx when that ends.
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
	if !withdrawn { // let in while giving up: pass it on
		g.leave(key, 0)
	}
	return err
}

// Running is how many are inside, Waiting how many wait.
func (g *Gate) Running() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.total
}

// Waiting is how many wait for a place.
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

// leave gives a place back. Where others wait, the key is charged for the time
// that it had it; where nobody does, it took nothing from anybody.
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
