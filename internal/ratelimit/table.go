package ratelimit

import "time"

// ways is how many places there are for a key. With 16 the table is more than
// half full before a bucket overflows by chance.
const ways = 16

// slot is one key's window. It holds no pointer, so the garbage collector never
// looks into the table. A slot whose end is not after now is free.
type slot struct {
	a, b  uint64 // the key's hash
	end   int64  // in ns since 1970; 0 in a slot never used
	count uint32 // requests accepted in this window
	limit uint32 // the limit last asked with
}

type bucket [ways]slot

func (s *slot) result(allowed bool, limit int, now int64) Result {
	r := Result{Allowed: allowed, Limit: max(limit, 0), Reset: time.Duration(s.end - now)}
	if s.count < s.limit {
		r.Remaining = int(s.limit - s.count)
	}
	return r
}

// forgetBefore reports whether s is the better one to forget: one below its
// limit, of these the least counted, of these the one that ends first.
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

// find is the slot of h, running or ended, or nil.
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

// claim is the slot of h or, when it has none, the one it gets: whatever is in
// there is to be overwritten. The shard grows to at most maxBuckets before
// anything that is running is overwritten.
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

// grow doubles the shard and carries over what is running. A bucket's slots go
// to one of two new ones, so each has room for all of them.
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
