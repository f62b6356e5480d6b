package audit

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/internal/clock"
	"gatehouse/internal/tenant"
)

// The disk was full and no longer is: another caller's write succeeds, and the
// recorder tries its failed write again, however long its pause was. A tenant
// that can change its records again is not refused because of its audit log.
func TestAnyWriteThatSucceedsEndsThePause(t *testing.T) { synctest.Test(t, anyWriteEndsThePause) }

func anyWriteEndsThePause(t *testing.T) {
	var full atomic.Bool
	full.Store(true)
	var failures atomic.Int64
	fail := func() error {
		if full.Load() {
			failures.Add(1)
			return errFull
		}
		return nil
	}
	m := &memory{isLasting: true, counting: fail, before: func(context.Context, tenant.ID, []packed) error { return fail() }}
	r := newRecorder(m, clock.System(), Options{MaxBytes: leastBytes, backoff: time.Hour})
	for n := 0; n < 100 && !r.Refuses("t"); n++ {
		ev := entry("t", int64(n))
		ev.ResponseBody, ev.Rendered = noise(60<<10), true
		r.Record(ev)
		time.Sleep(time.Millisecond)
	}
	eventually(t, "the tenant is refused, its entries and its usage have failed", func() bool {
		return r.Refuses("t") && failures.Load() >= 2
	})
	if s := r.Stats(); s.Failing != 1 || s.Written != 0 {
		t.Errorf("%+v", s)
	}
	full.Store(false)
	m.tell()
	eventually(t, "all is written", func() bool { return !r.Refuses("t") && r.Stats().Queued == 0 && m.total() > 0 })
	if s := r.Stats(); s.Failing != 0 {
		t.Errorf("%+v", s)
	}
	closeRecorder(t, r)
}

// The database accepts a write between a failed try and its pause: the pause ends
// all the same. Without that, the next try would be an hour later.
func TestAWriteBeforeThePauseEndsItToo(t *testing.T) { synctest.Test(t, aWriteBeforeThePause) }

func aWriteBeforeThePause(t *testing.T) {
	var m *memory
	tries := 0
	m = &memory{isLasting: true, before: func(context.Context, tenant.ID, []packed) error {
		if tries++; tries > 1 {
			return nil
		}
		m.tell()
		return errFull
	}}
	r := newRecorder(m, clock.System(), Options{backoff: time.Hour})
	r.Record(entry("t", 1))
	eventually(t, "the entry is written", func() bool { return r.Stats().Queued == 0 && m.total() == 1 })
	closeRecorder(t, r)
}

// A write that fails while other writes succeed is tried at a bounded rate.
func TestOthersWritesDoNotMakeAFailingOneBusy(t *testing.T) {
	synctest.Test(t, othersWritesAtABoundedRate)
}

func othersWritesAtABoundedRate(t *testing.T) {
	var tries atomic.Int64
	m := &memory{isLasting: true, before: func(context.Context, tenant.ID, []packed) error {
		tries.Add(1)
		return errFull
	}}
	r := newRecorder(m, clock.System(), Options{backoff: time.Hour})
	r.Record(entry("t", 1))
	eventually(t, "it has failed", func() bool { return tries.Load() > 0 })
	const least = 100 * time.Millisecond // the least length of a pause that another write ends
	begun := time.Now()
	for time.Since(begun) < 5*least {
		m.tell()
		time.Sleep(time.Millisecond)
	}
	if n, most := tries.Load(), int64(time.Since(begun)/least)+2; n > most {
		t.Errorf("%d tries within %s, at most %d are to be", n, time.Since(begun), most)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Close(ended); err == nil {
		t.Error("Close says that all is written")
	}
}

// eventually waits until so reports true.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}
