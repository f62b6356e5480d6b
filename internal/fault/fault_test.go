package fault

import (
	"testing"
	"time"
)

// Whoever is told OVERLOADED is told when to come back, wherever it was made.
func TestAnOverloadedAlwaysSaysWhenToComeBack(t *testing.T) {
	for _, code := range Codes() {
		want := time.Duration(0)
		if code == Overloaded {
			want = time.Second
		}
		if got := New(code, "no").With("a", 1).RetryAfter; got != want {
			t.Errorf("%s: after %s, want %s", code, got, want)
		}
	}
	if got := New(Overloaded, "no").After(5 * time.Second).RetryAfter; got != 5*time.Second {
		t.Errorf("after %s, want what was asked for", got)
	}
}
