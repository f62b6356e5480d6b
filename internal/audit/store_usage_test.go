package audit

import (
	"testing"
	"time"
)

func TestQuantiles(t *testing.T) {
	var s usageSums
	if s.quantile(.5) != 0 {
		t.Error("of nothing")
	}
	for _, ms := range []int{1, 1, 3, 3, 3, 3, 3, 3, 3, 9000} {
		s.count(&Event{Status: 200, Duration: time.Duration(ms) * time.Millisecond})
	}
	for q, want := range map[float64][2]time.Duration{
		.1: {0, time.Millisecond}, .5: {2500 * time.Microsecond, 5 * time.Millisecond}, .9: {2500 * time.Microsecond, 5 * time.Millisecond},
		.95: {5 * time.Second, 30 * time.Second}, 1: {30 * time.Second, 30 * time.Second},
	} {
		if got := s.quantile(q); got < want[0] || got > want[1] {
			t.Errorf("%v: %v, want %v", q, got, want)
		}
	}
}
