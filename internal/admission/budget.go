package admission

import (
	"context"
	"maps"
	"sync"
	"time"
)

// Bounds of the waits for room in a Budget.
const (
	maxRoomWait = 2 * time.Second
	// maxAwaiting bounds the holders that wait, maxAwaitingOne those of one line, which never
	// has more than it leaves places. Half of the places are never strangers'.
	maxAwaiting, maxAwaitingOne = 256, 32
)

// Budget bounds the bytes that all keys hold together. A key never holds more
// than is left free: one key alone gets half, two get a third each, and the next
// one still finds room (the dynamic threshold of shared-memory switches). No keys
// or shares are configured. A Budget is safe for concurrent use.
type Budget struct {
	size int64

	mu        sync.Mutex
	used      int64
	held      map[string]int64 // by key, without zeros
	strange   map[string]int64 // of which for strangers: Charge.Strange
	strangers int64            // the sum of strange
	waiting   Queue[*roomWait] // by line
}

// roomWait is a holder that waits for room.
type roomWait struct {
	key     string
	strange bool
	n       int64
	turn    chan struct{} // closed when there is room
}

// lineOf names the line of those who wait for a key. Strangers have one of their own, so that
// the key's own never wait for them.
func lineOf(key string, strange bool) string {
	if strange {
		return key + "\x00strange"
	}
	return key
}

// NewBudget returns a budget of size bytes. A single Take of more than half of it
// is always refused.
func NewBudget(size int64) *Budget {
	return &Budget{size: size, held: map[string]int64{}, strange: map[string]int64{}}
}

// Take takes n bytes for a key and reports whether it did. It takes none if the
// key would then hold more than is left free.
func (b *Budget) Take(key string, n int64) bool { return b.take(key, false, n) }

func (b *Budget) take(key string, strange bool, n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.fits(key, strange, n) {
		return false
	}
	b.add(key, strange, n)
	return true
}

// await waits until take would take n bytes for a key, behind others of the line, and reports whether it would. It does
// not wait where the budget is too small, or too many wait.
func (b *Budget) await(ctx context.Context, key string, strange bool, n int64) bool {
	line := lineOf(key, strange)
	b.mu.Lock()
	switch {
	case n > b.size-n || strange && n > b.size/4:
		b.mu.Unlock()
		return false
	case b.waiting.LenOf(line) == 0 && b.fits(key, strange, n):
		b.mu.Unlock()
		return true
	case b.waiting.LenOf(line) >= min(maxAwaitingOne, b.placesLeft(strange)):
		b.mu.Unlock()
		return false
	}
	w := &roomWait{key, strange, n, make(chan struct{})}
	b.waiting.Push(line, w)
	b.mu.Unlock()

	timer := time.NewTimer(maxRoomWait)
	defer timer.Stop()
	select {
	case <-w.turn:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	first := b.waiting.LenOf(line) > 0 && b.waiting.First(line) == w
	withdrawn := b.waiting.Remove(line, func(other *roomWait) bool { return other == w })
	if first && ctx.Err() == nil && b.fits(key, strange, n) {
		return true // who was let in before has not taken that room yet
	}
	b.admit() // others wait behind it
	return !withdrawn && ctx.Err() == nil
}

// placesLeft is how many more may wait.
func (b *Budget) placesLeft(strange bool) int {
	if strange {
		return maxAwaiting/2 - b.waiting.Len()
	}
	return maxAwaiting - b.waiting.Len()
}

// admit lets those go on for whom there is room, as if each took at once what it waits for.
func (b *Budget) admit() {
	if b.waiting.Len() == 0 {
		return
	}
	used, held, strange, strangers := b.used, maps.Clone(b.held), maps.Clone(b.strange), b.strangers
	defer func() { b.used, b.held, b.strange, b.strangers = used, held, strange, strangers }()
	for {
		_, w, ok := b.waiting.Pop(func(line string) bool {
			w := b.waiting.First(line)
			return b.fits(w.key, w.strange, w.n)
		})
		if !ok {
			return
		}
		b.add(w.key, w.strange, w.n)
		close(w.turn)
	}
}

// fits reports whether n bytes more have room. Those of strangers have a quarter of the budget for a key, and five
// eighths for all, of which a key has no more than is left free: 16, 12 and 6 MiB of 64, and so on.
func (b *Budget) fits(key string, strange bool, n int64) bool {
	return b.held[key]+n <= b.size-b.used-n && (!strange || b.strange[key]+n <= min(b.size/4, b.size/8*5-b.strangers-n))
}

func (b *Budget) add(key string, strange bool, n int64) {
	b.used += n
	b.held[key] += n
	if strange {
		b.strange[key] += n
		b.strangers += n
	}
}

// Release gives back n bytes of a key. It panics if the key does not hold as many.
func (b *Budget) Release(key string, n int64) { b.release(key, false, n) }

func (b *Budget) release(key string, strange bool, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	if b.held[key] -= n; b.held[key] == 0 {
		delete(b.held, key)
	}
	if strange {
		b.strangers -= n
		if b.strange[key] -= n; b.strange[key] == 0 {
			delete(b.strange, key)
		}
	}
	if b.used < 0 || b.held[key] < 0 || b.strange[key] < 0 {
		panic("admission: more bytes given back than taken")
	}
	b.admit()
}

// Used returns how many bytes all keys hold.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// Held returns how many bytes one key holds.
func (b *Budget) Held(key string) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held[key]
}
