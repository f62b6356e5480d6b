package component

import (
	"context"
	"encoding/json"
	"runtime"
	"time"
	"unicode/utf8"

	"gatehouse/internal/admission"
)

// execution is what Go knows of a run (or of a compilation) while it lasts.
type execution struct {
	ctx       context.Context
	tenant    string
	started   time.Time
	deadline  time.Time
	yielded   time.Time
	waited    time.Duration // in host calls and for the core: no CPU time
	work      *admission.Work
	maxPages  uint32
	maxOutput int // bytes
	host      Host

	// A run that is judged by its work has one of these. Its deadline is not
	// its own then: past it the platform had no time for the run.
	maxCPU   time.Duration // of its thread, to which it is locked
	cpuBegan time.Duration
	maxTurns int64
	turns    int64 // supplied so far, and bytes that went through host functions

	// cutAtMemory ends the run where its own memory limit refuses it more; the
	// script is not told.
	cutAtMemory bool
	// exact leaves the result as the script wrote it, see wellFormed.
	exact bool

	expired     bool  // over its own limit of time or work
	outOfMemory bool  // growth was refused by the run's own limit
	stopped     error // why the run must end without a verdict of its own

	console      []Line
	consoleBytes int
	hostCalls    int
	hostBytes    int
	hostCtx      context.Context // made at the first call
	cancelHost   context.CancelFunc
	failure      *thrown
	rejections   []rejection // that nobody has handled, in their order
}

func newExecution(ctx context.Context, tenant string, timeout time.Duration) *execution {
	now := time.Now()
	return &execution{ctx: ctx, tenant: tenant, started: now, yielded: now, deadline: now.Add(timeout)}
}

// limitCPU makes the run's limit one of CPU time. The goroutine keeps its thread
// until end, for the thread's clock to be the run's.
func (x *execution) limitCPU(limit time.Duration) {
	runtime.LockOSThread()
	x.maxCPU, x.cpuBegan = limit, threadCPU(x.started)
	x.deadline = x.started.Add(verifierWall)
}

// cpu is the CPU time of the run so far, host calls not counted.
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

// look stops a run at once that was cancelled or for which the platform has no
// time, and marks one that is over its own limit. It reports whether the grace
// is used up, too.
func (x *execution) look(now time.Time) (beyond bool) {
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

// allowed is the limit of time that the run's author knows.
func (x *execution) allowed() string {
	if x.maxCPU > 0 {
		return x.maxCPU.String() + " of CPU time"
	}
	return x.deadline.Sub(x.started).String()
}

// stop ends the run without a verdict of its own.
func (x *execution) stop(why error) {
	x.stopped = why
	panic(errStop)
}

// print keeps a line of the console.
func (x *execution) print(level int, text []byte) {
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
	x.console = append(x.console, Line{Level: levels[max(0, min(level, len(levels)-1))], Text: string(text)})
}

var levels = [...]string{"debug", "log", "info", "warn", "error"}

// thrown is what the prelude tells about an uncaught error.
type thrown struct {
	Fail    bool   `json:"fail"` // by fail()
	Status  int    `json:"status"`
	Code    string `json:"code"` // of fail(), or of a refusal of the Host
	Name    string `json:"name"`
	Message string `json:"message"`
	Stack   string `json:"stack"`
	Details string `json:"details"` // JSON; "" for none
	Nothing bool   `json:"nothing"` // null, or not even that
}

// rejection is a promise that was rejected, and why: pointers to the engine's
// values, which are held as long as this is.
type rejection struct{ promise, reason uint32 }

// failed keeps what the prelude tells of an uncaught error.
func (x *execution) failed(text []byte) {
	t := &thrown{}
	if len(text) > maxFailure {
		text = nil
	}
	if err := json.Unmarshal(text, t); err != nil {
		t = &thrown{Message: "an error that cannot be shown"}
	}
	x.failure = t
}
