package audit

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"gatehouse/internal/clock"
	"gatehouse/internal/fault"
	"gatehouse/internal/tenant"
)

// Bounds of live tails. One goroutine of a tenant reads what was written for all
// of its tails; it runs while there is one.
const (
	maxTails        = 256 // of a process
	maxTenantTails  = 16
	maxSessionTails = 3
	tailEvery       = 300 * time.Millisecond
	// tailBack is how long after its request an entry is still given: entries come
	// when the request has ended and the database has taken them.
	tailBack = 2 * time.Minute
	// tailBlocks are read at once; of a tenant that writes more than that, what is
	// over is counted as skipped.
	tailBlocks = 48
	// tailHeld is how many entries wait for one client.
	tailHeld = 200
)

// tails are the live tails of a process.
type tails struct {
	mu      sync.Mutex
	tenants map[tenant.ID]*tenantTails
	count   int
}

func newTails() *tails { return &tails{tenants: map[tenant.ID]*tenantTails{}} }

// tenantTails are those of one tenant.
type tenantTails struct {
	tails []*tail
	stop  context.CancelFunc
}

// tail is what one client waits for.
type tail struct {
	session string
	match   matcher

	mu      sync.Mutex
	entries []*Entry // oldest first
	skipped int64    // entries that matched and were not kept
	news    chan struct{}
}

var errTails = fault.New(fault.Overloaded, "too many live tails are open; close one, or try again later").After(30 * time.Second)

// open adds a tail; read is called in a goroutine of its own if it is the first
// one of the tenant. close must be called.
func (ts *tails) open(t tenant.ID, tl *tail, read func(context.Context)) (closeTail func(), err error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	of := ts.tenants[t]
	if of == nil {
		of = &tenantTails{}
	}
	mine := 0
	for _, other := range of.tails {
		if other.session == tl.session {
			mine++
		}
	}
	switch {
	case mine >= maxSessionTails:
		return nil, fault.New(fault.RateLimited, "this session has %d live tails open, which is the most: close one", mine).After(30 * time.Second)
	case len(of.tails) >= maxTenantTails || ts.count >= maxTails:
		return nil, errTails
	}
	ts.count++
	of.tails = append(of.tails, tl)
	if len(of.tails) == 1 {
		ctx, cancel := context.WithCancel(context.Background())
		of.stop = cancel
		ts.tenants[t] = of
		go read(ctx)
	}
	return func() { ts.close(t, tl) }, nil
}

func (ts *tails) close(t tenant.ID, tl *tail) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	of := ts.tenants[t]
	of.tails = slices.DeleteFunc(of.tails, func(other *tail) bool { return other == tl })
	ts.count--
	if len(of.tails) == 0 {
		of.stop()
		delete(ts.tenants, t)
	}
}

// of returns the tails of a tenant.
func (ts *tails) of(t tenant.ID) []*tail {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if of := ts.tenants[t]; of != nil {
		return slices.Clone(of.tails)
	}
	return nil
}

// put gives a tail what was written: new entries, oldest first, and how many it
// missed.
func (tl *tail) put(entries []*Entry, missed int64) {
	if len(entries) == 0 && missed == 0 {
		return
	}
	tl.mu.Lock()
	tl.entries = append(tl.entries, entries...)
	if over := len(tl.entries) - tailHeld; over > 0 {
		tl.entries = slices.Delete(tl.entries, 0, over)
		tl.skipped += int64(over)
	}
	tl.skipped += missed
	tl.mu.Unlock()
	select {
	case tl.news <- struct{}{}:
	default:
	}
}

// take returns what waits.
func (tl *tail) take() (entries []*Entry, skipped int64) {
	tl.mu.Lock()
	defer tl.mu.Unlock()
	entries, skipped = tl.entries, tl.skipped
	tl.entries, tl.skipped = nil, 0
	return entries, skipped
}

// tailReader reads what is written for the tails of one tenant.
type tailReader struct {
	store adminStore
	clock clock.Clock
	tails *tails
	of    tenant.ID
	seen  map[string]bool // blocks, of the last tailBack
	begun bool            // the blocks from before are in seen
}

// run reads until ctx ends.
func (r *tailReader) run(ctx context.Context) {
	ticker := time.NewTicker(tailEvery)
	defer ticker.Stop()
	for {
		if err := r.step(ctx); err != nil && ctx.Err() == nil {
			r.store.problem(r.of, "live", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// step reads the blocks that were written since the last step.
func (r *tailReader) step(ctx context.Context) error {
	now := r.clock.Now()
	from := clock.IDsFrom(now.Add(-tailBack))
	for block := range r.seen {
		if block < from {
			delete(r.seen, block)
		}
	}
	heads, skipped, err := r.store.written(ctx, r.of, from, clock.IDsFrom(now.Add(time.Minute)), r.seen)
	if err != nil {
		return err
	}
	if !r.begun {
		r.begun, skipped = true, 0
	}
	for _, tl := range r.tails.of(r.of) {
		var fresh []*Entry
		for _, h := range heads {
			err := scanHead(h.head, func(e *headEntry) {
				if tl.match.wants(e) {
					fresh = append(fresh, &e.found().Entry)
				}
			})
			if err != nil {
				return err
			}
		}
		slices.SortFunc(fresh, func(a, b *Entry) int { return strings.Compare(a.ID, b.ID) })
		tl.put(fresh, skipped)
	}
	return nil
}
