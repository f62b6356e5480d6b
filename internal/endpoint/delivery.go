package endpoint

import (
	"cmp"
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/failpoint"
	"gatehouse/internal/fault"
	"gatehouse/internal/wtf8"
)

// event is one delivery to a webhook.
type event struct {
	ID         string // given by this service: the receipt's event_id
	Kind       string // the provider's eventKind; "" in token mode
	ProviderID string // the provider's event id; "" in token mode
	// KeyHash is the hash of the deduplication key, "" for a delivery that is
	// always new.
	KeyHash string
}

// keptEvent is an event as it is stored to be run again. The provider's texts are
// WTF-8, which encoding/json would change.
type keptEvent struct {
	ID, KeyHash      string
	Kind, ProviderID jsontext.Value
}

// MarshalJSON writes the event without loss.
func (e event) MarshalJSON() ([]byte, error) {
	return json.Marshal(keptEvent{e.ID, e.KeyHash, wtf8.AppendQuote(nil, e.Kind), wtf8.AppendQuote(nil, e.ProviderID)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (e *event) UnmarshalJSON(text []byte) (err error) {
	var k keptEvent
	if err := json.Unmarshal(text, &k); err != nil {
		return err
	}
	e.ID, e.KeyHash = k.ID, k.KeyHash
	if e.Kind, err = wtf8.Unquote(k.Kind); err == nil {
		e.ProviderID, err = wtf8.Unquote(k.ProviderID)
	}
	return err
}

// shownID returns the event's id as a target sees it: the provider's if there is
// one (contract W11).
func (e *event) shownID() string { return cmp.Or(e.ProviderID, e.ID) }

// maxWaiters is how many deliveries of one key may wait for the one that runs
// (contract W6).
const maxWaiters = 100

// keyedMutex lets one delivery of a key run at a time on this node. Another node
// may run one at the same time; the database lets only one take effect.
type keyedMutex struct {
	mu sync.Mutex
	m  map[string]*keyHolder
}

type keyHolder struct {
	done    chan struct{}
	waiters int
}

// lock waits until no other delivery of the key runs. The caller must call unlock
// when its own has ended. lock returns OVERLOADED when too many wait, and ctx's
// error.
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
			failpoint.At("delivery.locked")
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
