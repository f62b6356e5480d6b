package audit

import (
	"sync"
	"time"

	"gatehouse/internal/background"
	"gatehouse/internal/tenant"
)

// usageBatch is usage of one tenant, which is written until that succeeds.
type usageBatch struct {
	number int64
	rows   []usageRow
}

// run writes usage and the addresses of users, until Close; then it makes all
// lines end.
func (r *Recorder) run() {
	defer close(r.done)
	defer r.end()
	timer := time.NewTimer(flushUsage)
	pause := r.backoff()
	for {
		in, some := r.usageDue()
		switch {
		case !some:
			select {
			case <-r.begin:
			case <-r.closing:
			}
			continue // waits for more
		case in > 0:
			timer.Reset(in)
			select {
			case <-timer.C:
			case <-r.closing:
			}
		}
		others := r.store.written() // from before the try, as in write
		if r.writeUsage() {
			pause.Reset()
		} else if pause.Wait(r.ctx, others) != nil {
			return
		}
		r.rememberUsers(false)
		if r.stopped() {
			r.rememberUsers(true)
			return
		}
		if r.ctx.Err() != nil {
			return
		}
	}
}

// usageDue returns how long the next write of usage may wait, and whether there
// is one.
func (r *Recorder) usageDue() (in time.Duration, some bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.stop || len(r.pending) > 0:
		return 0, true
	case len(r.usage.dirty) > 0:
		return r.counted + flushUsage - r.now(), true
	case r.names.some():
		return flushUsage, true
	default:
		r.idle = true
		return 0, false
	}
}

// wake makes run check for work.
func (r *Recorder) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.idle {
		r.idle = false
		background.Signal(r.begin)
	}
}

// stopped reports whether Close was called and nothing is left to write; from
// then on nothing is accepted. It waits a moment for lines that need one.
func (r *Recorder) stopped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stop {
		return false
	}
	if len(r.lines) > 0 || len(r.usage.dirty) > 0 || len(r.pending) > 0 || r.waiting > 0 {
		r.mu.Unlock()
		time.Sleep(time.Millisecond)
		r.mu.Lock()
		return false
	}
	r.closed = true
	return true
}

// end releases the callers that wait for a recorder that has ended, and returns
// when nothing is being written.
func (r *Recorder) end() {
	r.abort()
	r.mu.Lock()
	r.closed = true
	for _, l := range r.lines {
		l.space.Broadcast()
	}
	r.room.Broadcast()
	r.mu.Unlock()
	r.serving.Wait()
}

// writeUsage writes the usage of each tenant separately. Rows that fail keep
// their batch number until they succeed, and newer ones of the tenant wait for
// them. It returns false when any failed.
func (r *Recorder) writeUsage() bool {
	r.mu.Lock()
	taken := r.usage.take(func(tenant tenant.ID) bool { return r.pending[tenant] != nil })
	for tenant, rows := range taken {
		r.batch++
		r.pending[tenant] = &usageBatch{number: r.batch, rows: rows}
	}
	pending := make(map[tenant.ID]*usageBatch, len(r.pending))
	for tenant, b := range r.pending {
		pending[tenant] = b
	}
	r.room.Broadcast()
	r.mu.Unlock()

	var wait sync.WaitGroup
	for tenant, b := range pending {
		r.slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-r.slots }()
			if err := r.store.count(r.ctx, tenant, b.number, b.rows); err != nil {
				if r.ctx.Err() == nil {
					r.stats.failures.Add(1)
					r.trouble.failed(tenant, err, 0)
				}
				return
			}
			r.mu.Lock()
			delete(r.pending, tenant)
			r.mu.Unlock()
		})
	}
	wait.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.pending) == 0
}
