package endpoint

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/internal/tenant"
)

// shelf is a runStore that keeps runs in memory, or fails.
type shelf struct {
	mu    sync.Mutex
	kept  []string
	fails atomic.Int64 // so many times, -1 for ever
	sizes []int        // of the transactions
}

func (s *shelf) putRuns(_ context.Context, tenant tenant.ID, runs []*Run) error {
	switch n := s.fails.Load(); {
	case n > 0:
		s.fails.Add(-1)
		return errors.New("the disk is full")
	case n < 0:
		return errors.New("the disk is full")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range runs {
		if r.tenant != tenant {
			return fmt.Errorf("a run of %s is kept for %s", r.tenant, tenant)
		}
		s.kept = append(s.kept, r.ID)
	}
	s.sizes = append(s.sizes, len(runs))
	return nil
}

// said collects what a history tells the log.
type said struct {
	mu    sync.Mutex
	lines []string
}

func (s *said) emit(event string, fields map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, fmt.Sprint(event, fields))
}

func (s *said) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.lines, "\n")
}

// TestRunsAreKept, all of them, of several tenants, several in a transaction.
func TestRunsAreKept(t *testing.T) {
	st, log := &shelf{}, &said{}
	h := newHistory(st, log.emit)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 250 {
				h.add(&Run{ID: fmt.Sprint(i, "/", j), Status: Succeeded, tenant: tenant.ID(fmt.Sprint("t", i%3))})
			}
		})
	}
	wg.Wait()
	if err := h.close(t.Context()); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, id := range st.kept {
		seen[id] = true
	}
	if len(seen) != 2000 || len(st.kept) != 2000 || len(st.sizes) > 200 {
		t.Errorf("%d different runs of %d are kept, in %d transactions", len(seen), len(st.kept), len(st.sizes))
	}
	for _, n := range st.sizes {
		if n > maxBatch {
			t.Errorf("%d in a transaction", n)
		}
	}
	if s := h.stats(); s.Runs[Succeeded] != 2000 || s.Waiting != 0 || log.all() != "" || h.held.Used() != 0 {
		t.Errorf("%+v, %d bytes held: %s", s, h.held.Used(), log.all())
	}
	if err := h.close(t.Context()); err != nil { // a second time
		t.Error(err)
	}
}

// TestATransactionOfRunsIsBoundedInBytes: other tenants' writes wait for it.
func TestATransactionOfRunsIsBoundedInBytes(t *testing.T) {
	st, log := &shelf{}, &said{}
	h := newHistory(st, log.emit)
	for n, size := range []int{400 << 10, 400 << 10, 400 << 10, 3 << 20, 10, 10} {
		h.add(&Run{ID: fmt.Sprint(n), Status: Failed, tenant: "t", payload: make([]byte, size)})
	}
	if err := h.close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(st.sizes); got != "[2 1 1 2]" {
		t.Errorf("transactions of %s runs", got)
	}
}

// TestADatabaseThatRecovers loses no run.
func TestADatabaseThatRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, log := &shelf{}, &said{}
		st.fails.Store(runTries - 1)
		h := newHistory(st, log.emit)
		h.add(&Run{ID: "a", Status: Failed, tenant: "t"})
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if len(st.kept) != 1 || log.all() != "" || h.held.Used() != 0 {
			t.Errorf("%v %s", st.kept, log.all())
		}
		if err := h.close(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// TestADatabaseThatIsGone: runs wait up to their budget of memory, then a call
// waits a little and lets its run go, and says so; nothing waits for ever.
func TestADatabaseThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, log := &shelf{}, &said{}
		st.fails.Store(-1)
		h := newHistory(st, log.emit)
		big := strings.Repeat("x", 1<<20)
		add := func(tenant tenant.ID, id string) time.Duration {
			begun := time.Now()
			h.add(&Run{ID: id, Status: Succeeded, Trace: big, tenant: tenant})
			return time.Since(begun)
		}
		for i := range 63 {
			add("t", fmt.Sprint(i))
		}
		if took := add("u", "another tenant's"); took != 0 {
			t.Errorf("another tenant's run waited %v", took)
		}
		if took := add("t", "one too many"); took != maxPatient {
			t.Errorf("it waited %v", took)
		}
		if text := log.all(); !strings.Contains(text, "run.not_kept") || !strings.Contains(text, "one too many") {
			t.Errorf("%s", text)
		}
		begun := time.Now()
		if err := h.close(t.Context()); err != nil || time.Since(begun) != 0 {
			t.Errorf("%v: close waited %v for a database that is gone", err, time.Since(begun))
		}
		if text := log.all(); !strings.Contains(text, "runs:") || !strings.Contains(text, "the disk is full") {
			t.Errorf("%.300s", text)
		}
		if len(st.kept) != 0 || h.held.Used() != 0 {
			t.Errorf("%d runs kept, %d bytes held", len(st.kept), h.held.Used())
		}
	})
}

// TestACallGetsTheRoomOfRunsThatWereWritten, as soon as they are.
func TestACallGetsTheRoomOfRunsThatWereWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, log := &shelf{}, &said{}
		st.fails.Store(1)
		h := newHistory(st, log.emit)
		half := strings.Repeat("x", maxHeld/2-4096)
		h.add(&Run{ID: "a", Trace: half, tenant: "t"})
		begun := time.Now()
		h.add(&Run{ID: "b", Trace: half, tenant: "t"})
		if took, want := time.Since(begun), flushRuns+100*time.Millisecond; took != want { // the first try fails
			t.Errorf("it waited %v, the first was written after %v", took, want)
		}
		if err := h.close(t.Context()); err != nil || len(st.kept) != 2 || log.all() != "" {
			t.Errorf("%v %v %s", err, st.kept, log.all())
		}
	})
}

// TestCloseGivesUp when its context ends.
func TestCloseGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHistory(stuck{}, (&said{}).emit)
		h.add(&Run{ID: "a", tenant: "t"})
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if err := h.close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		if err := h.close(t.Context()); err != nil { // each try ends in time
			t.Error(err)
		}
	})
}

// stuck is a database that does not answer.
type stuck struct{}

func (stuck) putRuns(ctx context.Context, _ tenant.ID, _ []*Run) error {
	<-ctx.Done()
	return ctx.Err()
}

// picky is a database that will not have one run.
type picky struct{ shelf }

func (p *picky) putRuns(ctx context.Context, tenant tenant.ID, runs []*Run) error {
	for _, r := range runs {
		if r.Error == "unfit" {
			return errUnfit
		}
	}
	return p.shelf.putRuns(ctx, tenant, runs)
}

// TestARunThatCannotBeKeptCostsNoOther, and nobody waits for it.
func TestARunThatCannotBeKeptCostsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p picky
		var log said
		h := newHistory(&p, log.emit)
		for n := range 20 {
			r := &Run{ID: fmt.Sprint(n), tenant: "t", Status: Failed}
			if n == 7 {
				r.Error = "unfit"
			}
			h.add(r)
		}
		time.Sleep(flushRuns)
		synctest.Wait() // it is not tried again
		if len(p.kept) != 19 || strings.Count(log.all(), "run.not_kept") != 1 {
			t.Errorf("%d of 19 were kept; %s", len(p.kept), log.all())
		}
		if err := h.close(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}
