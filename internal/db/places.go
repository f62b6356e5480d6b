package db

import (
	"context"
	"fmt"
	"sync"
	"time"

	"gatehouse/internal/admission"
)

const (
	// maxWait bounds every wait of this package: for a connection and for the
	// writer's turn. What has not got its turn by then is ErrBusy.
	maxWait = 10 * time.Second
	// maxWaiting bounds what waits of one kind. What waits of one tenant is never
	// more than what is left free: one alone has half, and a newcomer finds room.
	maxWaiting = 4096
	// overflowAfter is how long a tenant's connections may all stay in use before
	// one of its calls gets an extra one: a read inside the row callback of another
	// holds two, and when all hold one and want another, nobody would ever move.
	overflowAfter = 250 * time.Millisecond
)

// room reports whether one more may wait of a tenant that has own waiting, of
// all that wait.
func room(own, all int) bool { return own < maxWaiting-all }

// places decides who gets the next connection. A tenant holds at most its share,
// so that others find one free; where they do not, turns are taken by tenant.
// Unscoped calls take turns too, and have no share: they precede everybody's work.
type places struct {
	size, share, spare int // all; of one tenant; extra ones beyond size

	mu    sync.Mutex
	used  int
	extra int
	holds map[string]holding         // by tenant; none that holds nothing
	queue admission.Queue[chan bool] // told to come in, and whether to an extra place; each has room for it
	gives uint64                     // places given back so far
}

// holding is what a tenant has.
type holding struct {
	places, extra int
	last          uint64 // which of all gives was its latest
}

// newPlaces returns size places, and spare ones against standstill.
func newPlaces(size, spare int) *places {
	return &places{size: size, share: max(1, size-max(1, size/4)), spare: spare, holds: map[string]holding{}}
}

// enter waits for a place; extra says that it is one beyond size. It fails with
// ErrBusy, or with the error of ctx when that ends. leave must be called once.
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

// wait waits for the turn; seen is the tenant's latest give so far.
func (p *places) wait(ctx context.Context, key string, turn chan bool, seen uint64) (extra bool, err error) {
	ticks := time.NewTicker(overflowAfter)
	defer ticks.Stop()
	for waited := overflowAfter; ; waited += overflowAfter {
		select {
		case extra = <-turn:
			return extra, nil
		case <-ticks.C:
			if waited < maxWait {
				seen = p.overflow(key, seen)
				continue
			}
			err = fmt.Errorf("%w: no connection was free for %s", ErrBusy, maxWait)
		case <-ctx.Done():
			err = ctx.Err()
		}
		if !p.withdraw(key, turn) { // let in while giving up: pass it on
			p.leave(key, <-turn)
		}
		return false, err
	}
}

// overflow gives an extra place to a tenant none of whose connections came back
// since seen, and returns its latest give. One at a time, so that it goes on as
// soon as that helps, and to the call that came last: the first in line are rather
// those that hold none yet and would want a second too.
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
	h.last = p.gives // the others wait anew
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

func (p *places) free(key string) bool {
	return p.used < p.size && (key == "" || p.holds[key].places < p.share)
}

func (p *places) admit(key string) {
	h := p.holds[key]
	h.places++
	p.used++
	p.holds[key] = h
}

// leave gives a place back; it goes to the next tenant in turn.
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
	if next, turn, ok := p.queue.Pop(p.free); ok {
		p.admit(next)
		turn <- false
	}
}

// counts are how many are in use, extra ones too, and how many calls wait.
func (p *places) counts() (used, waiting int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used + p.extra, p.queue.Len()
}
