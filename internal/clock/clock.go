// Package clock provides the time, and identifiers made from it.
//
// The product does not call time.Now for a value that is stored, compared or
// answered. It calls a Clock, so that a test controls the time. A Clock returns
// whole UTC microseconds, as times are stored, so that a value read back equals
// the one written.
package clock

import (
	"sync"
	"time"
)

// Clock tells the time, in UTC and whole microseconds.
type Clock interface{ Now() time.Time }

// System returns the machine's clock.
func System() Clock { return system{} }

type system struct{}

// Now also drops the monotonic reading: a time that was stored and read back must
// equal itself.
func (system) Now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// OffsetOf returns how far a test has moved a clock from the system's, which a test's
// clock reports with a method Offset; it returns 0 for any other clock. Code that
// uses the database's time adds it, so that a test controls that time, too.
func OffsetOf(c Clock) time.Duration {
	if moved, ok := c.(interface{ Offset() time.Duration }); ok {
		return moved.Offset()
	}
	return 0
}

// Fake is a clock that moves only when it is told to. It may be used by several
// goroutines at once.
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

// Now returns the time that the clock shows.
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

// Micros returns t as it is stored: in microseconds since 1970, rounded down.
func Micros(t time.Time) int64 { return t.UnixMicro() }

// FromMicros returns the UTC time of a stored one; it is the inverse of Micros.
func FromMicros(micros int64) time.Time { return time.UnixMicro(micros).UTC() }
