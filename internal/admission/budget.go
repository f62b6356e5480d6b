package admission

import "sync"

// Budget bounds the bytes that all keys hold together. What one key holds is
// never more than what is left free: one key alone gets half, two get a third
// each, and whoever comes next still finds room (the dynamic threshold of
// shared-memory switches). It needs no list of keys and no share to be set.
// A Budget may be used by many goroutines.
type Budget struct {
	size int64

	mu   sync.Mutex
	used int64
	held map[string]int64 // by key; none that is 0
}

// NewBudget returns a budget of size bytes, of which nobody holds any. A single
// Take of more than half of it is always refused.
func NewBudget(size int64) *Budget { return &Budget{size: size, held: map[string]int64{}} }

// Take takes n bytes for a key, or none: false when the key would hold more
// than it leaves free.
func (b *Budget) Take(key string, n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if held := b.held[key] + n; held > b.size-b.used-n {
		return false
	}
	b.used += n
	b.held[key] += n
	return true
}

// Release gives bytes of a key back.
func (b *Budget) Release(key string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	if b.held[key] -= n; b.held[key] == 0 {
		delete(b.held, key)
	}
	if b.used < 0 || b.held[key] < 0 {
		panic("admission: more bytes given back than taken")
	}
}

// Used is how many bytes all keys hold.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// Held is how many bytes one key holds.
func (b *Budget) Held(key string) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held[key]
}
