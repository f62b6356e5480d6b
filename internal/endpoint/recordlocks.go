package endpoint

import (
	"context"
	"slices"
	"sync"
)

// recordLocks are reader/writer locks by record, on this node. They spare runs
// that keep changing one record the races that they would lose: an ordinary
// try's commit shares the locks of the records that it depends on; the last try
// has those that it lost a race for to itself, from before it runs until it is
// committed. What decides a race is the database alone.
//
// Whoever has a lock waits for no other set of them: a set is taken whole, in
// the order of names, so that nobody waits in a circle. Each lock is given in
// order of arrival. One that nobody has or waits for is forgotten.
type recordLocks struct {
	mu sync.Mutex
	m  map[string]*recordLock
}

type recordLock struct {
	readers int
	writer  bool
	queue   []*lockWaiter
}

type lockWaiter struct {
	exclusive bool
	granted   chan struct{} // closed when the lock is the waiter's
}

// acquire takes the locks of all keys, to share them or alone, and returns what
// gives them back. When ctx ends before, its error is returned and none is held.
// keys are sorted, and none is there twice.
func (l *recordLocks) acquire(ctx context.Context, keys []string, exclusive bool) (release func(), err error) {
	for n, key := range keys {
		if err := l.lock(ctx, key, exclusive); err != nil {
			l.release(keys[:n], exclusive)
			return nil, err
		}
	}
	return func() { l.release(keys, exclusive) }, nil
}

func (l *recordLocks) lock(ctx context.Context, key string, exclusive bool) error {
	l.mu.Lock()
	own := l.m[key]
	if own == nil {
		if l.m == nil {
			l.m = map[string]*recordLock{}
		}
		own = &recordLock{}
		l.m[key] = own
	}
	w := &lockWaiter{exclusive, make(chan struct{})}
	own.queue = append(own.queue, w)
	l.settle(key, own)
	l.mu.Unlock()
	select {
	case <-w.granted:
		return nil
	default:
	}
	select {
	case <-w.granted:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	if n := slices.Index(own.queue, w); n >= 0 {
		own.queue = slices.Delete(own.queue, n, n+1)
	} else { // granted while giving up
		own.unlock(exclusive)
	}
	l.settle(key, own)
	l.mu.Unlock()
	return ctx.Err()
}

func (l *recordLocks) release(keys []string, exclusive bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range keys {
		own := l.m[key]
		own.unlock(exclusive)
		l.settle(key, own)
	}
}

func (r *recordLock) unlock(exclusive bool) {
	if exclusive {
		r.writer = false
	} else {
		r.readers--
	}
}

// settle gives the lock to the first who wait, as far as they go together, and
// forgets it when nobody is left. l.mu is held.
func (l *recordLocks) settle(key string, own *recordLock) {
	for len(own.queue) > 0 {
		w := own.queue[0]
		if own.writer || w.exclusive && own.readers > 0 {
			return
		}
		own.queue = slices.Delete(own.queue, 0, 1)
		if w.exclusive {
			own.writer = true
		} else {
			own.readers++
		}
		close(w.granted)
	}
	if own.readers == 0 && !own.writer {
		delete(l.m, key)
	}
}
