package admission

import (
	"context"
	"math"
	"runtime"
	"time"
)

// slice is how long one computes before others who wait for a core get a turn.
const slice = time.Millisecond

// Cores shares the processor's time among what keys let run here. At most so
// many compute at once, however many are under way, and whoever computes for
// longer than a slice lets the next key in turn go on. Without it the runtime
// would serve all goroutines alike: a request of somebody else, which needs a
// core a few times for some microseconds, would wait each time for every run of
// a crowd to have its 10 ms. Keys that wait take turns by the time they computed:
// what cannot pause, such as a password's hash, costs its key as many turns as it
// is slices long. A Cores may be used by many goroutines.
type Cores struct{ gate *Gate }

// maxCharge bounds what one turn is charged, however long it was.
const maxCharge = 100 * time.Millisecond

// NewCores returns n cores to share. n should be less than there are where
// there are several, so that one is left for everything else.
func NewCores(n int) *Cores {
	return &Cores{NewGate(Limits{Running: n, PerKey: n, Waiting: math.MaxInt, WaitingPerKey: math.MaxInt, MaxWait: math.MaxInt64})}
}

// Count is how many compute at once.
func (c *Cores) Count() int { return c.gate.Limits().Running }

// Start waits for a core, until ctx ends. The work belongs to one goroutine,
// which must Stop it. A nil Cores has enough for all: its Work is nil.
func (c *Cores) Start(ctx context.Context, key string) (*Work, error) {
	if c == nil {
		return nil, nil
	}
	w := &Work{cores: c, ctx: ctx, key: key}
	err := w.Resume()
	w.begun, w.waited = w.since, 0
	return w, err
}

// Work is something that computes, and pauses where it waits for something else.
// A nil Work computes without keeping account of it.
type Work struct {
	cores  *Cores
	ctx    context.Context //nolint:containedctx // the life of the work, whose waits it bounds
	key    string
	inside bool      // it has a core
	begun  time.Time // when it was given its first core
	since  time.Time // and its present one
	waited time.Duration
}

// Resume waits for a core where the work has none. It fails with the error of
// the context that Start was given.
func (w *Work) Resume() error {
	if w == nil || w.inside {
		return nil
	}
	asked := time.Now()
	err := w.cores.gate.enter(w.ctx, w.key)
	runtime.Gosched() // the runtime runs a woken goroutine first; requests go before this work
	w.since = time.Now()
	w.waited += w.since.Sub(asked)
	w.inside = err == nil
	return err
}

// Pause gives the core back, for as long as the work waits for something else.
func (w *Work) Pause() {
	if w != nil && w.inside {
		w.cores.gate.leave(w.key, min(time.Since(w.since), maxCharge))
		w.inside = false
	}
}

// Stop ends the work. It may be called at any time, and more than once.
func (w *Work) Stop() { w.Pause() }

// Yield lets others compute when the work has used its slice and somebody
// waits. It fails with the error of the context once that has ended; then the
// work must stop.
func (w *Work) Yield() error {
	if w == nil {
		return nil
	}
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if time.Since(w.since) < slice {
		return nil
	}
	if w.cores.gate.Waiting() == 0 {
		runtime.Gosched()
		return nil
	}
	w.Pause()
	return w.Resume()
}

// Waited is how long the work has waited for a core since it got its first.
func (w *Work) Waited() time.Duration {
	if w == nil {
		return 0
	}
	return w.waited
}

// Starved reports whether the work has waited for a core for more than half of
// its life: when it does not get done in time, that is not its own doing.
func (w *Work) Starved() bool { return w.Waited() > 0 && w.waited > time.Since(w.begun)/2 }
