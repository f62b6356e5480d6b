package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/internal/admission"
	"gatehouse/internal/clock"
	"gatehouse/internal/tenant"
)

// entry returns a distinct event, small enough to make many.
func entry(tenant tenant.ID, n int64) *Event {
	return &Event{
		Tenant: tenant, RequestID: fmt.Sprint(n), Method: "GET", Path: "/public/v1/me", Endpoint: "/me", Status: 200,
		Start: noon.Add(time.Duration(n) * time.Microsecond), Duration: time.Millisecond, Class: Standard, Persist: true,
	}
}

func closeRecorder(t *testing.T, r *Recorder) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := r.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

// total counts the requests in usage.
func (m *memory) total() (n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, u := range m.usage {
		n += u.requests
	}
	return n
}

func (m *memory) kept() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.entries)
}

func TestCloseLosesNothing(t *testing.T) {
	for round := range 20 {
		m := &memory{}
		r := newRecorder(m, clock.System(), Options{})
		var wait sync.WaitGroup
		const callers, each = 64, 100
		for c := range callers {
			wait.Go(func() {
				for i := range each {
					ev := entry(tenant.ID(fmt.Sprintf("t%d", c%5)), int64(c*each+i))
					ev.Persist = i%4 != 0
					r.Record(ev)
				}
			})
		}
		wait.Wait()
		closeRecorder(t, r)
		if m.kept() != callers*each*3/4 || m.total() != callers*each {
			t.Fatalf("round %d: %d entries, %d requests of %d", round, m.kept(), m.total(), callers*each)
		}
		if s := r.Stats(); s.Queued != 0 || s.QueuedBytes != 0 || s.Lost != 0 || s.Written != callers*each*3/4 {
			t.Fatalf("%+v", s)
		}
	}
}

// TestALargeBodyIsRedactedInTurn: an entry with a large body, received or answered, is made in a turn at the cores,
// others are not held up by it.
func TestALargeBodyIsRedactedInTurn(t *testing.T) {
	cores := admission.NewCores(1)
	m := &memory{}
	r := newRecorder(m, clock.System(), Options{Cores: cores})
	form := func(bytes int) []byte { return []byte("name=" + strings.Repeat("x", bytes)) }
	array := func(bytes int) []byte { return []byte(`["` + strings.Repeat("x", bytes) + `"]`) }
	for i, c := range []struct {
		what  string
		waits bool
		body  func(ev *Event)
	}{
		{"a small body", false, func(ev *Event) { ev.RequestBody = form(admission.Heavy / 2) }},
		{"a large body", true, func(ev *Event) { ev.RequestBody = form(admission.Heavy) }},
		{"a large body that was parsed", false, func(ev *Event) {
			ev.RequestBody, ev.ContentType, ev.RequestParsed = array(admission.Heavy), "application/json", true
		}},
		{"a large answer of the service", false, func(ev *Event) { ev.ResponseBody, ev.Rendered = array(admission.Heavy), true }},
		{"a small answer of a tenant", false, func(ev *Event) { ev.ResponseBody = array(admission.Heavy / 2) }},
		{"a large answer of a tenant", true, func(ev *Event) { ev.ResponseBody = array(admission.Heavy) }},
	} {
		busy, err := cores.Start(t.Context(), "bravo")
		if err != nil {
			t.Fatal(err)
		}
		ev := entry("acme", int64(i))
		ev.Persist, ev.ContentType, ev.ResponseContentType = true, "application/x-www-form-urlencoded", "application/json"
		c.body(ev)
		done := make(chan struct{})
		go func() { defer close(done); r.Record(ev) }()
		if c.waits {
			select {
			case <-done:
				t.Errorf("%s was redacted while another computed on the one core", c.what)
			case <-time.After(20 * time.Millisecond):
			}
			busy.Stop()
		}
		<-done
		busy.Stop()
	}
	busy, err := cores.Start(t.Context(), "bravo") // the turns were given back
	if err != nil {
		t.Fatal(err)
	}
	busy.Stop()
	closeRecorder(t, r)
	if m.kept() != 6 {
		t.Errorf("%d entries of 6", m.kept())
	}
}

// Close begins while callers wait for room; their entries must be written.
func TestCloseTakesThoseThatWait(t *testing.T) {
	free := make(chan struct{})
	m := &memory{before: func(context.Context, tenant.ID, []packed) error { <-free; return nil }}
	r := newRecorder(m, clock.System(), Options{})
	r.Record(entry("t", 0))
	time.Sleep(maxAge + 20*time.Millisecond)
	var wait sync.WaitGroup
	const callers = 40
	for c := range callers - 1 {
		wait.Go(func() { r.Record(entry("t", int64(c+1))) })
	}
	for r.Stats().Waiting != callers-1 {
		time.Sleep(time.Millisecond)
	}
	closed := make(chan error)
	go func() { closed <- r.Close(context.Background()) }()
	time.Sleep(20 * time.Millisecond)
	close(free)
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	wait.Wait()
	if m.kept() != callers {
		t.Errorf("%d entries of %d", m.kept(), callers)
	}
}

func TestAStalledDatabaseSlowsCallersAndDropsNothing(t *testing.T) {
	for _, c := range []struct {
		name  string
		opts  Options
		body  int
		bytes int // the most that may be held: half for a tenant alone
	}{
		{"by bytes", Options{MaxBytes: 2 << 20}, 10_000, 1 << 20},
		{"by age", Options{MaxBytes: 1 << 30}, 0, 1 << 30},
	} {
		t.Run(c.name, func(t *testing.T) {
			var stalled atomic.Bool
			stalled.Store(true)
			free := make(chan struct{})
			m := &memory{before: func(context.Context, tenant.ID, []packed) error {
				if stalled.Load() {
					<-free
				}
				return nil
			}}
			r := newRecorder(m, clock.System(), c.opts)
			var taken atomic.Int64
			var wait sync.WaitGroup
			const callers, each = 32, 200
			for g := range callers {
				wait.Go(func() {
					for i := range each {
						ev := entry("t", int64(g*each+i))
						ev.ResponseBody = noise(c.body) // what compresses well fits in whole
						r.Record(ev)
						taken.Add(1)
						if c.name == "by age" {
							time.Sleep(5 * time.Millisecond)
						}
					}
				})
			}
			held := settle(t, &taken)
			s := r.Stats()
			if s.QueuedBytes > c.bytes || held == callers*each || s.Waiting == 0 {
				t.Errorf("%d taken, %+v", held, s)
			}
			stalled.Store(false)
			close(free)
			wait.Wait()
			closeRecorder(t, r)
			if m.kept() != callers*each || m.total() != callers*each {
				t.Errorf("%d entries, %d requests of %d", m.kept(), m.total(), callers*each)
			}
		})
	}
}

// If the oldest entry is older than maxAge, kill -9 may lose more than that, so
// no more entries are accepted.
func TestNoEntryIsHeldForLongWhileOthersAreTaken(t *testing.T) {
	free := make(chan struct{})
	m := &memory{before: func(context.Context, tenant.ID, []packed) error { <-free; return nil }}
	r := newRecorder(m, clock.System(), Options{})
	r.Record(entry("t", 1))
	time.Sleep(maxAge + 50*time.Millisecond)
	done := make(chan struct{})
	go func() { r.Record(entry("t", 2)); close(done) }()
	select {
	case <-done:
		t.Error("an entry was taken while another was held for too long")
	case <-time.After(50 * time.Millisecond):
	}
	notPersisted := entry("t", 3)
	notPersisted.Persist = false
	r.Record(notPersisted) // what is only counted never waits for entries
	close(free)
	<-done
	closeRecorder(t, r)
}

func TestAnEntryIsWrittenSoon(t *testing.T) {
	var at atomic.Int64
	m := &memory{before: func(context.Context, tenant.ID, []packed) error { at.Store(time.Now().UnixNano()); return nil }}
	r := newRecorder(m, clock.System(), Options{})
	defer closeRecorder(t, r)
	for i := range 3 {
		begun := time.Now()
		at.Store(0)
		r.Record(entry("t", int64(i)))
		for at.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		if took := time.Unix(0, at.Load()).Sub(begun); took < flushEntries/2 || took > 20*time.Second {
			t.Errorf("an entry alone waited %v", took)
		}
		time.Sleep(time.Duration(i) * 30 * time.Millisecond)
	}
}

// flaky fails at random, as often after the write took place as before.
type flaky struct {
	memory
	n atomic.Int64
}

func (f *flaky) write(ctx context.Context, tenant tenant.ID, day int64, blocks []packed) error {
	return f.flake(func() error { return f.memory.write(ctx, tenant, day, blocks) })
}

func (f *flaky) count(ctx context.Context, tenant tenant.ID, batch int64, usage []usageRow) error {
	return f.flake(func() error { return f.memory.count(ctx, tenant, batch, usage) })
}

func (f *flaky) flake(do func() error) error {
	switch f.n.Add(1) % 3 {
	case 0:
		return errFull
	case 1: // committed, but the answer is lost
		_ = do()
		return errFull
	}
	return do()
}

func TestFailuresAreRetriedWithoutCountingTwice(t *testing.T) {
	var out bytes.Buffer
	log := NewRequestLog(&out, clock.System())
	f := &flaky{memory: memory{isLasting: true}}
	r := newRecorder(f, clock.System(), Options{Log: log})
	var wait sync.WaitGroup
	const callers, each = 16, 50
	for c := range callers {
		wait.Go(func() {
			for i := range each {
				r.Record(entry("t", int64(c*each+i)))
				time.Sleep(time.Millisecond)
			}
		})
	}
	wait.Wait()
	closeRecorder(t, r)
	if f.kept() != callers*each || f.total() != callers*each {
		t.Errorf("%d entries, %d requests of %d", f.kept(), f.total(), callers*each)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), `{"event":"audit.write_failed"`); n < 1 || n > 5 {
		t.Errorf("%d lines tell of failures: %s", n, out.String())
	}
}

func TestOneEntryThatTheDatabaseRefusesDoesNotStopTheOthers(t *testing.T) {
	var out bytes.Buffer
	log := NewRequestLog(&out, clock.System())
	m := &memory{before: func(_ context.Context, _ tenant.ID, blocks []packed) error {
		for _, b := range blocks {
			for _, e := range contents(b) {
				if strings.Contains(e.Path, "poison") {
					return errors.New("invalid byte sequence")
				}
			}
		}
		return nil
	}}
	r := newRecorder(m, clock.System(), Options{Log: log})
	for i := range int64(50) {
		ev := entry("t", i)
		if i == 20 {
			ev.Path = "/poison"
		}
		r.Record(ev)
	}
	closeRecorder(t, r)
	_ = log.Close()
	if m.kept() != 50 || m.total() != 50 || !strings.Contains(out.String(), `"event":"audit.entry_stripped"`) {
		t.Errorf("%d entries, %d requests; %s", m.kept(), m.total(), out.String())
	}
}

func TestCloseGivesUpWhenItsTimeIsOverAndSaysSo(t *testing.T) {
	m := &memory{isLasting: true, before: func(context.Context, tenant.ID, []packed) error { return errFull }}
	r := newRecorder(m, clock.System(), Options{})
	for i := range int64(10) {
		r.Record(entry("t", i))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
	defer cancel()
	if err := r.Close(ctx); err == nil || !strings.Contains(err.Error(), "10 audit entries") {
		t.Errorf("Close: %v", err)
	}
	r.Record(entry("t", 11)) // must not hang
	if r.Stats().Lost != 1 {
		t.Errorf("%+v", r.Stats())
	}
}

func TestOneTenantsBatchesNeverMeet(t *testing.T) {
	var mu sync.Mutex
	busy := map[tenant.ID]bool{}
	m := &memory{}
	m.before = func(context.Context, tenant.ID, []packed) error {
		time.Sleep(time.Millisecond) // let the queue grow
		return nil
	}
	s := &exclusive{memory: m, enter: func(tenant tenant.ID) {
		mu.Lock()
		defer mu.Unlock()
		if busy[tenant] {
			t.Errorf("two writes of %s at once", tenant)
		}
		busy[tenant] = true
	}, leave: func(tenant tenant.ID) {
		mu.Lock()
		defer mu.Unlock()
		busy[tenant] = false
	}}
	r := newRecorder(s, clock.System(), Options{})
	for i := range int64(5000) {
		r.Record(entry(tenant.ID(fmt.Sprintf("t%d", max(i%20-17, 0))), i))
	}
	closeRecorder(t, r)
	if m.kept() != 5000 {
		t.Errorf("%d entries", m.kept())
	}
}

type exclusive struct {
	*memory
	enter, leave func(tenant.ID)
}

func (e *exclusive) write(ctx context.Context, tenant tenant.ID, day int64, blocks []packed) error {
	e.enter(tenant)
	runtime.Gosched()
	defer e.leave(tenant)
	return e.memory.write(ctx, tenant, day, blocks)
}

func TestUsage(t *testing.T) {
	m := &memory{}
	r := newRecorder(m, clock.System(), Options{})
	for i, d := range []time.Duration{-1, 0, 5 * time.Millisecond, 5*time.Millisecond + 1, 100 * time.Millisecond, time.Second, time.Minute} {
		ev := entry("t", 0)
		ev.Duration, ev.Persist = d, i == 0
		if i > 4 {
			ev.Status, ev.APIKeyID = []int{429, 500}[i-5], "k1"
		}
		r.Record(ev)
	}
	for i := range 3 * maxEndpoints { // made-up endpoints share a row
		ev := entry("other", 0)
		ev.Persist, ev.Endpoint = false, fmt.Sprintf("/data/made-up-%d", i)
		r.Record(ev)
		if i%100 == 0 {
			time.Sleep(flushUsage / 2) // in several writes, too
		}
	}
	unknown := entry("t", 0)
	unknown.Endpoint, unknown.Start = "", noon.Add(time.Minute)
	r.Record(unknown)
	r.Record(&Event{Start: noon}) // no tenant, no usage
	closeRecorder(t, r)

	of := usageKey{tenant: "t", minute: noon.Truncate(time.Minute).UnixMicro(), endpoint: "/me"}
	want := usageRow{usageKey: of, usageSums: usageSums{
		requests: 7, errors: 2, failed: 1, limited: 1, latencyMicros: 61_110_000, buckets: [len(bucketLimits) + 1]int64{0: 2, 2: 1, 3: 1, 6: 1, 9: 1, 12: 1},
	}}
	if got := m.usage[of]; got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got := m.usage[usageKey{tenant: "t", minute: noon.Truncate(time.Minute).Add(time.Minute).UnixMicro(), endpoint: otherEndpoint}]; got.requests != 1 {
		t.Errorf("%+v", got)
	}
	ofKey := usageKey{tenant: "t", minute: of.minute, key: "k1"}
	if got := m.usage[ofKey]; got.requests != 2 || got.limited != 1 || got.failed != 1 || got.buckets[9] != 1 {
		t.Errorf("of the key: %+v", got)
	}
	if len(m.usage) != 3+maxEndpoints+1 || m.total() != 7+2+1+3*maxEndpoints {
		t.Errorf("%d rows, %d requests", len(m.usage), m.total())
	}
}

func TestUsageOfPastMinutesIsForgottenOnceWritten(t *testing.T) {
	u := newUsage()
	for minute := range int64(100) {
		for i := range int64(10) {
			ev := entry(tenant.ID(fmt.Sprintf("t%d", i)), minute*int64(time.Minute/time.Microsecond))
			u.count(ev)
		}
		if got := u.take(func(tenant.ID) bool { return false }); len(got) != 10 {
			t.Fatalf("%d rows are new", len(got))
		}
	}
	if len(u.rows) != 10 || len(u.endpoints) != 10 {
		t.Errorf("%d rows of %d tenants are kept", len(u.rows), len(u.endpoints))
	}
}

// A line's goroutine waits a moment before it writes, and the only block may become
// full meanwhile: while that is compressed there is nothing to write.
func TestALineWhoseOnlyBlockIsBeingCompressedWritesNothing(t *testing.T) {
	store := &memory{}
	r := newRecorder(store, clock.System(), Options{})
	ev := &Event{Tenant: "acme", Method: "GET", Path: "/", Start: time.Now(), Persist: true}
	var enc encoder
	enc.encode(ev)

	r.mu.Lock()
	l := r.line("acme")
	l.served = true // by this test
	r.keep("acme", &enc)
	b := l.blocks[0]
	l.blocks, l.sealing = l.blocks[:0], append(l.sealing, b)
	r.mu.Unlock()
	if !r.flush(l) || store.writes != 0 {
		t.Fatalf("%d writes", store.writes)
	}
	r.mu.Lock()
	l.blocks, l.sealing = append(l.blocks, b), l.sealing[:0]
	r.mu.Unlock()
	r.serve(l)
	if err := r.Close(t.Context()); err != nil || len(store.entries) != 1 {
		t.Fatalf("%v; %d entries", err, len(store.entries))
	}
}
