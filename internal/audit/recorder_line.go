package audit

import (
	"slices"
	"sync"
	"time"

	"gatehouse/internal/background"
	"gatehouse/internal/tenant"
)

// maxWriters is how many tenants' entries are written at the same time.
const maxWriters = 16

// keptBuffers is how many blocks' buffers a line keeps for the next blocks.
const keptBuffers = 2

// line is the queue of one tenant. A goroutine of its own writes it while it
// has entries, so that only this goroutine waits for what makes the tenant's
// writes slow. The recorder's lock guards it.
type line struct {
	tenant  tenant.ID
	blocks  []*block // oldest first; the last one may still grow
	sealing []*block // being compressed
	writing []*block
	spare   []*block // written; kept for their memory
	size    int      // of blocks
	waiting int      // callers
	space   sync.Cond
	full    chan struct{} // asks to write at once
	served  bool          // its goroutine runs
	failing bool          // the database is unavailable or full
}

// line returns a tenant's line, and creates it if needed.
func (r *Recorder) line(tenant tenant.ID) *line {
	l := r.lines[tenant]
	if l == nil {
		l = &line{tenant: tenant, full: make(chan struct{}, 1)}
		l.space.L = &r.mu
		r.lines[tenant] = l
	}
	return l
}

// keep adds an entry to its tenant's line when there is room. mu must be held;
// it is released during the wait. keep does nothing once the recorder is
// closed.
func (r *Recorder) keep(tenant tenant.ID, enc *encoder) {
	l, size := r.line(tenant), enc.size()
	charged, ok := r.admit(l, size)
	if !ok {
		r.stats.waits.Add(1)
		r.waiting++
		l.waiting++
		for !ok {
			background.Signal(l.full)
			l.space.Wait()
			charged, ok = r.admit(l, size)
		}
		l.waiting--
		r.waiting--
	}
	if r.closed {
		return
	}
	b := l.open(enc.entry.At.UnixMicro(), r.now())
	before := b.size()
	enc.addTo(b)
	b.charged += charged
	l.size += b.size() - before
	r.entries++
	r.bytes += size
	b.bytes += size
	if l.size >= flushBytes {
		background.Signal(l.full)
	}
	if b.size() >= blockBytes {
		r.seal(l, b)
	}
	if !l.served && !r.closed {
		l.served = true
		r.serving.Go(func() { r.serve(l) })
	}
}

// seal compresses a block of a line that has become full, so that it takes a
// fraction of the memory and its buffers serve the next block. mu must be held;
// it is released meanwhile.
func (r *Recorder) seal(l *line, b *block) {
	l.blocks = l.blocks[:len(l.blocks)-1]
	l.size -= b.size()
	l.sealing = append(l.sealing, b)
	r.mu.Unlock()
	p := b.pack()
	r.mu.Lock()
	l.sealing = slices.DeleteFunc(l.sealing, func(other *block) bool { return other == b })
	l.reuse(&block{head: b.head, bodies: b.bodies})
	b.head, b.bodies, b.packed = nil, nil, &p
	size := int64(b.size())
	r.bytes -= b.bytes - size
	b.bytes = size
	if b.charged > size {
		r.budget.Release(string(l.tenant), b.charged-size)
		b.charged = size
		r.feed()
	}
	at := slices.IndexFunc(l.blocks, func(other *block) bool { return other.came > b.came })
	if at < 0 {
		at = len(l.blocks)
	}
	l.blocks = slices.Insert(l.blocks, at, b)
	if l.size += b.size(); l.size >= flushBytes {
		background.Signal(l.full)
	}
}

// reuse keeps the buffers of a block for another one.
func (l *line) reuse(b *block) {
	if b.packed == nil && len(l.spare) < keptBuffers && cap(b.head)+cap(b.bodies) <= 4*blockBytes {
		l.spare = append(l.spare, b)
	}
}

// feed wakes callers that wait for others to release bytes.
func (r *Recorder) feed() {
	for l := range r.hungry {
		l.space.Broadcast()
	}
	clear(r.hungry)
}

// admit reports whether an entry may be accepted, and how much it took from the
// budget for it.
func (r *Recorder) admit(l *line, size int64) (charged int64, ok bool) {
	oldest, some := l.oldest()
	switch {
	case r.closed:
		return 0, true
	case some && !l.failing && r.now()-oldest >= maxAge:
		return 0, false
	case r.budget.Take(string(l.tenant), size):
		return size, true
	case !some:
		// Nothing of this tenant waits, so it must not wait for others'
		// entries.
		return 0, true
	case l.failing:
		// Waiting would block every request for as long as the disk is full.
		// These requests were admitted before Refuses began to refuse, so their
		// entries are kept.
		return 0, true
	default:
		r.hungry[l] = true
		return 0, false
	}
}

// oldest returns when the oldest unwritten entry arrived.
func (l *line) oldest() (came time.Duration, some bool) {
	switch {
	case len(l.writing) > 0:
		return l.writing[0].came, true
	case len(l.sealing) > 0:
		return l.sealing[0].came, true
	case len(l.blocks) > 0:
		return l.blocks[0].came, true
	default:
		return 0, false
	}
}

// open returns the block for the next entry, whose request came at the given
// time in microseconds. The entries of a block are of one day and at most
// blockSpan apart.
func (l *line) open(at int64, now time.Duration) *block {
	day := at / dayMicros
	if n := len(l.blocks); n > 0 {
		const near = int64(blockSpan / 2 / time.Microsecond)
		if b := l.blocks[n-1]; b.day == day && b.packed == nil && at-b.at < near && b.at-at < near {
			return b
		}
	}
	b := &block{}
	if n := len(l.spare); n > 0 {
		b, l.spare = l.spare[n-1], l.spare[:n-1]
	}
	*b = block{tenant: l.tenant, day: day, at: at, came: now, head: b.head[:0], bodies: b.bodies[:0]}
	l.blocks = append(l.blocks, b)
	return b
}

// serve writes a line until it is empty, or Close gives up.
func (r *Recorder) serve(l *line) {
	timer := time.NewTimer(flushEntries)
	defer timer.Stop()
	for {
		in, some := r.due(l)
		if !some {
			return
		}
		if in > 0 {
			timer.Reset(in)
			select {
			case <-l.full:
			case <-timer.C:
			case <-r.closing:
			}
		}
		if !r.flush(l) {
			return
		}
	}
}

// due returns how long the next write of a line may wait. If there is none, it
// removes the line, which needs no goroutine any more.
func (r *Recorder) due(l *line) (in time.Duration, some bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(l.blocks) == 0 {
		l.served = false
		if l.waiting == 0 && len(l.sealing) == 0 {
			delete(r.lines, l.tenant)
		}
		return 0, false
	}
	if r.stop || l.waiting > 0 || l.size >= flushBytes {
		return 0, true
	}
	return l.blocks[0].came + flushEntries - r.now(), true
}

// flush writes the oldest blocks of a line that are of one day. There may be
// none, if the only one has become full since due and is being compressed.
// flush returns false when Close gave up; the blocks then stay counted.
func (r *Recorder) flush(l *line) bool {
	r.mu.Lock()
	if len(l.blocks) == 0 {
		r.mu.Unlock()
		return true
	}
	n := 0
	for size := 0; n < len(l.blocks) && l.blocks[n].day == l.blocks[0].day && size < 2*flushBytes; n++ {
		size += l.blocks[n].size()
	}
	l.writing = append(l.writing[:0], l.blocks[:n]...)
	l.blocks = append(l.blocks[:0], l.blocks[n:]...)
	l.size = 0
	for _, b := range l.blocks {
		l.size += b.size()
	}
	r.mu.Unlock()

	if !r.write(l) {
		return false
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range l.writing {
		r.entries -= b.entries
		r.bytes -= b.bytes
		if b.charged > 0 {
			r.budget.Release(string(l.tenant), b.charged)
		}
		l.reuse(b)
	}
	clear(l.writing)
	l.writing = l.writing[:0]
	l.space.Broadcast()
	r.feed()
	return true
}
