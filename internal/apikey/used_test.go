package apikey

import (
	"context"
	"sync"
	"testing"
	"time"

	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/tenant"
)

func (w *world) lastUsed(id string) int64 {
	w.t.Helper()
	list, err := w.keys.List(w.ctx, acme)
	w.must(err)
	for _, k := range list {
		if k.ID == id {
			return k.LastUsedAt
		}
	}
	w.t.Fatalf("there is no key %s", id)
	return 0
}

func TestTheLastUseOfAKeyIsKept(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newWorld(t, d)
		k, token := w.create(CreateSpec{})
		_, expired := w.create(CreateSpec{ExpiresAt: clock.Micros(epoch.Add(time.Hour))})
		before := w.config().Tenant.Version
		r := w.wantIn(token)
		w.keys.Touch(r.Key)
		first := clock.Micros(w.clock.Now())
		w.must(w.keys.flush(w.ctx, false))
		if got := w.lastUsed(k.ID); got != first {
			t.Errorf("first use: %d, want %d", got, first)
		}
		w.clock.Advance(29 * time.Second)
		w.keys.Touch(r.Key)
		w.must(w.keys.flush(w.ctx, false))
		if got := w.lastUsed(k.ID); got != first {
			t.Errorf("written again after 29 s")
		}
		w.clock.Advance(time.Second)
		w.must(w.keys.flush(w.ctx, false))
		if got := w.lastUsed(k.ID); got != first+29e6 {
			t.Errorf("after 30 s: %d, want the last use, %d", got, first+29e6)
		}
		w.keys.Touch(r.Key)
		w.must(w.keys.flush(w.ctx, true))
		if got := w.lastUsed(k.ID); got != first+30e6 {
			t.Errorf("at the end: %d", got)
		}
		w.clock.Advance(-time.Hour) // a node whose clock is behind
		w.keys.Touch(r.Key)
		w.must(w.keys.flush(w.ctx, true))
		if got := w.lastUsed(k.ID); got != first+30e6 {
			t.Errorf("it went backwards: %d", got)
		}
		if v, _, err := tenant.Version(w.ctx, d.For(acme)); err != nil || v != before {
			t.Errorf("the configuration's version went from %d to %d", before, v)
		}
		w.clock.Advance(3 * time.Hour)
		if r := w.wantOut(expired, "expired"); r == nil {
			t.Error("the key is not named")
		}
	})
}

func TestAUseIsWrittenInTheBackgroundAndAtTheEnd(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newWorld(t, d)
		k, token := w.create(CreateSpec{})
		r := w.wantIn(token)
		running, stop := context.WithCancel(w.ctx)
		var background sync.WaitGroup
		background.Go(func() { w.keys.RunLastUse(running) })
		w.keys.Touch(r.Key)
		deadline := time.Now().Add(10 * time.Second)
		for w.lastUsed(k.ID) == 0 {
			if time.Now().After(deadline) {
				t.Fatal("not written in the background")
			}
			time.Sleep(10 * time.Millisecond)
		}
		w.clock.Advance(5 * time.Second)
		w.keys.Touch(r.Key)
		stop()
		background.Wait()
		w.must(w.keys.Close(w.ctx))
		if got := w.lastUsed(k.ID); got != clock.Micros(w.clock.Now()) {
			t.Errorf("Close left %d, want %d", got, clock.Micros(w.clock.Now()))
		}
		w.must(w.keys.Close(w.ctx)) // there is nothing left
	})
}

func TestAFailedWriteIsTriedAgain(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newWorld(t, d)
		k, token := w.create(CreateSpec{})
		w.keys.Touch(w.wantIn(token).Key)
		ended, cancel := context.WithCancel(w.ctx)
		cancel()
		if err := w.keys.flush(ended, true); err == nil {
			t.Fatal("a write without time succeeded")
		}
		w.must(w.keys.flush(w.ctx, false))
		if w.lastUsed(k.ID) == 0 {
			t.Error("the use was lost")
		}
	})
}
