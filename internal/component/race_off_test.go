//go:build !race

package component_test

import "time"

// slack is how late a run may end.
const slack = 50 * time.Millisecond
