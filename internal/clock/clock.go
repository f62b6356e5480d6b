// Package clock is where time and the identifiers made from it come from.
//
// Nothing in the product calls time.Now for a value that is stored, compared
// or answered: it asks a Clock, so that a test decides what time it is. Stored
// times are whole UTC microseconds since 1970; so is every instant a Clock
// gives, and a value read back equals the one that was written.
package clock

import (
	"sync"
	"time"
)

// Clock tells the time, in UTC and whole microseconds.
type Clock interface{ Now() time.Time }

// System is the machine's clock.
func System() Clock { return system{} }

type system struct{}

// Now drops the monotonic reading as well: an instant that travels through the
// database must compare equal to itself.
func (system) Now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// OffsetOf is how far a test has moved a clock from the system's, which such a
// clock tells by a method Offset; 0 for every other. What counts in database
// time adds it, so that a test decides that time too.
func OffsetOf(c Clock) time.Duration {
	if moved, ok := c.(interface{ Offset() time.Duration }); ok {
		return moved.Offset()
	}
	return 0
}

// Fake is a clock that stands still until it is told to move. It may be used
// by several goroutines at once.
type Fake struct {
	mu  sync.Mutex
	now time.Time
}

// NewFake returns a clock that shows t.
func NewFake(t time.Time) *Fake {
	f := &Fake{}
	f.Set(t)
	return f
}

// Now is the instant the clock shows.
func (f *Fake) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

// Advance moves the clock by d, backwards when d is negative.
func (f *Fake) Advance(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = f.now.Add(d).Truncate(time.Microsecond)
}

// Set makes the clock show t.
func (f *Fake) Set(t time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = t.UTC().Truncate(time.Microsecond)
}

// Micros is t as it is stored: microseconds since 1970, rounded down.
func Micros(t time.Time) int64 { return t.UnixMicro() }

// FromMicros is the UTC instant of a stored time; it undoes Micros.
func FromMicros(micros int64) time.Time { return time.UnixMicro(micros).UTC() }
