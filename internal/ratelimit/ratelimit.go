// Package ratelimit counts requests in fixed windows, in memory.
//
// A key's window begins with the first request that is taken for it and stays
// where it is until its length has passed; the next request then begins a new
// one. Within a window exactly as many requests are accepted as the limit says,
// however many arrive at once, and their Remaining are limit-1 down to 0, each
// once. A refused request counts for nothing.
//
// Memory is bounded whatever arrives. Counters live in a table that grows to a
// fixed size and no further (16 MiB by default); a window that has ended gives
// its place to whoever comes. Only when a key finds its place in the full table
// taken by running windows alone is one of these forgotten: never one that has
// reached its limit while there is another, and of the others the one that has
// counted least, then the one that ends first. So a flood of invented keys
// forgets its own kind and frees nobody who is refused. Blocks are kept apart
// and no flood of counters touches them (see Block).
//
// A key is kept as 128 bits of a hash seeded at random for this process: its
// length does not matter, and a stranger cannot aim at another's count.
package ratelimit

import (
	"hash/maphash"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// DefaultMaxKeys is how many windows may run at once before the least used
	// are forgotten: 32 bytes each.
	DefaultMaxKeys = 1 << 19
	// DefaultMaxBlocks is how many blocks are kept at once.
	DefaultMaxBlocks = 100_000

	shardCount = 64
)

// Options bounds a Limiter's memory; zero values are the defaults.
type Options struct {
	MaxKeys   int // rounded up to a power of two, at least 1024
	MaxBlocks int
}

// Result is the state of a key's window at one request.
type Result struct {
	Allowed   bool
	Limit     int
	Remaining int           // requests that will still be accepted in this window
	Reset     time.Duration // time left in the window, more than 0 and at most its length
}

// Limiter holds the windows and blocks of one process. It may be used by
// several goroutines at once.
type Limiter struct {
	clock      func() time.Time
	seeds      [2]maphash.Seed
	maxBuckets int // per shard
	maxBlocks  int64
	blocks     atomic.Int64
	swept      atomic.Int64 // when the blocks were last swept, in ns
	shards     [shardCount]shard
}

type hash struct{ a, b uint64 }

// shard is a part of the table with a lock of its own.
type shard struct {
	mu      sync.Mutex
	buckets []bucket
	blocks  map[hash]block
	_       [32]byte // no two locks in one cache line
}

// New returns an empty limiter that takes the time from clock. The clock may be
// set back: what is running then ends at most one full length later.
func New(clock func() time.Time, o Options) *Limiter {
	if o.MaxKeys <= 0 {
		o.MaxKeys = DefaultMaxKeys
	}
	if o.MaxBlocks <= 0 {
		o.MaxBlocks = DefaultMaxBlocks
	}
	l := &Limiter{
		clock:      clock,
		seeds:      [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		maxBuckets: 1,
		maxBlocks:  int64(o.MaxBlocks),
	}
	for l.maxBuckets*ways*shardCount < o.MaxKeys {
		l.maxBuckets *= 2
	}
	return l
}

// Take asks to accept one request for key, limit of which are accepted in each
// window of the given length, and counts it when the answer is yes.
//
// The limit is the caller's at each call: a changed one holds at once, against
// what was accepted so far. A longer window holds from the key's next one on; a
// shorter one ends the running window at most that much later. The length must
// be positive (it panics); a limit below 1 accepts nothing.
func (l *Limiter) Take(key string, limit int, window time.Duration) Result {
	r, _ := l.Charge(key, limit, window)
	return r
}

// Charge is one request that Take counted, for Return. The zero Charge is none.
type Charge struct {
	of  hash
	end int64 // of the window in which it was counted
}

// Charge is Take with what Return needs to take the request back. It is the zero
// Charge where the answer is no.
func (l *Limiter) Charge(key string, limit int, window time.Duration) (Result, Charge) {
	length := mustBePositive(window)
	h := l.hash(key)
	s := l.shard(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	// The clock is read under the lock, so that no request is judged by a time
	// older than the one that began the window.
	now := l.clock().UnixNano()
	w := s.claim(h, now, l.maxBuckets)
	if w.end <= now || w.a != h.a || w.b != h.b {
		*w = slot{a: h.a, b: h.b, end: now + length}
	}
	w.end = min(w.end, now+length) // the clock was set back, or the length shrank
	w.limit = clamp(limit)
	if w.count >= w.limit {
		return w.result(false, limit, now), Charge{}
	}
	w.count++
	return w.result(true, limit, now), Charge{h, w.end}
}

// Return takes a counted request back, as if it had never come; it must be
// called once for a Charge at most. In a window that has ended, or that was made
// shorter since, there is nothing to take back.
func (l *Limiter) Return(c Charge) {
	s := l.shard(c.of)
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.find(c.of); w != nil && c.end != 0 && w.end == c.end && w.count > 0 {
		w.count--
	}
}

// Forget ends the window of key: its next request begins a new one.
func (l *Limiter) Forget(key string) {
	h := l.hash(key)
	s := l.shard(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.find(h); w != nil {
		w.end, w.count = 0, 0
	}
}

// Peek tells how the window of key stands, and counts and begins nothing:
// Allowed is what Take would answer, Remaining what is left before it.
func (l *Limiter) Peek(key string, limit int, window time.Duration) Result {
	length := mustBePositive(window)
	h := l.hash(key)
	s := l.shard(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := l.clock().UnixNano()
	w := slot{end: now + length}
	if found := s.find(h); found != nil && found.end > now {
		w = *found
		w.end = min(w.end, now+length)
	}
	w.limit = clamp(limit)
	return w.result(w.count < w.limit, limit, now)
}

func (l *Limiter) hash(key string) hash {
	return hash{maphash.String(l.seeds[0], key), maphash.String(l.seeds[1], key)}
}

func (l *Limiter) shard(h hash) *shard { return &l.shards[h.a%shardCount] }

func clamp(limit int) uint32 { return uint32(min(max(limit, 0), math.MaxUint32)) }

func mustBePositive(window time.Duration) int64 {
	if window <= 0 {
		panic("ratelimit: a window of " + window.String())
	}
	return int64(window)
}
