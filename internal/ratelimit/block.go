package ratelimit

import "time"

// block refuses a key until an instant. Both are in ns; length is how long the
// block was to last when it was put.
type block struct{ until, length int64 }

// sweepEvery bounds how often all blocks are searched for ended ones while the
// limiter is full of blocks.
const sweepEvery = int64(time.Second)

// Block refuses key until the given instant, and reports whether it does. A block
// never gets shorter. It is separate from the key's window and is kept until it
// ends, whatever else happens.
//
// Block returns false if Options.MaxBlocks blocks are running: this one is then
// not kept, and the caller should answer OVERLOADED to what the block would have
// refused. To get there an attacker has to cause each of the running blocks.
func (l *Limiter) Block(key string, until time.Time) bool {
	h := l.hash(key)
	if l.put(h, until.UnixNano()) {
		return true
	}
	return l.sweepBlocks() && l.put(h, until.UnixNano())
}

// Blocked reports whether key is blocked, and for how much longer.
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
// reports whether it did so now.
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
