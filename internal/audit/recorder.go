package audit

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"gatehouse/internal/clock"
)

// The promise is that kill -9 loses at most the last 250 ms. Entries wait for
// flushEntries, their write takes the rest; when it does not get done in time,
// callers wait from maxAge on, so that there is nothing more to lose.
const (
	flushEntries = 60 * time.Millisecond
	flushUsage   = 200 * time.Millisecond
	maxAge       = 200 * time.Millisecond

	batchEntries = 256     // a write has no more of one tenant, and begins at once when so many wait
	batchBytes   = 4 << 20 // nor more than about this
	takeEntries  = 512     // taken from the queue at once, of all tenants
)

// Options are a recorder's bounds and where it says that it is in trouble.
// Zero values choose.
type Options struct {
	Log        *RequestLog // told of failures, at most once a second; nil for nobody
	MaxEntries int         // entries held in memory; 4096
	MaxBytes   int         // bytes held in memory, about; 32 MiB
}

// Recorder writes audit entries and usage, in batches, off the request's path.
// It holds a bounded number of entries and bytes, none of them for long, and
// then makes Record wait: nothing is dropped, whatever the database does.
// A Recorder may be used by several goroutines at once.
type Recorder struct {
	store store
	clk   clock.Clock
	opts  Options
	begun time.Time // ages are measured from here, by the machine's monotonic clock

	mu      sync.Mutex
	space   sync.Cond // on mu: something was written
	queue   []item
	usage   usage
	held    int           // entries in the queue or being written
	bytes   int           // of them
	writing time.Duration // when the oldest entry being written came; 0 for none
	counted time.Duration // when the oldest usage to write came
	waiting int           // callers
	failing bool          // the database is away or full
	idle    bool          // run waits for begin
	stop    bool          // Close was called
	closed  bool          // nothing is taken any more

	begin, full chan struct{}
	closing     chan struct{}
	done        chan struct{}
	once        sync.Once
	abort       context.CancelFunc // ends writes that do not succeed
	ctx         context.Context    //nolint:containedctx // the life of the writes, which no caller's context bounds

	names   names
	trouble trouble
	refuses atomic.Bool
	stats   struct{ written, waits, failures, lost atomic.Uint64 }
}

// item is a queued entry.
type item struct {
	ev   *Event
	size int
	came time.Duration
}

// store is what a recorder needs of the database.
type store interface {
	// write adds the entries and usage of one tenant, all or nothing. Entries
	// that are there already stay; with retry set, finding all of them there
	// means that an earlier write succeeded after all, and no usage is added.
	write(ctx context.Context, tenant string, entries []row, usage []usageRow, retry bool) error
	// remember notes the e-mail addresses of users that have entries.
	remember(ctx context.Context, tenant string, users []string, at int64) error
	// lasting reports whether a failure would be the same for any entry: the
	// database is away or full, not at odds with what it was given.
	lasting(err error) bool
}

func newRecorder(s store, clk clock.Clock, opts Options) *Recorder {
	if opts.MaxEntries <= 0 {
		opts.MaxEntries = 4096
	}
	if opts.MaxBytes <= 0 {
		opts.MaxBytes = 32 << 20
	}
	r := &Recorder{
		store: s, clk: clk, opts: opts, begun: time.Now(), usage: newUsage(), idle: true,
		begin: make(chan struct{}, 1), full: make(chan struct{}, 1),
		closing: make(chan struct{}), done: make(chan struct{}),
		names: newNames(), trouble: trouble{log: opts.Log},
	}
	r.space.L = &r.mu
	r.ctx, r.abort = context.WithCancel(context.Background())
	go r.run()
	return r
}

// Record counts the request and, when ev.Persist says so, keeps its entry. It
// returns at once unless the database is behind. Call it before the answer's
// last byte is sent, and a client that has its answer has its entry, or will
// within 250 ms. The recorder keeps a persisted ev; see Event.
func (r *Recorder) Record(ev *Event) {
	if ev.Tenant == "" {
		return
	}
	size := 0
	if ev.Persist {
		size = ev.size()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if !r.admits(now, ev.Persist, size) {
		now = r.wait(ev.Persist, size)
	}
	if r.closed {
		r.late(ev)
		return
	}
	if len(r.usage.dirty) == 0 {
		r.counted = now
	}
	r.usage.count(ev)
	if ev.Persist {
		r.queue = append(r.queue, item{ev, size, now})
		r.held++
		r.bytes += size
		r.weigh()
		if len(r.queue) >= batchEntries || r.bytes >= batchBytes {
			signal(r.full)
		}
	}
	if r.idle {
		r.idle = false
		signal(r.begin)
	}
}

// now is the present on the machine's monotonic clock.
func (r *Recorder) now() time.Duration { return time.Since(r.begun) + 1 }

// admits reports whether an event may be taken. One entry that is larger than
// all bounds is, alone.
func (r *Recorder) admits(now time.Duration, persist bool, size int) bool {
	switch {
	case r.closed:
		return true
	case !persist:
		return len(r.usage.dirty) < maxUsageRows
	case r.held == 0:
		return true
	case r.failing:
		// Waiting would stop every request for as long as the disk is full. What
		// comes now was let in before Refuses said no: it is kept.
		return true
	default:
		return r.held < r.opts.MaxEntries && r.bytes+size <= r.opts.MaxBytes && now-r.oldest() < maxAge &&
			len(r.usage.dirty) < maxUsageRows
	}
}

// Refuses reports whether requests must be turned away before anything is done
// for them: the database takes no entries, and as many as may be are held. A
// request that cannot be recorded is refused, not served unseen.
func (r *Recorder) Refuses() bool { return r.refuses.Load() }

// weigh keeps Refuses true to what is held; the caller has the lock.
func (r *Recorder) weigh() {
	r.refuses.Store(r.failing && (r.held >= r.opts.MaxEntries || r.bytes >= r.opts.MaxBytes))
}

// oldest is when the oldest entry held came. There is one.
func (r *Recorder) oldest() time.Duration {
	if r.writing != 0 {
		return r.writing
	}
	return r.queue[0].came
}

// wait returns once an event may be taken, and when that is.
func (r *Recorder) wait(persist bool, size int) time.Duration {
	r.stats.waits.Add(1)
	r.waiting++
	defer func() { r.waiting-- }()
	for {
		signal(r.full)
		r.space.Wait()
		if now := r.now(); r.admits(now, persist, size) {
			return now
		}
	}
}

// late tells of an event that came after Close: its request is in the request
// log alone.
func (r *Recorder) late(ev *Event) {
	if ev.Persist {
		r.stats.lost.Add(1)
		r.trouble.lost(ev.Tenant, ev.RequestID, "the recorder is closed")
	}
}

// Close writes everything that was recorded and ends the recorder. End all
// requests first: what is recorded afterwards is lost, and said so in the
// request log. When ctx ends first, the rest is given up and Close says how
// much it was.
func (r *Recorder) Close(ctx context.Context) error {
	r.once.Do(func() {
		r.mu.Lock()
		r.stop = true
		r.mu.Unlock()
		close(r.closing)
	})
	select {
	case <-r.done:
	case <-ctx.Done():
		r.abort()
		<-r.done
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held > 0 || len(r.usage.dirty) > 0 {
		return fmt.Errorf("%d audit entries were not written: %w", r.held, context.Cause(ctx))
	}
	return nil
}

// Stats are figures for metrics.
type Stats struct {
	Queued, QueuedBytes int    // entries held and about their size
	Waiting             int    // requests that wait for the database
	Written             uint64 // entries
	Waits               uint64 // requests that had to wait
	Failures            uint64 // writes that failed and were run again
	Lost                uint64 // entries recorded after Close
}

// Stats reports the present figures.
func (r *Recorder) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Stats{
		Queued: r.held, QueuedBytes: r.bytes, Waiting: r.waiting, Written: r.stats.written.Load(),
		Waits: r.stats.waits.Load(), Failures: r.stats.failures.Load(), Lost: r.stats.lost.Load(),
	}
}
