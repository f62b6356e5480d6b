// Package ratelimit counts requests in fixed windows, in memory.
//
// A key's window begins with the first request that is accepted for it. When its
// length has passed, the next request begins a new one. Within a window exactly
// limit requests are accepted, however many arrive at once, and their Remaining
// are limit-1 down to 0, each once. Refused requests are not counted
// (contract L1).
//
// Memory is bounded. Counters are kept in a table that grows to a fixed size (16
// MiB by default); a window that has ended gives its slot to the next key. A
// running window is forgotten only if the table is full and running windows have
// all slots that a new key may use: a window that has reached its limit only if
// all of them have, otherwise the one that has counted least, and of several the
// one that ends first. So a flood of invented keys displaces its own windows, and
// no refused key is let in again. Blocks are kept separately, and no flood of
// keys affects them (see Block).
//
// A key is kept as a 128-bit hash with a random seed of this process, so the
// length of keys does not matter, and nobody can choose a key that shares the
// counter of another.
package ratelimit

import (
	"hash/maphash"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// DefaultMaxKeys is how many windows, of 32 bytes each, are kept at once.
	DefaultMaxKeys = 1 << 19
	// DefaultMaxBlocks is how many blocks are kept at once.
	DefaultMaxBlocks = 100_000

	shardCount = 64
)

// Options bound a Limiter's memory. Zero values choose defaults.
type Options struct {
	MaxKeys   int // rounded up to a power of two, at least 1024
	MaxBlocks int
}

// Result is the state of a key's window at one request.
type Result struct {
	Allowed   bool
	Limit     int
	Remaining int           // how many more requests this window accepts
	Reset     time.Duration // time left in the window, more than 0 and at most its length
}

// Limiter keeps the windows and blocks of one process. It is safe for concurrent
// use.
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
	_       [32]byte // keeps the locks of two shards out of one cache line
}

// New returns an empty limiter that reads the time from clock. If the clock is set
// back, running windows and blocks end at most one full length later.
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

// Take counts a request for key and returns whether it is accepted; limit requests
// are accepted in each window of the given length.
//
// Each call may have another limit, which applies at once to what was accepted so
// far. A longer window applies from the key's next window on; with a shorter one,
// the running window ends at most that much later. A limit below 1 accepts
// nothing. Take panics if window is not positive.
func (l *Limiter) Take(key string, limit int, window time.Duration) Result {
	r, _ := l.Charge(key, limit, window)
	return r
}

// Charge is what was counted at once, for Return. The zero Charge is no request.
type Charge struct {
	of  hash
	end int64  // of the window in which it was counted
	n   uint32 // requests
}

// Requests returns how many requests were counted.
func (c Charge) Requests() int { return int(c.n) }

// Charge is like Take, and also returns what Return needs to take the request
// back: the zero Charge if the request was refused.
func (l *Limiter) Charge(key string, limit int, window time.Duration) (Result, Charge) {
	return l.ChargeMany(key, 1, limit, window)
}

// ChargeMany is Charge for n requests, of which all are accepted or none.
func (l *Limiter) ChargeMany(key string, n, limit int, window time.Duration) (Result, Charge) {
	length := mustBePositive(window)
	h := l.hash(key)
	s := l.shard(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	// The clock is read under the lock, so that the time is not earlier than
	// the one at which another request began the window.
	now := l.clock().UnixNano()
	w := s.claim(h, now, l.maxBuckets)
	if w.end <= now || w.a != h.a || w.b != h.b {
		*w = slot{a: h.a, b: h.b, end: now + length}
	}
	w.end = min(w.end, now+length) // the clock was set back, or the length shrank
	w.limit = clamp(limit)
	many := clamp(n)
	if w.count >= w.limit || many > w.limit-w.count {
		return w.result(false, limit, now), Charge{}
	}
	w.count += many
	return w.result(true, limit, now), Charge{h, w.end, many}
}

// Return takes back what was counted, as if it had not been asked for. It must be
// called at most once for a Charge. It does nothing if the window has ended or was
// made shorter since.
func (l *Limiter) Return(c Charge) {
	s := l.shard(c.of)
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.find(c.of); w != nil && c.end != 0 && w.end == c.end {
		w.count -= min(c.n, w.count)
	}
}

// Forget ends the window of key; the next request begins a new one.
func (l *Limiter) Forget(key string) {
	h := l.hash(key)
	s := l.shard(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.find(h); w != nil {
		w.end, w.count = 0, 0
	}
}

// Peek returns the state of the window of key without a change: Allowed is what
// Take would return, and Remaining does not count the next request. Peek panics if
// window is not positive.
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
