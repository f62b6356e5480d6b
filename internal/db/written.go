package db

import (
	"sync"
	"sync/atomic"
)

// written notifies waiters that the database accepts writes again. It costs a
// write nothing while there are no waiters.
type written struct {
	awaited atomic.Bool
	mu      sync.Mutex
	next    chan struct{} // nil while there are no waiters
}

// Written returns a channel that is closed when the next write succeeds, of any
// tenant and also in Days. A caller whose write failed with ErrFull or
// ErrUnavailable waits on it before trying again.
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

// after is called with the outcome of each write and returns it.
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
