package endpoint

import (
	"context"
	"slices"
	"sync"
)

// recordLocks are reader/writer locks by record, on this node. They spare runs
// that keep changing one record the races that they would lose: the commit of
// an ordinary try shares the locks of the records that it depends on; the last
// try locks exclusively the records over which it lost, from before it runs
// until it is committed. Only the database decides a race.
//
// A caller that holds locks does not wait for another set of them, and takes a
// set in the order of names, so that there are no deadlocks. Each lock is
// granted in order of arrival. A lock that nobody holds or waits for is
// deleted.
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
	granted   chan struct{} // closed when the lock is granted
}

// acquire takes the locks of all keys, shared or exclusive; release gives them
// back. If ctx ends first, it returns ctx's error and holds none. keys must be
// sorted and distinct.
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

// settle grants the lock to the first waiters that are compatible, and deletes
// it when nobody is left. l.mu must be held.
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
