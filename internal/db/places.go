package db

import (
	"context"
	"fmt"
	"sync"
	"time"

	"gatehouse/internal/admission"
)

const (
	// maxWait bounds every wait of this package, for a connection and for the
	// writer's turn; see AnswerBy. A call that waits longer fails with ErrBusy.
	maxWait = 6 * time.Second
	// maxWaiting bounds the waiting calls, for each kind of wait. A tenant may
	// have no more calls waiting than there is room left: a tenant alone gets
	// half of it, and another tenant always finds room.
	maxWaiting = 4096
	// overflowAfter is how long all connections of a tenant may stay in use before
	// one of its calls gets an extra one: a read inside the row callback of another
	// needs two, and if every call held one and waited for another, none would
	// ever finish.
	overflowAfter = 250 * time.Millisecond
)

// room reports whether a tenant may have one more waiting call, where own is the
// number of its waiting calls and all is the number of all tenants'.
func room(own, all int) bool { return own < maxWaiting-all }

// places decides who gets the next connection. A tenant holds at most its
// share, so that others usually find one free; otherwise tenants take turns.
// Unscoped calls take turns too, but are not limited to a share, because the
// work of all tenants waits for them.
type places struct {
	size, share, spare int // of all; of one tenant; extra ones beyond size

	mu    sync.Mutex
	used  int
	extra int
	holds map[string]holding         // by tenant; has only tenants that hold something
	queue admission.Queue[chan bool] // receives whether the place is an extra one; each channel has room for it
	gives uint64                     // places released so far
}

// holding describes the places that a tenant holds.
type holding struct {
	places, extra int
	last          uint64 // gives after its latest release
}

// newPlaces returns size places, and spare ones against deadlock.
func newPlaces(size, spare int) *places {
	return &places{size: size, share: max(1, size-max(1, 3*size/8)), spare: spare, holds: map[string]holding{}}
}

// enter waits for a place; extra reports whether it is beyond size. It returns
// ErrBusy when too many wait or it waited too long, or the error of ctx. leave
// must be called once if enter succeeds.
func (p *places) enter(ctx context.Context, key string) (extra bool, err error) {
	p.mu.Lock()
	if p.queue.LenOf(key) == 0 && p.free(key) {
		p.admit(key)
		p.mu.Unlock()
		return false, nil
	}
	if !room(p.queue.LenOf(key), p.queue.Len()) {
		p.mu.Unlock()
		return false, fmt.Errorf("%w: too many calls wait for a connection", ErrBusy)
	}
	turn := make(chan bool, 1)
	p.queue.Push(key, turn)
	seen := p.holds[key].last
	p.mu.Unlock()
	return p.wait(ctx, key, turn, seen)
}

// wait waits for a place on turn; seen is the tenant's holding.last so far.
func (p *places) wait(ctx context.Context, key string, turn chan bool, seen uint64) (extra bool, err error) {
	ticks := time.NewTicker(overflowAfter)
	defer ticks.Stop()
	for end := waitEnd(ctx); ; {
		select {
		case extra = <-turn:
			return extra, nil
		case <-ticks.C:
			if time.Now().Before(end) {
				seen = p.overflow(key, seen)
				continue
			}
			err = fmt.Errorf("%w: no connection was free in time", ErrBusy)
		case <-ctx.Done():
			err = ctx.Err()
		}
		if !p.withdraw(key, turn) { // admitted while giving up: pass the place on
			p.leave(key, <-turn)
		}
		return false, err
	}
}

// overflow gives an extra place to a tenant that has released no connection
// since seen, and returns the tenant's holding.last. It gives one place at a
// time, so that it stops as soon as that helps, and gives it to the last call:
// the first calls in the queue are more likely to hold no connection yet, and
// would then need a second one, too.
func (p *places) overflow(key string, seen uint64) (last uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.holds[key]
	if h.last != seen || h.extra >= p.spare-p.extra {
		return h.last
	}
	turn, ok := p.queue.PopLast(key)
	if !ok {
		return h.last
	}
	p.gives++
	h.last = p.gives // the others wait for another interval
	h.extra++
	p.extra++
	p.holds[key] = h
	turn <- true
	return h.last
}

func (p *places) withdraw(key string, turn chan bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queue.Remove(key, func(c chan bool) bool { return c == turn })
}

// free reports whether a call may have a place. The last one is for who holds none: those
// of two tenants may all be held by what waits for a core.
func (p *places) free(key string) bool {
	own := p.holds[key].places
	return p.used < p.size && (key == "" || own == 0 || own < p.share && p.used < p.size-1)
}

func (p *places) admit(key string) {
	h := p.holds[key]
	h.places++
	p.used++
	p.holds[key] = h
}

// leave releases a place; the next tenant in turn gets it.
func (p *places) leave(key string, extra bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.holds[key]
	p.gives++
	h.last = p.gives
	if extra {
		h.extra--
		p.extra--
	} else {
		h.places--
		p.used--
	}
	if h.places+h.extra == 0 {
		delete(p.holds, key)
	} else {
		p.holds[key] = h
	}
	if extra {
		return
	}
	for { // the last place, too, where its tenant held no other
		next, turn, ok := p.queue.Pop(p.free)
		if !ok {
			return
		}
		p.admit(next)
		turn <- false
	}
}

// counts returns how many places are in use, extra ones included, and how many
// calls wait.
func (p *places) counts() (used, waiting int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used + p.extra, p.queue.Len()
}
