package background

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var errBroken = errors.New("broken")

// sweeping runs a sweep in the time of the test, and returns when passes began
// and which errors were reported.
type sweeping struct {
	begun    []time.Duration
	reported []string
}

// sweep sweeps until end. pass gets the number of the pass, from 1, and returns
// how long it takes.
func sweep(t *testing.T, every, end time.Duration, pass func(n int) (time.Duration, error)) *sweeping {
	t.Helper()
	s := &sweeping{}
	start := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), end)
	defer cancel()
	running := false
	Sweep(ctx, every, func(ctx context.Context) error {
		if running {
			t.Error("two passes at once")
		}
		running = true
		defer func() { running = false }()
		s.begun = append(s.begun, time.Since(start))
		took, err := pass(len(s.begun))
		select {
		case <-time.After(took):
		case <-ctx.Done():
		}
		return err
	}, func(err error) {
		s.reported = append(s.reported, fmt.Sprint(time.Since(start).Round(time.Minute), " ", err))
	})
	if took := time.Since(start); took != end {
		t.Errorf("the sweep ended after %v, its context after %v", took, end)
	}
	return s
}

func TestASweepIsRepeatedOnceInEveryInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const every = time.Hour
		// A pass that takes long does not make the interval longer.
		s := sweep(t, every, 1000*every, func(int) (time.Duration, error) { return every / 2, nil })
		if s.begun[0] != 0 {
			t.Errorf("the first pass began after %v", s.begun[0])
		}
		differ := map[time.Duration]bool{}
		for n := 1; n < len(s.begun); n++ {
			pause := s.begun[n] - s.begun[n-1]
			if differ[pause] = true; pause > every || pause < every*9/10 {
				t.Fatalf("pass %d began %v after the one before", n, pause)
			}
		}
		if len(s.begun) < 1000 || len(differ) < 500 {
			t.Errorf("%d passes, at %d different intervals: nodes would sweep together", len(s.begun), len(differ))
		}
	})
}

func TestAPassThatTakesLongerThanTheIntervalIsFollowedByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sweep(t, time.Hour, 7*time.Hour, func(n int) (time.Duration, error) {
			if n == 1 {
				return 5 * time.Hour, nil
			}
			return 0, nil
		})
		if s.begun[1] != 5*time.Hour || len(s.begun) > 5 {
			t.Errorf("passes began at %v", s.begun) // those that were missed are not made up for
		}
	})
}

func TestAFailingSweepGoesOnAndIsReportedNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sweep(t, time.Second, 2*time.Minute, func(int) (time.Duration, error) { return 0, errBroken })
		if n := len(s.reported); n < 4 || n > 5 || len(s.begun) < 120 {
			t.Errorf("%d passes, reported %d times: %v", len(s.begun), n, s.reported)
		}
		s = sweep(t, time.Hour, 3*time.Hour, func(n int) (time.Duration, error) {
			if n == 2 {
				return 0, nil
			}
			return 0, errBroken
		})
		if len(s.reported) != len(s.begun)-1 || !strings.HasPrefix(s.reported[0], "0s broken") {
			t.Errorf("%d passes, reported: %v", len(s.begun), s.reported)
		}
	})
}

func TestTheEndOfASweepIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		passes := 0
		var wait sync.WaitGroup
		wait.Go(func() {
			Sweep(ctx, time.Hour, func(ctx context.Context) error {
				passes++
				<-ctx.Done()
				return ctx.Err()
			}, func(err error) { t.Errorf("reported: %v", err) })
		})
		synctest.Wait()
		cancel()
		wait.Wait()
		Sweep(ctx, time.Hour, func(context.Context) error { passes++; return nil }, nil)
		if passes != 1 {
			t.Errorf("%d passes", passes)
		}
	})
}

func TestOneThatFailsDoesNotStopTheOthers(t *testing.T) {
	broken := map[string]bool{"b": true}
	var done []string
	do := func(_ context.Context, s string) error {
		done = append(done, s)
		if broken[s] {
			return fmt.Errorf("%s is %w", s, errBroken)
		}
		return nil
	}
	list := []string{"a", "b", "c", "d"}
	if err := Each(t.Context(), list, do); !errors.Is(err, errBroken) || err.Error() != "b is broken" || len(done) != 4 {
		t.Errorf("%v, %v", err, done)
	}
	broken["c"], broken["d"] = true, true
	if err := Each(t.Context(), list, do); !errors.Is(err, errBroken) || err.Error() != "b is broken (and 2 more)" {
		t.Errorf("%v", err)
	}
	if err := Each(t.Context(), nil, do); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done = nil
	err := Each(ctx, list, func(ctx context.Context, s string) error {
		cancel()
		return do(ctx, s)
	})
	if !errors.Is(err, context.Canceled) || len(done) != 1 {
		t.Errorf("%v after %v", err, done)
	}
}

func TestStepsRestAsLongAsTheyTook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took := []time.Duration{10 * time.Millisecond, 3 * time.Second, 20 * time.Millisecond}
		var begun []time.Duration
		start := time.Now()
		step := func(context.Context) (bool, error) {
			begun = append(begun, time.Since(start))
			time.Sleep(took[len(begun)-1])
			return len(begun) < len(took), nil
		}
		if err := Steps(t.Context(), step); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(begun) != "[0s 20ms 4.02s]" || time.Since(start) != 4040*time.Millisecond {
			t.Errorf("steps began at %v, and it took %v", begun, time.Since(start))
		}
		if err := Steps(t.Context(), func(context.Context) (bool, error) { return true, errBroken }); !errors.Is(err, errBroken) {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		begun = nil
		err := Steps(ctx, func(context.Context) (bool, error) {
			begun = append(begun, 0)
			time.Sleep(10 * time.Second) // after which it rests a second
			return true, nil
		})
		if !errors.Is(err, context.DeadlineExceeded) || len(begun) != 9 {
			t.Errorf("%v after %d steps", err, len(begun))
		}
	})
}
