package audit

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"gatehouse/internal/admission"
	"gatehouse/internal/background"
	"gatehouse/internal/clock"
	"gatehouse/internal/tenant"
)

// kill -9 must lose at most the last 250 ms (contract G10). Entries wait for
// flushEntries, and writing them takes the rest. If a write is not done in
// time, callers of that tenant wait from maxAge on, so that no more entries can
// be lost.
const (
	flushEntries = 60 * time.Millisecond
	flushUsage   = 200 * time.Millisecond
	maxAge       = 200 * time.Millisecond

	// flushBytes of one tenant are written at once.
	flushBytes = 1 << 20
	// defaultBytes is how much is held in memory, of all tenants.
	defaultBytes = 16 << 20
	// leastBytes is the smallest value for that: one tenant's share of it has
	// room for the longest entry.
	leastBytes = 1 << 20
	// longestEntry is more than any entry takes.
	longestEntry = 2*maxBody + maxQuery + 64<<10
)

// Options configure a recorder. Zero values choose defaults.
type Options struct {
	Log      *RequestLog // gets failures, at most one a second; nil for none
	MaxBytes int         // about how many bytes are held in memory: 16 MiB by default, at least 1 MiB

	Cores *admission.Cores // where large bodies are redacted, in turns; nil bounds nothing

	backoff time.Duration // the pause before the second try of a write; firstBackoff except in tests
}

// Recorder writes audit entries and usage, in batches, in the background.
//
// Record makes an entry, redacts, cuts and copies it; the recorder keeps
// nothing of the request or its answer. It holds a bounded number of bytes, of
// which each tenant has a share, and then makes Record wait: nothing is
// dropped, whatever the database does, and a tenant whose entries cannot be
// written delays only itself. A Recorder is safe for concurrent use.
type Recorder struct {
	store store
	clk   clock.Clock
	opts  Options
	begun time.Time // the start of ages on the monotonic clock

	mu      sync.Mutex
	budget  *admission.Budget   // taken from with mu held
	lines   map[tenant.ID]*line // of tenants with something to write
	hungry  map[*line]bool      // lines whose callers wait until others release bytes
	usage   usage
	room    sync.Cond     // on mu: usage was written
	entries int           // entries held, of all tenants
	bytes   int64         // bytes of these
	waiting int           // callers that wait
	counted time.Duration // when the oldest unwritten usage was counted
	idle    bool          // run waits for begin
	stop    bool          // Close was called
	closed  bool          // nothing is accepted any more

	failing atomic.Int64 // lines that cannot be written at the moment
	serving sync.WaitGroup
	slots   chan struct{} // one for each write in progress
	begin   chan struct{}
	closing chan struct{}
	done    chan struct{}
	once    sync.Once
	abort   context.CancelFunc // ends writes that do not succeed
	ctx     context.Context    //nolint:containedctx // the lifetime of the writes, which no caller's context bounds

	pending map[tenant.ID]*usageBatch // by tenant: what run is writing
	batch   int64                     // the number of the latest usage batch

	names   names
	trouble throttledLog
	stats   struct{ written, waits, failures, lost atomic.Uint64 }
}

// store is the part of the database that a recorder needs.
type store interface {
	// write adds blocks of one tenant and day, all or none. Existing blocks
	// stay unchanged.
	write(ctx context.Context, tenant tenant.ID, day int64, blocks []packed) error
	// count adds usage of one tenant, once for each batch number: a batch whose
	// number is not greater than the last one's was added before.
	count(ctx context.Context, tenant tenant.ID, batch int64, usage []usageRow) error
	// remember stores the e-mail addresses of users that have entries.
	remember(ctx context.Context, tenant tenant.ID, users []string, at int64) error
	// written returns a channel that is closed when the database next accepts a
	// write from any caller.
	written() <-chan struct{}
	// lasting reports whether a failure would be the same for any entry: the
	// database is unavailable or full, rather than refusing this entry.
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
		lines: map[tenant.ID]*line{}, hungry: map[*line]bool{}, usage: newUsage(), idle: true,
		slots: make(chan struct{}, maxWriters), begin: make(chan struct{}, 1),
		closing: make(chan struct{}), done: make(chan struct{}),
		pending: map[tenant.ID]*usageBatch{}, names: newNames(), trouble: throttledLog{log: opts.Log},
	}
	r.room.L = &r.mu
	r.ctx, r.abort = context.WithCancel(context.Background())
	go r.run()
	return r
}

// Record counts the request and, if ev.Persist is set, keeps its entry. It
// returns at once unless the database is behind with the entries of this
// tenant. It must be called before the answer is sent: then a client that has
// its answer has its entry, at the latest 250 ms later.
func (r *Recorder) Record(ev *Event) {
	if ev.Tenant == "" {
		return
	}
	var enc *encoder
	if ev.Persist {
		enc = encoders.Get().(*encoder)
		defer enc.done()
		r.encode(enc, ev)
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
	if ev.Uncounted {
		return
	}
	if len(r.usage.dirty) == 0 {
		r.counted = r.now()
	}
	r.usage.count(ev)
	if r.idle {
		r.idle = false
		background.Signal(r.begin)
	}
}

// encode encodes an event, in a turn at the cores if that is much work.
func (r *Recorder) encode(enc *encoder, ev *Event) {
	if ev.heavy() {
		turn, _ := r.opts.Cores.Start(context.Background(), string(ev.Tenant)) // fails only with its context
		defer turn.Stop()
	}
	enc.encode(ev)
}

// awaitUsage returns when a request may be counted. mu must be held; it is
// released during the wait.
func (r *Recorder) awaitUsage() {
	for !r.closed && len(r.usage.dirty) >= maxUsageRows {
		r.waiting++
		r.room.Wait()
		r.waiting--
	}
}

// now returns the time on the machine's monotonic clock.
func (r *Recorder) now() time.Duration { return time.Since(r.begun) + 1 }

// Refuses reports whether requests of a tenant must be refused before anything
// is done for them: the database accepts none of its entries, and the tenant's
// share is used up. A request that cannot be recorded is not served (contract
// G10).
func (r *Recorder) Refuses(tenant tenant.ID) bool {
	if r.failing.Load() == 0 {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.lines[tenant]
	return l != nil && l.failing && !r.hasRoom(tenant)
}

// hasRoom reports whether a tenant's share has room for any entry.
func (r *Recorder) hasRoom(tenant tenant.ID) bool {
	return r.budget.Held(string(tenant))+longestEntry <= int64(r.opts.MaxBytes)-r.budget.Used()-longestEntry
}

// late logs an event that came after Close: its request is in the request log
// only.
func (r *Recorder) late(ev *Event) {
	if ev.Persist {
		r.stats.lost.Add(1)
		r.trouble.lost(ev.Tenant, ev.RequestID, "the recorder is closed")
	}
}

// Close writes everything that was recorded and ends the recorder. All requests
// must have ended: what is recorded later is lost, and the request log says so.
// If ctx ends first, Close gives up the rest and returns how much that is.
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

// Stats are the values for metrics.
type Stats struct {
	Queued, QueuedBytes int    // entries held, and about how many bytes
	Waiting             int    // requests that wait for the database
	Failing             int    // tenants whose entries cannot be written at the moment
	Written             uint64 // entries
	Waits               uint64 // requests that had to wait
	Failures            uint64 // writes that failed and were tried again
	Lost                uint64 // entries recorded after Close
}

// Stats returns the current values.
func (r *Recorder) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Stats{
		Queued: r.entries, QueuedBytes: int(r.bytes), Waiting: r.waiting, Failing: int(r.failing.Load()),
		Written: r.stats.written.Load(), Waits: r.stats.waits.Load(), Failures: r.stats.failures.Load(), Lost: r.stats.lost.Load(),
	}
}
