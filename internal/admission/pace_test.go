package admission

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// TestRestsGrowWithLateness: short latenesses, which idle machines have, cost nothing; long ones soon two thirds of a
// core, which come back when the machine has time again.
func TestRestsGrowWithLateness(t *testing.T) {
	var p pace
	var average time.Duration
	notes := func(n int, late time.Duration) time.Duration {
		for range n {
			average = p.note(average, late)
		}
		return p.after(10 * time.Millisecond)
	}
	if rest := notes(100, time.Millisecond); rest != 0 {
		t.Errorf("an idle machine's lateness makes cores rest for %s after 10 ms", rest)
	}
	if rest := notes(2, 2*time.Millisecond); rest != 0 {
		t.Errorf("two late timers make cores rest for %s after 10 ms", rest)
	}
	if rest := notes(30, 8*time.Millisecond); rest != 20*time.Millisecond {
		t.Errorf("after 150 ms of lateness cores rest for %s after 10 ms", rest)
	}
	if rest := p.after(time.Second); rest != maxRest {
		t.Errorf("a rest of %s", rest)
	}
	if rest := notes(130, 0); rest != 0 {
		t.Errorf("650 ms later cores still rest for %s after 10 ms", rest)
	}
}

// TestOnlySparedCoresRest: where no core is spared, what is heavy makes timers late by itself, and would rest beside an
// idle core.
func TestOnlySparedCoresRest(t *testing.T) {
	for n, probes := range map[int]bool{runtime.GOMAXPROCS(0): false, runtime.GOMAXPROCS(0) - 1: true} {
		if n == 0 {
			continue
		}
		cores := NewCores(n)
		w, err := cores.Start(t.Context(), "sam")
		if err != nil || cores.pace.probing.Load() != probes {
			t.Errorf("%d cores of %d: measured: %t, %v", n, runtime.GOMAXPROCS(0), cores.pace.probing.Load(), err)
		}
		w.Stop()
	}
}

// TestALongWorkIsMeasured for as long as it computes, also while nothing else waits for its core.
func TestALongWorkIsMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cores := NewCores(1)
		cores.pace.off = false
		w, err := cores.Start(t.Context(), "sam")
		if err != nil {
			t.Fatal(err)
		}
		for range 1500 {
			time.Sleep(2 * time.Millisecond)
			if err := w.Yield(); err != nil {
				t.Fatal(err)
			}
		}
		if !cores.pace.probing.Load() {
			t.Error("after 3 s of one work lateness is not measured any more")
		}
		w.Stop()
		time.Sleep(2 * probing)
		if cores.pace.probing.Load() {
			t.Error("it is measured for ever")
		}
	})
}

// TestRestsLeaveHalfOfALimit: what computes for half of the time that it may take is in time, however full the machine is.
func TestRestsLeaveHalfOfALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cores := NewCores(1)
		cores.pace.probing.Store(true) // what is measured here would be nothing
		cores.pace.rest.Store(mostRest * 1000)
		const limit = 2 * time.Second
		begun := time.Now()
		w, err := cores.Start(t.Context(), "sam")
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		w.Within(limit)
		for computed := time.Duration(0); computed < limit/2; computed += 10 * time.Millisecond {
			time.Sleep(10 * time.Millisecond)
			if err := w.Yield(); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(begun); took != limit || w.Starved() {
			t.Errorf("it took %s", took)
		}
	})
}

// TestTheCoreRestsAndNotTheWork: who gives a core back goes on at once, and the next gets it after the rest. What ends
// within 5 ms costs none.
func TestTheCoreRestsAndNotTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cores := NewCores(1)
		cores.pace.probing.Store(true) // what is measured here would be nothing
		cores.pace.rest.Store(1500)
		run := func(key string, d time.Duration) (waited, left time.Duration) {
			asked := time.Now()
			w, err := cores.Start(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			waited = time.Since(asked)
			time.Sleep(d)
			stopped := time.Now()
			w.Stop()
			return waited, time.Since(stopped)
		}
		for n, c := range []struct{ lasts, waits time.Duration }{
			{10 * time.Millisecond, 0}, {4 * time.Millisecond, 15 * time.Millisecond}, {time.Second, 0}, {0, maxRest},
		} {
			if waited, left := run("sam", c.lasts); waited != c.waits || left != 0 {
				t.Errorf("%d: waited for %s, meant are %s; gave the core back in %s", n, waited, c.waits, left)
			}
		}
		w, err := cores.Start(t.Context(), "sam")
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		for n, rests := range []time.Duration{0, 0, 9, 0, 0, 9} { // alone it rests, too, for every 6 ms
			time.Sleep(2 * time.Millisecond)
			asked := time.Now()
			if err := w.Yield(); err != nil || time.Since(asked) != rests*time.Millisecond {
				t.Errorf("%d: it rested for %s, meant are %d ms: %v", n, time.Since(asked), rests, err)
			}
		}
		for range 9 { // as after a pause of its own, such as a call to the database
			time.Sleep(2 * time.Millisecond)
			w.Pause()
			time.Sleep(time.Millisecond)
			if err := w.Resume(); err != nil {
				t.Fatal(err)
			}
		}
		if w.Waited() != 0 || w.Starved() {
			t.Errorf("its own rests are counted as a wait for others: %s", w.Waited())
		}
	})
}
