package ratelimit_test

import (
	"fmt"
	"math"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gatehouse/internal/clock"
	"gatehouse/internal/ratelimit"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func start(o ratelimit.Options) (*ratelimit.Limiter, *clock.Fake) {
	c := clock.NewFake(noon)
	return ratelimit.New(c.Now, o), c
}

// The per-key limit (contract L1, L2): of five times as many requests as the
// limit allows, sent at once, exactly the limit is accepted, and the accepted
// ones are told limit-1 down to 0, each number once.
func TestLIM1ALimitIsExactUnderConcurrency(t *testing.T) {
	for _, limit := range []int{1, 5, 60, 1000} {
		for round := range 10 {
			l, c := start(ratelimit.Options{})
			c.Advance(time.Duration(round) * 7 * time.Second)
			remaining := flood(t, l, "key", limit, 5*limit)
			if len(remaining) != limit {
				t.Fatalf("limit %d: %d accepted", limit, len(remaining))
			}
			for n := range limit {
				if remaining[n] != 1 {
					t.Fatalf("limit %d: %d remaining was told %d times", limit, n, remaining[n])
				}
			}
		}
	}
}

// flood sends requests from 64 goroutines and counts what Remaining the
// accepted ones were told.
func flood(t *testing.T, l *ratelimit.Limiter, key string, limit, requests int) map[int]int {
	var next atomic.Int64
	var mu sync.Mutex
	remaining := map[int]int{}
	begin := make(chan struct{})
	var wait sync.WaitGroup
	for range 64 {
		wait.Go(func() {
			<-begin
			for next.Add(1) <= int64(requests) {
				r := l.Take(key, limit, time.Minute)
				if r.Limit != limit || r.Reset != time.Minute || !r.Allowed && r.Remaining != 0 {
					t.Errorf("answer %+v", r)
				}
				if r.Allowed {
					mu.Lock()
					remaining[r.Remaining]++
					mu.Unlock()
				}
			}
		})
	}
	close(begin)
	wait.Wait()
	return remaining
}

// TestReturnsAreExactUnderConcurrency: of many requests that are counted and of
// which all but every third are taken back, exactly the others stay counted.
func TestReturnsAreExactUnderConcurrency(t *testing.T) {
	l, c := start(ratelimit.Options{})
	_, old := l.Charge("key", 1000, time.Minute)
	c.Advance(time.Minute)
	var wait sync.WaitGroup
	var kept atomic.Int64
	for range 32 {
		wait.Go(func() {
			for n := range 300 {
				r, charge := l.Charge("key", 1000, time.Minute)
				switch {
				case !r.Allowed:
				case n%3 == 0 && kept.Load() < 900:
					kept.Add(1)
				default:
					l.Return(charge)
				}
			}
		})
	}
	wait.Wait()
	l.Return(old) // of the window before: it changes nothing
	l.Return(ratelimit.Charge{})
	if r := l.Peek("key", 1000, time.Minute); r.Remaining != 1000-int(kept.Load()) {
		t.Errorf("%d left with %d counted of 1000", r.Remaining, kept.Load())
	}
}

func TestManyKeysAtOnceAreEachExact(t *testing.T) {
	l, _ := start(ratelimit.Options{})
	const keys, limit = 3000, 7
	var accepted [keys]atomic.Int64
	var wait sync.WaitGroup
	for g := range 16 {
		wait.Go(func() {
			for i := range keys {
				k := (i*7919 + g*131) % keys
				if l.Take("key "+strconv.Itoa(k), limit, time.Minute).Allowed {
					accepted[k].Add(1)
				}
			}
		})
	}
	wait.Wait()
	for k := range accepted {
		if n := accepted[k].Load(); n != limit {
			t.Fatalf("key %d: %d accepted", k, n)
		}
	}
}

func TestWaitingResetSucceedsAndOneSecondLessFails(t *testing.T) {
	l, c := start(ratelimit.Options{})
	l.Take("key", 2, time.Minute)
	c.Advance(20 * time.Second)
	l.Take("key", 2, time.Minute)
	r := l.Take("key", 2, time.Minute)
	if r.Allowed || r.Reset != 40*time.Second {
		t.Fatalf("third request: %+v", r)
	}
	c.Advance(r.Reset - time.Second)
	if got := l.Take("key", 2, time.Minute); got.Allowed || got.Reset != time.Second {
		t.Fatalf("one second early: %+v", got)
	}
	c.Advance(time.Second - time.Microsecond)
	if got := l.Take("key", 2, time.Minute); got.Allowed || got.Reset != time.Microsecond {
		t.Fatalf("a microsecond early: %+v", got)
	}
	c.Advance(time.Microsecond)
	if got := l.Take("key", 2, time.Minute); !got.Allowed || got.Remaining != 1 || got.Reset != time.Minute {
		t.Fatalf("after Reset: %+v", got)
	}
}

func TestAWindowBeginsWithTheFirstRequestInIt(t *testing.T) {
	l, c := start(ratelimit.Options{})
	l.Take("key", 5, time.Minute)
	c.Advance(10 * time.Minute)
	if r := l.Take("key", 5, time.Minute); r.Reset != time.Minute || r.Remaining != 4 {
		t.Fatalf("after a pause: %+v", r)
	}
	if r := l.Take("other", 5, time.Hour); r.Reset != time.Hour {
		t.Fatalf("another length: %+v", r)
	}
}

func TestAChangedLimitHoldsAtOnce(t *testing.T) {
	l, _ := start(ratelimit.Options{})
	for range 3 {
		l.Take("key", 10, time.Minute)
	}
	for _, step := range []struct {
		limit     int
		allowed   bool
		remaining int
	}{{2, false, 0}, {3, false, 0}, {5, true, 1}, {0, false, 0}, {-1, false, 0}, {1000, true, 995}} {
		r := l.Take("key", step.limit, time.Minute)
		if r.Allowed != step.allowed || r.Remaining != step.remaining || r.Limit != max(step.limit, 0) {
			t.Errorf("limit %d: %+v", step.limit, r)
		}
	}
}

func TestPeekConsumesNothing(t *testing.T) {
	l, c := start(ratelimit.Options{})
	for range 3 {
		if r := l.Peek("key", 2, time.Minute); !r.Allowed || r.Remaining != 2 || r.Reset != time.Minute {
			t.Fatalf("untouched: %+v", r)
		}
	}
	l.Take("key", 2, time.Minute)
	c.Advance(time.Second)
	l.Take("key", 2, time.Minute)
	if r := l.Peek("key", 2, time.Minute); r.Allowed || r.Remaining != 0 || r.Reset != 59*time.Second {
		t.Fatalf("used up: %+v", r)
	}
	c.Advance(59 * time.Second)
	if r := l.Peek("key", 2, time.Minute); !r.Allowed || r.Remaining != 2 {
		t.Fatalf("ended: %+v", r)
	}
}

func TestAClockSetBackBlocksNobodyForLongerThanAWindow(t *testing.T) {
	l, c := start(ratelimit.Options{})
	l.Take("key", 1, time.Minute)
	l.Block("key", noon.Add(30*time.Minute))
	c.Set(noon.Add(-24 * time.Hour))
	if r := l.Peek("key", 1, time.Minute); r.Allowed || r.Reset != time.Minute {
		t.Fatalf("set back, peek: %+v", r)
	}
	if r := l.Take("key", 1, time.Minute); r.Allowed || r.Reset != time.Minute {
		t.Fatalf("set back: %+v", r)
	}
	if left, blocked := l.Blocked("key"); !blocked || left != 30*time.Minute {
		t.Fatalf("set back: blocked for %v, %v", left, blocked)
	}
	c.Advance(time.Minute)
	if r := l.Take("key", 1, time.Minute); !r.Allowed {
		t.Fatalf("a window later: %+v", r)
	}
	c.Advance(29 * time.Minute)
	if left, blocked := l.Blocked("key"); blocked {
		t.Fatalf("still blocked for %v", left)
	}
}

// The limiter against the plainest possible one, over random requests.
func TestItCountsLikeAPlainMap(t *testing.T) {
	type window struct {
		end   time.Time
		count int
	}
	rapid.Check(t, func(t *rapid.T) {
		l, c := start(ratelimit.Options{})
		windows := map[string]window{}
		type charged struct {
			ratelimit.Charge
			end time.Time
		}
		charges := map[string][]charged{}
		for range rapid.IntRange(1, 300).Draw(t, "requests") {
			c.Advance(time.Duration(rapid.SampledFrom([]int{0, 0, 1, 999_999, 1_000_000, 20_000_000}).Draw(t, "µs")) * time.Microsecond)
			key := "k" + strconv.Itoa(rapid.IntRange(0, 40).Draw(t, "key"))
			limit := rapid.IntRange(0, 4).Draw(t, "limit")
			w := windows[key]
			if !w.end.After(c.Now()) {
				w = window{end: c.Now().Add(time.Minute)}
			}
			want := ratelimit.Result{Allowed: w.count < limit, Limit: limit, Remaining: max(limit-w.count, 0), Reset: w.end.Sub(c.Now())}
			if c := charges[key]; len(c) > 0 && rapid.IntRange(0, 3).Draw(t, "return") == 0 {
				last := c[len(c)-1]
				charges[key] = c[:len(c)-1]
				l.Return(last.Charge)
				if last.end.Equal(w.end) { // of this window
					w.count--
					windows[key] = w
				}
				continue
			}
			if rapid.Bool().Draw(t, "peek") {
				if got := l.Peek(key, limit, time.Minute); got != want {
					t.Fatalf("peek %s: %+v, want %+v", key, got, want)
				}
				continue
			}
			if want.Allowed {
				w.count, want.Remaining = w.count+1, want.Remaining-1
			}
			windows[key] = w
			got, charge := l.Charge(key, limit, time.Minute)
			if got != want {
				t.Fatalf("take %s: %+v, want %+v", key, got, want)
			}
			if got.Allowed {
				charges[key] = append(charges[key], charged{charge, w.end})
			} else {
				l.Return(charge) // which was none
			}
		}
	})
}

func TestAWindowWithoutLengthIsAMistakeOfTheProgram(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("it is accepted")
		}
	}()
	l, _ := start(ratelimit.Options{})
	l.Take("key", 1, 0)
}

func TestAFloodOfKeysFreesNobodyAndStaysSmall(t *testing.T) {
	keys := 1_000_000
	if testing.Short() {
		keys = 200_000
	}
	before := heap()
	l, c := start(ratelimit.Options{})
	for range 5 {
		l.Take("login victim@acme.example", 5, 15*time.Minute)
	}
	for range 50 {
		l.Take("key of the shop", 1000, time.Minute)
	}
	l.Block("login blocked@acme.example", noon.Add(30*time.Minute))
	var most uint64
	for i := range keys {
		l.Take("login "+strconv.Itoa(i)+"@flood.example", 5, 15*time.Minute)
		if i%100_000 == 0 {
			most = max(most, heap()-min(before, heap()))
		}
	}
	if most = max(most, heap()-before); most > 24<<20 {
		t.Errorf("holds %d MiB", most>>20)
	}
	if r := l.Take("login victim@acme.example", 5, 15*time.Minute); r.Allowed {
		t.Errorf("the flood freed the victim's login: %+v", r)
	}
	if r := l.Take("key of the shop", 1000, time.Minute); r.Remaining != 949 {
		t.Errorf("the flood reset a used key: %+v", r)
	}
	if _, blocked := l.Blocked("login blocked@acme.example"); !blocked {
		t.Error("the flood lifted a block")
	}
	c.Advance(15 * time.Minute)
	// Ended windows give their slots back. With 50,000 keys, a tenth of the slots, a
	// bucket overflows by chance in one run of tens of millions; with 100,000 it is one of 1,000.
	for i := range 50_000 {
		if r := l.Take("later "+strconv.Itoa(i), 5, time.Minute); r.Remaining != 4 {
			t.Fatalf("later: %+v", r)
		}
	}
	for i := range 50_000 {
		if r := l.Take("later "+strconv.Itoa(i), 5, time.Minute); r.Remaining != 3 {
			t.Fatalf("key %d was forgotten though there was room: %+v", i, r)
		}
	}
	runtime.KeepAlive(l)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}

func TestAQuietLimiterIsSmall(t *testing.T) {
	before := heap()
	l, _ := start(ratelimit.Options{})
	for i := range 20 {
		l.Take("key "+strconv.Itoa(i), 5, time.Minute)
	}
	if after := heap(); after > before+256<<10 {
		t.Errorf("20 keys hold %d KiB", (after-before)>>10)
	}
	runtime.KeepAlive(l)
}

func BenchmarkTake(b *testing.B) {
	for name, now := range map[string]func() time.Time{
		"system clock": clock.System().Now,
		"time.Now":     time.Now,
		"still clock":  func() time.Time { return noon },
	} {
		b.Run(name, func(b *testing.B) {
			l := ratelimit.New(now, ratelimit.Options{})
			b.ReportAllocs()
			for b.Loop() {
				l.Take("key 01234567-89ab-cdef", 1<<30, time.Minute)
			}
		})
	}
}

func BenchmarkTakeParallel(b *testing.B) {
	for _, keys := range []int{1, 1000} {
		b.Run(fmt.Sprint(keys, " keys"), func(b *testing.B) {
			l := ratelimit.New(time.Now, ratelimit.Options{})
			names := make([]string, keys)
			for i := range names {
				names[i] = "key 01234567-89ab-" + strconv.Itoa(i)
			}
			b.ReportAllocs()
			b.RunParallel(func(p *testing.PB) {
				for i := 0; p.Next(); i++ {
					l.Take(names[i%keys], 1<<30, time.Minute)
				}
			})
		})
	}
}

func BenchmarkFlood(b *testing.B) {
	l := ratelimit.New(time.Now, ratelimit.Options{})
	b.ReportAllocs()
	var buf [32]byte
	for i := 0; b.Loop(); i++ {
		l.Take(string(strconv.AppendInt(buf[:0], int64(i), 10)), 5, time.Hour)
	}
}

func BenchmarkBlocked(b *testing.B) {
	l := ratelimit.New(time.Now, ratelimit.Options{})
	b.ReportAllocs()
	for b.Loop() {
		l.Blocked("login eva@customer.example")
	}
}

// Many requests at once are counted all or not at all, and returned together.
func TestManyRequestsAtOnceAreAllCountedOrNone(t *testing.T) {
	l, _ := start(ratelimit.Options{})
	first, charge := l.ChargeMany("k", 7, 10, time.Minute)
	if !first.Allowed || first.Remaining != 3 || charge.Requests() != 7 {
		t.Fatalf("%+v %+v", first, charge)
	}
	if r, none := l.ChargeMany("k", 4, 10, time.Minute); r.Allowed || r.Remaining != 3 || none.Requests() != 0 {
		t.Errorf("one too many: %+v %+v", r, none)
	}
	if r, _ := l.ChargeMany("k", 3, 10, time.Minute); !r.Allowed || r.Remaining != 0 {
		t.Errorf("the rest: %+v", r)
	}
	l.Return(charge)
	if r := l.Peek("k", 10, time.Minute); r.Remaining != 7 {
		t.Errorf("after the return: %+v", r)
	}
	if r, _ := l.ChargeMany("k", math.MaxInt, 10, time.Minute); r.Allowed {
		t.Errorf("more than there can be: %+v", r)
	}
}
