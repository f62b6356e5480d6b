package ratelimit_test

import (
	"strconv"
	"testing"
	"time"

	"gatehouse/internal/ratelimit"
)

func TestABlockHoldsUntilItsEnd(t *testing.T) {
	l, c := start(ratelimit.Options{})
	if _, blocked := l.Blocked("eva"); blocked {
		t.Fatal("blocked from the start")
	}
	if !l.Block("eva", noon.Add(30*time.Minute)) || !l.Block("eva", noon.Add(time.Minute)) {
		t.Fatal("not kept")
	}
	c.Advance(30*time.Minute - time.Microsecond)
	if left, blocked := l.Blocked("eva"); !blocked || left != time.Microsecond {
		t.Fatalf("blocked %v for %v: a later block made it shorter", blocked, left)
	}
	if _, blocked := l.Blocked("sam"); blocked {
		t.Fatal("another key is blocked")
	}
	l.Block("eva", noon.Add(31*time.Minute))
	c.Advance(time.Minute)
	if left, blocked := l.Blocked("eva"); !blocked || left != time.Microsecond {
		t.Fatalf("blocked %v for %v: a later block did not make it longer", blocked, left)
	}
	c.Set(noon.Add(31 * time.Minute))
	if left, blocked := l.Blocked("eva"); blocked || left != 0 {
		t.Fatalf("still blocked for %v", left)
	}
	if !l.Block("eva", noon) {
		t.Fatal("a block that has ended already is nothing to keep")
	}
	if _, blocked := l.Blocked("eva"); blocked {
		t.Fatal("blocked until the past")
	}
}

func TestABlockAndAWindowOfOneKeyAreApart(t *testing.T) {
	l, _ := start(ratelimit.Options{})
	l.Block("eva", noon.Add(time.Hour))
	if r := l.Take("eva", 1, time.Minute); !r.Allowed {
		t.Fatalf("%+v", r)
	}
}

func TestAtTheBoundABlockIsRefusedAndNoneIsForgotten(t *testing.T) {
	const most = 500
	l, c := start(ratelimit.Options{MaxKeys: 1, MaxBlocks: most})
	until := func(i int) time.Time { return noon.Add(time.Minute + time.Duration(i)*time.Second) }
	for i := range most {
		if !l.Block(strconv.Itoa(i), until(i)) {
			t.Fatalf("block %d was refused", i)
		}
	}
	for i := range most {
		if l.Block("more "+strconv.Itoa(i), noon.Add(time.Hour)) {
			t.Fatal("a block above the bound is kept")
		}
	}
	if !l.Block("3", until(400)) {
		t.Fatal("a running block cannot be made longer")
	}
	for i := range 100_000 {
		l.Take("flood "+strconv.Itoa(i), 1, time.Hour)
	}
	for i := range most {
		if left, blocked := l.Blocked(strconv.Itoa(i)); !blocked || left < time.Minute {
			t.Fatalf("block %d is gone", i)
		}
	}
	c.Advance(time.Minute + 9*time.Second) // blocks 0 to 9 end, but for 3
	for i := range 9 {
		if !l.Block("more "+strconv.Itoa(i), noon.Add(time.Hour)) {
			t.Fatalf("there is room for block %d", i)
		}
	}
	if l.Block("one more", noon.Add(time.Hour)) {
		t.Fatal("a block above the bound is kept")
	}
}
