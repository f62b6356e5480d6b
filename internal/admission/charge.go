package admission

// What a Charge takes of its budget: nothing for the first Free bytes, which is
// all that most requests ever hold, and whole steps beyond.
const (
	Free = 64 << 10
	step = 64 << 10
)

// Charge is what one holder, such as a request, holds of a Budget. It belongs to
// one goroutine at a time. The zero value belongs to no budget and is never
// refused.
type Charge struct {
	budget *Budget
	key    string
	taken  int64
}

// Charge opens a charge of a key that holds nothing yet. Release it in the end.
// Of a nil budget it is the zero Charge.
func (b *Budget) Charge(key string) Charge { return Charge{budget: b, key: key} }

// Reach makes the charge hold n bytes, unless it holds as many already; false
// when the budget refuses, and then it holds what it held.
func (c *Charge) Reach(n int64) bool {
	if n -= Free; n <= c.taken || c.budget == nil {
		return true
	}
	more := (n - c.taken + step - 1) / step * step
	if !c.budget.Take(c.key, more) {
		return false
	}
	c.taken += more
	return true
}

// Release gives back all that the charge holds; it may be used again.
func (c *Charge) Release() {
	if c.taken > 0 {
		c.budget.Release(c.key, c.taken)
		c.taken = 0
	}
}
