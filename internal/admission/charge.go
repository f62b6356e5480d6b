package admission

import "context"

// A Charge takes nothing from its budget for the first Free bytes, which is all
// that most requests hold, and whole steps for what exceeds them.
const (
	Free = 64 << 10
	step = 64 << 10
)

// Charge is the part of a Budget that one holder has, such as a request. It must
// not be used by two goroutines at once. The zero Charge has no budget and is
// never refused.
type Charge struct {
	budget  *Budget
	key     string
	strange bool
	awaited bool // Await let it in: others may wait for what it takes
	taken   int64
}

// Charge returns a charge of a key that holds nothing yet. Its Release must be
// called at the end. A nil Budget returns the zero Charge.
func (b *Budget) Charge(key string) Charge { return Charge{budget: b, key: key} }

// Strange makes what is taken from now on count among what strangers sent for the key, of
// which there may be no more than a quarter of the budget, and for all keys no more than five eighths:
// the rest is left to the keys' own.
// The charge must hold nothing yet.
func (c *Charge) Strange() { c.strange = true }

// Reach makes the charge hold at least n bytes and reports whether it does. If the
// budget refuses, the charge is unchanged.
func (c *Charge) Reach(n int64) bool {
	more := c.lacks(n)
	if more > 0 && !c.budget.take(c.key, c.strange, more) {
		return false
	}
	c.taken += more
	return true
}

// Await waits until Reach would make the charge hold n bytes, and reports whether it would. It takes none, and waits
// for at most 2 s, behind others of the key, or behind strangers if it is one; not at all where there can be no room, or too many wait.
func (c *Charge) Await(ctx context.Context, n int64) bool {
	more := c.lacks(n)
	c.awaited = more > 0 && c.budget.await(ctx, c.key, c.strange, more)
	return more == 0 || c.awaited
}

// lacks returns what has to be taken for the charge to hold n bytes.
func (c *Charge) lacks(n int64) int64 {
	if n -= Free; n <= c.taken || c.budget == nil {
		return 0
	}
	return (n - c.taken + step - 1) / step * step
}

// Release gives back all that the charge holds, and what it was let in for and has not taken.
// The charge may be used again.
func (c *Charge) Release() {
	if c.taken > 0 || c.awaited {
		c.budget.release(c.key, c.strange, c.taken)
		c.taken, c.awaited = 0, false
	}
}
