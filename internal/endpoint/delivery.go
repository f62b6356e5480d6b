package endpoint

import (
	"cmp"
	"context"
	"sync"
	"time"

	"gatehouse/internal/fault"
	"gatehouse/internal/mark"
)

// event is one delivery to a webhook.
type event struct {
	ID         string // ours: the receipt's event_id
	Kind       string // the provider's eventKind; "" in token mode
	ProviderID string // the provider's event id; "" in token mode
	// KeyHash is the hash of the deduplication key, "" for a delivery that is
	// always new.
	KeyHash string
}

// shownID returns the event's id as a target sees it: the provider's if it has
// one (contract W11).
func (e *event) shownID() string { return cmp.Or(e.ProviderID, e.ID) }

// maxWaiters is how many deliveries of one key may wait for the one that runs
// (contract W6).
const maxWaiters = 100

// keyedMutex lets one delivery of a key run at a time on this node. On another
// node another may run meanwhile; the database lets only one take effect.
type keyedMutex struct {
	mu sync.Mutex
	m  map[string]*keyHolder
}

type keyHolder struct {
	done    chan struct{}
	waiters int
}

// lock waits until no other delivery of the key runs, holding nothing but a
// place in the queue. unlock must be called at the end of this one. It returns
// OVERLOADED when too many wait.
func (k *keyedMutex) lock(ctx context.Context, key string) (unlock func(), err error) {
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
			mark.At("delivery.boarded")
			return func() {
				k.mu.Lock()
				defer k.mu.Unlock()
				delete(k.m, key)
				close(own.done)
			}, nil
		}
		if other.waiters >= maxWaiters {
			k.mu.Unlock()
			return nil, fault.New(fault.Overloaded, "too many deliveries of this event wait for the first").After(time.Second)
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
