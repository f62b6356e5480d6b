//go:build !marks

package mark

import (
	"testing"
)

// TestANormalBuildGoesOn where a marked one would have ended. That nothing of
// this package is in the program is shown in internal/prove.
func TestANormalBuildGoesOn(t *testing.T) {
	t.Setenv("GATEHOUSE_KILL_AT", "here")
	At("here")
	if n := testing.AllocsPerRun(100, func() { At("here") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
