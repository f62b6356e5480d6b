package audit

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"gatehouse/internal/admission"
	"gatehouse/internal/clock"
)

// The promise is that kill -9 loses at most the last 250 ms. Entries wait for
// flushEntries, their write takes the rest; when it does not get done in time,
// callers of that tenant wait from maxAge on, so that there is nothing more to lose.
const (
	flushEntries = 60 * time.Millisecond
	flushUsage   = 200 * time.Millisecond
	maxAge       = 200 * time.Millisecond

	// flushBytes of one tenant are written at once.
	flushBytes = 1 << 20
	// defaultBytes are held in memory, of all tenants.
	defaultBytes = 16 << 20
	// leastBytes is the least that may be held: one tenant's share of it has room
	// for the longest entry.
	leastBytes = 1 << 20
	// longestEntry is more than any entry has.
	longestEntry = 2*maxBody + maxQuery + 64<<10
)

// Options are a recorder's bounds and where it says that it is in trouble.
// Zero values choose.
type Options struct {
	Log      *RequestLog // told of failures, at most once a second; nil for nobody
	MaxBytes int         // bytes held in memory, about; 16 MiB, at least 1 MiB

	backoff time.Duration // before a write's second try; firstBackoff, but in tests
}

// Recorder writes audit entries and usage, in batches, off the request's path.
//
// An entry is made, redacted, cut and copied while Record runs; nothing of the
// request or its answer is kept. It holds a bounded number of bytes, of which
// each tenant has a share, none of them for long, and then makes Record wait:
// nothing is dropped, whatever the database does, and a tenant whose entries
// cannot be written makes only itself wait.
// A Recorder may be used by several goroutines at once.
type Recorder struct {
	store store
	clk   clock.Clock
	opts  Options
	begun time.Time // ages are measured from here, by the machine's monotonic clock

	mu      sync.Mutex
	budget  *admission.Budget // taken from with mu held
	lines   map[string]*line  // of tenants with something to write
	hungry  map[*line]bool    // lines for which callers wait until others give bytes back
	usage   usage
	room    sync.Cond     // on mu: usage was written
	entries int           // held, of all tenants
	bytes   int64         // of them
	waiting int           // callers
	counted time.Duration // when the oldest usage to write came
	idle    bool          // run waits for begin
	stop    bool          // Close was called
	closed  bool          // nothing is taken any more

	failing atomic.Int64 // lines that cannot be written for now
	serving sync.WaitGroup
	slots   chan struct{} // one for each write under way
	begin   chan struct{}
	closing chan struct{}
	done    chan struct{}
	once    sync.Once
	abort   context.CancelFunc // ends writes that do not succeed
	ctx     context.Context    //nolint:containedctx // the life of the writes, which no caller's context bounds

	pending map[string]*usageBatch // by tenant: what run is writing
	batch   int64                  // the number of the latest usage batch

	names   names
	trouble trouble
	stats   struct{ written, waits, failures, lost atomic.Uint64 }
}

// store is what a recorder needs of the database.
type store interface {
	// write adds blocks of one tenant and day, all or nothing. Blocks that are
	// there already stay.
	write(ctx context.Context, tenant string, day int64, blocks []packed) error
	// count adds usage of one tenant, once for each number: a batch whose number
	// is not greater than the last one's was added before.
	count(ctx context.Context, tenant string, batch int64, usage []usageRow) error
	// remember notes the e-mail addresses of users that have entries.
	remember(ctx context.Context, tenant string, users []string, at int64) error
	// written is closed once the database takes a write from now on, whosoever.
	written() <-chan struct{}
	// lasting reports whether a failure would be the same for any entry: the
	// database is away or full, not at odds with what it was given.
	lasting(err error) bool
}

func newRecorder(s store, clk clock.Clock, opts Options) *Recorder {
	if opts.MaxBytes <= 0 {
		opts.MaxBytes = defaultBytes
	}
	opts.MaxBytes = max(opts.MaxBytes, leastBytes)
	opts.backoff = cmp.Or(opts.backoff, firstBackoff)
	r := &Recorder{
		store: s, clk: clk, opts: opts, begun: time.Now(), budget: admission.NewBudget(int64(opts.MaxBytes)),
		lines: map[string]*line{}, hungry: map[*line]bool{}, usage: newUsage(), idle: true,
		slots: make(chan struct{}, maxWriters), begin: make(chan struct{}, 1),
		closing: make(chan struct{}), done: make(chan struct{}),
		pending: map[string]*usageBatch{}, names: newNames(), trouble: trouble{log: opts.Log},
	}
	r.room.L = &r.mu
	r.ctx, r.abort = context.WithCancel(context.Background())
	go r.run()
	return r
}

// Record counts the request and, when ev.Persist says so, keeps its entry. It
// returns at once unless the database is behind with the entries of this tenant.
// Call it before the answer is sent, and a client that has its answer has its
// entry, or will within 250 ms.
func (r *Recorder) Record(ev *Event) {
	if ev.Tenant == "" {
		return
	}
	var enc *encoder
	if ev.Persist {
		enc = encoders.Get().(*encoder)
		defer enc.done()
		enc.encode(ev)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.awaitUsage()
	if ev.Persist && !r.closed {
		r.keep(ev.Tenant, enc)
	}
	if r.closed {
		r.late(ev)
		return
	}
	if len(r.usage.dirty) == 0 {
		r.counted = r.now()
	}
	r.usage.count(ev)
	if r.idle {
		r.idle = false
		signal(r.begin)
	}
}

// awaitUsage returns when a request may be counted. The lock is held, and let
// go while it waits.
func (r *Recorder) awaitUsage() {
	for !r.closed && len(r.usage.dirty) >= maxUsageRows {
		r.waiting++
		r.room.Wait()
		r.waiting--
	}
}

// now is the present on the machine's monotonic clock.
func (r *Recorder) now() time.Duration { return time.Since(r.begun) + 1 }

// Refuses reports whether requests of a tenant must be turned away before
// anything is done for them: the database takes none of its entries, and as many
// as may be are held. A request that cannot be recorded is refused, not served
// unseen.
func (r *Recorder) Refuses(tenant string) bool {
	if r.failing.Load() == 0 {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.lines[tenant]
	return l != nil && l.failing && !r.hasRoom(tenant)
}

// hasRoom reports whether a tenant's share has room for any entry.
func (r *Recorder) hasRoom(tenant string) bool {
	return r.budget.Held(tenant)+longestEntry <= int64(r.opts.MaxBytes)-r.budget.Used()-longestEntry
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
	if r.entries > 0 || len(r.usage.dirty) > 0 || len(r.pending) > 0 {
		return fmt.Errorf("%d audit entries were not written: %w", r.entries, context.Cause(ctx))
	}
	return nil
}

// Stats are figures for metrics.
type Stats struct {
	Queued, QueuedBytes int    // entries held and about their size
	Waiting             int    // requests that wait for the database
	Failing             int    // tenants whose entries cannot be written for now
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
		Queued: r.entries, QueuedBytes: int(r.bytes), Waiting: r.waiting, Failing: int(r.failing.Load()),
		Written: r.stats.written.Load(), Waits: r.stats.waits.Load(), Failures: r.stats.failures.Load(), Lost: r.stats.lost.Load(),
	}
}
