package admission

import "sync"

// Budget bounds the bytes that all keys hold together. A key never holds more
// than is left free: one key alone gets half, two get a third each, and the next
// one still finds room (the dynamic threshold of shared-memory switches). No keys
// or shares are configured. A Budget is safe for concurrent use.
type Budget struct {
	size int64

	mu      sync.Mutex
	used    int64
	held    map[string]int64 // by key, without zeros
	strange map[string]int64 // of which for strangers: Charge.Strange
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
	b.used += n
	b.held[key] += n
	if strange {
		b.strange[key] += n
	}
	return true
}

// hasRoom reports whether take would take n bytes for a key now.
func (b *Budget) hasRoom(key string, strange bool, n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fits(key, strange, n)
}

func (b *Budget) fits(key string, strange bool, n int64) bool {
	return b.held[key]+n <= b.size-b.used-n && (!strange || b.strange[key]+n <= b.size/4)
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
		if b.strange[key] -= n; b.strange[key] == 0 {
			delete(b.strange, key)
		}
	}
	if b.used < 0 || b.held[key] < 0 || b.strange[key] < 0 {
		panic("admission: more bytes given back than taken")
	}
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
