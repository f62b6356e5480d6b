package ratelimit

import "time"

// ways is how many slots a bucket has, in any of which a key may be. With 16, the
// table is more than half full before a bucket overflows by chance.
const ways = 16

// slot is the window of one key. It contains no pointers, so the garbage collector
// does not scan the table. A slot whose end is not after now is free.
type slot struct {
	a, b  uint64 // the key's hash
	end   int64  // in ns since 1970; 0 in a slot never used
	count uint32 // requests accepted in this window
	limit uint32 // the limit of the last call
}

type bucket [ways]slot

func (s *slot) result(allowed bool, limit int, now int64) Result {
	r := Result{Allowed: allowed, Limit: max(limit, 0), Reset: time.Duration(s.end - now)}
	if s.count < s.limit {
		r.Remaining = int(s.limit - s.count)
	}
	return r
}

// forgetBefore reports whether s should be forgotten rather than o: if only s is
// below its limit; else if s has counted less; else if s ends first.
func (s *slot) forgetBefore(o *slot) bool {
	if full, other := s.count >= s.limit, o.count >= o.limit; full != other {
		return other
	}
	if s.count != o.count {
		return s.count < o.count
	}
	return s.end < o.end
}

func (s *shard) bucket(h hash) *bucket {
	return &s.buckets[h.a/shardCount%uint64(len(s.buckets))]
}

// find returns the slot of h, whose window may have ended, or nil.
func (s *shard) find(h hash) *slot {
	if len(s.buckets) == 0 {
		return nil
	}
	b := s.bucket(h)
	for i := range b {
		if b[i].a == h.a && b[i].b == h.b {
			return &b[i]
		}
	}
	return nil
}

// claim returns h's slot, or, if it has none, the one that it should overwrite:
// a free one or, once the shard has grown to maxBuckets, that of the window that
// should be forgotten.
func (s *shard) claim(h hash, now int64, maxBuckets int) *slot {
	if len(s.buckets) == 0 {
		s.buckets = make([]bucket, 1)
	}
	for {
		if found := s.find(h); found != nil {
			return found
		}
		b := s.bucket(h)
		best := &b[0]
		for i := range b {
			if b[i].end <= now {
				return &b[i]
			}
			if b[i].forgetBefore(best) {
				best = &b[i]
			}
		}
		if len(s.buckets) >= maxBuckets {
			return best
		}
		s.grow(now)
	}
}

// grow doubles the number of buckets and keeps the running windows. The slots of a
// bucket go to one of two new ones, so each of these has room for all of them.
func (s *shard) grow(now int64) {
	old := s.buckets
	s.buckets = make([]bucket, 2*len(old))
	filled := make([]uint8, len(s.buckets))
	for i := range old {
		for j := range old[i] {
			w := &old[i][j]
			if w.end <= now {
				continue
			}
			n := w.a / shardCount % uint64(len(s.buckets))
			s.buckets[n][filled[n]] = *w
			filled[n]++
		}
	}
}
