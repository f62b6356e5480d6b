package signin

import (
	"context"
	"testing"

	"gatehouse/internal/fault"
)

func TestAFullQueueShedsAndAClosedOneFinishes(t *testing.T) {
	q := NewLater()
	hold, ran := make(chan struct{}), 0
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	must(q.put("acme", func(context.Context) { <-hold }))
	full := false
	for range maxJobsOfOne + 1 {
		if err := q.put("acme", func(context.Context) { ran++ }); err != nil {
			full = fault.CodeOf(err) == fault.Overloaded
		}
	}
	if !full {
		t.Error("it takes any number")
	}
	turn := 0
	must(q.put("globex", func(context.Context) { turn = ran }))
	close(hold)
	must(q.Close(t.Context()))
	if turn > 1 {
		t.Errorf("%d jobs of the tenant with the full queue went before another's", turn)
	}
	if ran < maxJobsOfOne-1 {
		t.Errorf("%d ran", ran)
	}
	if fault.CodeOf(q.put("acme", func(context.Context) {})) != fault.Overloaded {
		t.Error("it takes more after it was closed")
	}
	must(q.Settle(t.Context()))
}
