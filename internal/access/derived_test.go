package access

import (
	"strconv"
	"sync"
	"testing"
)

var (
	words  Derived[Cache[string]]
	others Derived[Cache[string]]
)

func TestWhatIsDerivedDiesWithItsConfiguration(t *testing.T) {
	one, next := &Config{}, &Config{}
	words.Of(one).Put("a", "1")
	if v, ok := words.Of(one).Get("a"); !ok || v != "1" {
		t.Errorf("%q, %v", v, ok)
	}
	if _, ok := others.Of(one).Get("a"); ok {
		t.Error("two features share a cache")
	}
	if _, ok := words.Of(next).Get("a"); ok {
		t.Error("another version has the cache of the one before")
	}
}

func TestADerivedValueIsMadeOnce(t *testing.T) {
	c, made := &Config{}, make([]*Cache[string], 8)
	var wg sync.WaitGroup
	for i := range made {
		wg.Go(func() { made[i] = words.Of(c) })
	}
	wg.Wait()
	for _, one := range made {
		if one != made[0] {
			t.Fatal("two callers have different values")
		}
	}
}

func TestACacheIsBounded(t *testing.T) {
	var c Cache[int]
	for i := range 2*maxCache + 1 {
		c.Put(strconv.Itoa(i), i)
		if len(c.m) > maxCache {
			t.Fatalf("%d entries", len(c.m))
		}
	}
	if v, ok := c.Get(strconv.Itoa(2 * maxCache)); !ok || v != 2*maxCache {
		t.Error("the last entry is not there")
	}
}
