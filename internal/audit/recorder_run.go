package audit

import (
	"sync"
	"time"

	"gatehouse/internal/clock"
)

// maxWriters is how many tenants' batches are written at once.
const maxWriters = 16

// batch is what one write has: of one tenant.
type batch struct {
	tenant string
	items  []item
	usage  []usageRow
}

// run writes what is recorded until Close.
func (r *Recorder) run() {
	defer close(r.done)
	defer r.end()
	timer := time.NewTimer(flushUsage)
	for {
		in, some := r.due()
		switch {
		case !some && r.stopping():
			r.rememberUsers(true)
			return
		case !some:
			select {
			case <-r.begin:
			case <-r.closing:
			}
			continue
		case in > 0:
			timer.Reset(in)
			select {
			case <-r.full:
			case <-timer.C:
			case <-r.closing:
			}
		}
		if !r.flush() {
			return
		}
	}
}

// due says how long the next write may wait, and whether there is any.
func (r *Recorder) due() (in time.Duration, some bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case len(r.queue) == 0 && len(r.usage.dirty) == 0:
		r.idle = true
		return 0, false
	case r.stop || r.waiting > 0 || len(r.queue) >= batchEntries || r.bytes >= batchBytes:
		return 0, true
	}
	until := r.counted + flushUsage
	if len(r.queue) > 0 {
		until = min(until, r.queue[0].came+flushEntries)
	}
	return until - r.now(), true
}

// stopping reports whether Close was called and nothing is left to write; then
// nothing is taken any more.
func (r *Recorder) stopping() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stop || len(r.queue) > 0 || len(r.usage.dirty) > 0 {
		return false
	}
	if r.waiting > 0 { // callers that were let go and have not got the lock yet
		r.space.Broadcast()
		r.mu.Unlock()
		time.Sleep(time.Millisecond)
		r.mu.Lock()
		return false
	}
	r.closed = true
	return true
}

// end lets those go who wait for a recorder that is no more.
func (r *Recorder) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.space.Broadcast()
	r.abort()
}

// flush writes one share of the queue. It returns false when Close gave up.
func (r *Recorder) flush() bool {
	batches := r.take()
	var wait sync.WaitGroup
	slots := make(chan struct{}, maxWriters)
	for i := range batches {
		if len(batches) == 1 {
			r.write(&batches[i])
			break
		}
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			r.write(&batches[i])
		})
	}
	wait.Wait()
	r.mu.Lock()
	r.writing = 0
	r.space.Broadcast()
	r.mu.Unlock()
	r.rememberUsers(false)
	return r.ctx.Err() == nil
}

// take takes the head of the queue and all usage, by tenant. Of one tenant it
// takes no more than makes one transaction, so that no two writes of one
// tenant meet.
func (r *Recorder) take() []batch {
	r.mu.Lock()
	defer r.mu.Unlock()
	var batches []batch
	index := map[string]int{}
	of := func(tenant string) *batch {
		i, ok := index[tenant]
		if !ok {
			i = len(batches)
			index[tenant] = i
			batches = append(batches, batch{tenant: tenant})
		}
		return &batches[i]
	}
	taken, bytes, rest := 0, 0, r.queue[:0]
	for i, it := range r.queue {
		if taken >= takeEntries || bytes >= batchBytes {
			rest = append(rest, r.queue[i:]...)
			break
		}
		b := of(it.ev.Tenant)
		if len(b.items) >= batchEntries {
			rest = append(rest, it)
			continue
		}
		if r.writing == 0 {
			r.writing = it.came
		}
		b.items = append(b.items, it)
		taken++
		bytes += it.size
	}
	clear(r.queue[len(rest):])
	r.queue = rest
	for _, row := range r.usage.take() {
		b := of(row.tenant)
		b.usage = append(b.usage, row)
	}
	return batches
}

// release gives back the room of written entries.
func (r *Recorder) release(items []item) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held -= len(items)
	for _, it := range items {
		r.bytes -= it.size
	}
	r.weigh()
	r.space.Broadcast()
}

// row is an audit entry as it is stored.
type row struct {
	id                                     string
	at                                     int64 // microseconds
	user, auth, method, path, endpoint, ip string
	status                                 int
	durationMicros                         int64
	requestID, request, response           string
}

// The most that is kept of a text, in bytes.
const (
	maxPath     = 2 << 10
	maxEndpoint = 160
	maxShort    = 128
)

// encode makes the rows of a batch: redacted, cut, and fit for any database.
func encode(items []item) []row {
	rows := make([]row, len(items))
	ends := make([][3]int, len(items))
	enc := encoders.Get().(*encoder)
	defer encoders.Put(enc)
	enc.buf = enc.buf[:0]
	for i, it := range items {
		ends[i][0] = len(enc.buf)
		enc.request(it.ev)
		ends[i][1] = len(enc.buf)
		enc.response(it.ev)
		ends[i][2] = len(enc.buf)
	}
	all := string(enc.buf) // one allocation for the texts of all
	if cap(enc.buf) > batchBytes {
		enc.buf = nil
	}
	for i, it := range items {
		ev := it.ev
		endpoint := ev.Endpoint
		if len(endpoint) > maxEndpoint {
			endpoint = ""
		}
		rows[i] = row{
			id: clock.NewID(ev.Start), at: clock.Micros(ev.Start),
			user: short(ev.UserID), auth: label(ev.Auth), method: short(ev.Method),
			path: storable(cut(maskTokens(ev.Path), maxPath)), endpoint: storable(endpoint), ip: short(ev.IP),
			status: ev.Status, durationMicros: max(ev.Duration.Microseconds(), 0), requestID: short(ev.RequestID),
			request: all[ends[i][0]:ends[i][1]], response: all[ends[i][1]:ends[i][2]],
		}
	}
	return rows
}

var encoders = sync.Pool{New: func() any { return new(encoder) }}

func short(s string) string { return storable(cut(s, maxShort)) }

// label is how an entry says how a request said who it was; "" for not at all.
func label(auth string) string {
	switch auth {
	case AuthKey:
		return "KEY"
	case AuthJWT:
		return "JWT"
	case AuthToken:
		return "TOKEN"
	case AuthSigned:
		return "SIGNED"
	default:
		return ""
	}
}
