package db

import (
	"sync"
	"sync/atomic"
)

// written tells those who wait for it that the database has taken a write. It
// costs a write nothing while nobody waits.
type written struct {
	awaited atomic.Bool
	mu      sync.Mutex
	next    chan struct{} // nil while nobody waits
}

// Written returns a channel that is closed as soon as a write ends well from now
// on, of any tenant, Days included. Who was refused one for want of space, or of
// the database, learns by it that there is some again.
func (d *DB) Written() <-chan struct{} { return d.written.wait() }

func (w *written) wait() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.next == nil {
		w.next = make(chan struct{})
	}
	w.awaited.Store(true)
	return w.next
}

// after passes on how a write has ended.
func (w *written) after(err error) error {
	if err != nil || !w.awaited.Load() {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.next != nil {
		close(w.next)
		w.next = nil
	}
	w.awaited.Store(false)
	return nil
}
