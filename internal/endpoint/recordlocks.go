package endpoint

import (
	"context"
	"slices"
	"sync"
)

// recordLocks are reader/writer locks by record, on this node. With them, a run
// does not keep losing races for a record that many runs change: the commit of an
// ordinary try takes shared locks on the records that it depends on, and the last
// try takes exclusive locks on the records that the try before depended on, from
// before it runs until it is committed. The locks only prevent races: it is the
// database that decides them.
//
// There are no deadlocks: a caller that holds locks does not wait for another
// set, and a set is taken in the order of names. Each lock is granted in order of
// arrival, and deleted when it is neither held nor waited for.
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

// acquire takes the locks of all keys, shared or exclusive. The caller must call
// release. If ctx ends first, acquire returns ctx's error and holds none. keys
// must be sorted and distinct.
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
	} else { // it was granted after ctx had ended
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
// it when it is neither held nor waited for. l.mu must be held.
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
