package ratelimit

import "time"

// block refuses a key until an instant, both in ns.
type block struct{ until, length int64 }

// sweepEvery bounds what looking for ended blocks may cost when there are as
// many as are kept.
const sweepEvery = int64(time.Second)

// Block refuses key until the given instant; a block never gets shorter. A block
// is separate from the key's window and is never forgotten before it ends,
// whatever else happens.
//
// It answers false when as many blocks as are kept at most are running: then
// this one is not kept, and the caller had better refuse with OVERLOADED
// whatever a block would have refused. To get there a stranger must earn every
// one of the running blocks.
func (l *Limiter) Block(key string, until time.Time) bool {
	h := l.hash(key)
	if l.put(h, until.UnixNano()) {
		return true
	}
	return l.sweepBlocks() && l.put(h, until.UnixNano())
}

// Blocked tells whether key is blocked, and for how much longer.
func (l *Limiter) Blocked(key string) (time.Duration, bool) {
	h := l.hash(key)
	s := l.shard(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.blocks[h]
	if !ok {
		return 0, false
	}
	now := l.clock().UnixNano()
	if b.until <= now {
		delete(s.blocks, h)
		l.blocks.Add(-1)
		return 0, false
	}
	if b.until > now+b.length { // the clock was set back
		b.until = now + b.length
		s.blocks[h] = b
	}
	return time.Duration(b.until - now), true
}

func (l *Limiter) put(h hash, until int64) bool {
	s := l.shard(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := l.clock().UnixNano()
	if until <= now {
		return true
	}
	b, known := s.blocks[h]
	if known && b.until >= until {
		return true
	}
	if !known && l.blocks.Add(1) > l.maxBlocks {
		l.blocks.Add(-1)
		return false
	}
	if s.blocks == nil {
		s.blocks = map[hash]block{}
	}
	s.blocks[h] = block{until: until, length: until - now}
	return true
}

// sweepBlocks removes the blocks that have ended, at most once a second, and
// reports whether it looked.
func (l *Limiter) sweepBlocks() bool {
	now, last := l.clock().UnixNano(), l.swept.Load()
	if now >= last && now-last < sweepEvery || !l.swept.CompareAndSwap(last, now) {
		return false
	}
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		for h, b := range s.blocks {
			if b.until <= now {
				delete(s.blocks, h)
				l.blocks.Add(-1)
			}
		}
		s.mu.Unlock()
	}
	return true
}
