//go:build failpoints

package failpoint

import "testing"

func TestSteps(t *testing.T) {
	for _, c := range []struct {
		plan    string
		reached []string
		killed  int // at which of them, -1 for none
	}{
		{"", []string{"a"}, -1},
		{"a", []string{"b", "a"}, 1},
		{"a#2", []string{"a", "b", "a"}, 2},
		{"a,b", []string{"b", "a", "a", "b"}, 3},
		{"a,b#2", []string{"a", "b", "a", "b"}, 3},
	} {
		steps = parse(c.plan)
		at := -1
		for i, point := range c.reached {
			if due(point) {
				at = i
				break
			}
		}
		if at != c.killed {
			t.Errorf("%q kills at %d of %v, want %d", c.plan, at, c.reached, c.killed)
		}
	}
	steps = nil
}
