package admission

import (
	"sync/atomic"
	"time"
)

const (
	// probeEvery is how often the runtime is asked whether it is late, and probing how long
	// that goes on after the last Work.
	probeEvery, probing = 5 * time.Millisecond, time.Second
	// tooLate is how late a timer may be: without load it is by 0.2 ms on average, and up to 1.
	tooLate = 1500 * time.Microsecond
	// maxRest bounds how long a core rests, for each turn, and mostRest in terms of the time
	// that was computed: what is heavy always has a third of its cores.
	maxRest, mostRest = 100 * time.Millisecond, 2.0
	// restFrom is how long a work computes before its core rests: what ends within it costs
	// no rest, and timers that are late, too, do not make much of a longer one.
	restFrom = 5 * time.Millisecond
)

// pace says for how long a core rests after a turn. While there are cores to spare, it does
// not. When goroutines are not run in time, because short requests or other processes need
// the cores, each turn is followed by a rest that grows with the lateness, so that what is
// heavy takes what is left, and no less than its third.
type pace struct {
	off     bool         // there is no core to spare: what is heavy makes timers late by itself
	used    atomic.Int64 // when a Work last had a core, in nanoseconds of the Unix epoch
	probing atomic.Bool
	rest    atomic.Int64 // thousandths of the time computed
}

// uses notes that a Work has a core now, and measures from now on.
func (p *pace) uses(now time.Time) {
	if p.off {
		return
	}
	p.used.Store(now.UnixNano())
	if !p.probing.Load() && p.probing.CompareAndSwap(false, true) {
		go p.probe()
	}
}

// probe measures how late timers are, until nothing was heavy for a while.
func (p *pace) probe() {
	var average time.Duration
	for {
		asked := time.Now()
		if asked.UnixNano()-p.used.Load() > int64(probing) {
			p.rest.Store(0)
			p.probing.Store(false)
			return
		}
		time.Sleep(probeEvery)
		average = p.note(average, time.Since(asked)-probeEvery)
	}
}

// note counts one lateness and returns the average of the latest.
func (p *pace) note(average, late time.Duration) time.Duration {
	average += (late - average) / 4
	if average > tooLate {
		p.rest.Store(min(p.rest.Load()+150, mostRest*1000))
	} else {
		p.rest.Store(max(p.rest.Load()-20, 0))
	}
	return average
}

// after returns how long a core rests after it was used for a time.
func (p *pace) after(took time.Duration) time.Duration {
	return min(took*time.Duration(p.rest.Load())/1000, maxRest)
}
