//go:build marks

package mark

import "testing"

func TestSteps(t *testing.T) {
	for _, c := range []struct {
		plan    string
		reached []string
		dies    int // at which of them, -1 for none
	}{
		{"", []string{"a"}, -1},
		{"a", []string{"b", "a"}, 1},
		{"a#2", []string{"a", "b", "a"}, 2},
		{"a,b", []string{"b", "a", "a", "b"}, 3},
		{"a,b#2", []string{"a", "b", "a", "b"}, 3},
	} {
		steps = parse(c.plan)
		died := -1
		for i, point := range c.reached {
			if due(point) {
				died = i
				break
			}
		}
		if died != c.dies {
			t.Errorf("%q dies at %d of %v, want %d", c.plan, died, c.reached, c.dies)
		}
	}
	steps = nil
}
