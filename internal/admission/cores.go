package admission

import (
	"context"
	"math"
	"runtime"
	"time"
)

// slice is how long one Work computes before others that wait get the core.
const slice = time.Millisecond

// Heavy is from how many bytes on what goes through them in one go, such as parsing, is worth a turn: some half of a
// slice.
const Heavy = 64 << 10

// Cores shares processor time between keys. A bounded number of goroutines compute
// at once, and one that has computed for a slice lets the next key in turn go on.
// The Go runtime treats all goroutines alike: without Cores, a short request of
// one tenant, which needs a core a few times for some microseconds, would wait
// each time until every run of another tenant has had its 10 ms. Turns go by the
// time that keys have computed: work that cannot pause, such as a password hash,
// costs its key as many turns as it takes slices. When the machine is late, a core
// rests after each turn: see pace. A Cores is safe for concurrent use.
type Cores struct {
	gate *Gate
	pace pace
}

// maxCharge bounds the charge for one turn, however long it took.
const maxCharge = 100 * time.Millisecond

// NewCores returns n cores to share. On a machine with several cores, n should be
// less than that, so that one is left for everything else.
func NewCores(n int) *Cores {
	return &Cores{
		gate: NewGate(Limits{Running: n, PerKey: n, Waiting: math.MaxInt, WaitingPerKey: math.MaxInt, MaxWait: math.MaxInt64}),
		pace: pace{off: n >= runtime.GOMAXPROCS(0)},
	}
}

// Count returns how many compute at once.
func (c *Cores) Count() int { return c.gate.Limits().Running }

// Start waits for a core and returns the work, which belongs to one goroutine;
// Stop must be called at the end. It returns the error of ctx if that ends first.
// A nil Cores does not bound anything and returns a nil Work.
func (c *Cores) Start(ctx context.Context, key string) (*Work, error) {
	if c == nil {
		return nil, nil
	}
	w := c.Work(ctx, key)
	err := w.Resume()
	w.begun, w.waited = w.since, 0
	return w, err
}

// Work returns a work that has no core before its first Resume. Stop must be called at the
// end. A nil Cores returns a nil Work.
func (c *Cores) Work(ctx context.Context, key string) *Work {
	if c == nil {
		return nil
	}
	return &Work{cores: c, ctx: ctx, key: key, rests: math.MaxInt64}
}

// Work is a computation that holds a core of a Cores, except while it pauses. The
// methods of a nil Work do nothing.
type Work struct {
	cores  *Cores
	ctx    context.Context //nolint:containedctx // the life of the work, whose waits it bounds
	key    string
	inside bool      // it has a core
	begun  time.Time // when it got its first core
	since  time.Time // when it got its current core
	waited time.Duration
	unpaid time.Duration // what it has computed since its core last rested
	rested time.Time     // when the core that it gave back last has rested
	rests  time.Duration // how long cores may still rest for it
}

// Within says how long the work may take. Of that its cores rest for it half at most, so that what computes for no more
// than the other half is in time on a full machine, too.
func (w *Work) Within(limit time.Duration) {
	if w != nil {
		w.rests = limit / 2
	}
}

// Resume waits for a core if the work has none. It returns the error of Start's
// context if that ends first.
func (w *Work) Resume() error {
	if w == nil || w.inside {
		return nil
	}
	asked := time.Now()
	if w.rested.After(asked) {
		asked = w.rested // a rest for what the work itself has computed is no wait for others
	}
	err := w.cores.gate.enter(w.ctx, w.key)
	runtime.Gosched() // the runtime runs a woken goroutine first; let requests go first
	w.since = time.Now()
	w.waited += max(0, w.since.Sub(asked))
	if w.inside = err == nil; w.inside {
		w.cores.pace.uses(w.since)
	}
	return err
}

// Pause gives the core back, and reports whether the work had one. It is called before the
// work waits for something else.
func (w *Work) Pause() (had bool) {
	if w == nil || !w.inside {
		return false
	}
	w.inside = false
	now := time.Now()
	took := now.Sub(w.since)
	gate, key, charge := w.cores.gate, w.key, min(took, maxCharge)
	if rest := w.rest(took); rest > 0 {
		w.rested = now.Add(rest)
		time.AfterFunc(rest, func() { gate.leave(key, charge) }) // the core rests, not the work
		return true
	}
	gate.leave(key, charge)
	return true
}

// rest returns how long the core is to rest now that the work has computed for a time more.
func (w *Work) rest(took time.Duration) (rest time.Duration) {
	if w.unpaid += took; w.unpaid < restFrom {
		return 0
	}
	rest = min(w.cores.pace.after(w.unpaid), w.rests)
	w.unpaid = 0
	w.rests -= rest
	return rest
}

// Stop ends the work. It may be called at any time, and more than once.
func (w *Work) Stop() { w.Pause() }

// Yield lets others compute if the work has used its slice and others wait. It
// returns the error of Start's context once that has ended; the work must then
// stop.
func (w *Work) Yield() error {
	if w == nil {
		return nil
	}
	if err := w.ctx.Err(); err != nil {
		return err
	}
	now := time.Now()
	took := now.Sub(w.since)
	if took < slice {
		return nil
	}
	if w.cores.gate.Waiting() == 0 && (w.unpaid+took < restFrom || w.cores.pace.after(restFrom) == 0) {
		w.cores.pace.uses(now)
		runtime.Gosched()
		return nil
	}
	w.Pause()
	return w.Resume()
}

// Waited returns how long the work has waited for a core since its first one, without the
// rests that its own computing made necessary.
func (w *Work) Waited() time.Duration {
	if w == nil {
		return 0
	}
	return w.waited
}

// Starved reports whether the work has waited for a core for more than half of its
// life: if it has not ended in time, that is not its own fault.
func (w *Work) Starved() bool { return w.Waited() > 0 && w.waited > time.Since(w.begun)/2 }
