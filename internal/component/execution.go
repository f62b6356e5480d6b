package component

import (
	"context"
	"encoding/json"
	"runtime"
	"time"
	"unicode/utf8"

	"gatehouse/internal/admission"
)

// execution is the state of a run, or of a compilation, outside of the engine's
// memory.
type execution struct {
	ctx       context.Context
	tenant    string
	started   time.Time
	deadline  time.Time
	yielded   time.Time
	waited    time.Duration // in host calls and for a core: not CPU time
	work      *admission.Work
	maxPages  uint32
	maxOutput int // bytes
	host      Host

	// A run that is limited by its work has one of maxCPU and maxTurns. Exceeding
	// its deadline then means that the service had no time for the run.
	maxCPU   time.Duration // of the thread to which the run is locked
	cpuBegan time.Duration
	maxTurns int64
	turns    int64 // of loops, as supplied, and bytes that host functions processed

	// stopAtMemory stops the run at its own memory limit, instead of letting the
	// script catch an error.
	stopAtMemory bool
	// exact leaves the result as the script wrote it, see wellFormed.
	exact bool

	expired     bool  // over its own limit of time or work
	outOfMemory bool  // more memory was refused by the run's own limit
	stopped     error // why the run was stopped, other than for a failure of the component

	console      []Line
	consoleBytes int
	hostCalls    int
	hostBytes    int
	hostCtx      context.Context // made at the first call
	cancelHost   context.CancelFunc
	failure      *thrown
	responds     bool        // the handler returned what respond() made
	rejections   []rejection // not handled yet, oldest first
	links        *linker     // of a compilation
}

func newExecution(ctx context.Context, tenant string, timeout time.Duration) *execution {
	now := time.Now()
	return &execution{ctx: ctx, tenant: tenant, started: now, yielded: now, deadline: now.Add(timeout)}
}

// limitCPU limits the run's CPU time. It locks the goroutine to its thread until
// end, so that the thread's CPU time is the run's.
func (x *execution) limitCPU(limit time.Duration) {
	runtime.LockOSThread()
	x.maxCPU, x.cpuBegan = limit, threadCPU(x.started)
	x.deadline = x.started.Add(verifierWall)
}

// cpu returns the CPU time of the run so far, without host calls.
func (x *execution) cpu() time.Duration {
	now := time.Now()
	if x.maxCPU > 0 {
		return threadCPU(now) - x.cpuBegan
	}
	return max(0, now.Sub(x.started)-x.waited)
}

// end releases what the execution holds.
func (x *execution) end() {
	if x.maxCPU > 0 {
		runtime.UnlockOSThread()
	}
	if x.cancelHost != nil {
		x.cancelHost()
	}
}

// checkLimits stops the run when it was cancelled or the service has no time for
// it, and sets expired when it is over its own limit. It reports whether the grace
// period after that has passed.
func (x *execution) checkLimits(now time.Time) (beyond bool) {
	if err := x.ctx.Err(); err != nil {
		x.stop(err)
	}
	var over, allowed int64
	switch {
	case x.maxTurns > 0:
		over, allowed = x.turns-x.maxTurns, graceTurns
	case x.maxCPU > 0:
		over, allowed = int64(threadCPU(now)-x.cpuBegan-x.maxCPU), int64(grace)
	default:
		over, allowed = int64(now.Sub(x.deadline)), int64(grace)
	}
	if over > 0 && !x.work.Starved() {
		x.expired = true
	}
	if !x.expired && now.After(x.deadline) {
		x.stop(errNoTime)
	}
	return over > allowed
}

// allowed returns the run's time limit, for its author.
func (x *execution) allowed() string {
	if x.maxCPU > 0 {
		return x.maxCPU.String() + " of CPU time"
	}
	return x.deadline.Sub(x.started).String()
}

// stop unwinds the run with an error that is not the component's failure.
func (x *execution) stop(why error) {
	x.stopped = why
	panic(errStop)
}

// print stores a line of the console, within the limits of the console. source is the
// line of the component's source that printed it, or 0.
func (x *execution) print(level, source int, text []byte) {
	if len(x.console) >= MaxConsoleLines || x.consoleBytes+len(text) > MaxConsoleBytes {
		return
	}
	if len(text) > MaxConsoleLine {
		n := MaxConsoleLine
		for n > 0 && !utf8.RuneStart(text[n]) {
			n--
		}
		text = text[:n]
	}
	x.consoleBytes += len(text)
	x.console = append(x.console, Line{
		Level: levels[max(0, min(level, len(levels)-1))], Text: string(text),
		AtUS: max(1, time.Since(x.started).Microseconds()), Line: source,
	})
}

var levels = [...]string{"debug", "log", "info", "warn", "error"}

// thrown is the prelude's description of an uncaught error.
type thrown struct {
	Fail    bool   `json:"fail"` // thrown by fail()
	Status  int    `json:"status"`
	Code    string `json:"code"` // of fail(), or of the Host's error
	Name    string `json:"name"`
	Message string `json:"message"`
	Stack   string `json:"stack"`
	Details string `json:"details"` // JSON; "" for none
	Nothing bool   `json:"nothing"` // what was thrown is null or no value: there may have been no memory for an error
}

// rejection is a rejected promise and the reason: pointers to the engine's values,
// which must be freed with instance.free.
type rejection struct{ promise, reason uint32 }

// setFailure stores the prelude's description of an uncaught error.
func (x *execution) setFailure(text []byte) {
	t := &thrown{}
	if len(text) > maxFailure {
		text = nil
	}
	if err := json.Unmarshal(text, t); err != nil {
		t = &thrown{Message: "an error that cannot be shown"}
	}
	x.failure = t
}
