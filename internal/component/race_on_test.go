//go:build race

package component_test

import "time"

// slack is how late a run may end: more under the race detector, whose own
// work is not what is measured.
const slack = 300 * time.Millisecond
