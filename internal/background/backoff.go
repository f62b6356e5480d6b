package background

import (
	"context"
	"time"
)

// wokenAfter is the shortest pause that being woken leaves: whatever succeeded
// for others may still fail here, so another try must be cheap.
const wokenAfter = 100 * time.Millisecond

// Backoff is the pauses between the tries of something that fails: First, and
// then twice the one before, up to Last. First must be positive. A Backoff
// belongs to one goroutine.
type Backoff struct {
	First, Last time.Duration

	next time.Duration
}

// Wait waits until the next try is due. It ends early, but not within 100 ms,
// when woken is closed, for example because the database has accepted another
// write; a nil woken never is. It returns the error of ctx when that ends first.
func (b *Backoff) Wait(ctx context.Context, woken <-chan struct{}) error {
	pause := b.next
	if pause == 0 {
		pause = b.First
	}
	b.next = min(2*pause, b.Last)
	least, whole := time.NewTimer(min(pause, wokenAfter)), time.NewTimer(pause)
	defer least.Stop()
	defer whole.Stop()
	select {
	case <-least.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-woken:
	case <-whole.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// Reset makes the next pause the first one again.
func (b *Backoff) Reset() { b.next = 0 }
