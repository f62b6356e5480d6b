package audit

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/internal/clock"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// noise returns JSON that hardly compresses.
func noise(size int) []byte {
	b := make([]byte, size/2)
	_, _ = rand.Read(b)
	return []byte(`"` + hex.EncodeToString(b) + `"`)
}

// One tenant's entries cannot be written, and it records as many and as large
// ones as it can: only this tenant waits, and no tenant loses entries. In the
// test's synthetic time, which does not advance while a goroutine runs, no other
// tenant waits at all.
func TestOneTenantsBacklogMakesOnlyThatTenantWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		stuck := func(ctx context.Context, tenant tenant.ID, _ []packed) error {
			if strings.HasPrefix(string(tenant), "hostile") {
				select {
				case <-free:
				case <-ctx.Done():
				}
			}
			return nil
		}
		m := &memory{before: stuck}
		r := newRecorder(m, clock.System(), Options{MaxBytes: 2 << 20})
		var hostile sync.WaitGroup
		const tenants, callers = 3, 30
		for n := range tenants {
			for c := range callers {
				hostile.Go(func() {
					ev := entry(tenant.ID(fmt.Sprint("hostile", n)), int64(c))
					ev.ResponseBody, ev.Rendered = noise(60<<10), true
					r.Record(ev)
				})
			}
		}
		synctest.Wait() // all have come
		if s := r.Stats(); s.Waiting+s.Queued != tenants*callers {
			t.Errorf("%+v", s)
		}
		time.Sleep(maxAge) // from now on they wait for their age as well
		waits := r.Stats().Waits
		const calm, each = 5, 40
		for i := range each {
			for n := range calm {
				r.Record(entry(tenant.ID(fmt.Sprint("calm", n)), int64(i))) // would hang if tenants shared one backlog
			}
			time.Sleep(10 * time.Millisecond) // written meanwhile, several times over
		}
		s := r.Stats()
		if s.Waits != waits {
			t.Errorf("%d requests of others had to wait", s.Waits-waits)
		}
		if s.QueuedBytes > 2<<20+calm<<10 || s.Waiting < tenants*callers/2 {
			t.Errorf("%+v", s)
		}
		// What is recorded is written within flushEntries.
		if written, latest := m.kept(), calm*int(flushEntries/(10*time.Millisecond)); written < calm*each-latest {
			t.Errorf("only %d entries of others are written", written)
		}
		close(free)
		hostile.Wait()
		closeRecorder(t, r)
		if want := tenants*callers + calm*each; m.kept() != want || int(m.total()) != want {
			t.Errorf("%d entries, %d requests, want %d", m.kept(), m.total(), want)
		}
	})
}

// While the disk is full, a tenant is refused once its own share is used up, and
// never because of another tenant's share.
func TestATenantIsRefusedForItsOwnShareAlone(t *testing.T) {
	var full sync.Mutex
	failing := true
	m := &memory{isLasting: true, before: func(context.Context, tenant.ID, []packed) error {
		full.Lock()
		defer full.Unlock()
		if failing {
			return errFull
		}
		return nil
	}}
	r := newRecorder(m, clock.System(), Options{MaxBytes: 2 << 20})
	record := func(tenant tenant.ID, n int) {
		ev := entry(tenant, int64(n))
		ev.ResponseBody, ev.Rendered = noise(60<<10), true
		r.Record(ev)
	}
	record("calm", 0)
	n := 0
	for deadline := time.Now().Add(20 * time.Second); !r.Refuses("hostile") && time.Now().Before(deadline); n++ {
		record("hostile", n)
		time.Sleep(time.Millisecond)
	}
	if !r.Refuses("hostile") || n > 2*(1<<20)/(60<<10) {
		t.Errorf("refused after %d entries: %v", n, r.Refuses("hostile"))
	}
	if r.Refuses("calm") || r.Refuses("nobody") {
		t.Error("others are refused too")
	}
	full.Lock()
	failing = false
	full.Unlock()
	closeRecorder(t, r)
	if r.Refuses("hostile") || m.kept() != n+1 {
		t.Errorf("%d entries of %d", m.kept(), n+1)
	}
}

// Record copies what it keeps: the buffers of request and answer are reused as
// soon as Record returns.
func TestNothingOfARequestIsKeptAfterRecord(t *testing.T) {
	m := &memory{}
	r := newRecorder(m, clock.System(), Options{})
	const n = 200
	for i := range n {
		body := []byte(fmt.Sprintf(`{"request":%d,"a":%q}`, i, strings.Repeat("a", i)))
		answer := []byte(fmt.Sprintf(`{"answer":%d}`, i))
		header := http.Header{"User-Agent": {fmt.Sprint("agent", i)}}
		ev := entry("t", int64(i))
		ev.RequestBody, ev.ContentType, ev.ResponseBody, ev.Rendered, ev.RequestHeader = body, jsonType, answer, true, header
		r.Record(ev)
		copy(body, bytes.Repeat([]byte("#"), len(body)))
		copy(answer, bytes.Repeat([]byte("#"), len(answer)))
		header.Set("User-Agent", "#")
		*ev = Event{}
	}
	closeRecorder(t, r)
	for _, e := range m.entries {
		if want := fmt.Sprintf(`{"headers":{"user-agent":"agent%[1]s"},"body":{"request":%[1]s,`, e.RequestID); !strings.HasPrefix(e.Request, want) ||
			e.Response != fmt.Sprintf(`{"body":{"answer":%s}}`, e.RequestID) {
			t.Fatalf("%s: %.100s %s", e.RequestID, e.Request, e.Response)
		}
	}
	if m.kept() != n {
		t.Errorf("%d entries", m.kept())
	}
}

// Entries of two days that are recorded at the same time are written separately.
func TestAtMidnightADayEnds(t *testing.T) {
	m := &memory{} // which panics at a block of another day
	r := newRecorder(m, clock.System(), Options{})
	midnight := noon.Truncate(24 * time.Hour).Add(24 * time.Hour)
	for i := range 100 {
		ev := entry("t", int64(i))
		ev.Start = midnight.Add(time.Duration(i*37%100-50) * time.Microsecond) // requests end in another order
		r.Record(ev)
	}
	closeRecorder(t, r)
	if m.kept() != 100 {
		t.Errorf("%d entries", m.kept())
	}
}

func TestABlockIsReadAsItWasWritten(t *testing.T) {
	var events []*Event
	for i := range 300 {
		ev := readOne()
		ev.Start = noon.Add(time.Duration(i*7919%300) * time.Millisecond)
		ev.Status, ev.RequestID, ev.UserID = 200+100*(i%4), fmt.Sprint(i), user.ID(fmt.Sprint("u", i%3))
		ev.Endpoint = []string{"/me", "/data/contact", "", "/custom/a"}[i%4]
		events = append(events, ev)
	}
	b := blockOf(events...)
	p := b.pack()
	list := contents(p)
	if len(list) != 300 || p.entries != 300 {
		t.Fatalf("%d entries", len(list))
	}
	var ids []string
	for i, e := range list {
		ev := events[i]
		if !e.At.Equal(ev.Start) || e.Status != ev.Status || e.RequestID != ev.RequestID || e.UserID != string(ev.UserID) || e.Endpoint != ev.Endpoint ||
			e.Duration != ev.Duration || e.Method != ev.Method || e.Path != ev.Path || e.IP != ev.IP || e.Auth != "KEY" ||
			e.KeyID != ev.APIKeyID || e.KeyPrefix != ev.APIKeyPrefix || !strings.Contains(e.Response, "Albrecht") {
			t.Fatalf("%+v became %+v", ev, e)
		}
		ids = append(ids, e.ID)
	}
	if b.first != slices.Min(ids) || b.last != slices.Max(ids) {
		t.Error("first and last are not the least and the greatest id")
	}
	want := map[mark]bool{
		{markUser, "u0"}: true, {markUser, "u1"}: true, {markUser, "u2"}: true, {markEndpoint, "/me"}: false, {markEndpoint, "/data/contact"}: false,
		{markEndpoint, "/custom/a"}: true, {markArea, "/data/"}: false, {markArea, "/custom/"}: true, {markError, ""}: true,
		{markAuth, "KEY"}: true, {markClass, "4xx"}: true, {markClass, "5xx"}: true, {markKey, readOne().APIKeyID}: true,
	}
	if fmt.Sprint(b.marks) != fmt.Sprint(want) {
		t.Errorf("marks %v", b.marks)
	}
}

// A damaged block is an error, whatever it contains; it causes no panic and takes little memory.
func FuzzBlock(f *testing.F) {
	b := blockOf(readOne(), readOne())
	p := b.pack()
	f.Add(b.head, b.bodies)
	f.Add(p.head, p.bodies)
	f.Add([]byte{headVersion, 0xff, 0xff, 0xff}, []byte{})
	f.Fuzz(func(_ *testing.T, head, bodies []byte) {
		if raw, err := unpack(head); err == nil {
			head = raw
		}
		_ = readHead(head, func(e *found) { _ = e.texts(bodies) })
	})
}
