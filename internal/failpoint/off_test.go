//go:build !failpoints

package failpoint

import (
	"testing"
)

// TestAtDoesNothing in a normal build. Package prove checks that the program contains
// nothing of this package.
func TestAtDoesNothing(t *testing.T) {
	t.Setenv("GATEHOUSE_KILL_AT", "here")
	At("here")
	if n := testing.AllocsPerRun(100, func() { At("here") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
