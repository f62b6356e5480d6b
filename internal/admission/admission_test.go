package admission_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/internal/admission"
)

func TestAQueueTakesTurnsByKey(t *testing.T) {
	var q admission.Queue[int]
	for n := range 100 {
		q.Push("crowd", n)
	}
	q.Push("eva", 1000)
	q.Push("sam", 2000)
	q.Push("eva", 1001)
	if q.Len() != 103 || q.LenOf("crowd") != 100 || q.LenOf("eva") != 2 || q.LenOf("nobody") != 0 {
		t.Fatalf("%d wait, %d of the crowd", q.Len(), q.LenOf("crowd"))
	}
	var order []string
	for range 6 {
		_, v, _ := q.Pop(nil)
		order = append(order, strconv.Itoa(v))
	}
	if got := strings.Join(order, " "); got != "0 1000 2000 1 1001 2" {
		t.Fatalf("served in the order %s", got)
	}
}

// Turns that cost more come less often; who comes anew has no credit for the
// time before, and who leaves and comes again still owes.
func TestAQueueChargesForLongTurns(t *testing.T) {
	var q admission.Queue[int]
	served := func(turns int) (order string) {
		for range turns {
			key, _, ok := q.Pop(nil)
			if !ok {
				break
			}
			order += key
			q.Charge(key, map[string]int64{"a": 50, "b": 10, "c": 10}[key])
		}
		return order
	}
	for n := range 30 {
		q.Push("a", n)
		q.Push("b", n)
	}
	if got := served(12); got != "abbbbbabbbbb" {
		t.Fatalf("served in the order %s", got)
	}
	q.Push("c", 0) // it was not there while the others used theirs
	q.Push("c", 1)
	if got := served(8); strings.Count(got, "a") != 1 || strings.Count(got, "c") != 2 {
		t.Fatalf("then in the order %s", got)
	}

	q = admission.Queue[int]{}
	q.Push("a", 1)
	_ = served(1)
	q.Push("a", 2)
	q.Push("b", 1)
	if got := served(2); got != "ba" {
		t.Fatalf("served in the order %s: a long turn was forgotten", got)
	}
	for n := range 10_000 { // what is owed is forgotten once it is paid
		q.Push(strconv.Itoa(n), n)
		key, _, _ := q.Pop(nil)
		q.Charge(key, 1)
	}
	if q.Len() != 0 {
		t.Fatal("the queue is not empty")
	}
}

func TestAQueuePassesOverWhoMayNot(t *testing.T) {
	var q admission.Queue[int]
	q.Push("busy", 1)
	q.Push("sam", 2)
	if key, v, ok := q.Pop(func(key string) bool { return key != "busy" }); !ok || key != "sam" || v != 2 {
		t.Fatalf("%s %d %t", key, v, ok)
	}
	if _, _, ok := q.Pop(func(string) bool { return false }); ok {
		t.Fatal("somebody was served who may not be")
	}
	q.Push("sam", 3)
	if key, _, _ := q.Pop(nil); key != "busy" {
		t.Fatalf("%s was served: who is passed over keeps the turn", key)
	}
}

func TestWhatIsRemovedIsNotServed(t *testing.T) {
	var q admission.Queue[int]
	for n := range 5 {
		q.Push("sam", n)
	}
	for _, n := range []int{2, 0, 4} {
		if !q.Remove("sam", func(v int) bool { return v == n }) {
			t.Fatalf("%d was not there", n)
		}
	}
	if q.Remove("sam", func(v int) bool { return v == 2 }) || q.Remove("nobody", func(int) bool { return true }) {
		t.Fatal("removed what is not there")
	}
	q.Push("sam", 9)
	if v, ok := q.PopLast("sam"); !ok || v != 9 {
		t.Fatalf("%d %t was the last", v, ok)
	}
	if _, ok := q.PopLast("nobody"); ok {
		t.Fatal("the last of nobody")
	}
	for _, want := range []int{1, 3} {
		if _, v, ok := q.Pop(nil); !ok || v != want {
			t.Fatalf("%d %t, expected %d", v, ok, want)
		}
	}
	if _, _, ok := q.Pop(nil); ok || q.Len() != 0 {
		t.Fatal("the queue is not empty")
	}
}

func limits(running, perKey int) admission.Limits {
	return admission.Limits{Running: running, PerKey: perKey, Waiting: 1000, WaitingPerKey: 500, MaxWait: 10 * time.Second}
}

// TestAGateIsFairByKey: a newcomer is let in at the next place that falls free,
// however many of another key came before. (With one line for all, the newcomer
// waits for the whole crowd.)
func TestAGateIsFairByKey(t *testing.T) {
	g := admission.NewGate(limits(2, 2))
	ctx := t.Context()
	var inside []func()
	for range 2 {
		leave, err := g.Enter(ctx, "crowd")
		if err != nil {
			t.Fatal(err)
		}
		inside = append(inside, leave)
	}
	var served atomic.Int64
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			leave, err := g.Enter(ctx, "crowd")
			if err != nil {
				t.Error(err)
				return
			}
			served.Add(1)
			time.Sleep(2 * time.Millisecond)
			leave()
		})
	}
	waitFor(t, func() bool { return g.Waiting() == 50 })
	before := make(chan int64, 1)
	all.Go(func() {
		leave, err := g.Enter(ctx, "sam")
		if err != nil {
			t.Error(err)
			return
		}
		before <- served.Load()
		leave()
	})
	waitFor(t, func() bool { return g.Waiting() == 51 })
	for _, leave := range inside {
		leave()
	}
	if n := <-before; n > 4 {
		t.Errorf("%d of the crowd were served before sam", n)
	}
	all.Wait()
	if g.Running() != 0 || g.Waiting() != 0 {
		t.Errorf("%d inside and %d waiting at the end", g.Running(), g.Waiting())
	}
}

func TestAGateKeepsItsBounds(t *testing.T) {
	g := admission.NewGate(limits(8, 3))
	var inside, most, mostOfOne atomic.Int64
	var ofOne [4]atomic.Int64
	raise := func(to *atomic.Int64, n int64) {
		for was := to.Load(); n > was && !to.CompareAndSwap(was, n); was = to.Load() {
		}
	}
	var all sync.WaitGroup
	for n := range 400 {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(n%7)*time.Millisecond+time.Microsecond)
			defer cancel()
			leave, err := g.Enter(ctx, strconv.Itoa(n%4))
			if err != nil {
				return
			}
			raise(&most, inside.Add(1))
			raise(&mostOfOne, ofOne[n%4].Add(1))
			time.Sleep(100 * time.Microsecond)
			ofOne[n%4].Add(-1)
			inside.Add(-1)
			leave()
		})
	}
	all.Wait()
	if most.Load() > 8 || mostOfOne.Load() > 3 {
		t.Errorf("%d inside at once, %d of one key", most.Load(), mostOfOne.Load())
	}
	if g.Running() != 0 || g.Waiting() != 0 {
		t.Errorf("%d inside and %d waiting at the end", g.Running(), g.Waiting())
	}
}

func TestAGateRefusesBeyondItsBounds(t *testing.T) {
	g := admission.NewGate(admission.Limits{Running: 1, PerKey: 1, Waiting: 2, WaitingPerKey: 1, MaxWait: 20 * time.Millisecond})
	leave, err := g.Enter(t.Context(), "sam")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for _, key := range []string{"sam", "eva"} {
		all.Go(func() {
			if _, err := g.Enter(t.Context(), key); !errors.Is(err, admission.ErrFull) {
				t.Errorf("%v: expected ErrFull after MaxWait", err)
			}
		})
	}
	waitFor(t, func() bool { return g.Waiting() == 2 })
	for _, key := range []string{"sam", "rita"} {
		if _, err := g.Enter(t.Context(), key); !errors.Is(err, admission.ErrFull) {
			t.Errorf("%s: %v: expected ErrFull at once", key, err)
		}
	}
	all.Wait()
	leave()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.Enter(ended, "sam"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v: expected the error of the context", err)
	}
	if leave, err = g.Enter(t.Context(), "sam"); err != nil {
		t.Fatal(err)
	}
	leave()
}

func TestNobodyHoldsMoreThanIsLeftFree(t *testing.T) {
	b := admission.NewBudget(1200)
	fill := func(key string) (n int64) {
		for b.Take(key, 10) {
			n += 10
		}
		return n
	}
	if n := fill("first"); n != 600 {
		t.Fatalf("one alone got %d of 1200", n)
	}
	if n := fill("second"); n != 300 {
		t.Fatalf("a second got %d of the 600 left", n)
	}
	if n := fill("third"); n != 150 {
		t.Fatalf("a third got %d of the 300 left", n)
	}
	if b.Take("first", 10) {
		t.Fatal("the first got more")
	}
	b.Release("first", 600)
	if b.Held("first") != 0 || b.Used() != 450 {
		t.Fatalf("%d held, %d used", b.Held("first"), b.Used())
	}
	if n := fill("third"); n != 300 {
		t.Fatalf("the third got %d more of what fell free", n)
	}
}

func TestABudgetIsExactUnderConcurrency(t *testing.T) {
	b := admission.NewBudget(1000)
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			key := strconv.Itoa(n % 3)
			for range 2000 {
				if b.Take(key, 7) {
					if b.Used() > 1000 {
						t.Error("more is held than there is")
					}
					b.Release(key, 7)
				}
			}
		})
	}
	all.Wait()
	if b.Used() != 0 {
		t.Errorf("%d bytes left behind", b.Used())
	}
}

func waitFor(t *testing.T, is func() bool) {
	t.Helper()
	for begun := time.Now(); !is(); time.Sleep(100 * time.Microsecond) {
		if time.Since(begun) > 20*time.Second {
			t.Fatal("it did not come to pass within 5 s")
		}
	}
}

func TestAChargeTakesStepsAndGivesAllBack(t *testing.T) {
	b := admission.NewBudget(1 << 20)
	c := b.Charge("sam")
	if !c.Reach(admission.Free) || b.Used() != 0 {
		t.Fatalf("%d bytes are held of an answer that is free", b.Used())
	}
	for n := int64(0); n <= 300<<10; n += 1000 {
		if !c.Reach(n) {
			t.Fatalf("refused at %d", n)
		}
		if over := b.Held("sam") - max(n-admission.Free, 0); over < 0 || over >= 64<<10 {
			t.Fatalf("%d bytes are held at %d", b.Held("sam"), n)
		}
	}
	held := b.Held("sam")
	if !c.Reach(1) || b.Held("sam") != held {
		t.Fatal("a smaller size changed what is held")
	}
	if c.Await(t.Context(), 1<<20) || c.Reach(1<<20) || b.Held("sam") != held {
		t.Fatalf("more than half is held: %d", b.Held("sam"))
	}
	if !c.Await(t.Context(), 1) || !c.Await(t.Context(), 400<<10) || b.Held("sam") != held {
		t.Fatalf("to look whether 400 KiB have room took some, or they have none: %d", b.Held("sam"))
	}
	c.Release()
	c.Release()
	if b.Used() != 0 {
		t.Fatalf("%d bytes left behind", b.Used())
	}
	if !c.Reach(400 << 10) {
		t.Fatal("refused after a release")
	}
	c.Release()
	var free admission.Charge
	if !free.Await(t.Context(), 1<<40) || !free.Reach(1<<40) {
		t.Fatal("the zero charge was refused")
	}
	free.Release()
}

// TestStrangersHaveAQuarterOfABudget: what they hold counts for the key, and leaves it the rest.
func TestStrangersHaveAQuarterOfABudget(t *testing.T) {
	b := admission.NewBudget(64 << 20)
	strange, own := b.Charge("sam"), b.Charge("sam")
	strange.Strange()
	if strange.Await(t.Context(), 17<<20) || strange.Reach(17<<20) || !strange.Await(t.Context(), 16<<20) || !strange.Reach(16<<20) || b.Held("sam") != 16<<20-admission.Free {
		t.Fatalf("strangers hold %d", b.Held("sam"))
	}
	second := b.Charge("sam")
	second.Strange()
	if second.Reach(1 << 20) {
		t.Error("strangers hold more than a quarter")
	}
	if own.Reach(17<<20) || !own.Reach(16<<20) {
		t.Error("the key's own has not what strangers leave of its half")
	}
	strange.Release()
	if !second.Reach(1 << 20) {
		t.Error("what strangers gave back is not free")
	}
	own.Release()
	second.Release()
	if b.Used() != 0 || b.Held("sam") != 0 {
		t.Errorf("%d bytes are held", b.Used())
	}
}

// TestStrangersOfManyKeysLeaveRoom: those of five keys, who hold as much as they can, leave a sixteenth of the budget to the own of each.
func TestStrangersOfManyKeysLeaveRoom(t *testing.T) {
	const mib = 1 << 20
	b := admission.NewBudget(64 * mib)
	keys := []string{"sam", "olga", "rosa", "uma", "mia"}
	for _, key := range keys {
		c := b.Charge(key)
		c.Strange()
		for n := int64(mib / 4); c.Reach(n); n += mib / 4 {
		}
		if b.Held(key) == 0 || key == "olga" && b.Held(key) < 11*mib {
			t.Errorf("strangers for %s hold %d", key, b.Held(key))
		}
		t.Cleanup(c.Release)
	}
	for _, key := range keys {
		own := b.Charge(key)
		if !own.Reach(4 * mib) {
			t.Errorf("%s: no room beside strangers, who hold %d", key, b.Used())
		}
		own.Release()
	}
}

// TestWhoWaitsForRoomGetsIt, in order, as soon as there is some; another key does not wait for that. It waits for 2 s at most, and
// not at all for what can never have room.
func TestWhoWaitsForRoomGetsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const mib = 1 << 20
		b := admission.NewBudget(64 * mib)
		all := make([]admission.Charge, 3)
		for i := range all {
			all[i] = b.Charge("sam")
			if !all[i].Await(t.Context(), 10*mib) || !all[i].Reach(10*mib) {
				t.Fatal("there is room for three")
			}
		}
		var mu sync.Mutex
		var order []int
		var done sync.WaitGroup
		wait := func(ctx context.Context, id int, n int64) {
			done.Go(func() {
				c := b.Charge("sam")
				if !c.Await(ctx, n) || !c.Reach(n) {
					id = -id
				}
				mu.Lock()
				order = append(order, id)
				mu.Unlock()
				time.Sleep(100 * time.Millisecond)
				c.Release()
			})
			synctest.Wait()
		}
		leaves, hangUp := context.WithCancel(t.Context())
		wait(t.Context(), 1, 9*mib)
		wait(leaves, 2, 9*mib)
		wait(t.Context(), 3, 4*mib) // behind the others, as small as it is
		wait(t.Context(), 4, 10*mib)
		other := b.Charge("olga")
		if begun := time.Now(); !other.Await(t.Context(), 10*mib) || time.Since(begun) != 0 {
			t.Error("another key waited")
		}
		hangUp()
		synctest.Wait()
		time.Sleep(time.Second)
		all[0].Release() // room for 1 and not for 3
		synctest.Wait()
		all[1].Release() // for 3
		synctest.Wait()
		done.Wait()
		if got := fmt.Sprint(order); got != "[-2 1 3 4]" {
			t.Errorf("the order: %s", got)
		}
		all[0] = b.Charge("sam")
		all[0].Reach(20 * mib)
		begun := time.Now()
		wait(t.Context(), 5, 12*mib)
		done.Wait()
		if got := fmt.Sprint(order); got != "[-2 1 3 4 -5]" || time.Since(begun) != 2100*time.Millisecond {
			t.Errorf("%s after %s", got, time.Since(begun))
		}
		never := b.Charge("sam")
		begun = time.Now()
		if never.Await(t.Context(), 40*mib) || time.Since(begun) != 0 {
			t.Errorf("what has no room in half of the budget waited for %s", time.Since(begun))
		}
		all[0].Release()
		all[2].Release()
		if b.Used() != 0 {
			t.Errorf("%d bytes are held", b.Used())
		}
	})
}

// TestStrangersWaitInALineOfTheirOwn: as many as may wait, the key's own do not wait for them, and have places to wait.
func TestStrangersWaitInALineOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const mib = 1 << 20
		b := admission.NewBudget(64 * mib)
		holds := b.Charge("sam")
		holds.Strange()
		if !holds.Reach(15 * mib) {
			t.Fatal("there is room")
		}
		var done sync.WaitGroup
		for range 40 {
			done.Go(func() {
				c := b.Charge("sam")
				c.Strange()
				if c.Await(t.Context(), 9*mib) {
					t.Error("strangers have more than a quarter")
				}
			})
		}
		synctest.Wait()
		own := b.Charge("sam")
		if begun := time.Now(); !own.Await(t.Context(), 9*mib) || time.Since(begun) != 0 {
			t.Errorf("the key's own waited %s for strangers", time.Since(begun))
		}
		if !own.Reach(16 * mib) {
			t.Fatal("there is room")
		}
		begun := time.Now()
		done.Go(func() {
			time.Sleep(time.Second)
			own.Release()
		})
		next := b.Charge("sam")
		if !next.Await(t.Context(), 9*mib) || time.Since(begun) != time.Second {
			t.Errorf("the key's own did not wait for room, after %s", time.Since(begun))
		}
		done.Wait()
		holds.Release()
	})
}

// TestStrangersLeavePlacesToWait: a key's own waits for room however many strangers wait, of however many keys.
func TestStrangersLeavePlacesToWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const mib = 1 << 20
		b := admission.NewBudget(64 * mib)
		holds, beside := b.Charge("sam"), b.Charge("olga")
		if !holds.Reach(30*mib) || !beside.Reach(15*mib) {
			t.Fatal("there is room")
		}
		var done sync.WaitGroup
		for key := range 20 {
			for range 40 {
				done.Go(func() {
					c := b.Charge(strconv.Itoa(key))
					c.Strange()
					if c.Await(t.Context(), 12*mib) {
						c.Release()
					}
				})
			}
		}
		synctest.Wait()
		begun := time.Now()
		done.Go(func() {
			own := b.Charge("sam")
			if !own.Await(t.Context(), 2*mib) || time.Since(begun) != time.Second {
				t.Errorf("the key's own is told after %s", time.Since(begun))
			}
		})
		time.Sleep(time.Second)
		holds.Release()
		done.Wait()
		beside.Release()
	})
}

// TestRoomThatIsNotTakenGoesToTheNext: at once when who was let in hangs up, and while they are slow to take it, before the
// next is refused.
func TestRoomThatIsNotTakenGoesToTheNext(t *testing.T) {
	for name, c := range map[string]struct{ slow, next time.Duration }{
		"hangs up": {0, 0},
		"is slow":  {time.Minute, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const mib = 1 << 20
				b := admission.NewBudget(64 * mib)
				holds, first, next := b.Charge("sam"), b.Charge("sam"), b.Charge("sam")
				holds.Reach(30 * mib)
				var done sync.WaitGroup
				done.Go(func() {
					if !first.Await(t.Context(), 20*mib) {
						t.Error("the first was refused")
					}
					time.Sleep(c.slow)
					first.Release()
				})
				synctest.Wait()
				begun := time.Now()
				done.Go(func() {
					if !next.Await(t.Context(), 20*mib) || time.Since(begun) != c.next {
						t.Errorf("the next after %s", time.Since(begun))
					}
				})
				synctest.Wait()
				holds.Release()
				done.Wait()
				next.Release()
				if b.Used() != 0 {
					t.Errorf("%d bytes are held at the end", b.Used())
				}
			})
		})
	}
}
