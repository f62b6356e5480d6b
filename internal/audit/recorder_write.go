package audit

import (
	"errors"
	"sync"
	"time"
)

const (
	firstBackoff = 20 * time.Millisecond
	lastBackoff  = time.Second
	// wokenBackoff is the longest pause once the database has taken another write:
	// it may take that and still not this one, which must not cost much then.
	wokenBackoff = 100 * time.Millisecond
	// salvageAfter is how many times a write may fail for no lasting reason
	// before its entries are tried one by one.
	salvageAfter = 5
)

// write writes the blocks that a line is to write, again and again until it
// succeeds; false when Close gave up.
func (r *Recorder) write(l *line) bool {
	blocks := make([]packed, len(l.writing))
	entries := 0
	for i, b := range l.writing {
		blocks[i] = b.pack()
		entries += b.entries
	}
	pause := r.opts.backoff
	var alone map[string]bool // not nil: entries are written each by itself, and these were
	for failed := 0; ; {
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
		if !r.pause(pause) {
			return false
		}
		pause = min(2*pause, lastBackoff)
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

// tryOr writes blocks of one day once, or what is left of them entry by entry.
func (r *Recorder) tryOr(tenant string, blocks []packed, alone map[string]bool) error {
	if alone != nil {
		return r.salvage(tenant, blocks, alone)
	}
	return r.try(tenant, blocks)
}

// try writes blocks of one day once.
func (r *Recorder) try(tenant string, blocks []packed) error {
	r.slots <- struct{}{}
	defer func() { <-r.slots }()
	return r.store.write(r.ctx, tenant, blocks[0].day, blocks)
}

// fails notes whether the database takes nothing of a tenant for now.
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
	l.space.Broadcast() // those who wait are let in, or wait on
}

// salvage writes the entries of a line's blocks each by itself, so that one
// entry that the database does not take, for what it holds, does not stop the
// log for ever: that entry is kept without its texts. When the database takes not
// even that, it is not the entry's fault, and salvage fails; done has those that
// were written, which the next call leaves alone. The blocks must not be written
// whole any more: each would have the same entries again, or be taken for the one
// entry that its id is of.
func (r *Recorder) salvage(tenant string, blocks []packed, done map[string]bool) error {
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

// salvageEntry writes an entry by itself, without its texts if need be.
func (r *Recorder) salvageEntry(tenant string, day int64, e *Entry) error {
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

// bare is an entry without anything that a client wrote.
func (e *Entry) bare() *Entry {
	return &Entry{ID: e.ID, At: e.At, Auth: e.Auth, Status: e.Status, Duration: e.Duration, Request: "{}", Response: "{}"}
}

// pause waits until a write that has failed is to be tried again; false when
// Close gave up meanwhile. When the database takes any other write, what it lacked
// may be there again: requests that change something succeed from then on, and must
// not be refused because this pause goes on.
func (r *Recorder) pause(d time.Duration) bool {
	written := r.store.written()
	least, whole := time.NewTimer(min(d, wokenBackoff)), time.NewTimer(d)
	defer least.Stop()
	defer whole.Stop()
	select {
	case <-least.C:
	case <-r.ctx.Done():
		return false
	}
	select {
	case <-written:
	case <-whole.C:
	case <-r.ctx.Done():
		return false
	}
	return true
}

// trouble tells the request log of failures, at most once a second each kind.
type trouble struct {
	log  *RequestLog
	mu   sync.Mutex
	said map[string]time.Time
}

func (t *trouble) say(event string, fields map[string]any) {
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

func (t *trouble) failed(tenant string, err error, entries int) {
	t.say("audit.write_failed", map[string]any{"tenant": tenant, "error": err.Error(), "entries": entries})
}

func (t *trouble) stripped(tenant, entry string, err error) {
	if t.log != nil {
		t.log.Emit("audit.entry_stripped", map[string]any{"tenant": tenant, "entry_id": entry, "error": err.Error()})
	}
}

func (t *trouble) over(tenant string, failed int) {
	if failed > 0 {
		t.say("audit.write_recovered", map[string]any{"tenant": tenant, "failures": failed})
	}
}

// lost tells of every entry that is given up, however many.
func (t *trouble) lost(tenant, requestID, reason string) {
	if t.log != nil {
		t.log.Emit("audit.entry_lost", map[string]any{"tenant": tenant, "request_id": requestID, "error": reason})
	}
}
