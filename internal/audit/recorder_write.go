package audit

import (
	"sync"
	"time"
)

const (
	firstBackoff = 20 * time.Millisecond
	lastBackoff  = time.Second
	// salvageAfter is how many times a write may fail for no lasting reason
	// before its entries are tried one by one.
	salvageAfter = 5
)

// write writes a batch, again and again until it succeeds or Close gives up:
// then the entries stay counted as held.
func (r *Recorder) write(b *batch) {
	rows := encode(b.items)
	pause := firstBackoff
	for failed := 0; ; {
		err := r.store.write(r.ctx, b.tenant, rows, b.usage, failed > 0)
		r.fails(err != nil && r.store.lasting(err))
		if err == nil {
			r.trouble.over(b.tenant, failed)
			break
		}
		if r.ctx.Err() != nil {
			r.giveUp(b)
			return
		}
		r.stats.failures.Add(1)
		r.trouble.failed(b.tenant, err, len(rows))
		if failed++; failed >= salvageAfter && len(rows) > 0 && !r.store.lasting(err) && r.salvage(b, rows) {
			break
		}
		if !r.pause(pause) {
			r.giveUp(b)
			return
		}
		pause = min(2*pause, lastBackoff)
	}
	r.stats.written.Add(uint64(len(rows)))
	for _, it := range b.items {
		if it.ev.UserID != "" {
			r.names.saw(b.tenant, it.ev.UserID)
		}
	}
	r.release(b.items)
}

// fails notes whether the database takes nothing at all for now.
func (r *Recorder) fails(now bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failing != now {
		r.failing = now
		r.space.Broadcast() // those who wait are let in, or wait on
	}
	r.weigh()
}

// salvage writes the entries of a batch each by itself, so that one entry that
// the database does not take, for what it holds, does not stop the log for
// ever: that entry is kept without its texts. It returns false when the
// database takes not even that: then it is not the entry's fault.
func (r *Recorder) salvage(b *batch, rows []row) bool {
	if err := r.store.write(r.ctx, b.tenant, nil, b.usage, false); err != nil {
		return false
	}
	b.usage = nil
	for i := range rows {
		err := r.store.write(r.ctx, b.tenant, rows[i:i+1], nil, false)
		if err == nil {
			continue
		}
		bare := rows[i].bare()
		if r.store.lasting(err) || r.store.write(r.ctx, b.tenant, []row{bare}, nil, false) != nil {
			return false // those written stay; a second time does them no harm
		}
		rows[i] = bare
		r.trouble.stripped(b.tenant, bare.id, err)
	}
	return true
}

// bare is an entry without anything that a client wrote.
func (w row) bare() row {
	return row{id: w.id, at: w.at, auth: w.auth, status: w.status, durationMicros: w.durationMicros, request: "{}", response: "{}"}
}

// pause waits; false when Close gave up meanwhile.
func (r *Recorder) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.ctx.Done():
		return false
	}
}

// giveUp leaves usage that was not written for Close to count.
func (r *Recorder) giveUp(b *batch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range b.usage {
		r.usage.dirty = append(r.usage.dirty, &b.usage[i])
	}
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
