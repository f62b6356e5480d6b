package audit

import (
	"errors"
	"sync"
	"time"

	"gatehouse/internal/background"
	"gatehouse/internal/tenant"
)

const (
	firstBackoff = 20 * time.Millisecond
	lastBackoff  = time.Second
	// salvageAfter is how many times a write may fail for no lasting reason
	// before its entries are tried one by one.
	salvageAfter = 5
)

// write writes a line's blocks, again and again until that succeeds. It returns
// false when Close gave up.
func (r *Recorder) write(l *line) bool {
	blocks := make([]packed, len(l.writing))
	entries := 0
	for i, b := range l.writing {
		blocks[i] = b.pack()
		entries += b.entries
	}
	pause := r.backoff()
	var alone map[string]bool // if not nil, entries are written one by one, and these are written
	for failed := 0; ; {
		others := r.store.written() // from before the try: a write between a failure and the pause ends the pause
		err := r.tryOr(l.tenant, blocks, alone)
		r.fails(l, err != nil && r.store.lasting(err))
		if err == nil {
			r.trouble.over(l.tenant, failed)
			break
		}
		if r.ctx.Err() != nil {
			return false
		}
		r.stats.failures.Add(1)
		r.trouble.failed(l.tenant, err, entries)
		if failed++; failed >= salvageAfter && alone == nil && !r.store.lasting(err) {
			alone = map[string]bool{}
			continue
		}
		if pause.Wait(r.ctx, others) != nil {
			return false
		}
	}
	r.stats.written.Add(uint64(entries))
	for i := range blocks {
		for m := range blocks[i].marks {
			if m.kind == markUser {
				r.names.saw(l.tenant, m.value)
			}
		}
	}
	if r.names.some() {
		r.wake()
	}
	return true
}

// tryOr writes blocks of one day once, or the unwritten entries of them one by
// one.
func (r *Recorder) tryOr(tenant tenant.ID, blocks []packed, alone map[string]bool) error {
	if alone != nil {
		return r.salvage(tenant, blocks, alone)
	}
	return r.try(tenant, blocks)
}

// try writes blocks of one day once.
func (r *Recorder) try(tenant tenant.ID, blocks []packed) error {
	r.slots <- struct{}{}
	defer func() { <-r.slots }()
	return r.store.write(r.ctx, tenant, blocks[0].day, blocks)
}

// fails records whether the database accepts no entries of a tenant at the
// moment.
func (r *Recorder) fails(l *line, now bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l.failing == now {
		return
	}
	l.failing = now
	if now {
		r.failing.Add(1)
	} else {
		r.failing.Add(-1)
	}
	l.space.Broadcast() // waiting callers check again
}

// salvage writes the entries of a line's blocks one by one, so that one entry
// that the database refuses because of its content does not stop the log for
// ever: that entry is kept without its texts. If the database refuses even
// that, the entry is not the cause, and salvage fails; done has the entries
// that were written, which the next call skips. The blocks must not be written
// as a whole afterwards: that would repeat entries, or a block could be
// mistaken for the single entry with its id.
func (r *Recorder) salvage(tenant tenant.ID, blocks []packed, done map[string]bool) error {
	for _, b := range blocks {
		head, err := unpack(b.head)
		if err != nil {
			return err
		}
		bodies, err := unpack(b.bodies)
		if err != nil {
			return err
		}
		var failed error
		err = readHead(head, func(e *found) {
			if failed != nil || done[e.ID] {
				return
			}
			if failed = e.texts(bodies); failed != nil {
				return
			}
			if failed = r.salvageEntry(tenant, b.day, &e.Entry); failed == nil {
				done[e.ID] = true
			}
		})
		if err := errors.Join(err, failed); err != nil {
			return err
		}
	}
	return nil
}

// salvageEntry writes one entry, without its texts if need be.
func (r *Recorder) salvageEntry(tenant tenant.ID, day int64, e *Entry) error {
	single := func(e *Entry) error {
		one := block{tenant: tenant, day: day}
		one.add(e, []byte(e.Request), []byte(e.Response))
		return r.try(tenant, []packed{one.pack()})
	}
	err := single(e)
	if err == nil || r.store.lasting(err) {
		return err
	}
	bare := e.bare()
	if err := single(bare); err != nil {
		return err
	}
	r.trouble.stripped(tenant, bare.ID, err)
	return nil
}

// bare returns an entry without anything that a client wrote.
func (e *Entry) bare() *Entry {
	return &Entry{ID: e.ID, At: e.At, Auth: e.Auth, Status: e.Status, Duration: e.Duration, Request: "{}", Response: "{}"}
}

// backoff returns the pauses after failed writes. A pause ends early when the
// database accepts any other write: the cause of the failure may be gone, and
// requests that change something, which succeed from then on, must not be
// refused because of a pause.
func (r *Recorder) backoff() background.Backoff {
	return background.Backoff{First: r.opts.backoff, Last: lastBackoff}
}

// throttledLog reports failures to the request log, at most one a second of
// each kind.
type throttledLog struct {
	log  *RequestLog
	mu   sync.Mutex
	said map[string]time.Time
}

func (t *throttledLog) say(event string, fields map[string]any) {
	if t.log == nil {
		return
	}
	t.mu.Lock()
	now := time.Now()
	soon := now.Sub(t.said[event]) < time.Second
	if !soon {
		if t.said == nil {
			t.said = map[string]time.Time{}
		}
		t.said[event] = now
	}
	t.mu.Unlock()
	if !soon {
		t.log.Emit(event, fields)
	}
}

func (t *throttledLog) failed(tenant tenant.ID, err error, entries int) {
	t.say("audit.write_failed", map[string]any{"tenant": tenant, "error": err.Error(), "entries": entries})
}

func (t *throttledLog) stripped(tenant tenant.ID, entry string, err error) {
	if t.log != nil {
		t.log.Emit("audit.entry_stripped", map[string]any{"tenant": tenant, "entry_id": entry, "error": err.Error()})
	}
}

func (t *throttledLog) over(tenant tenant.ID, failed int) {
	if failed > 0 {
		t.say("audit.write_recovered", map[string]any{"tenant": tenant, "failures": failed})
	}
}

// lost logs every entry that is given up, however many there are.
func (t *throttledLog) lost(tenant tenant.ID, requestID, reason string) {
	if t.log != nil {
		t.log.Emit("audit.entry_lost", map[string]any{"tenant": tenant, "request_id": requestID, "error": reason})
	}
}
