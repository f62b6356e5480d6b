package admission

import (
	"context"
	"sync"
)

// maxWaiters is how many callers may wait for the one that holds a key (contract W6).
const maxWaiters = 100

// KeyedMutex lets one caller hold a key at a time, in this process. The zero KeyedMutex
// is ready.
type KeyedMutex struct {
	mu sync.Mutex
	m  map[string]*keyHolder
}

type keyHolder struct {
	done    chan struct{}
	waiters int
}

// Lock waits until nobody holds the key. The caller must call unlock in the end. Lock
// returns ErrFull when too many wait, and ctx's error.
func (k *KeyedMutex) Lock(ctx context.Context, key string) (unlock func(), err error) {
	for {
		k.mu.Lock()
		other := k.m[key]
		if other == nil {
			if k.m == nil {
				k.m = map[string]*keyHolder{}
			}
			own := &keyHolder{done: make(chan struct{})}
			k.m[key] = own
			k.mu.Unlock()
			return func() {
				k.mu.Lock()
				defer k.mu.Unlock()
				delete(k.m, key)
				close(own.done)
			}, nil
		}
		if other.waiters >= maxWaiters {
			k.mu.Unlock()
			return nil, ErrFull
		}
		other.waiters++
		k.mu.Unlock()
		select {
		case <-other.done:
		case <-ctx.Done():
			k.mu.Lock()
			other.waiters--
			k.mu.Unlock()
			return nil, ctx.Err()
		}
	}
}
