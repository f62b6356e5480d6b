package access

import "sync"

// Derived is a value of type T that a feature keeps with each Config: what it
// works out from a configuration and needs again at the next request. A feature
// declares one as a package-level variable:
//
//	var resolved access.Derived[access.Cache[*Resolved]]
//
// The value dies with its Config. T must be ready for use as its zero value and
// safe for concurrent use. T bounds its own size, as Cache does.
type Derived[T any] struct {
	_ byte // variables of size zero may have one address
}

// Of returns the value that c keeps for d, which is the zero T at first.
func (d *Derived[T]) Of(c *Config) *T {
	kept, ok := c.derived.Load(d)
	if !ok {
		kept, _ = c.derived.LoadOrStore(d, new(T))
	}
	return kept.(*T) //nolint:forcetypeassert // only d is the key of a *T, and it stores no other
}

// Cache is a map of at most 50,000 entries. It is emptied when it is full, and
// is safe for concurrent use.
type Cache[T any] struct {
	mu sync.RWMutex
	m  map[string]T
}

const maxCache = 50_000

// Get returns the value stored under key, and whether there is one.
func (c *Cache[T]) Get(key string) (T, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	v, ok := c.m[key]
	return v, ok
}

// clear empties the cache.
func (c *Cache[T]) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.m = nil
}

// Put stores v under key.
func (c *Cache[T]) Put(key string, v T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m == nil || len(c.m) >= maxCache {
		c.m = map[string]T{}
	}
	c.m[key] = v
}
